"""What agents wait for: a tool's call against the same search over REST, many calls at once, and a context."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from django.conf import settings

from apps.evals.benchmarks import dataset
from apps.evals.benchmarks.dataset import Dataset, agent_secret
from apps.evals.benchmarks.measuring import Times, in_turn, quantile, ratio
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import as_asked
from apps.evals.benchmarks.web import Web, WebClient, web

QUESTIONS: Final = 40
ROUNDS: Final = 5
WORKERS: Final = 2
AT_ONCE: Final = 8
SECONDS: Final = 30.0
BUDGETS: Final = (500, 2_000, 8_000)
# A repository of a tenth of all rows in either database.
LARGE: Final = "acme/service-00"
MOST_OVER_REST: Final = 2.0
LEAST_A_SECOND: Final = 100
MOST_CONTEXT_GROWTH: Final = 3.0

Call = Callable[[str], object]


def run(bench: Bench) -> Result:
    result = Result()
    secret = agent_secret(bench.dataset.workspace, "bench-agent")
    with web(settings.DATABASE_URL, folder=bench.folder) as running:
        _search(bench, running, secret, result)
        _context(bench, running, secret, result)
    _many(bench, secret, result)
    result.notes.append(
        "Tools are called as the protocol's revision 2025-11-25 does, over kept HTTP connections, with a token; every "
        "question was asked once before, so that its embedding is remembered. A call leaves its receipts and its row, "
        "as every call does. The clients run on the same cores as the service."
    )
    return result


# --- one at a time --------------------------------------------------------------------------------------------
def _search(bench: Bench, running: Web, secret: str, result: Result) -> None:
    table = Table(("scope", "memory_search", "GET memories/search/", "tool / REST"))
    scopes: dict[str, str | None] = {"the whole workspace": None, "one repository": dataset.ONE}
    with closing(running.client(secret)) as client:
        for name, repo in scopes.items():
            contestants = {"tool": _tool(client, repo), "rest": _rest(client, repo)}
            times = in_turn(contestants, _asked(bench), rounds=bench.rounds(ROUNDS))
            found = ratio(times["tool"], times["rest"])
            table.add(name, times["tool"].ms(), times["rest"].ms(), found)
            result.promises.append(
                Promise.at_most(f"{name}: a tool's call against REST", MOST_OVER_REST, found.value, shown=str(found))
            )
    result.tables.append(table)


def _tool(client: WebClient, repo: str | None) -> Call:
    scope = {"repo": repo} if repo else {}
    return lambda question: _call(client, "memory_search", query=question, **scope)


def _rest(client: WebClient, repo: str | None) -> Call:
    scope = {"repos": [repo]} if repo else {}
    return lambda question: _get(client, "memories/search/", q=question, **scope)


def _asked(bench: Bench) -> list[str]:
    near = bench.dataset.questions_near(dataset.ONE)[: bench.some(QUESTIONS)]
    return [as_asked(bench.dataset, at) for at in near]


# --- a context ------------------------------------------------------------------------------------------------
def _context(bench: Bench, many: Web, secret: str, result: Result) -> None:
    with bench.small() as (small, url):
        few_secret = agent_secret(small.workspace, "bench-agent")
    table = Table(("tokens asked for", "many", "few", "many / few", "most tokens used"))
    sizes = [_held(bench.dataset), _held(small)]
    with (
        web(url, folder=bench.folder) as few,
        closing(many.client(secret)) as large,
        closing(few.client(few_secret)) as little,
    ):
        for budget in BUDGETS:
            used: list[int] = []
            times = in_turn(
                {"many": _packing(large, budget, used), "few": _packing(little, budget, used)},
                ["context"] * bench.some(QUESTIONS),
                rounds=bench.rounds(ROUNDS),
            )
            _judge_context(budget, times, max(used), table, result)
    result.tables.append(
        table.under(f"memory_context for a repository that holds {sizes[0]:,} memories, and for one of {sizes[1]:,}:")
    )


def _held(data: Dataset) -> int:
    stretch = data.stretch(LARGE)
    return stretch.after - stretch.first


def _packing(client: WebClient, budget: int, used: list[int]) -> Call:
    def call(_question: str) -> None:
        answer = _call(client, "memory_context", repo=LARGE, budget_tokens=budget)
        used.append(answer["used_tokens"])

    return call


def _judge_context(budget: int, times: dict[str, Times], used: int, table: Table, result: Result) -> None:
    growth = ratio(times["many"], times["few"])
    table.add(f"{budget:,}", times["many"].ms(), times["few"].ms(), growth, f"{used:,}")
    result.promises += [
        Promise.at_most(
            f"a context of {budget:,} tokens, many against few", MOST_CONTEXT_GROWTH, growth.value, shown=str(growth)
        ),
        Promise.at_most(f"tokens of {budget:,} used", budget, used, shown=f"{used:,}", unit=""),
    ]


# --- many at once ---------------------------------------------------------------------------------------------
def _many(bench: Bench, secret: str, result: Result) -> None:
    """So many clients, each calling again as soon as it has an answer; every question is known to both workers."""
    with bench.small() as (small, url):
        few_secret = agent_secret(small.workspace, "bench-agent")
    seconds = SECONDS / 6 if bench.quick else SECONDS
    table = Table(("memories", "calls", "a second", "p50 ms", "p99 ms"))
    rates = []
    for rows, at, token in ((small.rows, url, few_secret), (bench.rows, settings.DATABASE_URL, secret)):
        with web(at, folder=bench.folder, workers=WORKERS) as running:
            _together(running, token, _asked(bench), seconds=SECONDS / 6)
            times = _together(running, token, _asked(bench), seconds=seconds)
        p50, p99 = (f"{1000 * quantile(times, share):.0f}" for share in (0.5, 0.99))
        rates.append(len(times) / seconds)
        table.add(f"{rows:,}", f"{len(times):,}", f"{rates[-1]:.0f}", p50, p99)
    result.tables.append(
        table.under(
            f"memory_search in one repository, {AT_ONCE} clients for {seconds:.0f} seconds, {WORKERS} web workers:"
        )
    )
    result.promises.append(
        Promise.at_least(f"calls a second with {small.rows:,}", LEAST_A_SECOND, rates[0], shown=f"{rates[0]:.0f}")
    )


def _together(running: Web, secret: str, questions: list[str], *, seconds: float) -> list[float]:
    """The seconds of each call. Raises what a call raised."""
    times: list[float] = []
    failed: list[Exception] = []
    end = time.monotonic() + seconds

    def ask(at: int) -> None:
        try:
            with closing(running.client(secret)) as client:
                while time.monotonic() < end and not failed:
                    started = time.perf_counter()
                    _call(client, "memory_search", query=questions[at % len(questions)], repo=dataset.ONE)
                    times.append(time.perf_counter() - started)
                    at += 1
        except Exception as failure:
            failed.append(failure)

    threads = [threading.Thread(target=ask, args=(at * 7,), daemon=True) for at in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
    if failed:
        raise failed[0]
    return times


# --- the doors ------------------------------------------------------------------------------------------------
def _call(client: WebClient, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = client.call_tool(tool, arguments)
    result = answer.body.get("result", {})
    if answer.status != 200 or result.get("isError", True):
        raise RuntimeError(f"{tool} was answered with {answer.status}: {answer.body}")
    structured: dict[str, Any] = result["structuredContent"]
    if structured.get("degraded"):
        raise RuntimeError(f"{tool} was degraded: {structured['note']}")
    return structured


def _get(client: WebClient, path: str, **query: Any) -> None:
    answer = client.get(path, **query)
    if answer.status != 200 or answer.body["degraded"]:
        raise RuntimeError(f"{path} was answered with {answer.status}: {answer.body}")
