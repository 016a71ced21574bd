"""Every write to the working notes of a task: noting, saying what became of a finding, deleting, and proposing.

A note passes the same checks as a proposal and goes nowhere by itself. What is worth keeping is proposed, by the very
service that every other proposal goes through.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django_q.tasks import async_task

from apps.accounts.audit import audit_record
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_of_origin
from apps.candidates.proposal import (
    Proposal,
    ScopeInput,
    check_values,
    max_content,
    require_within_limits,
    screened,
)
from apps.candidates.services import Proposed, candidate_propose
from apps.core.clock import now
from apps.core.errors import FieldError, Forbidden, Refusals, TooMany
from apps.core.screening import check_text
from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import pool_needed
from apps.memories.models import MAX_TASK, Disposition, TaskNote, TaskNoteEvidence, TaskNoteQuerySet, Tier
from apps.memories.notes import (
    MAX_DAYS,
    MAX_OF_ORIGIN,
    MAX_OF_TASK,
    is_origin,
    note_for,
    note_pooled,
    notes_delete,
)
from apps.memories.providers.base import Prepared, ProviderError
from apps.memories.providers.registry import get_provider
from apps.memories.selectors import scopes_shown
from apps.scopes.scope import Scope
from apps.scopes.services import scope_register
from apps.sources.models import Source
from apps.sources.services import MAX_SOURCES, SourceInput, sources_record
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import resolve_type

MAX_NOTE = max_content(Tier.DURABLE)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What somebody notes. Values are as they came, not yet trusted. ``ttl_days``: after so many it expires."""

    task: str
    content: str
    type: str
    scope: ScopeInput
    sources: tuple[SourceInput, ...]
    disposition: str = ""
    ttl_days: int | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """What became of a note. ``created`` is false where this origin had noted the same; ``told`` are sentences."""

    note: TaskNote
    created: bool
    told: str = ""


_LATE = "Until its embedding is made, which is tried again by itself, only its words find it."


def check_note(principal: Principal, values: Mapping[str, Any]) -> None:
    """Raise ``Invalid`` or ``Excluded`` naming every value that will not do, of those that are there."""
    refusals = Refusals()
    if "task" in values:
        refusals.add(_check_task(values["task"]))
        with refusals.collecting():
            screened(principal.workspace, {"task": values["task"]})
    stated = {name: values[name] for name in ("content", "type", "scope", "sources") if name in values}
    check_values(principal, stated, limit=MAX_NOTE, refusals=refusals)
    if values.get("disposition"):
        refusals.add(_check_disposition(values["disposition"]))
    days = values.get("ttl_days")
    if days is not None and not 1 <= days <= MAX_DAYS:
        refusals.add([FieldError("ttl_days", f"Give a whole number of days from 1 to {MAX_DAYS}.")])
    refusals.raise_all("The note will not do.")


def require_task(task: str) -> str:
    """The name of a task as it stands in an address; raises ``Invalid`` for what no task can be called."""
    refusals = Refusals()
    refusals.add(_check_task(task))
    refusals.raise_all("No task is called that.")
    return task


def _check_task(task: str) -> list[FieldError]:
    return list(check_text(task, field="task", max_length=MAX_TASK, multiline=False))


def _check_disposition(value: str) -> list[FieldError]:
    if value in Disposition.values:
        return []
    return [FieldError("disposition", f"Use one of: {', '.join(Disposition.values)}.")]


def note_prepare(*, principal: Principal, note: Note) -> Prepared | None:
    """Check a note and embed it; call it outside any transaction, because that may be slow.

    ``None`` where there is nothing to embed with at the moment, or nothing new to embed. Raises what ``note_add`` does.
    """
    principal.require_write()
    check_note(principal, _values(note))
    if _own(principal, note.task).live(now()).filter(content=note.content).exists():
        return None
    _require_room(principal, note.task)
    try:
        return get_provider().prepare(note.content)
    except ProviderError as error:
        logger.warning("A note could not be embedded, and waits for it: %s", error.message)
        return None


def _values(note: Note) -> dict[str, Any]:
    return {name: getattr(note, name) for name in Note.__dataclass_fields__}


