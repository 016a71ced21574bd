"""Ledger and pool compared row by row. The ledger is right; the pool is mended where that needs no guessing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection
from psycopg import sql

from apps.memories.lifecycle import pool_record
from apps.memories.models import Memory
from apps.memories.pool import pool_table
from apps.memories.providers.base import MemoryProvider, PayloadPatch

BATCH: Final = 2_000
_BEFORE_ALL: Final = UUID(int=0)

# Where the pool says otherwise than the ledger, by the name of the field. Moments are doubles in the pool, so a
# microsecond may be lost on the way.
_COMPARED: Final = {
    "content": "p.payload ->> 'data' IS DISTINCT FROM m.content",
    "type": "p.type <> t.slug",
    "tier": "p.tier <> m.tier",
    "workspace": "p.workspace <> m.workspace_id",
    "firm": "p.firm <> m.firm",
    "domain_ids": "p.domain_ids <> m.domain_ids",
    "repo_ids": "p.repo_ids <> m.repo_ids",
    "status": "p.status <> m.status",
    "audience_ids": "p.audience_ids <> m.audience_ids",
    "confidence": "(p.payload ->> 'confidence')::float8 IS DISTINCT FROM m.confidence",
} | {
    name: f"(p.{name} IS NULL) <> (m.{name} IS NULL) OR abs(p.{name} - extract(epoch FROM m.{name})::float8) > 1e-5"
    for name in ("recorded_at", "valid_from", "valid_to", "closed_at", "retired_at")
}
PATCHABLE: Final = frozenset({"status", "confidence", "valid_to", "closed_at", "retired_at", "audience_ids"})

_DIFFERENCES: Final = """
SELECT m.id, m.number, m.workspace_id, p.memory_id IS NULL, ARRAY_REMOVE(ARRAY[{compared}], NULL),
    (SELECT count(*) <> max(passage) + 1 FROM {table} AS each WHERE each.memory_id = m.id)
FROM (
    SELECT * FROM memories_memory
    WHERE id > %(after)s AND (%(workspace)s::bigint IS NULL OR workspace_id = %(workspace)s)
    ORDER BY id LIMIT %(batch)s
) AS m
JOIN taxonomy_memorytype AS t ON t.id = m.type_id
LEFT JOIN {table} AS p ON p.memory_id = m.id AND p.passage = 0
ORDER BY m.id
"""

_SURPLUS: Final = """
SELECT p.memory_id, p.workspace FROM {table} AS p
WHERE p.passage = 0 AND (%(workspace)s::bigint IS NULL OR p.workspace = %(workspace)s)
  AND NOT EXISTS (SELECT 1 FROM memories_memory AS m WHERE m.id = p.memory_id)
ORDER BY p.memory_id LIMIT %(batch)s
"""


@dataclass(frozen=True, slots=True)
class Drift:
    """One memory about which the pool is wrong. ``kind``: missing, surplus, differs or passages."""

    kind: str
    memory_id: UUID
    workspace_id: int
    label: str = ""
    fields: tuple[str, ...] = ()

    @property
    def is_repairable(self) -> bool:
        """Mended in place. What was stored with other words or scope needs a rebuild."""
        return self.kind == "missing" or (self.kind == "differs" and set(self.fields) <= PATCHABLE)

    def sentence(self) -> str:
        what = {
            "missing": "is not in the pool, so no search by meaning finds it.",
            "surplus": "is in the pool and not in the ledger. It is never served.",
            "passages": "lacks some of its passages in the pool.",
            "differs": f"has another {', '.join(self.fields)} in the pool.",
        }[self.kind]
        return f"{self.label or self.memory_id} {what}"


def drifts(*, generation: int, workspace_id: int | None = None) -> Iterator[Drift | int]:
    """Every disagreement, and after each batch how many memories have been looked at so far.

    Cost grows linearly with the ledger: two index look-ups a memory.
    """
    after, looked_at = _BEFORE_ALL, 0
    while True:
        rows = _fetch(_DIFFERENCES, generation, workspace=workspace_id, after=after, batch=BATCH)
        yield from (drift for row in rows if (drift := _judge(*row)) is not None)
        looked_at += len(rows)
        yield looked_at
        if len(rows) < BATCH:
            break
        after = rows[-1][0]
    for memory_id, workspace in _fetch(_SURPLUS, generation, workspace=workspace_id, batch=BATCH):
        yield Drift("surplus", memory_id, workspace)


def _judge(
    memory_id: UUID, number: int, workspace_id: int, missing: bool, fields: Sequence[str], gap: bool | None
) -> Drift | None:
    label = f"M-{number}"
    if missing:
        return Drift("missing", memory_id, workspace_id, label)
    if fields:
        return Drift("differs", memory_id, workspace_id, label, tuple(fields))
    return Drift("passages", memory_id, workspace_id, label) if gap else None


def _fetch(statement: str, generation: int, **values: Any) -> list[tuple[Any, ...]]:
    compared = ", ".join(f"CASE WHEN {test} THEN '{name}' END" for name, test in _COMPARED.items())
    composed = sql.SQL(statement).format(table=sql.Identifier(pool_table(generation)), compared=sql.SQL(compared))
    with connection.cursor() as cursor:
        cursor.execute(composed.as_string(), values)
        return list(cursor.fetchall())


def repair(drift: Drift, provider: MemoryProvider) -> bool:
    """Mend one disagreement from the ledger; false when it needs a rebuild or is not ours to mend."""
    if not drift.is_repairable:
        return False
    memory = Memory.objects.select_related("type").get(pk=drift.memory_id)
    if drift.kind == "missing":
        provider.insert(pool_record(memory), provider.prepare(memory.content))
    else:
        patch(memory, provider)
    return True


def patch(memory: Memory, provider: MemoryProvider) -> None:
    """Tell the pool everything about a memory that may change."""
    provider.update(
        memory.pk,
        PayloadPatch(
            status=memory.status,
            confidence=memory.confidence,
            valid_to=memory.valid_to,
            closed_at=memory.closed_at,
            retired_at=memory.retired_at,
            audience_ids=tuple(memory.audience_ids),
        ),
    )
