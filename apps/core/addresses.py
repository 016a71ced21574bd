"""Parameters of an address that a page repeats in its links, without what must not be repeated."""

from __future__ import annotations

from django.http import QueryDict

from apps.core.screening import masked


def repeatable(parameters: QueryDict) -> QueryDict:
    """A copy with a mark in the place of every secret and all personal data."""
    kept = QueryDict(mutable=True)
    for name, values in parameters.lists():
        kept.setlist(masked(name), [masked(value) for value in values])
    return kept
