"""A new generation of the pool, built from the ledger beside the live one and put in its place in one transaction.

Approvals go on meanwhile. They hold the live generation's row for share; the switch takes it for update, so that at
that moment nobody writes, the last few memories are copied, and from then on everybody writes to the new one.

Working notes go the same way, from their own table into the generation's. What was deleted meanwhile is forgotten at
the switch, and the generation that was left keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from psycopg import sql

from apps.core.errors import Conflict
from apps.memories.auditing import Drift, drifts, patch
from apps.memories.lifecycle import pool_record
from apps.memories.models import GenerationState, Memory, PoolGeneration, TaskNote
from apps.memories.notes import note_record
from apps.memories.pool import create_pool, drop_pool, notes_table, pool_table
from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.mem0.generation import Generation
from apps.memories.providers.mem0.provider import Mem0Provider

BATCH: Final = 128
# Few enough to be embedded while approvals wait, which is how a catch-up that never ends is ended.
LAST: Final = 32
_CATCH_UPS: Final = 20
_BEFORE_ALL: Final = UUID(int=0)

Progress = Callable[[int, int], None]

_MISSING: Final = """
SELECT m.id FROM memories_memory AS m
WHERE m.id > %s AND NOT EXISTS (SELECT 1 FROM {table} AS p WHERE p.memory_id = m.id AND p.passage = 0)
ORDER BY m.id LIMIT %s
"""

_COUNT_MISSING: Final = """
SELECT count(*) FROM memories_memory AS m
WHERE NOT EXISTS (SELECT 1 FROM {table} AS p WHERE p.memory_id = m.id AND p.passage = 0)
"""

_MISSING_NOTES: Final = """
SELECT n.id FROM memories_tasknote AS n
WHERE n.id > %s AND NOT EXISTS (SELECT 1 FROM {table} AS p WHERE p.note_id = n.id AND p.passage = 0)
ORDER BY n.id LIMIT %s
"""

_FORGET_DELETED: Final = """
DELETE FROM {table} AS p WHERE NOT EXISTS (SELECT 1 FROM memories_tasknote AS n WHERE n.id = p.note_id)
"""


def _silent(done: int, total: int) -> None:
    """Nobody is waiting in front of a terminal."""


def rebuild(embedder: Embedder, *, discard: bool = False, progress: Progress = _silent) -> PoolGeneration:
    """Build a generation made by ``embedder`` and switch to it. A rebuild that was stopped is continued.

    Raises ``Conflict`` when another one was begun for another embedder, unless ``discard`` gives it up, and
    ``ProviderError`` when the embedder fails; what was copied stays and is not copied again.
    """
    row = _begin(embedder, discard=discard)
    provider = Mem0Provider(embedder, generation=Generation(row.number, row.embedder, row.dimensions))
    _copy(row, provider, progress)
    for attempt in range(_CATCH_UPS):
        if _switch(row, provider, last_resort=attempt == _CATCH_UPS - 1):
            return row
        _copy(row, provider, progress)
    raise AssertionError("the last attempt always switches")


@transaction.atomic
def _begin(embedder: Embedder, *, discard: bool) -> PoolGeneration:
    building = PoolGeneration.objects.select_for_update().filter(state=GenerationState.BUILDING).first()
    if building is not None and (building.embedder, building.dimensions) == (embedder.name, embedder.dimensions):
        with connection.cursor() as cursor:
            create_pool(cursor, number=building.number, dimensions=building.dimensions)
        return building
    if building is not None and not discard:
        raise Conflict(
            f"A rebuild for {building.embedder} ({building.dimensions} dimensions) was begun and not finished. Finish "
            f"it with `--embedder {building.embedder}`, or give it up with `--discard`.",
            code="rebuild_unfinished",
        )
    if building is not None:
        _retire(building)
    number = 1 + max(PoolGeneration.objects.values_list("number", flat=True), default=0)
    with connection.cursor() as cursor:
        create_pool(cursor, number=number, dimensions=embedder.dimensions)
    return PoolGeneration.objects.create(number=number, embedder=embedder.name, dimensions=embedder.dimensions)


def _retire(generation: PoolGeneration) -> None:
    with connection.cursor() as cursor:
        drop_pool(cursor, number=generation.number)
    generation.state = GenerationState.RETIRED
    generation.save(update_fields=["state"])


def _copy(row: PoolGeneration, provider: Mem0Provider, progress: Progress) -> None:
    """Embed and store what the new generation lacks, a batch at a time, embedding outside any transaction."""
    total = Memory.objects.count()
    done = total - _count_missing(row)
    for ids in _missing(row):
        memories = list(Memory.objects.select_related("type").filter(pk__in=ids))
        _store(memories, provider)
        done += len(memories)
        progress(done, total)
    for ids in _missing(row, notes=True):
        _store_notes(ids, provider)


def _store(memories: list[Memory], provider: Mem0Provider) -> None:
    prepared = provider.prepare_many([memory.content for memory in memories])
    provider.insert_many([(pool_record(memory), made) for memory, made in zip(memories, prepared, strict=True)])


def _store_notes(ids: list[UUID], provider: Mem0Provider) -> None:
    """Those of them that are still there."""
    notes = list(TaskNote.objects.filter(pk__in=ids))
    prepared = provider.prepare_many([note.content for note in notes])
    provider.insert_notes([(note_record(note), made) for note, made in zip(notes, prepared, strict=True)])


def _missing(row: PoolGeneration, *, notes: bool = False) -> Iterator[list[UUID]]:
    after = _BEFORE_ALL
    while ids := _missing_after(row, after, BATCH, notes=notes):
        yield ids
        after = ids[-1]


def _missing_after(row: PoolGeneration, after: UUID, limit: int, *, notes: bool = False) -> list[UUID]:
    table = notes_table(row.number) if notes else pool_table(row.number)
    statement = sql.SQL(_MISSING_NOTES if notes else _MISSING).format(table=sql.Identifier(table)).as_string()
    with connection.cursor() as cursor:
        cursor.execute(statement, [after, limit])
        return [found[0] for found in cursor.fetchall()]


def _count_missing(row: PoolGeneration) -> int:
    statement = sql.SQL(_COUNT_MISSING).format(table=sql.Identifier(pool_table(row.number))).as_string()
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def _switch(row: PoolGeneration, provider: Mem0Provider, *, last_resort: bool) -> bool:
    """Put the new generation in the live one's place, unless too much was approved since the copy."""
    with transaction.atomic():
        live = PoolGeneration.objects.select_for_update().get(state=GenerationState.LIVE)
        late = _missing_after(row, _BEFORE_ALL, LAST + 1)
        late_notes = _missing_after(row, _BEFORE_ALL, LAST + 1, notes=True)
        if len(late) + len(late_notes) > LAST and not last_resort:
            return False
        while late:
            _store(list(Memory.objects.select_related("type").filter(pk__in=late)), provider)
            late = _missing_after(row, _BEFORE_ALL, BATCH)
        while late_notes:
            _store_notes(late_notes, provider)
            late_notes = _missing_after(row, _BEFORE_ALL, BATCH, notes=True)
        _follow_changes(row, provider)
        _forget_notes(row, live)
        live.state = GenerationState.RETIRED
        live.save(update_fields=["state"])
        row.state = GenerationState.LIVE
        row.save(update_fields=["state"])
    return True


def _follow_changes(row: PoolGeneration, provider: Mem0Provider) -> None:
    """Statuses, ends and audiences that changed after their memory was copied."""
    found = [drift for drift in drifts(generation=row.number) if isinstance(drift, Drift) and drift.kind == "differs"]
    for memory in Memory.objects.filter(pk__in=[drift.memory_id for drift in found]):
        patch(memory, provider)


def _forget_notes(row: PoolGeneration, left: PoolGeneration) -> None:
    """What was deleted since it was copied, and everything in the generation that nobody writes to any more."""
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(_FORGET_DELETED).format(table=sql.Identifier(notes_table(row.number))).as_string())
        cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(notes_table(left.number))).as_string())


@transaction.atomic
def retired_drop() -> list[int]:
    """Remove the tables of retired generations; answers their numbers. The ledger can make any of them again."""
    numbers = list(
        PoolGeneration.objects.filter(state=GenerationState.RETIRED).order_by("number").values_list("number", flat=True)
    )
    with connection.cursor() as cursor:
        for number in numbers:
            drop_pool(cursor, number=number)
    return numbers
