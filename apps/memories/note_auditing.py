"""Working notes and the collection of their embeddings, compared note by note.

The notes are right. Everything can be mended in place, because a note's embedding may be forgotten and made again,
which a memory's may not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from psycopg import sql

from apps.core.clock import now
from apps.memories.models import TaskNote, TaskNoteQuerySet
from apps.memories.notes import note_pooled
from apps.memories.pool import notes_table
from apps.memories.providers.base import MemoryProvider

BATCH: Final = 2_000
_BEFORE_ALL: Final = UUID(int=0)

# Of each note in force: how its rows differ, and whether there are as many as its last passage says.
_DIFFERENCES: Final = """
SELECT n.id, n.task, n.workspace_id, n.embedded_at IS NULL, p.held, p.held <> p.last + 1, p.task, p.workspace
FROM (
    SELECT id, task, workspace_id, embedded_at FROM memories_tasknote
    WHERE id > %(after)s AND expires_at > %(at)s
      AND (%(workspace)s::bigint IS NULL OR workspace_id = %(workspace)s)
    ORDER BY id LIMIT %(batch)s
) AS n
CROSS JOIN LATERAL (
    SELECT count(*) AS held, max(each.passage) AS last,
        bool_or(each.task <> n.task) AS task, bool_or(each.workspace <> n.workspace_id) AS workspace
    FROM {table} AS each WHERE each.note_id = n.id
) AS p
ORDER BY n.id
"""

_SURPLUS: Final = """
SELECT p.note_id, min(p.workspace) FROM {table} AS p
WHERE p.note_id > %(after)s AND (%(workspace)s::bigint IS NULL OR p.workspace = %(workspace)s)
  AND NOT EXISTS (SELECT 1 FROM memories_tasknote AS n WHERE n.id = p.note_id)
GROUP BY p.note_id ORDER BY p.note_id LIMIT %(batch)s
"""


@dataclass(frozen=True, slots=True)
class NoteDrift:
    """One note about which the collection is wrong. ``kind``: missing, surplus, differs or passages."""

    kind: str
    note_id: UUID
    workspace_id: int
    task: str = ""
    fields: tuple[str, ...] = ()

    @property
    def is_repairable(self) -> bool:
        return True

    def sentence(self) -> str:
        what = {
            "missing": "has no embedding, so only its words find it.",
            "surplus": "was deleted and its embedding was not. It is never served.",
            "passages": "lacks some of its passages in the pool.",
            "differs": f"has another {', '.join(self.fields)} in the pool.",
        }[self.kind]
        of = f" of {self.task}" if self.task else ""
        return f"Note {self.note_id}{of} {what}"


def notes_audited(workspace_id: int | None = None) -> TaskNoteQuerySet:
    """The notes that are compared. What has expired is served to nobody and will be deleted with its embedding."""
    rows: TaskNoteQuerySet = TaskNote.objects.live(now())
    return rows if workspace_id is None else rows.filter(workspace=workspace_id)


def note_drifts(*, generation: int, workspace_id: int | None = None) -> Iterator[NoteDrift | int]:
    """Every disagreement, and after each batch how many notes have been looked at so far.

    A note that waits for its first embedding is none: the worker makes it. Cost grows linearly with the notes.
    """
    values = {"workspace": workspace_id, "at": now()}
    looked_at = 0
    for rows in _batches(_DIFFERENCES, generation, values):
        yield from (drift for row in rows if (drift := _judge(*row)) is not None)
        looked_at += len(rows)
        yield looked_at
    for rows in _batches(_SURPLUS, generation, values):
        yield from (NoteDrift("surplus", note_id, workspace) for note_id, workspace in rows)


def _judge(
    note_id: UUID,
    task: str,
    workspace_id: int,
    waits: bool,
    held: int,
    gap: bool | None,
    other_task: bool | None,
    other_workspace: bool | None,
) -> NoteDrift | None:
    if not held:
        return None if waits else NoteDrift("missing", note_id, workspace_id, task)
    fields = [name for name, differs in (("task", other_task), ("workspace", other_workspace)) if differs]
    if fields:
        return NoteDrift("differs", note_id, workspace_id, task, tuple(fields))
    return NoteDrift("passages", note_id, workspace_id, task) if gap else None


def _batches(statement: str, generation: int, values: dict[str, Any]) -> Iterator[Sequence[tuple[Any, ...]]]:
    """The rows of a statement that goes on after the id that a batch ended with."""
    composed = sql.SQL(statement).format(table=sql.Identifier(notes_table(generation))).as_string()
    after = _BEFORE_ALL
    while True:
        with connection.cursor() as cursor:
            cursor.execute(composed, values | {"after": after, "batch": BATCH})
            rows = cursor.fetchall()
        yield rows
        if len(rows) < BATCH:
            return
        after = rows[-1][0]


def note_repair(drift: NoteDrift, provider: MemoryProvider) -> bool:
    """Mend one disagreement from the note, or forget what belongs to none. Raises ``ProviderError``."""
    note = TaskNote.objects.filter(pk=drift.note_id).first()
    prepared = None if note is None else provider.prepare(note.content)  # slow, and outside any transaction
    with transaction.atomic():
        still_there = TaskNote.objects.filter(pk=drift.note_id).select_for_update().first()
        provider.delete_notes([drift.note_id])
        if still_there is not None and prepared is not None:
            note_pooled(still_there, prepared)
    return True
