"""What `/readyz` says of the pool, the worker and its queue. It is open to all, so it names no model and no table."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Final

from django.conf import settings

from apps.capture.selectors import inbox_state
from apps.core.errors import Unavailable
from apps.core.time_limits import reading_within
from apps.insights.selectors import SILENT_SECONDS, pool_state, tasks_state, worker_state

SECONDS: Final = 2.0
# A task that waited so long has no worker that comes round to it.
OLDEST_TASK_SECONDS: Final = 600
_STARTED: Final = time.monotonic()


def _in_time(check: Callable[[], str]) -> Callable[[], str]:
    """Probes come every few seconds: one that waited for a lock would soon hold every thread there is."""

    @wraps(check)
    def bounded() -> str:
        with reading_within(SECONDS):
            return check()

    return bounded


@_in_time
def pool() -> str:
    if settings.FIRM_MEMORY_PROVIDER != "mem0":
        return "Kept outside of the database."
    state = pool_state()
    if state is None:
        raise Unavailable("There is no live pool. Run `manage.py migrate`, which makes the first one.")
    if not state.has_table:
        raise Unavailable("The table of the live pool is gone. Build it anew with `manage.py pool rebuild`.")
    if not state.matches:
        raise Unavailable(
            "The pool was made by another embedder than FIRM_MEMORY_EMBEDDER names. Set it to match and restart, or "
            "build the pool anew with `manage.py pool rebuild`."
        )
    return "Live, and made by the embedder in use."


@_in_time
def worker() -> str:
    state = worker_state()
    if not state.is_up and time.monotonic() - _STARTED < SILENT_SECONDS:
        # `make up` starts both at once, and a worker is first heard of a minute or two after its start.
        raise Unavailable("The worker is starting: it is heard of within two minutes.", code="worker_starting")
    if state.seen_age is None:
        raise Unavailable("No worker was ever heard of. Start one with `manage.py qcluster`.")
    if not state.is_there:
        raise Unavailable(
            f"No worker was heard of for {_ago(state.seen_age)}. Start one with `manage.py qcluster`, or look at the "
            "log of the one that runs."
        )
    if not state.is_up:
        done = "never did a task" if state.beat_age is None else f"did no task for {_ago(state.beat_age)}"
        raise Unavailable(f"A worker is there and {done}. Look at its log.")
    return f"Heard of {_ago(state.seen_age)} ago."


@_in_time
def tasks() -> str:
    waiting = tasks_state().waiting
    if waiting.oldest_seconds > OLDEST_TASK_SECONDS:
        raise Unavailable(f"{waiting.count} tasks wait, the oldest for {_ago(waiting.oldest_seconds)}.")
    return f"{waiting.count} tasks wait."


@_in_time
def capture() -> str:
    state = inbox_state()
    faults = []
    if state.overdue_seconds > OLDEST_TASK_SECONDS:
        faults.append(f"Raw material is due and nobody took it up for {_ago(state.overdue_seconds)}.")
    if state.dead:
        faults.append(
            f"{_pieces(state.dead)} of raw material {'was' if state.dead == 1 else 'were'} given up. Look at "
            "/captured/, mend the cause, and run `manage.py capture retry`."
        )
    waiting = f"{_pieces(state.waiting)} of raw material {'waits' if state.waiting == 1 else 'wait'}."
    if faults:
        raise Unavailable(" ".join([*faults, waiting]))
    return waiting


def _pieces(count: int) -> str:
    return "1 piece" if count == 1 else f"{count:,} pieces"


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
