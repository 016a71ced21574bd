"""What handing over raw material costs, how fast noise is dropped, and what a large transcript takes of a worker."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from django.conf import settings
from django_q.models import OrmQ

from apps.accounts.models import TokenKind
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_token
from apps.candidates.proposal import ScopeInput
from apps.capture.inbox import RawMaterial, event_receive
from apps.capture.models import CaptureEvent, EventState
from apps.capture.tasks import drain
from apps.evals.benchmarks import dataset, server
from apps.evals.benchmarks.dataset import agent_secret
from apps.evals.benchmarks.measuring import quantile
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.server import environment
from apps.evals.benchmarks.web import WEB_THREADS, Web, web
from apps.sources.services import SourceInput

A_SECOND: Final = 50
SECONDS: Final = 30.0
CLIENTS: Final = 32
AT_ONCE: Final = 200
NOISE: Final = 5_000
TRANSCRIPT_BYTES: Final = 20 * 1024 * 1024
MOST_TAIL: Final = 5.0
LEAST_DRAINED: Final = 150.0
MOST_MEMORY: Final = 400.0

_ACKNOWLEDGEMENTS: Final = ("LGTM!", "thanks, merging", "+1", "done", "ok", "👍", "@anna ping", "fixed, thanks!")
# In a process of its own, so that what it takes at most is its own.
_WORKER: Final = """
import time
from pathlib import Path
import django
django.setup()
from apps.capture.tasks import drain
def most():  # unlike ru_maxrss, it does not begin with what the parent held
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
before, started = most(), time.perf_counter()
while drain() != "0 events.":
    pass
