"""The pool's search against mem0's own, on mem0's own table of the same rows."""

from __future__ import annotations

from contextlib import closing
from importlib.metadata import version
from typing import Final

from apps.evals.benchmarks.by_hand import ByHand
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.evals.benchmarks.measuring import in_turn, ratio
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import measured_scopes
from apps.evals.benchmarks.stock_mem0 import StockMem0
from apps.memories.providers.base import PoolQuery
from apps.memories.providers.mem0.provider import Mem0Provider

LIMIT: Final = 10
QUESTIONS: Final = 20
ROUNDS: Final = 5
LEAST_FASTER: Final = {"nine": 10.0, "few": 30.0}


def run(bench: Bench) -> Result:
    data, provider = bench.dataset, Mem0Provider(RecordedEmbedder())
    vectors = dict(zip(data.corpus.questions, data.corpus.question_vectors, strict=True))
    scopes = {key: scope for key, scope in measured_scopes(data).items() if key in LEAST_FASTER}
    table = Table(("scope", "ours", "mem0", "mem0 / ours", "mem0 finds of the true ten"))
    result = Result([table])
    with closing(StockMem0(RecordedEmbedder(vectors))) as stock, closing(ByHand()) as hand:
        bench.say("Filling mem0's own table with the same rows.")
        stock.fill({key: hand.admitted_ids(scope.pool_query(data, 0, limit=LIMIT)) for key, scope in scopes.items()})
        for key, scope in scopes.items():
            asked = [
                (data.corpus.questions[at], scope.pool_query(data, at, limit=LIMIT))
                for at in scope.questions(data, bench.some(QUESTIONS))
            ]

            def theirs(item: tuple[str, PoolQuery], key: str = key) -> list[str]:
                return stock.search(item[0], key, limit=LIMIT)

            times = in_turn(
                {"ours": lambda item: provider.search(item[1]), "mem0": theirs}, asked, rounds=bench.rounds(ROUNDS)
            )
            found = ratio(times["mem0"], times["ours"])
            overlap = [
                len({str(memory_id) for memory_id, _ in hand.brute_force(item[1])} & set(theirs(item))) / LIMIT
                for item in asked
            ]
            table.add(
                scope.name, times["ours"].ms(), times["mem0"].ms(), found, f"{10 * sum(overlap) / len(overlap):.1f}"
            )
            result.promises.append(
                Promise.at_least(
                    f"faster than mem0 in {scope.name}", LEAST_FASTER[key], found.value, shown=str(found), unit="×"
                )
            )
    result.notes.append(
        f"mem0 {version('mem0ai')} as it comes: `Memory.search` with its own pgvector store, its own HNSW index and "
        "its default settings, filtered by a user and by one field of the payload that holds for exactly the rows "
        "that ours admits. Both sides are given the same vectors, so neither embeds."
    )
    return result
