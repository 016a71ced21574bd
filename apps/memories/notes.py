"""Working notes: what one task keeps for itself until it is over. Nobody has reviewed them, and no memory is made of
one but by proposing it.

Who may see a note is asked of its own table; the pool only knows which task its embedding belongs to. So both are
written and deleted in one transaction, and a note whose embedding is late is found by its words meanwhile.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from apps.accounts.principal import Principal
from apps.core.clock import now
from apps.core.errors import NotFound
from apps.memories.models import EPISODIC, Disposition, TaskNote, TaskNoteEvidence, TaskNoteQuerySet
from apps.memories.providers.base import MAX_LIMIT, NoteRecord, Prepared
from apps.memories.providers.registry import get_provider
from apps.memories.selectors import domains_of, evidence_shown, may_see_source, scopes_shown

# As many as the pool ranks at once, so that a search in a task has looked at all of it.
MAX_OF_TASK: Final = MAX_LIMIT
MAX_OF_ORIGIN: Final = 200
MAX_DAYS: Final = 90
UNREVIEWED: Final = "unreviewed"
_LOOKED_AT: Final = 500
_TASKS: Final = 30


def notes_visible(principal: Principal) -> TaskNoteQuerySet:
    """In the workspace and not expired, within the audiences, and the repositories that a token is limited to."""
    rows: TaskNoteQuerySet = TaskNote.objects.filter(workspace=principal.workspace).live(now())
    rows = rows.visible_to(principal.audience_ids)
    limit = principal.repository_limit
    return rows.in_scope(domain_ids=domains_of(limit), repo_ids=limit) if limit else rows


def notes_of(principal: Principal, task: str) -> TaskNoteQuerySet:
    """Of exactly this task, compared letter by letter."""
    return notes_visible(principal).filter(task=task)


def tasks_lately(principal: Principal) -> list[dict[str, Any]]:
    """The tasks that the latest notes are of, the latest first, each with how many notes it has and how many are open.

    Of a bot that floods one task the others' are among the latest no more: this is a place to begin, not a register.
    """
    rows = notes_visible(principal)
    latest = rows.order_by("-created_at", "-id").values_list("task", "created_at")[:_LOOKED_AT]
    moments: dict[str, datetime] = {}
    for task, created_at in latest:
        moments.setdefault(task, created_at)
    listed = list(moments)[:_TASKS]
    counted = rows.filter(task__in=listed).order_by().values("task")
    counts = {
        row["task"]: row
        for row in counted.annotate(notes=Count("pk"), open=Count("pk", filter=Q(disposition=Disposition.OPEN)))
    }
    return [counts[task] | {"latest": moments[task]} for task in listed if task in counts]


def note_for(principal: Principal, task: str, note_id: UUID, *, lock: bool = False) -> TaskNote:
    """Raises ``NotFound`` alike for what does not exist, has expired, is another task's, or may not be seen."""
    rows: QuerySet[TaskNote] = notes_of(principal, task).select_related("type__category", "origin_token")
    if lock:
        rows = rows.select_for_update(of=("self",))
    note = rows.filter(pk=note_id).first()
    if note is None:
        raise NotFound("There is no such note of this task, or it has expired.")
    return note


def is_origin(principal: Principal, note: TaskNote) -> bool:
    """Whether this principal wrote it; a person also through a token that they own."""
    if principal.user is None:
        return principal.token is not None and note.origin_token_id == principal.token.pk
    owner = note.origin_token.owner_id if note.origin_token is not None else None
    return principal.user.pk in (note.origin_user_id, owner)


def notes_shown(principal: Principal, notes: Sequence[TaskNote]) -> list[dict[str, Any]]:
    """As answers carry them, with sources and scope in names. Two queries, however many there are."""
    scopes = scopes_shown(notes)
    evidence: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in TaskNoteEvidence.objects.filter(note__in=notes).select_related("source"):
        if may_see_source(principal, row.source):
            evidence[row.note_id].append(evidence_shown(row.source, row.quote))
    return [_shown(note, scopes[note.pk], evidence[note.pk]) for note in notes]


def _shown(note: TaskNote, scope: dict[str, Any], sources: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": str(note.pk),
        "task": note.task,
        "content": note.content,
        "type": note.type.slug,
        "category": note.type.category.slug,
        "scope": scope,
        "tier": EPISODIC,
        "reviewed": False,
        "disposition": note.disposition or None,
        "disposed_by": note.disposed_by or None,
        "disposed_at": _moment(note.disposed_at),
        "sources": sources,
        "origin": {
            "kind": note.origin_token.kind if note.origin_token is not None else "person",
            "name": note.origin_name,
        },
        "proposed_as": str(note.proposed_as) if note.proposed_as else None,
        "created_at": _moment(note.created_at),
        "expires_at": _moment(note.expires_at),
    }


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def note_record(note: TaskNote) -> NoteRecord:
    return NoteRecord(id=note.pk, workspace=note.workspace_id, task=note.task)


def note_pooled(note: TaskNote, prepared: Prepared) -> None:
    """Put the embedding of a new note into the pool. Belongs into the transaction that writes the note."""
    get_provider().insert_notes([(note_record(note), prepared)])
    note.embedded_at = now()
    note.save(update_fields=["embedded_at"])


def notes_embed(note_ids: Sequence[UUID]) -> int:
    """Embed what could not be embedded when it was written; how many were. Idempotent."""
    waiting = list(TaskNote.objects.live(now()).filter(pk__in=note_ids, embedded_at__isnull=True).order_by("pk"))
    if not waiting:
        return 0
    made = get_provider().prepare_many([note.content for note in waiting])  # slow, and outside any transaction
    prepared = dict(zip((note.pk for note in waiting), made, strict=True))
    with transaction.atomic():
        rows = TaskNote.objects.filter(pk__in=list(prepared), embedded_at__isnull=True).order_by("pk")
        there = list(rows.select_for_update())
        get_provider().insert_notes([(note_record(note), prepared[note.pk]) for note in there])
        return TaskNote.objects.filter(pk__in=[note.pk for note in there]).update(embedded_at=now())


@transaction.atomic
def notes_delete(note_ids: Sequence[UUID]) -> int:
    """Delete notes with their embeddings; how many there were. Raises ``ProviderError``, and then deletes none."""
    get_provider().delete_notes(note_ids)
    _, counts = TaskNote.objects.filter(pk__in=list(note_ids)).delete()
    return counts.get(TaskNote._meta.label, 0)
