"""Cursor pages: `{results, next, previous}`, by the values of the last row and not by counting.

Rows that come or go while a client pages are neither shown twice nor missed.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import Field, Model, Q, QuerySet
from django.http import HttpRequest
from rest_framework.request import Request

from apps.core.addresses import at_cursor
from apps.core.errors import Invalid
from apps.core.serializers import StrictQuery, Text, Whole

M = TypeVar("M", bound=Model)

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
# Past this many a count costs more than the page beside it, and nobody decides anything by it.
MAX_COUNTED = 500


class PageQuery(StrictQuery):
    """The parameters of every list; a room's own come on top."""

    limit = Whole(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    cursor = Text(max_length=500, required=False, multiline=False)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    rows: Sequence[M]
    next: str | None
    previous: str | None

    def as_dict(self, render: Callable[[M], Any]) -> dict[str, Any]:
        return {"results": [render(row) for row in self.rows], "next": self.next, "previous": self.previous}


@dataclass(frozen=True, slots=True)
class _Key:
    name: str
    descending: bool


@dataclass(frozen=True, slots=True)
class _Position:
    """Just after, or just before, a row with these values."""

    values: tuple[Any, ...]
    backwards: bool


def page_of(
    rows: QuerySet[M],
    *,
    order: Sequence[str],
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
    request: HttpRequest | Request,
) -> Page[M]:
    """One page of ``rows`` in ``order``: names of own columns, ``-`` for descending, together unique, none null.

    Raises ``Invalid`` for a cursor that was not given out for this list.
    """
    keys = [_Key(name.removeprefix("-"), name.startswith("-")) for name in order]
    position = _decode(cursor, rows.model, keys) if cursor else None
    backwards = position is not None and position.backwards
    if position is not None:
        rows = rows.filter(_beyond(keys, position))
    ordering = [("" if key.descending == backwards else "-") + key.name for key in keys]
    found = list(rows.order_by(*ordering)[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    if backwards:
        found.reverse()
    has_next = bool(found) and (more or backwards)
    has_previous = bool(found) and (position is not None) and (more or not backwards)
    return Page(
        found,
        _link(request, keys, found[-1], backwards=False) if has_next else None,
        _link(request, keys, found[0], backwards=True) if has_previous else None,
    )


def _beyond(keys: Sequence[_Key], position: _Position) -> Q:
    """Rows after the position in row order: (a > x) or (a = x and b > y) or …, and a ≥ x for the index."""
    condition, equal = Q(), Q()
    for key, value in zip(keys, position.values, strict=True):
        comparison = "lt" if key.descending != position.backwards else "gt"
        condition |= equal & Q(**{f"{key.name}__{comparison}": value})
        equal &= Q(**{key.name: value})
    first, bound = keys[0], position.values[0]
    edge = "lte" if first.descending != position.backwards else "gte"
    return Q(**{f"{first.name}__{edge}": bound}) & condition


def _link(request: HttpRequest | Request, keys: Sequence[_Key], row: Model, *, backwards: bool) -> str:
    values = [_column(type(row), key.name).value_to_string(row) for key in keys]
    packed = json.dumps(["p" if backwards else "n", *values], separators=(",", ":")).encode()
    return request.build_absolute_uri(at_cursor(request, base64.urlsafe_b64encode(packed).decode().rstrip("=")))


def _decode(cursor: str, model: type[Model], keys: Sequence[_Key]) -> _Position:
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        direction, *texts = json.loads(packed)
        if direction not in ("n", "p") or not all(isinstance(text, str) for text in texts):
            raise ValueError("not a cursor of ours")
        columns = [_column(model, key.name) for key in keys]
        values = tuple(column.to_python(text) for column, text in zip(columns, texts, strict=True))
        if "\0" in "".join(texts) or not all(map(_is_definite, values)):
            raise ValueError("not a cursor of ours")
    except (ValueError, TypeError, ValidationError, binascii.Error, RecursionError, FieldDoesNotExist):
        raise Invalid.field(
            "cursor", "This cursor was not given out for this list. Start without one, then follow `next`."
        ) from None
    return _Position(values, backwards=direction == "p")


def _is_definite(value: Any) -> bool:
    return value is not None and not (isinstance(value, datetime) and value.tzinfo is None)


def _column(model: type[Model], name: str) -> Field[Any, Any]:
    column = model._meta.pk if name == "pk" else model._meta.get_field(name)
    if not isinstance(column, Field):
        raise FieldDoesNotExist(f"{model.__name__} has no column {name} to page by.")
    return column
