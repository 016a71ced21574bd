"""Whether an evaluation is still as good, and as broad, as the committed baseline says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apps.evals.benchmarks.results import Table
from apps.evals.quality.figures import LOWER_IS_BETTER
from apps.evals.quality.results import Evaluation, SuiteResult

FORMAT: Final = 1
TOLERANCE: Final = 0.02
# What is never to happen at all is allowed no tolerance.
NEVER: Final = frozenset({"stale@5 as of", "heads as of"})


class BaselineError(ValueError):
    """A baseline cannot be read; the message is a sentence that names the file."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was compared. ``holds`` is false where it fell short."""

    suite: str
    arm: str
    what: str
    expected: str
    found: str
    holds: bool


def baseline_of(evaluation: Evaluation) -> dict[str, Any]:
    """What is committed: values and counts, and how far a value may fall."""
    return {
        "format": FORMAT,
        "tolerance": TOLERANCE,
        "suites": {name: _expected(suite) for name, suite in evaluation.suites.items()},
    }


def read_baseline(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text())
    except OSError as error:
        raise BaselineError(f"The baseline {path} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise BaselineError(f"The baseline {path} is not JSON.") from None
    if not isinstance(told, dict) or told.get("format") != FORMAT or not isinstance(told.get("suites"), dict):
        raise BaselineError(f"{path} is no baseline in format {FORMAT}. `evaluate --write-baseline FILE` makes one.")
    return told


def compare(evaluation: Evaluation, baseline: dict[str, Any]) -> list[Finding]:
    """Everything that the baseline expects, in its order. What it does not know of is not compared."""
    tolerance = float(baseline.get("tolerance", TOLERANCE))
    found: list[Finding] = []
    for name, expected in baseline["suites"].items():
        suite = evaluation.suites.get(name)
        if suite is None:
            found.append(Finding(name, "–", "the suite", "measured", "not measured", False))
            continue
        found.extend(_coverage(suite, expected))
        for arm, figures in expected["arms"].items():
            found.extend(_figures(suite, arm, figures, tolerance))
    return found


def told(findings: list[Finding]) -> Table:
    """What fell short, one row each."""
    table = Table(("suite", "arm", "what", "expected", "found"))
    for finding in findings:
        if not finding.holds:
            table.add(finding.suite, finding.arm, finding.what, finding.expected, finding.found)
    return table


def _expected(suite: SuiteResult) -> dict[str, Any]:
    return {
        "half": suite.half,
        "records": suite.records,
        "queries": suite.queries,
        "arms": {
            arm: {name: {"value": round(one.value, 4), "n": one.n} for name, one in result.figures.items()}
            for arm, result in suite.arms.items()
        },
    }


def _coverage(suite: SuiteResult, expected: dict[str, Any]) -> Iterator[Finding]:
    same_half = suite.half == expected["half"]
    yield Finding(suite.name, "–", "half of the questions", expected["half"], suite.half, same_half)
    for what, count in (("records", suite.records), ("queries", suite.queries)):
        least = int(expected[what])
        yield Finding(suite.name, "–", what, f"at least {least:,}", f"{count:,}", count >= least)


def _figures(suite: SuiteResult, arm: str, expected: dict[str, Any], tolerance: float) -> Iterator[Finding]:
    result = suite.arms.get(arm)
    if result is None:
        yield Finding(suite.name, arm, "the arm", "measured", "not measured", False)
        return
    for name, figure in expected.items():
        found = result.figures.get(name)
        if found is None:
            yield Finding(suite.name, arm, name, f"{figure['value']:.3f}", "not measured", False)
            continue
        if found.n < figure["n"]:
            yield Finding(suite.name, arm, name, f"{figure['n']:,} cases", f"{found.n:,} cases", False)
        allowed = 0.0 if name in NEVER else tolerance
        lower = name in LOWER_IS_BETTER
        limit = figure["value"] + allowed if lower else figure["value"] - allowed
        # Both were rounded to four places on their way here.
        holds = found.value <= limit + 1e-4 if lower else found.value >= limit - 1e-4
        sign = "at most" if lower else "at least"
        yield Finding(suite.name, arm, name, f"{sign} {limit:.3f}", f"{found.value:.3f}", holds)
