"""What the worker does with raw material. Tasks carry no ids: the rows say what is due, and may be asked twice."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

from django.db.models.functions import Now
from django_q.tasks import async_task

from apps.capture.extractors.registry import get_extractor
from apps.capture.inbox import DRAIN
from apps.capture.leasing import heartbeat, lease_due
from apps.capture.models import CaptureEvent, EventState
from apps.capture.processing import event_process, noise_drop

# Well below the time after which a task is ended (``Q_CLUSTER``).
SECONDS: Final = 120.0
# What calls a model takes long, and other workers shall have their share of it.
AT_ONCE: Final = 20
PAYLOADS_KEPT: Final = timedelta(days=14)
_FORGOTTEN_AT_ONCE: Final = 1_000


def drain() -> str:
    """Take up what is due until nothing is. Of what is left after two minutes another task takes care."""
    deadline = time.monotonic() + SECONDS
    done = 0
    while time.monotonic() < deadline:
        taken = _take(_batch(), deadline, fresh=True) + _take(1, deadline, fresh=False)
        if not taken:
            return f"{done} events."
        done += taken
    async_task(DRAIN)
    return f"{done} events, and more to do."


def _take(limit: int, deadline: float, *, fresh: bool) -> int:
    lease, events = lease_due(limit, fresh=fresh)
    if events:
        with heartbeat(lease):
            for event_id in noise_drop(lease, events) if len(events) > 1 else events:
                event_process(lease, event_id, deadline=deadline)
    return len(events)


def _batch() -> int:
    extractor = get_extractor()
    return AT_ONCE if extractor is None or extractor.name == "rules" else 1


def sweep() -> str:
    """What is due although no task says so: its message was lost, its worker died, or its moment has come."""
    if not CaptureEvent.objects.due().exists():
        return "Nothing was due."
    return drain()


def forget_payloads() -> str:
    """Clear what was kept of drops, in case one was wrong. Idempotent."""
    old = CaptureEvent.objects.filter(state=EventState.DONE, finished_at__lt=Now() - PAYLOADS_KEPT).exclude(payload="")
    chosen = list(old.values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    return f"{CaptureEvent.objects.filter(pk__in=chosen).update(payload='')} payloads were cleared."