@transaction.atomic
def note_add(*, principal: Principal, note: Note, prepared: Prepared | None) -> Noted:
    """Write a note that ``note_prepare`` has let through; the same again by the same origin adds its sources.

    A note without an embedding is written all the same, and embedded by the worker. Raises ``Invalid`` naming the
    field, ``Forbidden`` outside the token's limits, ``TooMany`` when the task or this origin has too many notes in it,
    and ``Unavailable`` where the same, expired and not yet deleted, cannot be deleted from the pool.
    """
    principal.require_write()
    workspace = principal.workspace
    type_ = resolve_type(workspace, note.type)
    registered = scope_register(workspace, firm=note.scope.firm, domains=note.scope.domains, repos=note.scope.repos)
    require_within_limits(principal, registered.scope)
    sources = sources_record(workspace, note.sources)
    _hold_task(principal, note.task)
    same = fingerprint(note.content, type_id=type_.pk, scope=registered.scope)
    known = _own(principal, note.task).filter(fingerprint=same).select_for_update(of=("self",)).first()
    if known is not None and known.expires_at <= now():
        with pool_needed("Nothing was noted."):
            notes_delete([known.pk])
        known = None
    if known is not None:
        return _noted_again(principal, known, note, type_, sources)
    _require_room(principal, note.task)
    row = _build(principal, note, type_, registered.scope, same, sources)
    row.save(force_insert=True)
    _evidence_add(row, sources)
    return Noted(row, True, "" if _pooled(row, prepared) else _LATE)


def _own(principal: Principal, task: str) -> TaskNoteQuerySet:
    """What this very principal has noted in a task, expired or not."""
    rows: TaskNoteQuerySet = TaskNote.objects.of_task(principal.workspace, task)
    return rows.filter(origin_token=principal.token, origin_user=principal.user)


def _hold_task(principal: Principal, task: str) -> None:
    """Until the transaction ends, whoever else writes into this task waits: what is counted must not race."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtext('firm-memory task'), hashtext(%s))",
            [f"{principal.workspace.pk} {task}"],
        )


def _require_room(principal: Principal, task: str) -> None:
    if not settings.FIRM_MEMORY_THROTTLE:
        return
    live = TaskNote.objects.of_task(principal.workspace, task).live(now())
    if live.filter(origin_token=principal.token, origin_user=principal.user).count() >= MAX_OF_ORIGIN:
        raise TooMany(
            f"You have {MAX_OF_ORIGIN} notes in this task already. Delete some, or propose what is worth keeping.",
            code="task_full",
        )
    if live.count() >= MAX_OF_TASK:
        raise TooMany(f"There are {MAX_OF_TASK:,} notes in this task already. Some have to go first.", code="task_full")


def _build(
    principal: Principal,
    note: Note,
    type_: MemoryType,
    scope: Scope,
    same: str,
    sources: Sequence[tuple[Source, SourceInput]],
) -> TaskNote:
    moment = now()
    row = TaskNote(
        workspace=principal.workspace,
        task=note.task,
        content=note.content,
        type=type_,
        firm=scope.firm,
        domain_ids=list(scope.domain_ids),
        repo_ids=list(scope.repo_ids),
        audience_ids=_audiences(sources),
        fingerprint=same,
        origin_token=principal.token,
        origin_user=principal.user,
        origin_name=principal.name,
        created_at=moment,
        expires_at=moment + lifetime(type_, note.ttl_days),
    )
    if note.disposition:
        _dispose(row, principal, note.disposition, moment)
    return row


def lifetime(type_: MemoryType, days: int | None) -> timedelta:
    """As long as was asked for, else as its category says, else as the service is set; 90 days at most."""
    wanted = days or type_.category.ttl_days or settings.FIRM_MEMORY_NOTE_DAYS
    return timedelta(days=min(wanted, MAX_DAYS))


def _audiences(sources: Sequence[tuple[Source, SourceInput]]) -> list[int]:
    """What came from a restricted source is restricted to the same audience."""
    return sorted({source.audience_id for source, _ in sources if source.audience_id is not None})


def _evidence_add(note: TaskNote, sources: Sequence[tuple[Source, SourceInput]]) -> None:
    TaskNoteEvidence.objects.bulk_create(
        TaskNoteEvidence(note=note, source=source, workspace_id=note.workspace_id, quote=given.quote.strip())
        for source, given in sources
    )


def _pooled(note: TaskNote, prepared: Prepared | None) -> bool:
    """Whether the pool has the embedding. What it has not is for the worker, soon and then every minute."""
    try:
        if prepared is not None:
            note_pooled(note, prepared)
            return True
    except ProviderError as error:
        logger.warning("The pool did not take the embedding of a note, which waits for it: %s", error.message)
    async_task("apps.memories.tasks.notes_embed_late")
    return False


def _noted_again(
    principal: Principal,
    known: TaskNote,
    note: Note,
    type_: MemoryType,
    sources: Sequence[tuple[Source, SourceInput]],
) -> Noted:
    """The findings of a push are noted with those of the one before: it lives on, with the new sources."""
    moment = now()
    had = set(known.evidence.values_list("source_id", flat=True))
    new = [(source, given) for source, given in sources if source.pk not in had][: max(0, MAX_SOURCES - len(had))]
    known.audience_ids = sorted({*known.audience_ids, *_audiences(new)})
    known.expires_at = max(known.expires_at, moment + lifetime(type_, note.ttl_days))
    if note.disposition and note.disposition != known.disposition:
        _dispose(known, principal, note.disposition, moment)
    known.save(update_fields=["audience_ids", "expires_at", *_DISPOSED])
    _evidence_add(known, new)
    added = " Your source was added to it." if new else ""
    return Noted(known, False, f"You have noted this in this task before.{added}")


_DISPOSED = ("disposition", "disposed_by", "disposed_at")


def _dispose(note: TaskNote, principal: Principal, disposition: str, at: datetime) -> None:
    note.disposition, note.disposed_by, note.disposed_at = disposition, principal.name, at


@transaction.atomic
def note_dispose(*, principal: Principal, task: str, note_id: UUID, disposition: str) -> TaskNote:
    """Say what became of a finding: whoever noted it, or any person. An agent does not dismiss what a bot found.

    Raises ``Invalid``, ``NotFound``, or ``Forbidden`` for another token.
    """
    principal.require_write()
    refusals = Refusals()
    refusals.add(_check_disposition(disposition))
    refusals.raise_all("The disposition will not do.")
    note = note_for(principal, require_task(task), note_id, lock=True)
    if not is_origin(principal, note) and principal.user is None:
        raise Forbidden("Only whoever noted it, or a person, may say what became of it.", code="not_your_note")
    before = note.disposition
    if before == disposition:
        return note
    _dispose(note, principal, disposition, now())
    note.save(update_fields=list(_DISPOSED))
    if not is_origin(principal, note):
        _audit(principal, "change", note, before={"disposition": before}, after={"disposition": disposition})
    return note


def note_delete(*, principal: Principal, task: str, note_id: UUID) -> None:
    """Delete a note: whoever noted it, or a reviewer.

    Raises ``NotFound``, ``Forbidden`` for anybody else, and ``Unavailable`` when the pool cannot be told.
    """
    principal.require_write()
    with pool_needed("Nothing was deleted."), transaction.atomic():
        note = note_for(principal, require_task(task), note_id, lock=True)
        own = is_origin(principal, note)
        if not own and not principal.can_review:
            raise Forbidden("Only whoever noted it, or a reviewer, may delete it.", code="not_your_note")
        notes_delete([note.pk])
        if not own:
            _audit(principal, "remove", note, before={"name": note.origin_name, "type": note.type.slug})


def _audit(principal: Principal, verb: str, note: TaskNote, **states: Mapping[str, Any]) -> None:
    """What somebody did to another's note; never its text, which is gone when the note is."""
    audit_record(principal, verb, subject_kind="note", subject_id=note.pk, **states)


