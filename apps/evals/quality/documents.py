"""The section “Retrieval quality” of docs/benchmarks.md."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from apps.evals.benchmarks import report
from apps.evals.benchmarks.chart import Chart, Line
from apps.evals.benchmarks.parts import all_parts
from apps.evals.benchmarks.results import Result
from apps.evals.quality.results import Evaluation
from apps.evals.quality.tables import tables_of

NAME: Final = "quality"
TITLE: Final = "Retrieval quality"


def write_section(evaluation: Evaluation) -> None:
    """Replace the section and its picture; the others stay as they are."""
    records = sum(suite.records for suite in evaluation.suites.values())
    about = report.circumstances(evaluation.about["command"], f"{records:,} records in all suites.")
    path = settings.BASE_DIR / "docs" / "benchmarks.md"
    report.write(path, NAME, TITLE, _result(evaluation), about, order=[*all_parts(), NAME])


def _result(evaluation: Evaluation) -> Result:
    result = Result()
    for suite in evaluation.suites.values():
        for heading, table in tables_of(suite):
            half = "" if suite.half == "both" else f", half {suite.half}"
            told = f"{suite.title} (`{suite.name}`: {suite.records:,} records, {suite.queries:,} questions{half}): "
            result.tables.append(table.under(told + heading))
        result.notes.extend(note for note in suite.notes if note not in result.notes)
    result.chart = _chart(evaluation)
    result.notes.append(
        "Suites and measures are described in [evaluate.md](evaluate.md). Intervals come from resampling the questions "
        "2,000 times; where every question has the same value they cannot say how sure it is. `vector` and `text` are "
        "recipes of ours with one arm; `mem0` is mem0 as it comes, with the same embedding model."
    )
    return result


def _chart(evaluation: Evaluation) -> Chart | None:
    lines = tuple(
        Line(arm, tuple((float(size), found.value) for size, found in result.growth))
        for suite in evaluation.suites.values()
        for arm, result in suite.arms.items()
        if result.growth and any(found.value for _, found in result.growth)
    )
    return Chart("Answers while the pool grows", "records", "hit@5", lines, "linear", "linear") if lines else None
