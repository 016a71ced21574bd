"""The text arm: what it costs by the length of the question and the width of the scope."""

from __future__ import annotations

from typing import Final

from apps.evals.benchmarks.dataset import NEIGHBOUR_ROWS, Dataset
from apps.evals.benchmarks.measuring import Times, in_turn
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import Scope, as_asked, measured_scopes
from apps.retrieval.recipes import DEFAULT
from apps.retrieval.stages import text

QUESTIONS: Final = 20
ROUNDS: Final = 3
WORDS: Final = (3, 12, 40, 400)


def run(bench: Bench) -> Result:
    scopes = measured_scopes(bench.dataset)
    asked = [(bench.dataset, scopes[key], scopes[key].name) for key in ("all", "nine", "six", "one", "small")]
    asked.append((bench.neighbour, scopes["all"], f"a workspace of {NEIGHBOUR_ROWS:,} in the same tables"))
    table = Table(("scope", *(f"{words} words" for words in WORDS)))
    worst = 0.0
    for data, scope, name in asked:
        times = [_measure(bench, data, scope, words) for words in WORDS]
        worst = max(worst, *(each.p95 for each in times))
        table.add(name, *(each.ms() for each in times))
    limit = 1000 * text.SECONDS / 2
    return Result(
        [table],
        promises=[
            Promise.at_most(
                "slowest p95 against half of the time it may take",
                limit,
                1000 * worst,
                shown=f"{1000 * worst:.0f}",
                unit="ms",
            )
        ],
        notes=[
            "How many documents are ranked is bounded, however large the ledger: either the rarest words lead to them, "
            f"until together they match a fifth of all memories and at most {text.MAX_MATCHES:,}, or the scope does, "
            f"where it holds fewer than that and at most {text.MAX_READ:,}. Real questions have three to forty words; "
            "four hundred is a page of text."
        ],
    )


def _measure(bench: Bench, data: Dataset, scope: Scope, words: int) -> Times:
    questions = [as_asked(data, at, words=words) for at in scope.questions(data, bench.some(QUESTIONS))]
    admission = scope.admission(data)

    def ask(question: str) -> object:
        return text.bm25(admission, question, limit=DEFAULT.depth)

    return in_turn({"text": ask}, questions, rounds=bench.rounds(ROUNDS))["text"]
