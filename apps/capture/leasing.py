"""Who works on which event, and what happens when that somebody dies or fails.

An event is leased by a conditional update, so that of two workers one has it. Whoever works on it for long says so
again and again; a lease that ran out means that the worker is gone, and the next one takes the event up. What a worker
writes at the end counts only while the lease is still its own.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import close_old_connections, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from apps.capture.models import CaptureEvent, EventState

LEASE: Final = timedelta(seconds=60)
BEAT_SECONDS: Final = 15.0
MAX_ATTEMPTS: Final = 8
_FIRST_WAIT: Final = timedelta(seconds=20)
_LONGEST_WAIT: Final = timedelta(hours=1)

# An array is made once. As a sub-select PostgreSQL may run it for each row, and lock more than was asked for.
_LEASE_DUE: Final = """
UPDATE capture_captureevent SET
    state = 'processing', lease = %(lease)s, leased_until = statement_timestamp() + %(seconds)s * interval '1 second',
    attempts = attempts + 1
WHERE id = ANY(ARRAY(
    SELECT id FROM capture_captureevent
    WHERE state IN ('received', 'failed', 'processing') AND (attempts = 0) = %(fresh)s
      AND CASE state WHEN 'processing' THEN leased_until ELSE next_attempt_at END <= statement_timestamp()
    ORDER BY next_attempt_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
))
RETURNING id
"""


class LeaseLost(Exception):
    """Somebody else has taken the event over, so that nothing of this work may be written."""


def lease_due(limit: int, *, fresh: bool = True) -> tuple[UUID, list[UUID]]:
    """Lease what is due, the longest waiting first: the lease, and the ids of the events that it holds.

    What was tried before is leased one by one: an event that ends its worker must not take others along again.
    """
    lease = uuid.uuid4()
    with connection.cursor() as cursor:
        cursor.execute(_LEASE_DUE, {"lease": lease, "seconds": LEASE.total_seconds(), "limit": limit, "fresh": fresh})
        return lease, [row[0] for row in cursor.fetchall()]


def leased(lease: UUID, event_id: UUID) -> CaptureEvent:
    """The event, locked until the transaction ends. Raises ``LeaseLost``."""
    rows = CaptureEvent.objects.filter(pk=event_id, state=EventState.PROCESSING, lease=lease)
    event: CaptureEvent | None = rows.select_for_update(of=("self",)).first()
    if event is None:
        raise LeaseLost
    return event


def extend(lease: UUID) -> bool:
    """A sign of life for everything that is still held by this lease; false when nothing is."""
    held = CaptureEvent.objects.filter(lease=lease, state=EventState.PROCESSING)
    return bool(held.update(leased_until=Now() + LEASE))


@contextmanager
def heartbeat(lease: UUID, *, seconds: float = BEAT_SECONDS) -> Iterator[None]:
    """Extend the lease every so often for as long as the block runs, on a connection of its own.

    Where the process hangs or dies the lease runs out, since this thread dies with it.
    """
    over = threading.Event()

    def beat() -> None:
        try:
            while not over.wait(seconds):
                close_old_connections()
                extend(lease)
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name="capture heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_before(attempt: int, *, at_least: float = 0.0) -> timedelta:
    """How long to wait after so many attempts: twice as long each time, between half and all of it.

    Full jitter would let some try again at once; this keeps many that failed together from coming back together.
    """
    longest = min(_FIRST_WAIT * 2 ** min(max(attempt - 1, 0), 30), _LONGEST_WAIT)
    return max(longest * random.uniform(0.5, 1.0), timedelta(seconds=at_least))  # noqa: S311 - no secret


@transaction.atomic
def event_fail(lease: UUID, event_id: UUID, *, error: str, permanent: bool = False, retry_after: float = 0.0) -> str:
    """Note why it failed and when it is tried again, or that it is given up. Answers the state that it is in now.

    Raises ``LeaseLost``. Nothing is tried for ever: after ``MAX_ATTEMPTS`` an event is dead until somebody who mended
    the cause says so (``manage.py capture retry``).
    """
    event = leased(lease, event_id)
    dead = permanent or event.attempts >= MAX_ATTEMPTS
    state = EventState.DEAD if dead else EventState.FAILED
    wait = wait_before(event.attempts, at_least=retry_after)
    _release(event, state=state, last_error=error, reason=_why(event.attempts, error, dead=dead, wait=wait), wait=wait)
    return state


@transaction.atomic
def event_postpone(lease: UUID, event_id: UUID, *, reason: str, wait: timedelta) -> None:
    """Put it back without counting the attempt: nothing is wrong with it, there is just no room now."""
    event = leased(lease, event_id)
    _release(event, state=EventState.RECEIVED, reason=reason, wait=wait, attempts=F("attempts") - 1)


@transaction.atomic
def give_up_worn_out(lease: UUID, event_id: UUID, attempts: int) -> bool:
    """Whether an event has had its attempts: one that kills every worker leaves no error, only a count."""
    if attempts <= MAX_ATTEMPTS:
        return False
    event_fail(
        lease,
        event_id,
        error="Its worker ended again and again while it was at this event, without saying why.",
        permanent=True,
    )
    return True


def _release(event: CaptureEvent, *, state: EventState, wait: timedelta, **values: Any) -> None:
    CaptureEvent.objects.filter(pk=event.pk).update(
        state=state, lease=None, leased_until=None, next_attempt_at=Now() + wait, **values
    )


def _why(attempts: int, error: str, *, dead: bool, wait: timedelta) -> str:
    if dead:
        return f"Given up after {attempts} of {MAX_ATTEMPTS} attempts. {error}"
    return f"Attempt {attempts} of {MAX_ATTEMPTS} failed; tried again in {_spoken(wait)}. {error}"


def _spoken(wait: timedelta) -> str:
    seconds = int(wait.total_seconds())
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
