"""Which evaluations are shown: of each suite the one that was made last."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from apps.evals.models import EvaluationRun
from apps.evals.quality.results import ArmResult, SuiteResult


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest run of a suite, and what it was made with."""

    suite: SuiteResult
    run: EvaluationRun


def evaluations_latest() -> list[Latest]:
    """By name of the suite. Two queries."""
    newest = EvaluationRun.objects.order_by("suite", "-measured_at", "-pk").distinct("suite").values("batch", "suite")
    wanted = {(row["batch"], row["suite"]) for row in newest}
    rows = EvaluationRun.objects.filter(batch__in={batch for batch, _ in wanted}).order_by("suite", "position", "pk")
    of_suites = groupby((row for row in rows if (row.batch, row.suite) in wanted), key=lambda row: row.suite)
    return [_latest(list(found)) for _, found in of_suites]


def _latest(rows: list[EvaluationRun]) -> Latest:
    first = rows[0]
    suite = SuiteResult(
        name=first.suite,
        title=first.title,
        half=first.half,
        records=first.records,
        queries=first.queries,
        corpus=first.corpus,
        arms={row.arm: ArmResult.from_dict(row.found) for row in rows},
    )
    return Latest(suite, first)
