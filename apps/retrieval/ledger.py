"""What the ledger says about hits: how they stand, what weighs them, and what holds instead of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import OperationalError, connection

from apps.core.errors import Unavailable
from apps.core.time_limits import is_timeout, reading_within
from apps.retrieval.filters import Admission

LEDGER_SECONDS: Final = 2.0


@contextmanager
def ledger_in_time() -> Iterator[None]:
    """Reading what says what may be served, with an end to the waiting."""
    try:
        with reading_within(LEDGER_SECONDS):
            yield
    except OperationalError as error:
        if not is_timeout(error):
            raise
        raise Unavailable(
            "The ledger did not answer in time, and nothing is served that it has not let through. Try again in a "
            "moment.",
            code="ledger_timeout",
        ) from error


@dataclass(frozen=True, slots=True)
class Weighting:
    """How a category counts. ``weights`` are by intent, and 1 where there is none; no half-life, no fading."""

    half_life_days: int | None
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class Facts:
    """``admitted`` says whether the search may serve it; ``since`` is when it began to hold, as far as is known.

    ``is_amended`` says that something replaces it in part or amends it, which this search may or may not serve.
    """

    memory_id: UUID
    number: int
    status: str
    category: str
    weighting: Weighting
    since: datetime
    is_amended: bool
    admitted: bool

    @property
    def label(self) -> str:
        return f"M-{self.number}"


# Whether it is amended is looked up for each hit by its key. For EXISTS the planner would read all edges there are.
_COLUMNS: Final = """
memory.id, memory.number, memory.status, category.slug, category.half_life_days, category.weights,
coalesce(memory.valid_from, memory.recorded_at),
coalesce((
    SELECT true FROM memories_supersession AS amending
    WHERE amending.old_id = memory.id AND amending.kind <> 'full' AND amending.voided_by_id IS NULL LIMIT 1
), false),
coalesce({admitted}, false)
"""
_JOINED: Final = """
JOIN taxonomy_memorytype AS type ON type.id = memory.type_id
JOIN taxonomy_category AS category ON category.id = type.category_id
"""
# Edges that an approval made and nothing has voided; a graph, so one memory may be reached in several ways. How many
# it leads to the planner overrates a hundredfold and would read both tables for; OFFSET has each looked up by its key.
_SUCCESSORS: Final = """
WITH RECURSIVE led(origin, id) AS (
    SELECT edge.old_id, edge.new_id FROM memories_supersession AS edge
    WHERE edge.old_id = ANY(%(ids)s) AND edge.kind = 'full' AND edge.voided_by_id IS NULL
    UNION
    SELECT led.origin, edge.new_id FROM led CROSS JOIN LATERAL (
        SELECT new_id FROM memories_supersession
        WHERE old_id = led.id AND kind = 'full' AND voided_by_id IS NULL OFFSET 0
    ) AS edge
)
"""


def facts_of(admission: Admission, ids: Collection[UUID]) -> dict[UUID, Facts]:
    """By id; what belongs to another workspace is not there."""
    admitted, values = admission.sql()
    rows = _rows(
        f"SELECT {_COLUMNS.format(admitted=admitted)} FROM memories_memory AS memory {_JOINED} "
        "WHERE memory.id = ANY(%(ids)s) AND memory.workspace_id = %(workspace)s",
        values | {"ids": list(ids)},
    )
    return {facts.memory_id: facts for facts in map(_facts, rows)}


def successors_of(admission: Admission, ids: Collection[UUID]) -> dict[UUID, list[Facts]]:
    """By each of ``ids``, what the search may serve of all that replaced it, directly or through others.

    Between memories of one chain the intervals decide: of what replaced one another, one holds at a time.
    """
    if not ids:
        return {}
    admitted, values = admission.sql()
    rows = _rows(
        f"{_SUCCESSORS} SELECT {_COLUMNS.format(admitted=admitted)}, led.origin FROM led "
        "CROSS JOIN LATERAL (SELECT * FROM memories_memory WHERE id = led.id OFFSET 0) AS memory "
        f"{_JOINED} WHERE {admitted}",
        values | {"ids": list(ids)},
    )
    found: dict[UUID, list[Facts]] = defaultdict(list)
    for row in rows:
        found[row[-1]].append(_facts(row))
    return found


def amendments_of(admission: Admission, ids: Collection[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    """By each of ``ids``, what the search may serve that replaces it in part or amends it. Such edges hide nothing."""
    if not ids:
        return {}
    admitted, values = admission.sql()
    rows = _rows(
        "SELECT edge.old_id, edge.kind, memory.id, memory.number, memory.content FROM memories_supersession AS edge "
        "JOIN memories_memory AS memory ON memory.id = edge.new_id "
        f"WHERE edge.old_id = ANY(%(ids)s) AND edge.kind <> 'full' AND edge.voided_by_id IS NULL AND {admitted} "
        "ORDER BY memory.number",
        values | {"ids": list(ids)},
    )
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for old, kind, memory_id, number, content in rows:
        found[old].append({"id": str(memory_id), "number": f"M-{number}", "kind": kind, "content": content})
    return found


def _rows(statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _facts(row: tuple[Any, ...]) -> Facts:
    memory_id, number, status, category, half_life, weights, since, is_amended, admitted = row[:9]
    weighting = Weighting(half_life, json.loads(weights))
    return Facts(memory_id, number, status, category, weighting, since, is_amended, admitted)