print(time.perf_counter() - started, before, most())
"""


def run(bench: Bench) -> Result:
    with server.using(server.SCRATCH, fresh=True) as url:
        workspace, _ = dataset.workspace_with_reviewer()
        secret = agent_secret(workspace, "bench-bot", TokenKind.BOT)
        bot = principal_for_token(secret, "rest")
        discussions = itertools.cycle(bench.corpus.statements)
        with web(url, folder=bench.folder) as running:
            bench.say(f"Handing over {A_SECOND} a second.")
            paced = _Paced(running, secret, discussions, SECONDS / 5 if bench.quick else SECONDS)
            paced.run()
            bench.say(f"Handing over {AT_ONCE} at once.")
            crowd = _Crowd(running, secret, discussions)
            crowd.run()
        kept = CaptureEvent.objects.count()
        _forget_all()
        rate = _drain(bench, bot)
        seconds, before, peak = _transcript(bench, bot, url)
        lost = len(paced.times) + len(crowd.times) + 1 - kept
    server.drop_database(server.SCRATCH)
    return _result(paced, crowd, lost, rate, seconds, before, peak)


def _forget_all() -> None:
    """What was handed over is read by nobody here: only the noise is to be drained."""
    CaptureEvent.objects.update(state=EventState.DEAD, last_error="Left alone by the benchmark.")
    OrmQ.objects.all().delete()


class _Handing:
    def __init__(self, running: Web, secret: str, discussions: Any) -> None:
        self.running, self.secret, self.discussions = running, secret, discussions
        self.numbers = itertools.count(1)
        self.times: list[float] = []
        self.errors: list[str] = []
        self.took = 0.0
        self._lock = threading.Lock()

    def hand_over(self, client: Any, due: float) -> None:
        """From the moment when it was due, so that waiting for a free client counts as well."""
        with self._lock:
            body = _body(next(self.discussions), f"{type(self).__name__}-{next(self.numbers)}")
        try:
            answer = client.post("ingest/", body)
            error = "" if answer.status == 202 else f"{answer.status} {answer.body}"
        except OSError as failure:
            error = type(failure).__name__
        with self._lock:
            self.times.append(time.monotonic() - due)
            if error:
                self.errors.append(error)

    def with_clients(self, count: int, work: Callable[[Any], None]) -> None:
        def one() -> None:
            with closing(self.running.client(self.secret)) as client:
                work(client)

        threads = [threading.Thread(target=one) for _ in range(count)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.took = time.monotonic() - started


class _Paced(_Handing):
    """So many a second, whether or not the earlier ones were answered."""

    def __init__(self, running: Web, secret: str, discussions: Any, seconds: float) -> None:
        super().__init__(running, secret, discussions)
        self.seconds = seconds

    def run(self) -> None:
        with closing(self.running.client(self.secret)) as client:
            self.hand_over(client, time.monotonic())  # the process loads what its first request needs
        self.times.clear()
        start = time.monotonic() + 0.5
        due = iter([start + at / A_SECOND for at in range(int(self.seconds * A_SECOND))])
        take = threading.Lock()

        def work(client: Any) -> None:
            while True:
                with take:
                    moment = next(due, None)
                if moment is None:
                    return
                time.sleep(max(0.0, moment - time.monotonic()))
                self.hand_over(client, moment)

        self.with_clients(CLIENTS, work)


class _Crowd(_Handing):
    def run(self) -> None:
        gate = threading.Barrier(AT_ONCE)

        def work(client: Any) -> None:
            gate.wait()
            self.hand_over(client, time.monotonic())

        self.with_clients(AT_ONCE, work)


def _body(text: str, name: str) -> dict[str, Any]:
    return {
        "content": text,
        "kind": "merge_request",
        "scope": {"repos": [dataset.ONE]},
        "sources": [{"kind": "merge_request", "reference": f"{dataset.ONE}!{name}"}],
        "external_id": name,
    }


def _drain(bench: Bench, bot: Principal) -> float:
    """Events a second, by one worker."""
    count = bench.some(NOISE)
    bench.say(f"Dropping {count:,} pieces of noise.")
    for number in range(count):
        event_receive(principal=bot, material=_noise(number))
    started = time.perf_counter()
    while drain() != "0 events.":
        pass
    return count / (time.perf_counter() - started)


def _noise(number: int) -> RawMaterial:
    source = SourceInput(kind="chat", reference=f"C{number}")
    words = _ACKNOWLEDGEMENTS[number % len(_ACKNOWLEDGEMENTS)]
    return RawMaterial(
        content=words, kind="chat", scope=ScopeInput(firm=True), sources=(source,), external_id=f"noise-{number}"
    )


def _transcript(bench: Bench, bot: Principal, url: str) -> tuple[float, float, float]:
    """Seconds to read it, and MB of the worker before it and at most."""
    size = TRANSCRIPT_BYTES // 10 if bench.quick else TRANSCRIPT_BYTES
    bench.say(f"Reading a transcript of {size / 2**20:.0f} MB.")
    turns = itertools.cycle(bench.corpus.statements)
    pieces, length = [], 0
    for number in itertools.count():
        if length >= size:
            break
        pieces.append(f"{'user' if number % 2 else 'assistant'}: {next(turns)}\n\n")
        length += len(pieces[-1])
    source = SourceInput(kind="transcript", reference="a long session")
    event_receive(
        principal=bot,
        material=RawMaterial(
            content="".join(pieces), kind="transcript", scope=ScopeInput(repos=(dataset.ONE,)), sources=(source,)
        ),
    )
    told = subprocess.run(
        [sys.executable, "-c", _WORKER],
        cwd=settings.BASE_DIR,
        env=environment(url, data_dir=bench.folder),
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, before, peak = map(float, told.stdout.split())
    return seconds, before, peak


def _result(
    paced: _Handing, crowd: _Handing, lost: int, rate: float, seconds: float, before: float, peak: float
) -> Result:
    p50, p99 = (quantile(paced.times, share) for share in (0.5, 0.99))
    table = Table(("handed over", "how", "p50 ms", "p95 ms", "p99 ms", "errors"))
    for how, load in ((f"{A_SECOND} a second", paced), (f"{AT_ONCE} at once", crowd)):
        tail = [f"{1000 * quantile(load.times, share):.0f}" for share in (0.5, 0.95, 0.99)]
        table.add(f"{len(load.times):,}", how, *tail, len(load.errors))
    work = Table(("work of one worker", "measured"))
    work.add("noise dropped", f"{rate:,.0f} a second")
    work.add("a transcript of 20 MB, read by rules", f"{seconds:.0f} s")
    work.add("the worker before it", f"{before:.0f} MB")
    work.add("the worker at most", f"{peak:.0f} MB")
    errors = len(paced.errors) + len(crowd.errors)
    return Result(
        [table, work],
        promises=[
            Promise.at_most("p99 against p50", MOST_TAIL, p99 / p50),
            Promise.at_most("errors", 0, errors, shown=str(errors), unit=""),
            Promise.at_most("lost or there twice", 0, abs(lost), shown=str(lost), unit=""),
            Promise.at_least("noise dropped in a second", LEAST_DRAINED, rate, shown=f"{rate:,.0f}"),
            Promise.at_most("worker on a transcript of 20 MB", MOST_MEMORY, peak, shown=f"{peak:.0f}", unit="MB"),
        ],
        notes=[
            f"Against one web worker with {WEB_THREADS} threads, on the machine on which the clients and PostgreSQL "
            "run. Paced ones are sent when they are due, whether or not the earlier ones were answered, and timed from "
            "then. Throttles and the cap on open candidates are off."
        ],
    )
