"""How the cost of a search in the pool grows with its rows, scopes of the same size being searched throughout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import connection
from psycopg.types.json import Jsonb

from apps.core.clock import now
from apps.evals.benchmarks import server
from apps.evals.benchmarks.by_hand import ByHand
from apps.evals.benchmarks.chart import Chart, Line
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.evals.benchmarks.measuring import Times, in_turn
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.memories.pool import FIRST_GENERATION, pool_table
from apps.memories.providers.base import PoolQuery
from apps.memories.providers.embedders.base import Matrix, unit_rows
from apps.memories.providers.embedders.local import DIMENSIONS
from apps.memories.providers.mem0.provider import Mem0Provider

Numbers = npt.NDArray[np.int64]

SIZES: Final = (10_000, 30_000, 100_000, 300_000, 1_000_000)
QUICK_SIZES: Final = (2_000, 5_000, 10_000)
SCOPE_ROWS: Final = 2_500
LIMIT: Final = 10
QUESTIONS: Final = 30
ROUNDS: Final = 5
MOST_GROWTH: Final = 3.0
_SUBJECTS = 2_000  # what is talked about; rows gather around them, as texts do
_SPREAD = 0.7
_WORKSPACE = 1
_SCOPED, _OTHERS = 1, 200  # repositories
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Point:
    rows: int
    scoped: Times
    everything: Times
    recall: float
    bytes: int
    hnsw_bytes: int


def run(bench: Bench) -> Result:
    sizes = QUICK_SIZES if bench.quick else SIZES
    subjects = _subjects()
    with server.using(server.GROWTH, fresh=True) as url:
        _drop_index()
        points = []
        for before, size in pairwise((0, *sizes)):
            bench.say(f"Adding rows up to {size:,}, and building the index.")
            _add(url, subjects, before, size)
            points.append(_measure(bench, subjects, size))
            bench.say(f"{size:,} rows: scoped {points[-1].scoped.ms()} ms, all {points[-1].everything.ms()} ms.")
    server.drop_database(server.GROWTH)
    return _result(points)


def _result(points: list[Point]) -> Result:
    table = Table(
        ("rows", f"scope of {SCOPE_ROWS:,} rows, ms", "whole workspace, ms", "recall@10 there", "on disk", "of it HNSW")
    )
    for point in points:
        table.add(
            f"{point.rows:,}",
            point.scoped.ms(),
            point.everything.ms(),
            f"{point.recall:.3f}",
            f"{point.bytes / 2**20:,.0f} MB",
            f"{point.hnsw_bytes / 2**20:,.0f} MB",
        )
    growth = points[-1].scoped.p50 / points[0].scoped.p50
    span = f"from {points[0].rows:,} to {points[-1].rows:,} rows"
    lines = (
        Line(f"scope of {SCOPE_ROWS:,} rows", tuple((point.rows, 1000 * point.scoped.p50) for point in points)),
        Line("whole workspace", tuple((point.rows, 1000 * point.everything.p50) for point in points)),
    )
    return Result(
        [table],
        promises=[Promise.at_most(f"scoped p50 {span}", MOST_GROWTH, growth)],
        chart=Chart("A search in the pool, by the number of its rows", "rows in the pool", "ms, median", lines),
        notes=[
            f"Vectors are generated: {_SUBJECTS:,} subjects, and rows around them. The scope is one repository of "
            f"{SCOPE_ROWS:,} rows about a few subjects, the same at every size; a search within it reads those rows, "
            "however many others there are. A search of the whole workspace reads all rows while they are at most "
            "15,000 and walks the HNSW index beyond. Recall is against reading every row."
        ],
    )


def _subjects() -> Matrix:
    return unit_rows(np.random.default_rng(1).normal(size=(_SUBJECTS, DIMENSIONS)).astype(np.float32))


def _drop_index() -> None:
    """Rows come in faster without it; it is built anew at every size."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX IF EXISTS {pool_table(FIRST_GENERATION)}_hnsw")


