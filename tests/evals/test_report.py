from __future__ import annotations

import pytest

from apps.evals.benchmarks import report
from apps.evals.benchmarks.chart import Chart, Line
from apps.evals.benchmarks.report import Circumstances
from apps.evals.benchmarks.results import Promise, Result, Table

pytestmark = pytest.mark.django_db
WHERE = Circumstances("manage.py bench", "100 memories.", 0.5)
ORDER = ("data", "pool", "mem0")


def a_result(cell="1.0"):
    table = Table(("scope", "ms"))
    table.add("all", cell)
    return Result([table], notes=["It was quiet."])


def test_a_run_replaces_its_own_sections_and_leaves_the_others_as_they_are(tmp_path):
    page = tmp_path / "benchmarks.md"
    report.write(page, "pool", "The pool", a_result("1.0"), WHERE, order=ORDER)
    report.write(page, "data", "The data", a_result("7.0"), WHERE, order=ORDER)
    before = page.read_text()
    report.write(page, "pool", "The pool", a_result("2.0"), WHERE, order=ORDER)
    after = page.read_text()
    assert after == before.replace("| all | 1.0 |", "| all | 2.0 |")
    assert after.index("## The data") < after.index("## The pool")
    assert after.count("## ") == 2


def test_a_section_says_by_what_it_was_measured_and_what_was_promised(tmp_path):
    result = a_result("a | b")
    result.promises += [Promise.at_most("ours", 1.5, 1.2), Promise.at_least("theirs", 10, 9.5, unit="×")]
    report.write(tmp_path / "b.md", "pool", "The pool", result, WHERE, order=ORDER)
    text = (tmp_path / "b.md").read_text()
    assert "| ours | ≤ 1.5 × | 1.20 | holds |" in text
    assert "| theirs | ≥ 10 × | 9.50 | **misses** |" in text
    assert "| all | a \\| b |" in text
    assert "PostgreSQL" in text and "pgvector" in text and "Python 3." in text and "`manage.py bench`" in text


def test_a_picture_lies_beside_the_page_and_is_shown(tmp_path):
    result = a_result()
    result.chart = Chart("Growth", "rows", "ms", (Line("a", ((1, 1), (10, 2))),))
    report.write(tmp_path / "benchmarks.md", "growth", "Growth", result, WHERE, order=ORDER)
    assert "![Growth](benchmarks/growth.svg)" in (tmp_path / "benchmarks.md").read_text()
    assert (tmp_path / "benchmarks" / "growth.svg").read_text().startswith("<svg")


def test_a_row_has_as_many_cells_as_its_table():
    with pytest.raises(ValueError, match="2 cells"):
        Table(("a", "b")).add("one")
