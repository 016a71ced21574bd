"""How the service is, read from its tables: the same whichever process is asked.

Ages are told by the database's clock. Everything is about all workspaces together; who operates the service need not
know what the workspaces are called.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import connection
from django.db.models import Count, F, Max, Min, Q
from django.db.models.functions import Now
from django_q.conf import Conf
from django_q.models import OrmQ, Task
from psycopg import sql

from apps.candidates.models import OPEN, Candidate
from apps.insights.models import Heartbeat
from apps.insights.services import PROCESS, WORKER
from apps.memories.models import GenerationState, PoolGeneration, Verdict
from apps.memories.pool import pool_table
from apps.memories.providers.registry import get_embedder

# The heartbeat is due every minute, and the schedule is looked at every half a minute.
SILENT_SECONDS: Final = 150
# Where all of a worker's processes are at long tasks, the heartbeat waits behind them, at most this long.
BUSY_SECONDS: Final[int] = Conf.TIMEOUT + 120
# A process that works gives a sign of life every quarter of a minute, at whatever task it is.
GONE_SECONDS: Final = 45
SIZES_REMEMBERED_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Waiting:
    count: int
    oldest_seconds: float  # 0 when nothing waits


def candidates_waiting() -> dict[str, Waiting]:
    """Open candidates by status."""
    rows = Candidate.objects.filter(status__in=OPEN).order_by().values("status")
    found = {
        row["status"]: Waiting(row["count"], row["age"].total_seconds())
        for row in rows.annotate(count=Count("pk"), age=Max(Now() - F("created_at")))
    }
    return {status.value: found.get(status.value, Waiting(0, 0.0)) for status in OPEN}


def verdict_counts() -> list[tuple[str, str, int]]:
    """``(action, via, count)`` since the beginning. Verdicts are never removed, so a count never falls."""
    rows = Verdict.objects.order_by().values_list("action", "via").annotate(count=Count("pk"))
    return sorted(rows)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The worker's queue: what waits to be taken, what was taken and is not done, what failed for good."""

    waiting: Waiting
    taken: int
    failed: int


def tasks_state() -> Tasks:
    # A task that waits has the moment of its queueing as its lock; one that was taken has a moment in the future.
    row = OrmQ.objects.filter(key=Conf.CLUSTER_NAME).aggregate(
        waiting=Count("pk", filter=Q(lock__lte=Now())),
        taken=Count("pk", filter=Q(lock__gt=Now())),
        age=Now() - Min("lock", filter=Q(lock__lte=Now())),
    )
    age: timedelta | None = row["age"]
    waiting = Waiting(row["waiting"], age.total_seconds() if age else 0.0)
    return Tasks(waiting, row["taken"], Task.objects.filter(success=False).count())


@dataclass(frozen=True, slots=True)
class Worker:
    """``beat_age`` is how long ago the heartbeat, a task like any other, was last done; ``None`` when never.

    ``seen_age`` is how long ago a process of it last gave a sign of life, busy or not.
    """

    beat_age: float | None
    seen_age: float | None
    is_busy: bool  # it took a task not long ago and may still be at it

    @property
    def is_there(self) -> bool:
        return self.seen_age is not None and self.seen_age <= GONE_SECONDS

    @property
    def is_up(self) -> bool:
        if self.beat_age is None or not self.is_there:
            return False
        return self.beat_age <= (BUSY_SECONDS if self.is_busy else SILENT_SECONDS)


def worker_state() -> Worker:
    beats = Heartbeat.objects.filter(name__in=(WORKER, PROCESS)).annotate(age=Now() - F("at"))
    ages = {name: age.total_seconds() for name, age in beats.values_list("name", "age")}
    taken = OrmQ.objects.filter(key=Conf.CLUSTER_NAME, lock__gt=Now())
    return Worker(beat_age=ages.get(WORKER), seen_age=ages.get(PROCESS), is_busy=taken.exists())


@dataclass(frozen=True, slots=True)
class Pool:
    """The live generation. ``matches`` says whether this process embeds the way it was embedded."""

    number: int
    embedder: str
    dimensions: int
    has_table: bool
    matches: bool


def pool_state() -> Pool | None:
    """``None`` where there is no live generation, or the provider keeps its pool elsewhere."""
    live = PoolGeneration.objects.filter(state=GenerationState.LIVE).first()
    if live is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [pool_table(live.number)])
        has_table = bool(cursor.fetchone()[0])
    embedder = get_embedder()
    matches = (live.embedder, live.dimensions) == (embedder.name, embedder.dimensions)
    return Pool(live.number, live.embedder, live.dimensions, has_table, matches)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many memories ledger and pool hold. Equal numbers do not prove equal rows: `pool audit` compares those."""

    ledger: int
    pool: int


_SIZES = """
SELECT (SELECT count(*) FROM memories_memory), (SELECT count(*) FROM {table} WHERE passage = 0)
"""

_remembered: dict[int, tuple[float, Sizes]] = {}


def pool_sizes(number: int) -> Sizes:
    """Counted in one snapshot, so that an approval in between is no drift; up to a minute old, as counting costs.

    Remembered by each process for itself: looking must not write, and must not wait for who does.
    """
    counted_at, sizes = _remembered.get(number, (float("-inf"), Sizes(0, 0)))
    if time.monotonic() - counted_at < SIZES_REMEMBERED_SECONDS:
        return sizes
    statement = sql.SQL(_SIZES).format(table=sql.Identifier(pool_table(number))).as_string()
    with connection.cursor() as cursor:
        cursor.execute(statement)
        sizes = Sizes(*cursor.fetchone())
    _remembered[number] = (time.monotonic(), sizes)
    return sizes