@transaction.atomic
def note_propose(*, principal: Principal, task: str, note_id: UUID, changes: Mapping[str, Any]) -> Proposed:
    """Propose what a note says, with its sources, as any other proposal; ``changes`` are of the proposal's own values.

    The caller is the proposer, and whoever wrote the note counts as one too: neither may approve it. Raises
    ``NotFound``, and whatever proposing raises.
    """
    principal.require_write()
    note = note_for(principal, require_task(task), note_id, lock=True)
    proposal = Proposal(**(_proposed_values(note) | dict(changes)))
    writer = principal_of_origin(
        note.workspace, token_id=note.origin_token_id, user_id=note.origin_user_id, via=principal.via
    )
    proposed = candidate_propose(principal=principal, proposal=proposal, written_by=writer)
    TaskNote.objects.filter(pk=note.pk).update(proposed_as=proposed.candidate.pk)
    return proposed


def _proposed_values(note: TaskNote) -> dict[str, Any]:
    scope = scopes_shown([note])[note.pk]
    evidence = note.evidence.select_related("source")
    return {
        "content": note.content,
        "type": note.type.slug,
        "scope": ScopeInput(firm=note.firm, domains=tuple(scope["domains"]), repos=tuple(scope["repos"])),
        "sources": tuple(_source(row) for row in evidence),
    }


def _source(row: TaskNoteEvidence) -> SourceInput:
    source = row.source
    return SourceInput(
        kind=source.kind,
        reference=source.reference,
        url=source.url,
        title=source.title,
        occurred_at=source.occurred_at,
        commit=source.commit,
        quote=row.quote,
    )
