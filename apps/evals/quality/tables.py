"""Evaluations as tables, for a terminal and for the documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from apps.evals.benchmarks.results import Table
from apps.evals.quality.results import TOTAL, ArmResult, Evaluation, SuiteResult

GROUPS: Final = {
    "answers": ("hit@1", "hit@5", "recall@5", "recall@10", "precision@5", "nDCG@10", "MRR@10", "forgotten"),
    "replaced records": ("stale@5", "stale@5 in repository", "live@5", "live@5 in repository", "claimed kept@5"),
    "moments in the past, and suggestions": (
        *("heads as of", "stale@5 as of", "live@5 as of", "live@5 as of, in repository"),
        *("precision of suggestions", "recall of suggestions"),
    ),
}
ORDER: Final = tuple(name for group in GROUPS.values() for name in group)
_STAGES: Final = (
    *("embedding a question", "intent", "scope", "vector", "text", "identifier", "fuse"),
    *("weight", "collapse", "decay", "visibility", "rerank", TOTAL),
)


def tables_of(suite: SuiteResult) -> Iterator[tuple[str, Table]]:
    """Each with a heading: the figures, the lead over other arms, growth, and what the stages take."""
    for heading, names in _groups(suite):
        yield f"{heading}, with intervals of 95 %", _figures(suite, names)
    for heading, table in (
        ("lead of the default recipe, question by question", _compared(suite)),
        ("hit@5 while the pool grows", _growth(suite)),
        ("milliseconds, the median with the 95th percentile in brackets", _stages(suite)),
    ):
        if table.rows:
            yield heading, table


def told(evaluation: Evaluation) -> Iterator[str]:
    for suite in evaluation.suites.values():
        half = "" if suite.half == "both" else f", half {suite.half}"
        yield f"\n{suite.name}: {suite.title} ({suite.records:,} records, {suite.queries:,} questions{half})"
        for heading, table in tables_of(suite):
            yield f"\n  {heading}"
            yield from (f"  {line}" for line in aligned(table))
        yield from (f"\n  {note}" for note in suite.notes)


def aligned(table: Table) -> Iterator[str]:
    rows = [table.columns, *table.rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(table.columns))]
    for row in rows:
        first, *others = (
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *others)).rstrip()


def _groups(suite: SuiteResult) -> Iterator[tuple[str, Sequence[str]]]:
    """Which figures stand in one table, and under which heading."""
    there = {name for arm in suite.arms.values() for name in arm.figures}
    for heading, group in GROUPS.items():
        if names := [name for name in group if name in there]:
            yield heading, names


def _figures(suite: SuiteResult, names: Sequence[str]) -> Table:
    table = Table(("arm", *names))
    for arm, result in suite.arms.items():
        if any(name in result.figures for name in names):
            table.add(arm, *(str(result.figures.get(name, "–")) for name in names))
    return table


def _compared(suite: SuiteResult) -> Table:
    names = [name for name in ORDER if any(name in arm.compared for arm in suite.arms.values())]
    table = Table(("over", *names))
    for arm, result in suite.arms.items():
        if result.compared:
            table.add(arm, *(_signed(result, name) for name in names))
    return table


def _signed(result: ArmResult, name: str) -> str:
    found = result.compared.get(name)
    return "–" if found is None else f"{found.value:+.2f} ({found.low:+.2f} to {found.high:+.2f})"


def _growth(suite: SuiteResult) -> Table:
    sizes = sorted({size for arm in suite.arms.values() for size, _ in arm.growth})
    table = Table(("arm", *(f"{size:,}" for size in sizes)))
    for arm, result in suite.arms.items():
        if result.growth:
            table.add(arm, *(f"{found.value:.3f}" for _, found in result.growth))
    return table


def _stages(suite: SuiteResult) -> Table:
    names = [name for name in _STAGES if any(name in arm.stages for arm in suite.arms.values())]
    table = Table(("arm", *names))
    for arm, result in suite.arms.items():
        if result.stages:
            cells = (result.stages.get(name) for name in names)
            table.add(arm, *("–" if cell is None else f"{cell['p50']:.1f} ({cell['p95']:.1f})" for cell in cells))
    return table
