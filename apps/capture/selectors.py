"""What may be seen of the inbox, and the numbers that are told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Func, JSONField, Min, Q, Sum, Value
from django.db.models.functions import Left, Now

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.capture.models import (
    BROUGHT,
    DROPPED,
    UNFINISHED,
    CaptureEvent,
    CaptureEventQuerySet,
    EventOutcome,
    EventState,
)
from apps.core.errors import NotFound

# Enough to judge a drop by; material may be a thousand times as long.
BEGINNING = 12_000


@dataclass(frozen=True, slots=True)
class EventFilter:
    outcome: str | None = None
    state: str | None = None
    kind: str | None = None
    origin: str | None = None
    days: int | None = None


def events_visible(principal: Principal) -> CaptureEventQuerySet:
    """For reviewers the whole workspace, as far as their audiences reach; for others what they handed over."""
    rows: CaptureEventQuerySet = CaptureEvent.objects.of(principal.workspace)
    if principal.can_review and not principal.repository_limit:
        return rows.visible_to(principal.audience_ids)
    if principal.token is not None:
        return rows.filter(origin_token=principal.token)
    return rows.filter(Q(origin_user=principal.user) | Q(origin_token__owner=principal.user))


def event_for(principal: Principal, event_id: UUID) -> CaptureEvent:
    """Raises ``NotFound`` alike for what does not exist, belongs to another workspace, or may not be seen."""
    event: CaptureEvent | None = events_visible(principal).filter(pk=event_id).first()
    if event is None:
        raise NotFound("There is no such event.")
    return event


def events_found(principal: Principal, asked: EventFilter) -> CaptureEventQuerySet:
    rows = events_visible(principal)
    if asked.outcome:
        rows = rows.filter(outcome=asked.outcome)
    if asked.state:
        rows = rows.filter(state=asked.state)
    if asked.kind:
        rows = rows.filter(kind=asked.kind)
    if asked.origin:
        rows = rows.filter(origin_name=asked.origin)
    if asked.days:
        rows = rows.filter(received_at__gte=Now() - timedelta(days=asked.days))
    return rows


def events_of_candidate(principal: Principal, candidate_id: UUID) -> CaptureEventQuerySet:
    """Those with a fact that became this candidate or joined it, the first ones first."""
    brought = Func(
        F("facts"), Value("$[*].candidate"), function="jsonb_path_query_array", output_field=JSONField()
    )  # as in the index
    rows = events_visible(principal).filter(outcome__in=BROUGHT).alias(brought=brought)
    # What is looked for has no type of its own in the stubs.
    wanted: Any = [str(candidate_id)]
    found: CaptureEventQuerySet = rows.filter(brought__contains=wanted).order_by("received_at", "id")
    return found


def event_shown(event: CaptureEvent) -> dict[str, Any]:
    """As answers carry it. Of facts that became nothing the words are left to the reviewers' page."""
    candidates = [fact["candidate"] for fact in event.facts if fact["candidate"]]
    return {
        "event": str(event.pk),
        "kind": event.kind,
        "external_id": event.external_id,
        "state": event.state,
        "outcome": event.outcome or None,
        "reason": event.reason or None,
        "attempts": event.attempts,
        "candidates": list(dict.fromkeys(candidates)),
        "notes": event.notes,
        "received_at": event.received_at,
        "finished_at": event.finished_at,
    }


@dataclass(frozen=True, slots=True)
class Inbox:
    """How the inbox is, over all workspaces. Ages are seconds by the database's clock; 0 when nothing waits."""

    waiting: int
    oldest_seconds: float
    overdue_seconds: float
    processing: int
    failed: int
    dead: int


