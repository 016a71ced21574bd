"""One event, from what was received to an outcome with a reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models.functions import Now

from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_of_origin
from apps.capture.budget import seconds_until_affordable
from apps.capture.extractors.base import Extraction, ExtractorError
from apps.capture.extractors.registry import get_extractor
from apps.capture.gate import READ_BY_A_MODEL, Judged, facts_propose, outcome_of
from apps.capture.leasing import MAX_ATTEMPTS, LeaseLost, event_fail, event_postpone, give_up_worn_out
from apps.capture.models import DROPPED, CaptureEvent, EventOutcome, EventState
from apps.capture.prefilter import Drop, prefilter
from apps.capture.quoted import Quoted
from apps.capture.reading import OutOfTime, event_read, usage_record
from apps.capture.vocabulary import vocabulary_of
from apps.core.errors import TooMany, Unavailable
from apps.core.logs import without_words
from apps.memories.providers.base import ProviderError

NO_ROOM: Final = timedelta(minutes=5)
# Only the beginning is looked at for noise: nothing that long is an acknowledgement or a bot's line.
_LOOKED_AT: Final = 20_000
_NO_EXTRACTOR: Final = "No extractor is configured (FIRM_MEMORY_EXTRACTOR is none), so nobody looked for facts in it."

logger = logging.getLogger(__name__)


def noise_drop(lease: UUID, events: Sequence[UUID]) -> list[UUID]:
    """Finish those leased events that are noise, all at once; what is left has to be looked at more closely.

    Most of what is handed over in bulk is noise, and costs less than asking for it one by one.
    """
    held = CaptureEvent.objects.filter(pk__in=events, lease=lease, state=EventState.PROCESSING)
    short = held.filter(size__lte=_LOOKED_AT, attempts__lte=MAX_ATTEMPTS)
    noise: dict[str, list[UUID]] = {}
    for event_id, payload in short.values_list("pk", "payload"):
        try:
            drop = _noise(payload)
        except Exception as error:
            # It is looked at by itself next, where it is noted with the event.
            logger.info("Capture event %s cannot be filtered: %s", event_id, without_words(error))
            continue
        if drop is not None:
            noise.setdefault(drop.reason, []).append(event_id)
    for reason, dropped in noise.items():
        held.filter(pk__in=dropped).update(**_finished([], EventOutcome.DROPPED_PREFILTER, reason))
    finished = {event_id for dropped in noise.values() for event_id in dropped}
    return [event_id for event_id in events if event_id not in finished]


def _noise(payload: str) -> Drop | None:
    return prefilter(
        payload[:_LOOKED_AT],
        min_length=settings.FIRM_MEMORY_PREFILTER_LENGTH,
        extra_signals=settings.FIRM_MEMORY_PREFILTER_SIGNALS,
    )


def event_process(lease: UUID, event_id: UUID, *, deadline: float) -> None:
    """Bring a leased event to its end, or note why it must wait. Raises only what makes noting impossible."""
    try:
        _process(lease, event_id, deadline)
    except LeaseLost:
        logger.info("Capture event %s was taken over by another worker.", event_id)
    except (DatabaseError, InterfaceError) as error:
        # Perhaps nothing can be written at all; then the lease runs out and somebody else takes it up.
        _note_failure(lease, event_id, f"The database refused it: {type(error).__name__}.", error)
    except Exception as error:
        _note_failure(lease, event_id, f"It failed unexpectedly: {type(error).__name__}.", error)


def _process(lease: UUID, event_id: UUID, deadline: float) -> None:
    event = CaptureEvent.objects.defer(None).select_related("workspace").get(pk=event_id)
    if give_up_worn_out(lease, event_id, event.attempts):
        return
    drop = _noise(event.payload) if event.size <= _LOOKED_AT else None
    if drop is not None:
        event_finish(lease, event_id, [], outcome=EventOutcome.DROPPED_PREFILTER, reason=drop.reason)
        return
    try:
        extraction = _read(lease, event, deadline)
        with transaction.atomic():
            origin = _origin(event)
            judged = facts_propose(origin, event, extraction, Quoted.in_material(origin, event.payload))
            outcome, reason = outcome_of(judged, extraction.note)
            event_finish(lease, event_id, judged, outcome=outcome, reason=reason)
    except OutOfTime as more:
        event_postpone(lease, event_id, reason=f"{more} The rest follows.", wait=timedelta())
    except TooMany as full:
        event_postpone(lease, event_id, reason=f"{full.detail} Its facts are kept and proposed then.", wait=NO_ROOM)
    except ExtractorError as error:
        usage_record(event, error.usage)
        event_fail(
            lease,
            event_id,
            error=error.message,
            permanent=error.permanent,
            retry_after=error.retry_after or 0.0,
        )
    except (Unavailable, ProviderError) as error:
        event_fail(lease, event_id, error=getattr(error, "detail", "") or getattr(error, "message", ""))


def _read(lease: UUID, event: CaptureEvent, deadline: float) -> Extraction:
    extractor = get_extractor()
    if extractor is None:
        return Extraction(note=_NO_EXTRACTOR)
    if extractor.name in READ_BY_A_MODEL and (wait := seconds_until_affordable()):
        raise ExtractorError("The day's tokens (FIRM_MEMORY_LLM_DAILY_TOKENS) are used up.", retry_after=wait)
    return event_read(lease, event, extractor, vocabulary_of(event.workspace), deadline=deadline)


def _origin(event: CaptureEvent) -> Principal:
    return principal_of_origin(
        event.workspace,
        token_id=event.origin_token_id,
        user_id=event.origin_user_id,
        via="capture",
        request_id=str(event.pk),
    )


def event_finish(lease: UUID, event_id: UUID, judged: list[Judged], *, outcome: EventOutcome, reason: str) -> None:
    """Write what became of it, in the transaction of its candidates where there is one. Raises ``LeaseLost``."""
    held = CaptureEvent.objects.filter(pk=event_id, lease=lease, state=EventState.PROCESSING)
    if not held.update(**_finished(judged, outcome, reason)):
        raise LeaseLost


def _finished(judged: list[Judged], outcome: EventOutcome, reason: str) -> dict[str, Any]:
    kept = outcome in DROPPED and not any(one.taints for one in judged)
    cleared: dict[str, Any] = {} if kept else {"payload": ""}
    return {
        "state": EventState.DONE,
        "outcome": outcome,
        "reason": reason,
        "facts": [one.as_json() for one in judged],
        "work": {},
        "lease": None,
        "leased_until": None,
        "last_error": "",
        "finished_at": Now(),
        **cleared,
    }


def _note_failure(lease: UUID, event_id: UUID, sentence: str, error: Exception) -> None:
    logger.error("Capture event %s failed: %s", event_id, without_words(error))
    try:
        event_fail(lease, event_id, error=sentence)
    except LeaseLost:
        logger.info("Capture event %s was taken over by another worker.", event_id)
