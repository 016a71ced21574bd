"""The inbox by page: what is listed and counted there, and everything that belongs to one event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models.functions import Left

from apps.accounts.principal import Principal
from apps.candidates.access import candidates_visible
from apps.candidates.models import OPEN
from apps.capture.inbox import OWN_NAME
from apps.capture.leasing import MAX_ATTEMPTS
from apps.capture.models import DROPPED, CaptureEvent, CaptureEventQuerySet, EventOutcome, EventState
from apps.capture.selectors import events_of_candidate, events_visible
from apps.core.clock import now
from apps.core.errors import NotFound
from apps.memories.facets import MOST, VALUES, Facets, Value, counts_of
from apps.memories.models import MAX_CONTENT, Tier

NEWEST: Final = ("-received_at", "-id")
# As `/readyz` has it: what is due for so long has no worker that comes round to it.
OVERDUE_SECONDS: Final = 600
# So many of an event's candidates stand in the list; its own page has the others.
SHOWN: Final = 3
_BEGINNING: Final = 400
_KEPT: Final = MAX_CONTENT[Tier.INDEX]


# --- how the inbox is -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class InboxSeen:
    """As far as this reader may see it. No number is counted further than ``MOST`` + 1.

    ``oldest`` is when the one that has waited longest was received, ``due`` since when the first has been due without
    a worker that took it up.
    """

    waiting: int
    processing: int
    failed: int
    dead: int
    oldest: datetime | None
    due: datetime | None

    @property
    def is_overdue(self) -> bool:
        return self.due is not None and (now() - self.due).total_seconds() > OVERDUE_SECONDS

    @property
    def unfinished(self) -> int:
        return self.waiting + self.failed + self.processing


def inbox_seen(principal: Principal) -> InboxSeen:
    rows = events_visible(principal)
    columns = ("state", "received_at", "next_attempt_at", "leased_until")
    found = list(rows.unfinished().order_by("next_attempt_at").values_list(*columns)[: MOST + 1])
    states = Counter(state for state, *_ in found)
    # What a worker holds is due once its lease has run out.
    due = [held or next_at for _, _, next_at, held in found if (held or next_at) <= now()]
    return InboxSeen(
        waiting=states[EventState.RECEIVED],
        processing=states[EventState.PROCESSING],
        failed=states[EventState.FAILED],
        dead=counts_of(principal, {"dead": rows.filter(state=EventState.DEAD).order_by(*NEWEST)})["dead"],
        oldest=min((received_at for _, received_at, *_ in found), default=None),
        due=min(due, default=None),
    )


# --- the list -------------------------------------------------------------------------------------------------
def facets_listed(rows: CaptureEventQuerySet) -> Facets:
    """What the list can be narrowed by, counted among the newest ``MOST``."""
    found = list(rows.order_by(*NEWEST).values_list("kind", "state", "origin_name")[: MOST + 1])
    columns = zip(("kind", "state", "origin"), zip(*found[:MOST], strict=True), strict=False)
    return Facets(
        counted=min(len(found), MOST),
        complete=len(found) <= MOST,
        values={name: _most_frequent(values) for name, values in columns},
    )


def _most_frequent(values: Iterable[str]) -> list[Value]:
    counts = sorted(Counter(values).items(), key=lambda counted: (-counted[1], counted[0]))
    return [Value(value, count) for value, count in counts[:VALUES]]


@dataclass(frozen=True, slots=True)
class Brought:
    """A candidate that came of an event, as it is now."""

    id: UUID
    status: str
    beginning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event in words."""

    event: CaptureEvent

    @property
    def name(self) -> str:
        return name_of(self.event)

    @property
    def external_id(self) -> str:
        return external_id_of(self.event)

    @property
    def said(self) -> str:
        return said_of(self.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow(Told):
    brought: Sequence[Brought]
    more: int


def event_rows(principal: Principal, events: Sequence[CaptureEvent]) -> list[EventRow]:
    """One query, however many rows there are."""
    ids = {event.pk: _candidates_of(event) for event in events}
    found = _candidates(principal, {pk for candidates in ids.values() for pk in candidates[:SHOWN]})
    rows = []
    for event in events:
        brought = [found[pk] for pk in ids[event.pk][:SHOWN] if pk in found]
        rows.append(EventRow(event=event, brought=brought, more=len(ids[event.pk]) - len(brought)))
    return rows


def _candidates_of(event: CaptureEvent) -> list[UUID]:
    """Each once, in the order of the facts."""
    return list(dict.fromkeys(UUID(fact["candidate"]) for fact in event.facts if fact.get("candidate")))


def _candidates(principal: Principal, ids: set[UUID]) -> dict[UUID, Brought]:
    if not ids:
        return {}
    rows = candidates_visible(principal).filter(pk__in=ids)
    found = rows.order_by().values_list("pk", "status", Left("content", _BEGINNING))
    return {pk: Brought(pk, status, beginning) for pk, status, beginning in found}


def name_of(event: CaptureEvent) -> str:
    """What people know it by: the title of where it came from, else its name there."""
    first = event.sources[0] if event.sources else {}
    return first.get("title") or first.get("reference") or event.external_id


def external_id_of(event: CaptureEvent) -> str:
    """Its name where it came from, unless we made it of the content or the page says it anyway."""
    first = event.sources[0] if event.sources else {}
    said = event.external_id.startswith(OWN_NAME) or event.external_id in (first.get("reference"), name_of(event))
    return "" if said else event.external_id


def said_of(event: CaptureEvent) -> str:
    """Why it is where it is, as a sentence."""
    if event.state in (EventState.FAILED, EventState.DEAD):
        return event.last_error
    if event.state == EventState.PROCESSING:
        return "A worker is reading it."
    return event.reason or "It waits for a worker."


# --- one event ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class FactShown:
    """What became of one fact. Of one whose candidate this reader may not see nothing is told but its outcome."""

    content: str
    quote: str
    reason: str
    type: str
    confidence: float | None
    outcome: str
    candidate: Brought | None
    is_hidden: bool

    @property
    def is_news(self) -> bool:
        """That something waits for a reviewer is none once one has decided."""
        decided = self.candidate is not None and self.candidate.status not in OPEN
        return not (decided and self.outcome in (EventOutcome.QUEUED, EventOutcome.QUARANTINED))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSheet(Told):
    """``kept`` is what a candidate would be made of; ``is_whole`` says whether that is all of the material."""

    facts: Sequence[FactShown]
    kept: str
    is_whole: bool

    @property
    def is_drop(self) -> bool:
        return self.event.outcome in DROPPED

    @property
    def most_attempts(self) -> int:
        return MAX_ATTEMPTS

    @property
    def is_due(self) -> bool:
        return self.event.next_attempt_at <= now()


def event_sheet(principal: Principal, event_id: UUID) -> EventSheet:
    """Raises ``NotFound`` alike for what does not exist, belongs to another workspace, or may not be seen."""
    rows = events_visible(principal).filter(pk=event_id).annotate(beginning=Left("payload", _KEPT))
    event: Any = rows.select_related("overruled_by", "origin_token").defer("payload", "work").first()
    if event is None:
        raise NotFound("There is no such event.")
    kept = kept_of(event) if event.outcome in DROPPED else ""
    return EventSheet(
        event=event,
        facts=_facts(principal, event),
        kept=kept,
        is_whole=event.size <= _KEPT,
    )


def kept_of(event: Any) -> str:
    """The beginning of the material, of a row that carries it, as people read it."""
    return str(event.beginning).strip()


def _facts(principal: Principal, event: CaptureEvent) -> list[FactShown]:
    found = _candidates(principal, set(_candidates_of(event)))
    return [_fact(fact, found) for fact in event.facts]


def _fact(fact: Mapping[str, Any], found: Mapping[UUID, Brought]) -> FactShown:
    candidate = found.get(UUID(fact["candidate"])) if fact.get("candidate") else None
    is_hidden = bool(fact.get("candidate")) and candidate is None
    words = {name: "" if is_hidden else fact.get(name) or "" for name in ("content", "quote", "reason", "type")}
    return FactShown(
        **words,
        confidence=None if is_hidden else fact.get("confidence"),
        outcome=fact["outcome"],
        candidate=candidate,
        is_hidden=is_hidden,
    )


# --- where a candidate came from ------------------------------------------------------------------------------
def captured_from(principal: Principal, candidate_id: UUID) -> list[Told]:
    """The first of them, as far as this reader sees."""
    rows = events_of_candidate(principal, candidate_id).defer("payload", "work", "facts")
    return [Told(event=event) for event in rows[:SHOWN]]


# --- drops ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class DropRow(Told):
    text: str
    is_whole: bool

    @property
    def why(self) -> list[str]:
        """The event's reason, and those of its facts that it does not tell already."""
        told = self.event.reason
        reasons = (fact.get("reason") or "" for fact in self.event.facts)
        return [told, *dict.fromkeys(reason for reason in reasons if reason not in told)][:4]


def drop_rows(events: Iterable[Any], *, characters: int) -> list[DropRow]:
    """``events`` carry their beginning; no more than ``characters`` of each are shown."""
    rows = []
    for event in events:
        text = kept_of(event)
        whole = event.size <= len(event.beginning) and len(text) <= characters
        rows.append(DropRow(event=event, text=text[:characters], is_whole=whole))
    return rows
