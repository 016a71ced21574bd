"""Reading one event, stretch by stretch. What was found so far is kept with it, so that a killed worker costs one
stretch and no call of a model is made twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from apps.capture.extractors.base import Extraction, Extractor, Fact, Material, Refused, Usage, Vocabulary
from apps.capture.leasing import LeaseLost, extend
from apps.capture.models import CaptureEvent, EventState
from apps.capture.splitting import parts_of
from apps.core.screening import masked
from apps.core.screening.text import normalise_for_fingerprint

# Estimated tokens of what is read between two moments of keeping: one call of a model, and perhaps one about types.
STRETCH: Final = 6_000
MAX_FACTS: Final = 200
_MOST_REFUSED: Final = 10_000
_TOLD: Final = 500
_BEYOND: Final = (
    f"One piece of material brings at most {MAX_FACTS} candidates, and this is one more. Hand it over in parts."
)
# What an extractor made readable again (a secret that was encoded, or broken over lines) is not stored, not even while
# the event is being read.
_TAINTED: Final = Refused(
    "",
    "excluded",
    "It holds a secret or personal data, which must not be remembered. Nothing of it was kept.",
    taints=True,
)
# Between two moments of keeping where reading again costs nothing but time.
_KEPT_EVERY: Final = 5.0


class OutOfTime(Exception):
    """There is more to read than fits into one task; what was read is kept."""


@dataclass(frozen=True, slots=True)
class Work:
    """How many stretches were read, and what was found in them."""

    read: int = 0
    stretches: int = 0
    facts: tuple[Fact, ...] = ()
    refused: tuple[Refused, ...] = ()
    note: str = ""

    @classmethod
    def of(cls, event: CaptureEvent) -> Work:
        kept = dict(event.work)
        if not kept:
            return cls()
        facts = tuple(Fact(**{**fact, "supersedes": tuple(fact["supersedes"])}) for fact in kept.pop("facts"))
        return cls(**{**kept, "facts": facts, "refused": tuple(Refused(**row) for row in kept.pop("refused"))})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def plus(self, found: Extraction, *, stretches: int) -> Work:
        tainted = [fact for fact in found.facts if masked(fact.content) != fact.content]
        facts = tuple(_distinct((*self.facts, *(fact for fact in found.facts if fact not in tainted))))
        beyond = [Refused(fact.content[:_TOLD], "dropped_classifier", _BEYOND) for fact in facts[MAX_FACTS:]]
        return replace(
            self,
            read=self.read + 1,
            stretches=stretches,
            facts=facts[:MAX_FACTS],
            refused=(*self.refused, *(_TAINTED for _ in tainted), *found.refused, *beyond)[:_MOST_REFUSED],
            # What is said of one part of several is not true of the whole.
            note=found.note if stretches == 1 else "",
        )


def event_read(
    lease: UUID, event: CaptureEvent, extractor: Extractor, vocabulary: Vocabulary, *, deadline: float
) -> Extraction:
    """Everything that is found in it. Raises ``OutOfTime`` at ``deadline`` (monotonic seconds), and what the extractor
    raises; either way what was found before is kept."""
    work, kept_at = Work.of(event), time.monotonic()
    stretches = [part.text for part in parts_of(event.payload, event.kind, budget=STRETCH)]
    for text in stretches[work.read :]:
        found = extractor.extract(_material(event, text), vocabulary, heartbeat=_beat(lease))
        work = work.plus(found, stretches=len(stretches))
        is_late = time.monotonic() > deadline
        is_last = work.read == len(stretches)
        # Everything that was found is written each time, so where no call was paid for, not after each stretch.
        if found.usage.calls or is_late or is_last or time.monotonic() - kept_at > _KEPT_EVERY:
            _keep(lease, event, extractor, work, found.usage)
            kept_at = time.monotonic()
        if is_late and not is_last:
            raise OutOfTime(f"{work.read} of {len(stretches)} parts are read.")
    return Extraction(facts=work.facts, refused=work.refused, note=work.note)


def _material(event: CaptureEvent, text: str) -> Material:
    scope = event.scope
    return Material(
        text=text,
        kind=event.kind,
        repos=tuple(scope["repos"]),
        domains=tuple(scope["domains"]),
        hints=tuple(signal.lower() for signal in settings.FIRM_MEMORY_PREFILTER_SIGNALS),
    )


def _beat(lease: UUID) -> Callable[[], None]:
    def beat() -> None:
        if not extend(lease):
            raise LeaseLost

    return beat


def _keep(lease: UUID, event: CaptureEvent, extractor: Extractor, work: Work, usage: Usage) -> None:
    held = CaptureEvent.objects.filter(pk=event.pk, lease=lease, state=EventState.PROCESSING)
    event.extractor = extractor.name
    kept = held.update(
        work=work.as_json(),
        extractor=extractor.name,
        reason=f"Being read: {work.read} of {work.stretches} parts.",
        **_spent(usage),
    )
    if not kept:
        raise LeaseLost


def usage_record(event: CaptureEvent, usage: Usage) -> None:
    """What a failed reading has cost all the same; it counts for the day whoever holds the event now."""
    if usage.calls:
        CaptureEvent.objects.filter(pk=event.pk).update(**_spent(usage))


def _spent(usage: Usage) -> dict[str, Any]:
    if not usage.calls:
        return {}
    return {
        "calls": F("calls") + usage.calls,
        "prompt_tokens": F("prompt_tokens") + usage.prompt_tokens,
        "completion_tokens": F("completion_tokens") + usage.completion_tokens,
        "used_at": Now(),
    }


def _distinct(facts: tuple[Fact, ...]) -> Iterator[Fact]:
    """What appears in several parts is one fact: the first, with the higher confidence."""
    known: dict[str, Fact] = {}
    for fact in facts:
        key = normalise_for_fingerprint(fact.content)
        earlier = known.get(key)
        if earlier is None:
            known[key] = fact
        elif (fact.confidence or 0) > (earlier.confidence or 0):
            known[key] = replace(earlier, confidence=fact.confidence)
    yield from known.values()
