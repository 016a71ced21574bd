"""How what a list can be narrowed by is shown: every value a link, and a chosen one a link that takes it off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from apps.core.addresses import repeatable


@dataclass(frozen=True, slots=True)
class FacetLink:
    label: str
    count: int
    chosen: bool
    query: str


FacetGroup = tuple[str, str, list[FacetLink]]


def facet_groups(
    parameters: QueryDict,
    values: Mapping[str, Sequence[Any]],
    labels: Mapping[str, str],
    *,
    named: Callable[[str, str], str],
    whole: str = "",
) -> list[FacetGroup]:
    """(parameter, heading, links), in the order of ``labels``; ``named`` says what people call a value.

    ``whole`` is the query that leads to the list without a filter, where an empty one leads elsewhere.
    """
    return [
        (name, label, [_link(parameters, name, each, named, whole) for each in values.get(name, ())])
        for name, label in labels.items()
    ]


def _link(parameters: QueryDict, name: str, each: Any, named: Callable[[str, str], str], whole: str) -> FacetLink:
    chosen = parameters.get(name, "").strip() == each.value
    query = repeatable(parameters)
    query.pop("cursor", None)
    if chosen:
        query.pop(name, None)
    else:
        query[name] = each.value
    return FacetLink(named(name, each.value), each.count, chosen, query.urlencode() or whole)
