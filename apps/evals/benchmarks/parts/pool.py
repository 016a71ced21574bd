"""The pool's search against the same search written by hand, and questions about the past against those of today."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import Final

from apps.evals.benchmarks.by_hand import ByHand
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.evals.benchmarks.measuring import in_turn, ratio
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import measured_scopes
from apps.memories.providers.mem0.provider import Mem0Provider

LIMIT: Final = 10
QUESTIONS: Final = 40
# An index that misses does so for a few questions, and then for nearly all ten: few questions would say little.
RECALL_QUESTIONS: Final = 100
ROUNDS: Final = 7
MOST_BY_HAND: Final = 1.5
MOST_PAST: Final = 2.0
LEAST_RECALL: Final = 0.99
THEN: Final = datetime(2021, 6, 1, tzinfo=UTC)

# What the tie of two equal distances may differ by, in a number of six digits.
_ROUNDING = 1e-6


def by_hand(bench: Bench) -> Result:
    data, provider = bench.dataset, Mem0Provider(RecordedEmbedder())
    table = Table(("scope", "ours", "by hand", "ours / by hand", "one statement", "ours / one statement"))
    result = Result([table])
    with closing(ByHand()) as hand:
        ways = {"ours": provider.search, "by hand": hand.bounded, "one statement": hand.nearest}
        for key, scope in measured_scopes(data).items():
            queries = [scope.pool_query(data, at, limit=LIMIT) for at in scope.questions(data, bench.some(QUESTIONS))]
            times = in_turn(ways, queries, rounds=bench.rounds(ROUNDS))
            found, alone = (ratio(times["ours"], times[way]) for way in ("by hand", "one statement"))
            table.add(
                scope.name, *(times[way].ms() for way in ("ours", "by hand")), found, times["one statement"].ms(), alone
            )
            if key != "all":
                result.promises.append(Promise.at_most(scope.name, MOST_BY_HAND, found.value, shown=str(found)))
    result.notes.append(
        "By hand is psycopg on a connection of its own: in a transaction, a statement that sets the bounds and the "
        "exact search, one row a hit. One statement is that search alone, which nothing stops. Ours also looks up the "
        "live generation, chooses between exact and approximate, and answers one hit for each memory whatever its "
        "passages. Over the whole workspace ours walks the HNSW index, while by hand reads every row."
    )
    return result


def recall(bench: Bench) -> Result:
    data, provider = bench.dataset, Mem0Provider(RecordedEmbedder())
    table = Table(("scope", "rows admitted", "recall@10", "worst question"))
    result = Result([table])
    with closing(ByHand()) as hand:
        for key, scope in measured_scopes(data).items():
            shares = []
            for at in scope.questions(data, bench.some(RECALL_QUESTIONS)):
                query = scope.pool_query(data, at, limit=LIMIT)
                best = hand.brute_force(query)
                worst = best[-1][1] + _ROUNDING
                near = sum(1 - hit.score <= worst for hit in provider.search(query))
                shares.append(near / len(best))
            admitted = hand.admitted(scope.pool_query(data, 0, limit=LIMIT))
            mean = sum(shares) / len(shares)
            table.add(scope.name, f"{admitted:,}", f"{mean:.3f}", f"{min(shares):.1f}")
            if key in ("all", "six", "one", "small"):
                result.promises.append(Promise.at_least(scope.name, LEAST_RECALL, mean, shown=f"{mean:.3f}"))
    result.notes.append(
        "Against reading every row of the table with all indexes switched off. Half of the questions were held back "
        "from where the scope's statements come from, half are about anything."
    )
    return result


def past(bench: Bench) -> Result:
    data, provider = bench.dataset, Mem0Provider(RecordedEmbedder())
    table = Table(("scope", "today", f"as of {THEN:%Y-%m-%d}", "past / today"))
    result = Result([table])
    for scope in measured_scopes(data).values():
        pairs = [
            (scope.pool_query(data, at, limit=LIMIT), scope.pool_query(data, at, limit=LIMIT, as_of=THEN))
            for at in scope.questions(data, bench.some(QUESTIONS))
        ]
        times = in_turn(
            {"today": lambda pair: provider.search(pair[0]), "then": lambda pair: provider.search(pair[1])},
            pairs,
            rounds=bench.rounds(ROUNDS),
        )
        found = ratio(times["then"], times["today"])
        table.add(scope.name, times["today"].ms(), times["then"].ms(), found)
        result.promises.append(Promise.at_most(scope.name, MOST_PAST, found.value, shown=str(found)))
    result.notes.append("The pool's search alone. About the past every status is looked at and the intervals decide.")
    return result
