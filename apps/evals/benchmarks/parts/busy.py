"""Many searches at once for a minute, as on a morning when every agent starts."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from typing import Any, Final

import psycopg
from django.conf import settings

from apps.evals.benchmarks import dataset
from apps.evals.benchmarks.dataset import agent_secret
from apps.evals.benchmarks.measuring import quantile
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import as_asked
from apps.evals.benchmarks.web import WEB_THREADS, Web, web

AT_ONCE: Final = 8
SECONDS: Final = 60.0
MOST_TAIL: Final = 10.0

_BACKENDS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> ALL(%s)
"""


def run(bench: Bench) -> Result:
    data = bench.dataset
    secret = agent_secret(data.workspace, "bench-agent")
    questions = [as_asked(data, at) for at in range(len(data.corpus.questions))]
    with web(settings.DATABASE_URL, folder=bench.folder) as running, psycopg.connect(settings.DATABASE_URL) as watch:
        watch.autocommit = True
        before = [row[0] for row in watch.execute("SELECT pid FROM pg_stat_activity").fetchall()]
        _warm(running, secret, questions)
        load = _Load(running, secret, questions, seconds=SECONDS / 6 if bench.quick else SECONDS)
        backends = load.run(lambda: watch.execute(_BACKENDS, [before]).fetchall()[0][0])
    return _result(load, backends)


def _warm(running: Web, secret: str, questions: list[str]) -> None:
    """The process loads its libraries and its model after its start; that is not what is asked here."""
    with closing(running.client(secret)) as client:
        for question in questions[:20]:
            client.get("memories/search/", q=question)


class _Load:
    """So many clients, each asking the next question as soon as it has an answer."""

    def __init__(self, running: Web, secret: str, questions: list[str], *, seconds: float) -> None:
        self.running, self.secret, self.questions = running, secret, questions
        self.seconds = seconds
        self.times: list[float] = []
        self.errors: list[str] = []
        self.degraded = 0
        self._lock = threading.Lock()

    def run(self, backends: Any) -> list[int]:
        """Blocks until the time is up; answers how many connections there were, once a second."""
        end = time.monotonic() + self.seconds
        threads = [threading.Thread(target=self._ask, args=(at, end), daemon=True) for at in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        counted = []
        while time.monotonic() < end:
            time.sleep(1)
            counted.append(backends())
        for thread in threads:
            thread.join(60)
        return counted

    def _ask(self, number: int, end: float) -> None:
        with closing(self.running.client(self.secret)) as client:
            at = number * 37
            while time.monotonic() < end:
                scope = ({}, {"repos": [dataset.ONE]}, {"repos": [dataset.NINE]})[at % 3]
                self._ask_once(client, self.questions[at % len(self.questions)], scope)
                at += 1

    def _ask_once(self, client: Any, question: str, scope: dict[str, Any]) -> None:
        started = time.perf_counter()
        try:
            answer = client.get("memories/search/", q=question, **scope)
            error = "" if answer.status == 200 else f"{answer.status} {answer.body.get('code')}"
            degraded = bool(answer.body.get("degraded"))
        except OSError as failure:
            error, degraded = type(failure).__name__, False
        with self._lock:
            self.times.append(time.perf_counter() - started)
            self.degraded += degraded
            if error:
                self.errors.append(error)


def _result(load: _Load, backends: list[int]) -> Result:
    p50, p95, p99 = (quantile(load.times, share) for share in (0.5, 0.95, 0.99))
    table = Table(
        ("searches", "a second", "p50 ms", "p95 ms", "p99 ms", "slowest ms", "errors", "degraded", "connections")
    )
    table.add(
        f"{len(load.times):,}",
        f"{len(load.times) / load.seconds:.0f}",
        *(f"{1000 * value:.0f}" for value in (p50, p95, p99, max(load.times))),
        len(load.errors),
        load.degraded,
        f"{min(backends)}–{max(backends)}",
    )
    settled = backends[1:] or backends
    return Result(
        [table],
        promises=[
            Promise.at_most("errors", 0, len(load.errors), shown=str(len(load.errors)), unit=""),
            Promise.at_most("p99 against p50", MOST_TAIL, p99 / p50),
            Promise.at_most(
                "connections that came and went",
                0,
                max(settled) - min(settled),
                shown=str(max(settled) - min(settled)),
                unit="",
            ),
        ],
        notes=[
            f"{AT_ONCE} clients for {load.seconds:.0f} seconds against one web worker with {WEB_THREADS} threads, each "
            "asking its next question as soon as it has an answer; a third of them about the whole workspace, the "
            "others about a repository. Questions are embedded where they have not been asked before."
        ],
    )