def _add(url: str, subjects: Matrix, first: int, after: int) -> None:
    from apps.memories.pool import create_pool

    table = pool_table(FIRST_GENERATION)
    _drop_index()
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY {table} (id, vector, payload) FROM STDIN") as copy:
            for row in _rows(subjects, first, after):
                copy.write_row(row)
        cursor.execute("SET LOCAL maintenance_work_mem = '6GB'")
        create_pool(cursor, number=FIRST_GENERATION, dimensions=DIMENSIONS)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"VACUUM (ANALYZE) {table}")
        connection.execute("CHECKPOINT")


def _rows(subjects: Matrix, first: int, after: int) -> Iterator[tuple[UUID, str, Jsonb]]:
    recorded = now().timestamp()
    for start in range(first, after, _AT_ONCE):
        numbers = np.arange(start, min(start + _AT_ONCE, after))
        noise = np.random.default_rng(start + 7).normal(size=(len(numbers), DIMENSIONS))
        noise *= _SPREAD / np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = unit_rows((subjects[_subject_of(numbers)] + noise).astype(np.float32))
        for number, vector in zip(numbers.tolist(), vectors.tolist(), strict=True):
            yield UUID(int=number + 1), f"[{','.join(f'{value:.6g}' for value in vector)}]", _payload(number, recorded)


def _subject_of(numbers: Numbers) -> Numbers:
    """The scoped rows, which come first, are about forty subjects; the others about all of them."""
    found: Numbers = np.where(numbers < SCOPE_ROWS, numbers % 40, numbers * 31 % _SUBJECTS)
    return found


def _payload(number: int, recorded: float) -> Jsonb:
    repository = _SCOPED if number < SCOPE_ROWS else _SCOPED + 1 + number % _OTHERS
    return Jsonb(
        {
            "data": f"Statement {number}.",
            "memory_id": str(UUID(int=number + 1)),
            "passage": 0,
            "workspace": _WORKSPACE,
            "tier": "durable",
            "status": "active",
            "type": "tooling_setup",
            "firm": False,
            "domain_ids": [],
            "repo_ids": [repository],
            "audience_ids": [],
            "valid_from": None,
            "valid_to": None,
            "closed_at": None,
            "recorded_at": recorded,
            "retired_at": None,
        }
    )


def _measure(bench: Bench, subjects: Matrix, rows: int) -> Point:
    provider = Mem0Provider(RecordedEmbedder())
    pairs = [_pair(subjects, at) for at in range(bench.some(QUESTIONS))]
    times = in_turn(
        {"scoped": lambda pair: provider.search(pair[0]), "everything": lambda pair: provider.search(pair[1])},
        pairs,
        rounds=bench.rounds(ROUNDS),
    )
    with closing(ByHand()) as hand:
        recall = sum(_recall(provider, hand, pair[1]) for pair in pairs[:10]) / len(pairs[:10])
        ((size, hnsw),) = hand.run(
            f"SELECT pg_total_relation_size('{pool_table(FIRST_GENERATION)}'), "
            f"pg_relation_size('{pool_table(FIRST_GENERATION)}_hnsw')"
        )
    return Point(rows, times["scoped"], times["everything"], recall, size, hnsw)


def _pair(subjects: Matrix, at: int) -> tuple[PoolQuery, PoolQuery]:
    """The same question within the scope and about everything."""
    noise = np.random.default_rng(10_000_000 + at).normal(size=DIMENSIONS)
    vector = unit_rows((subjects[at % 40] + _SPREAD * noise / np.linalg.norm(noise))[None, :].astype(np.float32))[0]
    common: dict[str, Any] = {"vector": tuple(vector.tolist()), "workspace": _WORKSPACE, "now": now(), "limit": LIMIT}
    return PoolQuery(**common, repo_ids=frozenset({_SCOPED})), PoolQuery(**common, everything=True)


def _recall(provider: Mem0Provider, hand: ByHand, query: PoolQuery) -> float:
    best = hand.brute_force(query)
    return sum(1 - hit.score <= best[-1][1] + 1e-6 for hit in provider.search(query)) / len(best)
