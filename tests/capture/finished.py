"""Events as the worker leaves them, for what looks at them afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.capture.models import DROPPED, CaptureEvent, EventOutcome, EventState
from tests.capture.doubles import DECISION, an_event

REASONS = {
    EventOutcome.QUEUED: "Queued for review: 1.",
    EventOutcome.QUARANTINED: "Quarantined: 1.",
    EventOutcome.DUPLICATE: "Known already: 1.",
    EventOutcome.EXCLUDED: "It tells about an individual (facts about individual engineers).",
    EventOutcome.DROPPED_CLASSIFIER: "Nothing durable was found in it.",
    EventOutcome.DROPPED_PREFILTER: "It is a whole-message acknowledgement.",
}


def fact_of(candidate: Candidate, **changes: Any) -> dict[str, Any]:
    """A fact as an event keeps it, which became this candidate."""
    values: dict[str, Any] = {
        "content": candidate.content,
        "type": candidate.type.slug,
        "confidence": candidate.confidence,
        "quote": "",
        "outcome": EventOutcome.QUEUED.value,
        "reason": "It waits for a reviewer.",
        "candidate": str(candidate.pk),
    }
    return values | changes


def a_fact_that_became_nothing(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "content": "Tests are green again.",
        "type": "",
        "confidence": None,
        "quote": "",
        "outcome": EventOutcome.DROPPED_CLASSIFIER.value,
        "reason": "It is transient.",
        "candidate": None,
    }
    return values | changes


def done(
    principal: Principal,
    outcome: EventOutcome = EventOutcome.DROPPED_CLASSIFIER,
    content: str = DECISION,
    *,
    reason: str = "",
    facts: tuple[dict[str, Any], ...] = (),
    days_ago: float = 0,
    columns: dict[str, Any] | None = None,
    **material: Any,
) -> CaptureEvent:
    """An event with its outcome. ``columns`` are set besides; ``material`` changes what was handed over."""
    event = an_event(principal, content, **material)
    kept = {} if outcome in DROPPED else {"payload": ""}
    CaptureEvent.objects.filter(pk=event.pk).update(
        **{
            "state": EventState.DONE,
            "outcome": outcome,
            "reason": reason or REASONS[outcome],
            "facts": list(facts),
            "attempts": 1,
            "extractor": "" if outcome == EventOutcome.DROPPED_PREFILTER else "rules",
            "finished_at": Now() - timedelta(days=days_ago),
            **kept,
            **(columns or {}),
        }
    )
    return CaptureEvent.objects.get(pk=event.pk)


def in_state(principal: Principal, state: EventState, content: str = DECISION, **columns: Any) -> CaptureEvent:
    """An event that is not done."""
    event = an_event(principal, content)
    error = {"last_error": "The model did not answer."} if state in (EventState.FAILED, EventState.DEAD) else {}
    CaptureEvent.objects.filter(pk=event.pk).update(**{"state": state, **error, **columns})
    return CaptureEvent.objects.get(pk=event.pk)
