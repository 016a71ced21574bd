"""Restricting a source, and with it everything that came from it."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, Func, Value

from apps.accounts.audit import audit_record
from apps.accounts.models import Audience, Role
from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.capture.models import CaptureEvent
from apps.core.errors import Conflict, NotFound
from apps.memories.lifecycle import memory_audiences_add, pool_needed
from apps.memories.models import Memory
from apps.sources.models import Source


def source_restrict(*, principal: Principal, source_id: int, audience_id: int) -> Source:
    """Only this audience may see the source from now on, nor anything that was ever supported by it.

    Raises ``Conflict`` when it has another audience: taking one off would show what was hidden; ``Unavailable`` when
    the pool cannot be told.
    """
    principal.require_role(Role.CURATOR, to="restrict a source")
    with pool_needed("Nothing was changed."):
        return _restrict(principal, source_id, audience_id)


@transaction.atomic
def _restrict(principal: Principal, source_id: int, audience_id: int) -> Source:
    # Evidence may be added meanwhile; PostgreSQL looks at its audience when that is committed.
    sources = Source.objects.select_for_update(no_key=True)
    source = sources.filter(workspace=principal.workspace, pk=source_id).first()
    audience = Audience.objects.filter(workspace=principal.workspace, pk=audience_id).first()
    if source is None or audience is None:
        raise NotFound("There is no such source or audience.")
    if source.audience_id == audience.pk:
        return source
    if source.audience_id is not None:
        raise Conflict("This source is restricted to another audience already.")
    Source.objects.filter(pk=source.pk).update(audience=audience)
    source.audience = audience
    _restrict_candidates(source, audience)
    _restrict_memories(source, audience)
    _restrict_events(source, audience)
    audit_record(
        principal,
        "restrict",
        subject_kind="source",
        subject_id=source.pk,
        after={"audience": audience.name},
    )
    return source


def _restrict_candidates(source: Source, audience: Audience) -> None:
    supported = Candidate.objects.filter(evidence__source=source).values("pk")
    for candidate in Candidate.objects.filter(pk__in=supported).select_for_update(of=("self",)).order_by("pk"):
        candidate.audience_ids = sorted({*candidate.audience_ids, audience.pk})
        candidate.version += 1
        candidate.save(update_fields=["audience_ids", "version", "updated_at"])


def _restrict_memories(source: Source, audience: Audience) -> None:
    """After the candidates: an approval that was under way has made its memory by then."""
    supported = Memory.objects.filter(evidence__source=source).values("pk")
    for memory in Memory.objects.filter(pk__in=supported).select_for_update(of=("self",)).order_by("pk"):
        memory_audiences_add(memory, [audience.pk])


def _restrict_events(source: Source, audience: Audience) -> None:
    """Raw material names its sources as they were handed over, before there is a row for each."""
    named = {"kind": source.kind, "reference": source.reference, "commit": source.commit}
    open_to_others = CaptureEvent.objects.of(source.workspace_id).exclude(audience_ids__contains=[audience.pk])
    open_to_others.filter(sources__contains=[named]).update(
        audience_ids=Func(F("audience_ids"), Value(audience.pk), function="array_append")
    )
