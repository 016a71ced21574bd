"""What `/metrics` reads from the tables while it is asked, so that all processes say the same.

Each part is read by itself and within a time limit. One that cannot be read is missing from the answer and says so in
``firm_memory_collector_success``: a number that nobody could look up is not zero.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Final

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from apps.capture.selectors import inbox_state, outcome_counts
from apps.core.errors import DomainError
from apps.core.logs import without_words
from apps.core.time_limits import reading_within
from apps.insights import selectors

# Prometheus gives up after 10 seconds by default.
PART_SECONDS: Final = 2.0
ALL_SECONDS: Final = 5.0

logger = logging.getLogger(__name__)

Part = Callable[[], list[Metric]]


class TableCollector:
    """Asks the database, if it answers at all."""

    def collect(self) -> Iterator[Metric]:
        deadline = time.monotonic() + ALL_SECONDS
        success = GaugeMetricFamily(
            "firm_memory_collector_success", "Whether this part could be looked up just now.", labels=["part"]
        )
        answers = _read(_database, deadline) is not None
        yield _gauge("firm_memory_database_up", "Whether the database answers.", answers)
        for name, part in PARTS.items():
            metrics = _read(part, deadline) if answers else None
            success.add_metric([name], float(metrics is not None))
            yield from metrics or ()
        yield success


def _read(part: Part, deadline: float) -> list[Metric] | None:
    left = min(PART_SECONDS, deadline - time.monotonic())
    if left <= 0:
        return None
    try:
        with reading_within(left):
            return part()
    except (DatabaseError, InterfaceError, DomainError) as error:
        logger.warning("Metrics could not be looked up: %s", without_words(error))
        return None


def _database() -> list[Metric]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return []


def _queue() -> list[Metric]:
    count = GaugeMetricFamily("firm_memory_candidates_open", "Candidates that wait for a person.", labels=["status"])
    age = GaugeMetricFamily(
        "firm_memory_candidates_oldest_seconds",
        "How long the oldest of them has waited; 0 when none waits.",
        labels=["status"],
    )
    for status, waiting in selectors.candidates_waiting().items():
        count.add_metric([status], waiting.count)
        age.add_metric([status], waiting.oldest_seconds)
    return [count, age]


def _verdicts() -> list[Metric]:
    family = CounterMetricFamily("firm_memory_verdicts", "Verdicts since the beginning.", labels=["action", "via"])
    for action, via, count in selectors.verdict_counts():
        family.add_metric([action, via], count)
    return [family]


def _tasks() -> list[Metric]:
    state = selectors.tasks_state()
    return [
        _gauge("firm_memory_tasks_waiting", "Tasks that no worker has taken yet.", state.waiting.count),
        _gauge(
            "firm_memory_tasks_oldest_seconds",
            "How long the oldest of them has waited; 0 when none waits.",
            state.waiting.oldest_seconds,
        ),
        _gauge("firm_memory_tasks_taken", "Tasks that a worker has taken and not finished.", state.taken),
        _gauge("firm_memory_tasks_failed", "Tasks that failed and are kept to be looked at.", state.failed),
    ]


def _worker() -> list[Metric]:
    state = selectors.worker_state()
    metrics = [_gauge("firm_memory_worker_up", "Whether a worker does what is due.", state.is_up)]
    if state.beat_age is not None:
        metrics.append(
            _gauge("firm_memory_worker_heartbeat_seconds", "Since a worker last did a task.", state.beat_age)
        )
    return metrics


def _pool() -> list[Metric]:
    if settings.FIRM_MEMORY_PROVIDER != "mem0":
        return []
    state = selectors.pool_state()
    up = state is not None and state.has_table and state.matches
    metrics = [_gauge("firm_memory_pool_up", "Whether there is a live pool made by the embedder in use.", up)]
    if state is None:
        return metrics
    info = GaugeMetricFamily(
        "firm_memory_pool_info", "The live generation.", labels=["generation", "embedder", "dimensions"]
    )
    info.add_metric([str(state.number), state.embedder, str(state.dimensions)], 1)
    return [*metrics, info]


def _drift() -> list[Metric]:
    state = selectors.pool_state() if settings.FIRM_MEMORY_PROVIDER == "mem0" else None
    if state is None or not state.has_table:
        return []
    sizes = selectors.pool_sizes(state.number)
    return [
        _gauge("firm_memory_ledger_memories", "Memories in the ledger.", sizes.ledger),
        _gauge("firm_memory_pool_memories", "Memories in the live pool.", sizes.pool),
        _gauge("firm_memory_pool_drift", "By how many the two differ; should be 0.", abs(sizes.ledger - sizes.pool)),
    ]


def _capture() -> list[Metric]:
    state = inbox_state()
    outcomes = CounterMetricFamily(
        "firm_memory_capture_outcomes", "Raw material that is done, by what became of it.", labels=["kind", "outcome"]
    )
    for kind, outcome, count in outcome_counts():
        outcomes.add_metric([kind, outcome], count)
    return [
        outcomes,
        _gauge("firm_memory_capture_waiting", "Raw material that waits, for its first try or another.", state.waiting),
        _gauge(
            "firm_memory_capture_oldest_seconds",
            "Since the oldest that is not done was received; 0 when all is.",
            state.oldest_seconds,
        ),
        _gauge(
            "firm_memory_capture_overdue_seconds",
            "How long raw material has been due and not taken up; 0 when none is.",
            state.overdue_seconds,
        ),
        _gauge("firm_memory_capture_processing", "Raw material that a worker is at.", state.processing),
        _gauge("firm_memory_capture_failed", "Raw material that failed and is tried again.", state.failed),
        _gauge("firm_memory_capture_dead", "Raw material that was given up.", state.dead),
    ]


PARTS: Final[dict[str, Part]] = {
    "queue": _queue,
    "verdicts": _verdicts,
    "tasks": _tasks,
    "worker": _worker,
    "pool": _pool,
    "drift": _drift,
    "capture": _capture,
}


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=float(value))
