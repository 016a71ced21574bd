"""Parameters of an address that a page repeats in its links, without what must not be repeated."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest, QueryDict
from rest_framework.request import Request

from apps.core.screening import masked


def repeatable(parameters: QueryDict) -> QueryDict:
    """A copy with a mark in the place of every secret and all personal data."""
    kept = QueryDict(mutable=True)
    for name, values in parameters.lists():
        kept.setlist(masked(name), [masked(value) for value in values])
    return kept


def at_cursor(request: HttpRequest | Request, cursor: str) -> str:
    """The path of the same list, from another place on."""
    parameters = repeatable(request.GET)
    parameters["cursor"] = cursor
    return f"{request.path}?{parameters.urlencode()}"


def repeatable_path(path: str) -> str:
    """A path with its parameters, such as one to come back to."""
    parts = urlsplit(path)
    parameters = repeatable(QueryDict(parts.query))
    return parts._replace(query=parameters.urlencode(safe="/")).geturl()
