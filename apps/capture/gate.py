"""From facts to candidates: each goes the way of any other proposal, in the name of whoever handed it over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from apps.accounts.principal import Principal
from apps.candidates.models import CandidateStatus
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.services import Proposed, candidate_propose
from apps.capture.extractors.base import Extraction, Fact, Refused
from apps.capture.inbox import source_from_json
from apps.capture.models import CaptureEvent, EventOutcome
from apps.capture.quoted import Quoted
from apps.capture.speakers import people_in
from apps.core.errors import Excluded, Forbidden, Invalid
from apps.core.screening import SECRETS
from apps.core.screening.exclusions import REASONS, exclusion_of, without_people
from apps.memories.models import MAX_CONTENT, Tier
from apps.memories.selectors import memories_by_reference
from apps.sources.services import MAX_QUOTE, SourceInput
from apps.taxonomy.models import Exclusion

_OF_STATUS: Final = {
    CandidateStatus.PENDING: EventOutcome.QUEUED,
    CandidateStatus.QUARANTINED: EventOutcome.QUARANTINED,
}
READ_BY_A_MODEL: Final = ("llm", "provider")
NOTHING: Final = "Nothing durable was found in it."


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one fact."""

    content: str
    outcome: EventOutcome
    reason: str
    type: str = ""
    confidence: float | None = None
    quote: str = ""
    candidate: UUID | None = None
    taints: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "type": self.type,
            "confidence": self.confidence,
            "quote": self.quote,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "candidate": str(self.candidate) if self.candidate else None,
        }


def facts_propose(principal: Principal, event: CaptureEvent, extraction: Extraction, quoted: Quoted) -> list[Judged]:
    """Propose each fact. One that will not do costs none of the others; ``TooMany`` and ``Unavailable`` cost all.

    Runs in the transaction that finishes the event, so that a crash leaves both or neither.
    """
    judged = [_refused(refused) for refused in extraction.refused]
    if not extraction.facts:
        return judged
    excluding = _Excluding(event)
    for fact in extraction.facts:
        judged.append(excluding.judge(fact) or _propose(principal, event, fact, quoted))
    return judged


class _Excluding:
    """What the workspace leaves out, whoever found it: a prompt asks for that, and this holds it."""

    def __init__(self, event: CaptureEvent) -> None:
        rows = Exclusion.objects.filter(workspace=event.workspace_id, is_active=True)
        self._in_force = frozenset(rows.values_list("slug", flat=True))
        self._people = people_in(event.payload)

    def judge(self, fact: Fact) -> Judged | None:
        slug = exclusion_of(fact.content, self._people, self._in_force)
        if slug is None:
            return None
        content = without_people(fact.content, self._people)
        return Judged(content, EventOutcome.EXCLUDED, REASONS[slug], type=fact.type, confidence=fact.confidence)


def outcome_of(judged: Sequence[Judged], note: str = "") -> tuple[EventOutcome, str]:
    """The best of the facts, and a sentence that says how many had which."""
    if not judged:
        return EventOutcome.DROPPED_CLASSIFIER, note or NOTHING
    best = min((one.outcome for one in judged), key=lambda outcome: outcome.rank)
    counts = {outcome: sum(one.outcome == outcome for one in judged) for outcome in EventOutcome}
    told = ", ".join(f"{_SAID[outcome]}: {count}" for outcome, count in counts.items() if count)
    sentences = [f"{told[0].upper()}{told[1:]}."]
    if best not in _OF_STATUS.values():
        # Nothing came of it, so why is all there is to say; a note that nothing was found would be beside the point.
        sentences.append(next(one.reason for one in judged if one.outcome == best))
    elif note:
        sentences.append(note)
    return best, " ".join(sentences)


_SAID: Final = {
    EventOutcome.QUEUED: "queued for review",
    EventOutcome.QUARANTINED: "quarantined",
    EventOutcome.DUPLICATE: "known already",
    EventOutcome.EXCLUDED: "excluded",
    EventOutcome.DROPPED_CLASSIFIER: "not taken",
    EventOutcome.DROPPED_PREFILTER: "noise",
}


def _refused(refused: Refused) -> Judged:
    return Judged(refused.content, EventOutcome(refused.outcome), refused.reason, taints=refused.taints)


def _propose(principal: Principal, event: CaptureEvent, fact: Fact, quoted: Quoted) -> Judged:
    told = Judged(
        content=fact.content,
        outcome=EventOutcome.DROPPED_CLASSIFIER,
        reason="",
        type=fact.type,
        confidence=fact.confidence,
        quote=fact.quote,
    )
    known = quoted.memory_of(fact)
    if known is not None:
        reason = f"It quotes {known}, which is known; what was learned once is not learned again from its own words."
        return replace(told, outcome=EventOutcome.DUPLICATE, reason=reason)
    try:
        with transaction.atomic():
            proposed = candidate_propose(principal=principal, proposal=_proposal(principal, event, fact))
    except Excluded as refusal:
        # The text holds what must not be kept, so it is not kept here either.
        return Judged(
            "",
            EventOutcome.EXCLUDED,
            f"{refusal.detail} {_messages(refusal)}".strip(),
            type=fact.type,
            taints=SECRETS in refusal.extra.get("exclusions", ()),
        )
    except (Invalid, Forbidden) as refusal:
        return replace(told, content=told.content[:500], reason=f"{refusal.detail} {_messages(refusal)}".strip())
    outcome, reason = became_of(proposed)
    return replace(told, outcome=outcome, reason=reason, candidate=proposed.candidate.pk)


def became_of(proposed: Proposed) -> tuple[EventOutcome, str]:
    """Joined to an open candidate, or answered with an earlier decision: nothing new waits for anybody."""
    outcome = _OF_STATUS[CandidateStatus(proposed.status)] if proposed.created else EventOutcome.DUPLICATE
    return outcome, proposed.reason or "It waits for a reviewer."


def _proposal(principal: Principal, event: CaptureEvent, fact: Fact) -> Proposal:
    content = fact.content.strip()
    # Without a model nobody knows whether a number that is mentioned is one that is replaced.
    wanted = fact.supersedes if event.extractor in READ_BY_A_MODEL else ()
    targets = memories_by_reference(principal, list(wanted)) if wanted else {}
    return Proposal(
        content=content,
        type=fact.type,
        scope=scope_of(event),
        sources=with_quote(event, fact.quote),
        confidence=fact.confidence,
        # What the text names and is not there replaces nothing, and is no reason to lose the fact.
        supersedes=tuple(reference for reference in wanted if reference in targets),
        tier=Tier.DURABLE if len(content) <= MAX_CONTENT[Tier.DURABLE] else Tier.INDEX,
        doubt=fact.doubt,
    )


def scope_of(event: CaptureEvent) -> ScopeInput:
    scope = event.scope
    return ScopeInput(firm=scope["firm"], domains=tuple(scope["domains"]), repos=tuple(scope["repos"]))


def with_quote(event: CaptureEvent, quote: str) -> tuple[SourceInput, ...]:
    """The event's sources; the first of them carries the passage that supports the fact."""
    first, *others = (source_from_json(values) for values in event.sources)
    return (replace(first, quote=quote.strip()[:MAX_QUOTE] or first.quote), *others)


def _messages(refusal: Invalid | Forbidden) -> str:
    return " ".join(dict.fromkeys(error.message for error in refusal.errors))
