"""What the worker does to be seen."""

from __future__ import annotations

from apps.insights.services import PROCESS, WORKER, heartbeat_record


def beat() -> str:
    """Leave a trace that tasks are scheduled, taken and done, which no look at processes could tell. Idempotent."""
    heartbeat_record(WORKER)
    heartbeat_record(PROCESS)
    return "Heard."
