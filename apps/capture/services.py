"""What people do about the inbox: overrule a drop, have what was given up tried again."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django_q.tasks import async_task

from apps.accounts.audit import audit_record
from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_of_origin
from apps.candidates.models import Candidate
from apps.candidates.proposal import Proposal
from apps.candidates.services import candidate_propose
from apps.capture.gate import Judged, became_of, scope_of, with_quote
from apps.capture.inbox import DRAIN
from apps.capture.models import DROPPED, CaptureEvent, EventState
from apps.capture.selectors import events_visible
from apps.core.errors import Conflict, NotFound
from apps.memories.models import MAX_CONTENT, Tier
from apps.taxonomy.models import MemoryType

# What a drop is filed as until the reviewer, who reads it anyway, files it better.
OVERRULED_AS: Final = "task_learnings"


@transaction.atomic
def event_overrule(*, principal: Principal, event_id: UUID) -> Candidate:
    """Make a candidate of what was dropped, in the name of whoever handed it over.

    Raises ``NotFound`` for what this reviewer may not see, ``Conflict`` for what was not dropped, was overruled before
    or is no longer kept, ``Excluded`` where the text holds what must not be remembered.
    """
    principal.require_role(Role.REVIEWER, to="overrule a drop")
    rows = events_visible(principal).filter(pk=event_id).defer(None).select_related("workspace")
    event: CaptureEvent | None = rows.select_for_update(of=("self",)).first()
    if event is None:
        raise NotFound("There is no such event.")
    if event.overruled_at is not None:
        raise Conflict("This drop was overruled before.", code="overruled_before")
    if event.outcome not in DROPPED:
        raise Conflict("This material was not dropped.", code="not_dropped")
    if not event.payload:
        raise Conflict("What was dropped is no longer kept; it is kept for 14 days.", code="not_kept")
    origin = principal_of_origin(
        event.workspace,
        token_id=event.origin_token_id,
        user_id=event.origin_user_id,
        via="capture",
        request_id=principal.request_id,
    )
    proposed = candidate_propose(principal=origin, proposal=_proposal(event))
    candidate, (outcome, became) = proposed.candidate, became_of(proposed)
    if len(event.payload.strip()) > MAX_CONTENT[Tier.INDEX]:
        became += f" Only its first {MAX_CONTENT[Tier.INDEX]:,} characters went into the candidate."
    reason = f"{principal.name} overruled the drop."
    judged = Judged(candidate.content, outcome, f"{reason} {became}", candidate.type.slug, candidate=candidate.pk)
    audit_record(
        principal,
        "overrule drop",
        subject_kind="capture event",
        subject_id=event.pk,
        before={"outcome": event.outcome, "reason": event.reason},
        after={"candidate": str(candidate.pk)},
    )
    CaptureEvent.objects.filter(pk=event.pk).update(
        outcome=outcome,
        reason=f"{reason} {became} It had been: {event.reason}",
        facts=[*event.facts, judged.as_json()],
        overruled_by=principal.user,
        overruled_at=Now(),
        payload="",
    )
    return candidate


def _proposal(event: CaptureEvent) -> Proposal:
    text = event.payload.strip()
    tier = Tier.DURABLE if len(text) <= MAX_CONTENT[Tier.DURABLE] else Tier.INDEX
    return Proposal(
        content=text[: MAX_CONTENT[tier]],
        type=_type(event.workspace),
        scope=scope_of(event),
        sources=with_quote(event, ""),
        tier=tier,
    )


def _type(workspace: Workspace) -> str:
    active = MemoryType.objects.filter(workspace=workspace, is_active=True).order_by("pk")
    slugs = list(active.values_list("slug", flat=True))
    return OVERRULED_AS if OVERRULED_AS in slugs else slugs[0]


def events_retry(*, principal: Principal, event_id: UUID | None = None) -> int:
    """Have what was given up tried again from the beginning of its attempts; what was read of it stays read."""
    if not principal.is_operator:
        principal.require_role(Role.ADMIN, to="have material tried again")
    rows = CaptureEvent.objects.of(principal.workspace).filter(state=EventState.DEAD)
    chosen = rows if event_id is None else rows.filter(pk=event_id)
    with transaction.atomic():
        retried = chosen.update(state=EventState.RECEIVED, attempts=0, next_attempt_at=Now(), reason="Tried again.")
        if retried:
            audit_record(
                principal,
                "retry capture",
                subject_kind="capture event",
                subject_id=event_id or "all that were given up",
                after={"events": retried},
            )
            async_task(DRAIN)
    return int(retried)