def inbox_state() -> Inbox:
    """``overdue_seconds`` is how long the longest waiting event has been due and not taken up."""
    is_due = Q(state__in=(EventState.RECEIVED, EventState.FAILED), next_attempt_at__lte=Now())
    left = Q(state=EventState.PROCESSING, leased_until__lte=Now())
    row = CaptureEvent.objects.filter(state__in=UNFINISHED).aggregate(
        waiting=Count("pk", filter=~Q(state=EventState.PROCESSING)),
        processing=Count("pk", filter=Q(state=EventState.PROCESSING)),
        failed=Count("pk", filter=Q(state=EventState.FAILED)),
        oldest=Now() - Min("received_at"),
        due=Now() - Min("next_attempt_at", filter=is_due),
        left=Now() - Min("leased_until", filter=left),
    )
    dead = CaptureEvent.objects.filter(state=EventState.DEAD).count()
    overdue = max(_seconds(row["due"]), _seconds(row["left"]))
    return Inbox(row["waiting"], _seconds(row["oldest"]), overdue, row["processing"], row["failed"], dead)


def _seconds(age: timedelta | None) -> float:
    return max(age.total_seconds(), 0.0) if age is not None else 0.0


def outcome_counts() -> list[tuple[str, str, int]]:
    """``(kind, outcome, count)`` of what is done, over all workspaces since the beginning."""
    rows = CaptureEvent.objects.filter(state=EventState.DONE).order_by()
    return sorted(rows.values_list("kind", "outcome").annotate(count=Count("pk")))


@dataclass(frozen=True, slots=True)
class Cost:
    """What became of the material of one kind, and what that cost."""

    kind: str
    messages: int
    read: int
    queued: int
    quarantined: int
    duplicate: int
    excluded: int
    dropped: int
    overruled: int
    calls: int
    tokens: int

    @property
    def share_read(self) -> float:
        return self.read / self.messages if self.messages else 0.0


def costs(workspace: Workspace, *, days: int) -> list[Cost]:
    """By kind, of what was finished in so many days."""
    rows = CaptureEvent.objects.of(workspace).filter(
        state=EventState.DONE, finished_at__gte=Now() - timedelta(days=days)
    )
    found = (
        rows.order_by()
        .values("kind")
        .annotate(
            messages=Count("pk"),
            read=Count("pk", filter=~Q(outcome=EventOutcome.DROPPED_PREFILTER)),
            **{
                outcome: Count("pk", filter=Q(outcome=outcome))
                for outcome in (
                    *(EventOutcome.QUEUED.value, EventOutcome.QUARANTINED.value),
                    *(EventOutcome.DUPLICATE.value, EventOutcome.EXCLUDED.value),
                )
            },
            dropped=Count(
                "pk", filter=Q(outcome__in=(EventOutcome.DROPPED_CLASSIFIER, EventOutcome.DROPPED_PREFILTER))
            ),
            overruled=Count("pk", filter=Q(overruled_at__isnull=False)),
            all_calls=Sum("calls"),
            tokens=Sum(F("prompt_tokens") + F("completion_tokens")),
        )
    )
    return [
        Cost(**{**{name: value for name, value in row.items() if name != "all_calls"}, "calls": row["all_calls"]})
        for row in found.order_by("kind")
    ]


@dataclass(frozen=True, slots=True)
class Drops:
    """What was not kept in some days, and how much of it a reviewer took back."""

    dropped: int
    overruled: int
    sample: Sequence[CaptureEvent]

    @property
    def false_drop_rate(self) -> float:
        return self.overruled / self.dropped if self.dropped else 0.0


def drops(principal: Principal, *, days: int = 7, sample: int = 10) -> Drops:
    """The sample is drawn by the ids, which are random, so that it is the same whenever one looks.

    Its rows carry the ``beginning`` of what was dropped, ``BEGINNING`` characters at most.
    """
    rows = events_visible(principal).filter(state=EventState.DONE, finished_at__gte=Now() - timedelta(days=days))
    dropped = rows.filter(Q(outcome__in=DROPPED) | Q(overruled_at__isnull=False))
    counts = dropped.aggregate(dropped=Count("pk"), overruled=Count("pk", filter=Q(overruled_at__isnull=False)))
    kept = dropped.filter(overruled_at__isnull=True).exclude(payload="")
    # Chosen first, so that no other payload is unpacked to be sorted.
    chosen = list(kept.order_by("pk").values_list("pk", flat=True)[:sample])
    read = CaptureEvent.objects.filter(pk__in=chosen).defer("payload", "work")
    open_ = read.annotate(beginning=Left("payload", BEGINNING)).order_by("pk")
    return Drops(counts["dropped"], counts["overruled"], list(open_))
