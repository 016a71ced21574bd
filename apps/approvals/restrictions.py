"""Restricting a source, and with it everything that came from it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django.db.models import F, Func, Value

from apps.accounts.audit import audit_record
from apps.accounts.models import Audience, Role
from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.capture.models import CaptureEvent
from apps.core.errors import Conflict, NotFound
from apps.memories.lifecycle import memory_audiences_add, pool_needed
from apps.memories.models import Memory, TaskNote
from apps.sources.models import Source, reference_lock


def source_restrict(*, principal: Principal, source_id: int, audience_id: int) -> Source:
    """Only this audience may see the source from now on, at whatever commit, nor anything that was supported by it.

    Raises ``Conflict`` when it has another audience: taking one off would show what was hidden; ``Unavailable`` when
    the pool cannot be told.
    """
    principal.require_role(Role.CURATOR, to="restrict a source")
    with pool_needed("Nothing was changed."):
        return _restrict(principal, source_id, audience_id)


@transaction.atomic
def _restrict(principal: Principal, source_id: int, audience_id: int) -> Source:
    source = Source.objects.filter(workspace=principal.workspace, pk=source_id).first()
    audience = Audience.objects.filter(workspace=principal.workspace, pk=audience_id).first()
    if source is None or audience is None:
        raise NotFound("There is no such source or audience.")
    _hold_reference(source)
    same = Source.objects.filter(workspace=principal.workspace, kind=source.kind, reference=source.reference)
    rows = list(same.select_for_update(no_key=True).order_by("pk"))
    if {row.audience_id for row in rows} == {audience.pk}:
        return source
    if any(row.audience_id not in (None, audience.pk) for row in rows):
        raise Conflict("This source is restricted to another audience already.")
    same.filter(audience__isnull=True).update(audience=audience)
    source.audience = audience
    _restrict_candidates(rows, audience)
    _restrict_memories(rows, audience)
    _restrict_notes(rows, audience)
    _restrict_events(source, audience)
    for row in (row for row in rows if row.audience_id is None):
        audit_record(
            principal,
            "restrict",
            subject_kind="source",
            subject_id=row.pk,
            after={"audience": audience.name},
        )
    return source


def _hold_reference(source: Source) -> None:
    """Wait for whoever is recording something of this reference, and let nobody begin to until this is committed."""
    with connection.cursor() as cursor:
        lock = reference_lock("%(workspace)s", "%(kind)s", "%(reference)s")
        values: dict[str, int | str] = {
            "workspace": source.workspace_id,
            "kind": source.kind,
            "reference": source.reference,
        }
        cursor.execute(f"SELECT pg_advisory_xact_lock({lock})", values)


def _restrict_candidates(sources: Sequence[Source], audience: Audience) -> None:
    supported = Candidate.objects.filter(evidence__source__in=sources).values("pk")
    for candidate in Candidate.objects.filter(pk__in=supported).select_for_update(of=("self",)).order_by("pk"):
        candidate.audience_ids = sorted({*candidate.audience_ids, audience.pk})
        candidate.version += 1
        candidate.save(update_fields=["audience_ids", "version", "updated_at"])


def _restrict_memories(sources: Sequence[Source], audience: Audience) -> None:
    """After the candidates: an approval that was under way has made its memory by then."""
    supported = Memory.objects.filter(evidence__source__in=sources).values("pk")
    for memory in Memory.objects.filter(pk__in=supported).select_for_update(of=("self",)).order_by("pk"):
        memory_audiences_add(memory, [audience.pk])


def _restrict_notes(sources: Sequence[Source], audience: Audience) -> None:
    """Their own table alone says who may see them, so the pool need not be told."""
    supported = TaskNote.objects.filter(evidence__source__in=sources).values("pk")
    for note in TaskNote.objects.filter(pk__in=supported).select_for_update(of=("self",)).order_by("pk"):
        note.audience_ids = sorted({*note.audience_ids, audience.pk})
        note.save(update_fields=["audience_ids"])


def _restrict_events(source: Source, audience: Audience) -> None:
    """Raw material names its sources as they were handed over, before there is a row for each."""
    named = {"kind": source.kind, "reference": source.reference}
    open_to_others = CaptureEvent.objects.of(source.workspace_id).exclude(audience_ids__contains=[audience.pk])
    open_to_others.filter(sources__contains=[named]).update(
        audience_ids=Func(F("audience_ids"), Value(audience.pk), function="array_append")
    )
