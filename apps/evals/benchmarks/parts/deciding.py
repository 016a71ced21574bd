"""What an approval costs, however long the queue, and how many proposals a web process takes in a second."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from django.test import Client

from apps.accounts.models import TokenKind
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_token
from apps.approvals.services import candidate_approve
from apps.candidates.models import Candidate
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.services import candidate_propose
from apps.core.screening import screen
from apps.evals.benchmarks import dataset, server
from apps.evals.benchmarks.dataset import agent_secret
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.evals.benchmarks.measuring import quantile
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.web import WEB_THREADS, Web, web
from apps.evals.benchmarks.wire import counted
from apps.memories.providers import registry
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.sources.services import SourceInput

QUEUES: Final = (10, 5_000)
QUICK_QUEUES: Final = (10, 100)
APPROVALS: Final = 20
MOST_STATEMENTS: Final = 20
CLIENTS: Final = 4
SECONDS: Final = 20.0
LEAST_PROPOSALS: Final = 50.0


def approve(bench: Bench) -> Result:
    table = Table(("open candidates", "statements of an approval", "of the whole request", "an approval takes ms"))
    embedder = RecordedEmbedder(dict(zip(bench.corpus.statements, bench.corpus.vectors, strict=True)))
    services, requests = [], []
    with server.using(server.SCRATCH, fresh=True), registry.override(Mem0Provider(embedder)):
        workspace, reviewer = dataset.workspace_with_reviewer()
        bot = principal_for_token(agent_secret(workspace, "bench-bot", TokenKind.BOT), "rest")
        secret = agent_secret(workspace, "bench-reviewer", TokenKind.REVIEWER)
        statements = iter(proposable(bench.corpus.statements))
        for queue in QUICK_QUEUES if bench.quick else QUEUES:
            bench.say(f"Proposing until {queue:,} candidates are open.")
            _fill(bot, statements, queue + 2 * APPROVALS)
            inside, times = _by_service(reviewer)
            whole = _by_request(secret)
            services += inside
            requests += whole
            table.add(f"{queue:,}", _range(inside), _range(whole), f"{1000 * quantile(times, 0.5):.1f}")
    server.drop_database(server.SCRATCH)
    return Result(
        [table],
        promises=[
            Promise.at_most(
                "statements of an approval", MOST_STATEMENTS, max(services), shown=_range(services), unit=""
            ),
            Promise.at_most(
                "difference between the queues",
                0,
                max(services) - min(services),
                shown=str(max(services) - min(services)),
                unit="",
            ),
        ],
        notes=[
            "Counted on the wire, so that nothing is missed: BEGIN, COMMIT, savepoints, what the provider sends. "
            "A whole request is `POST candidates/{id}/approve/` with a reviewer's token; it also finds out who asks "
            "and shows the memory that came of it."
        ],
    )


def proposable(statements: Sequence[str]) -> list[str]:
    """Without those that screening refuses: real text has addresses and code in it."""
    return [statement for statement in statements if not _is_refused(statement)]


def _is_refused(statement: str) -> bool:
    return bool(screen({"content": statement}).refusals)


def _fill(bot: Principal, statements: Iterator[str], wanted: int) -> None:
    for statement in itertools.islice(statements, wanted - Candidate.objects.open().count()):
        candidate_propose(principal=bot, proposal=_proposal(statement))


def _proposal(statement: str) -> Proposal:
    return Proposal(
        content=statement,
        type="tooling_setup",
        scope=ScopeInput(repos=(dataset.ONE,)),
        sources=(SourceInput(kind="merge_request", reference="acme/payments-api!1"),),
    )


def _oldest() -> list[Candidate]:
    return list(Candidate.objects.open().order_by("created_at")[:APPROVALS])


def _by_service(reviewer: Principal) -> tuple[list[int], list[float]]:
    statements, times = [], []
    for candidate in _oldest():
        started = time.perf_counter()
        with counted() as sent:
            candidate_approve(principal=reviewer, candidate_id=candidate.pk, version=candidate.version)
        times.append(time.perf_counter() - started)
        statements.append(sent.statements)
    return statements, times


def _by_request(secret: str) -> list[int]:
    client = Client(headers={"Authorization": f"Bearer {secret}", "Host": "localhost"})
    statements = []
    for candidate in _oldest():
        with counted() as sent:
            answer = client.post(
                f"/api/v1/candidates/{candidate.pk}/approve/",
                {"version": candidate.version},
                content_type="application/json",
            )
        if answer.status_code != 200:
            raise RuntimeError(f"An approval was answered with {answer.status_code}: {answer.content[:500]!r}")
        statements.append(sent.statements)
    return statements


def _range(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"{min(values)}–{max(values)}"


def propose(bench: Bench) -> Result:
    table = Table(("ledger", "proposals a second", "p50 ms", "p95 ms", "errors"))
    rates = []
    with server.using(server.SCRATCH, fresh=True) as url:
        workspace, _ = dataset.workspace_with_reviewer()
        secret = agent_secret(workspace, "bench-bot", TokenKind.BOT)
        with web(url, folder=bench.folder) as running:
            load = _Proposals(
                running, secret, proposable(bench.corpus.statements), SECONDS / 4 if bench.quick else SECONDS
            )
            load.run()
        rates.append(load.rate)
        table.add("empty", f"{load.rate:.0f}", *load.milliseconds(), len(load.errors))
    server.drop_database(server.SCRATCH)
    return Result(
        [table],
        promises=[Promise.at_least("proposals a second", LEAST_PROPOSALS, min(rates), shown=f"{min(rates):.0f}")],
        notes=[
            f"{CLIENTS} clients of one bot against one web worker with {WEB_THREADS} threads, all statements "
            "different; each answer says what is near by words. Throttles and the cap on open candidates are off."
        ],
    )


class _Proposals:
    def __init__(self, running: Web, secret: str, statements: list[str], seconds: float) -> None:
        self.running, self.secret, self.seconds = running, secret, seconds
        self.statements = itertools.cycle(statements)
        self.number = itertools.count(1)
        self.times: list[float] = []
        self.errors: list[str] = []
        self.took = seconds
        self._lock = threading.Lock()

    @property
    def rate(self) -> float:
        return (len(self.times) - len(self.errors)) / self.took

    def milliseconds(self) -> list[str]:
        return [f"{1000 * quantile(self.times, share):.0f}" for share in (0.5, 0.95)]

    def run(self) -> None:
        with closing(self.running.client(self.secret)) as client:
            self._propose(client)  # the process loads what its first request needs
        self.times.clear()
        started = time.monotonic()
        threads = [threading.Thread(target=self._until, args=(started + self.seconds,)) for _ in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.took = time.monotonic() - started

    def _until(self, end: float) -> None:
        with closing(self.running.client(self.secret)) as client:
            while time.monotonic() < end:
                self._propose(client)

    def _propose(self, client: Any) -> None:
        with self._lock:
            body = _body(next(self.statements), next(self.number))
        started = time.perf_counter()
        answer = client.post("candidates/", body)
        with self._lock:
            self.times.append(time.perf_counter() - started)
            if answer.status != 201:
                self.errors.append(f"{answer.status} {answer.body}")


def _body(statement: str, number: int) -> dict[str, Any]:
    return {
        "content": f"{statement} ({number})",
        "type": "tooling_setup",
        "scope": {"repos": [dataset.ONE]},
        "sources": [{"kind": "merge_request", "reference": f"acme/payments-api!{number}"}],
    }
