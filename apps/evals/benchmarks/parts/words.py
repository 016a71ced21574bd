"""The text arm: what it costs by the length of the question and the width of the scope."""

from __future__ import annotations

from typing import Final

from apps.evals.benchmarks.measuring import in_turn
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.evals.benchmarks.scopes import Scope, as_asked, measured_scopes
from apps.retrieval.recipes import DEFAULT
from apps.retrieval.stages import text

QUESTIONS: Final = 20
ROUNDS: Final = 3
MOST_MS: Final = 150.0
WORDS: Final = (3, 12, 40, 400)


def run(bench: Bench) -> Result:
    data = bench.dataset
    scopes = {name: scope for name, scope in measured_scopes(data).items() if name in ("all", "nine", "six", "small")}
    neighbour = bench.neighbour
    table = Table(("scope", *(f"{words} words" for words in WORDS)))
    result = Result([table])
    worst = 0.0
    for scope in scopes.values():
        cells = []
        for words in WORDS:
            questions = [
                (scope, as_asked(data, at, words=words)) for at in scope.questions(data, bench.some(QUESTIONS))
            ]

            def ask(item: tuple[Scope, str]) -> object:
                return text.bm25(item[0].admission(data), item[1], limit=DEFAULT.depth)

            times = in_turn({"text": ask}, questions, rounds=bench.rounds(ROUNDS))["text"]
            worst = max(worst, times.p95)
            cells.append(times.ms())
        table.add(scope.name, *cells)
    del neighbour
    result.promises.append(
        Promise.at_most("slowest p95", MOST_MS, 1000 * worst, shown=f"{1000 * worst:.0f}", unit="ms")
    )
    return result
