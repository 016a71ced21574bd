"""A search over HTTP: how its cost grows from a thousand memories to many, and what it adds to its arms' SQL."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from django.conf import settings
from django.db import connection
from psycopg import ClientCursor

from apps.evals.benchmarks import dataset
from apps.evals.benchmarks.by_hand import ByHand, Statement
from apps.evals.benchmarks.dataset import Dataset, agent_secret
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.evals.benchmarks.measuring import Times, in_turn, ratio
from apps.evals.benchmarks.parts import SMALL_ROWS, Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import Scope, as_asked, measured_scopes
from apps.evals.benchmarks.web import WebClient, web
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.retrieval.recipes import DEFAULT
from apps.retrieval.stages import text

QUESTIONS: Final = 40
ROUNDS: Final = 5
MOST_GROWTH: Final = 5.0
MOST_OVERHEAD: Final = 2.0

# How a scope is asked for over REST. A repository brings its domain and the firm with it.
ASKED: Final[dict[str, dict[str, Any]]] = {"all": {}, "six": {"repos": [dataset.ONE]}}


def run(bench: Bench) -> Result:
    data = bench.dataset
    secret = agent_secret(data.workspace, "bench-agent")
    with bench.small() as (small_data, small_url):
        small_secret = agent_secret(small_data.workspace, "bench-agent")
    table = Table(
        ("scope", f"{data.rows:,} memories", f"{SMALL_ROWS:,} memories", "many / few", "the arms' SQL", "HTTP / SQL")
    )
    result = Result([table])
    with (
        web(settings.DATABASE_URL, folder=bench.folder) as large_web,
        web(small_url, folder=bench.folder) as small_web,
        closing(large_web.client(secret)) as large,
        closing(small_web.client(small_secret)) as small,
        closing(ByHand(cursor_factory=ClientCursor)) as hand,
    ):
        scopes = measured_scopes(data)
        for key, parameters in ASKED.items():
            times = _measure(bench, scopes[key], parameters, large, small, hand)
            _judge(scopes[key].name, times, table, result)
    result.notes.append(
        "One web worker with two threads, over a kept HTTP connection, with a token; every question was asked once "
        "before, so that its embedding is remembered and not measured. The arms' SQL is what the vector arm and the "
        "text arm sent for the same question, recorded and sent again on a bare connection. Both databases are on the "
        "same server."
    )
    return result


def _measure(
    bench: Bench, scope: Scope, parameters: dict[str, Any], large: WebClient, small: WebClient, hand: ByHand
) -> dict[str, Times]:
    questions = scope.questions(bench.dataset, bench.some(QUESTIONS))
    statements = {at: _recorded(bench.dataset, scope, at) for at in questions}
    words = {at: as_asked(bench.dataset, at) for at in questions}
    return in_turn(
        {
            "large": lambda at: _search(large, words[at], parameters),
            "small": lambda at: _search(small, words[at], parameters),
            "sql": lambda at: hand.replay(statements[at]),
        },
        questions,
        rounds=bench.rounds(ROUNDS),
    )


def _judge(name: str, times: dict[str, Times], table: Table, result: Result) -> None:
    growth, overhead = ratio(times["large"], times["small"]), ratio(times["large"], times["sql"])
    table.add(name, times["large"].ms(), times["small"].ms(), growth, times["sql"].ms(), overhead)
    result.promises += [
        Promise.at_most(f"{name}: many against few", MOST_GROWTH, growth.value, shown=str(growth)),
        Promise.at_most(f"{name}: HTTP against its arms' SQL", MOST_OVERHEAD, overhead.value, shown=str(overhead)),
    ]


def _search(client: WebClient, question: str, parameters: dict[str, Any]) -> None:
    answer = client.get("memories/search/", q=question, **parameters)
    if answer.status != 200 or answer.body["degraded"]:
        raise RuntimeError(f"The search was answered with {answer.status}: {answer.body}")


def _recorded(data: Dataset, scope: Scope, question: int) -> list[Statement]:
    """What the two arms send for this question."""
    found: list[Statement] = []

    def record(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("SAVEPOINT", "RELEASE", "ROLLBACK")):
            found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(record):
        Mem0Provider(RecordedEmbedder()).search(scope.pool_query(data, question, limit=DEFAULT.depth))
        text.bm25(scope.admission(data), as_asked(data, question), limit=DEFAULT.depth)
    return found
