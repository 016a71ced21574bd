from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from apps.evals.management.commands import evaluate
from apps.evals.quality import gate
from tests.evals.quality.doubles import an_evaluation

BASELINE = gate.baseline_of(an_evaluation(hit_at_5=0.90))


def short(evaluation, baseline=BASELINE):
    return [
        (found.what, found.expected, found.found) for found in gate.compare(evaluation, baseline) if not found.holds
    ]


def test_the_same_again_holds_and_so_does_a_little_less():
    assert short(an_evaluation(hit_at_5=0.90)) == []
    assert short(an_evaluation(hit_at_5=0.885)) == []
    assert short(an_evaluation(hit_at_5=1.0)) == []


def test_a_figure_that_fell_is_told_with_its_limit():
    assert short(an_evaluation(hit_at_5=0.87)) == [("hit@5", "at least 0.880", "0.870")]


def test_of_some_measures_more_is_worse_and_some_may_not_change_at_all():
    baseline = gate.baseline_of(an_evaluation(**{"stale_at_5": 0.0, "stale_at_5 as of": 0.0}))
    assert short(an_evaluation(**{"stale_at_5": 0.01, "stale_at_5 as of": 0.0}), baseline) == []
    assert short(an_evaluation(**{"stale_at_5": 0.05, "stale_at_5 as of": 0.01}), baseline) == [
        ("stale@5", "at most 0.020", "0.050"),
        ("stale@5 as of", "at most 0.000", "0.010"),
    ]


def test_measuring_less_is_no_way_around_it():
    less = an_evaluation(hit_at_5=1.0)
    less.suites["sample"].queries = 39
    assert short(less) == [("queries", "at least 40", "39")]
    half = an_evaluation(hit_at_5=1.0)
    half.suites["sample"].half = "a"
    assert short(half) == [("half of the questions", "both", "a")]
    without_arm = an_evaluation(hit_at_5=1.0)
    without_arm.suites["sample"].arms = {}
    assert short(without_arm) == [("the arm", "measured", "not measured")]
    without_suite = an_evaluation(hit_at_5=1.0)
    without_suite.suites = {}
    assert short(without_suite) == [("the suite", "measured", "not measured")]
    assert short(an_evaluation(hit_at_1=1.0)) == [("hit@5", "0.900", "not measured")]


def test_fewer_cases_of_a_figure_are_fewer_cases(monkeypatch):
    baseline = json.loads(json.dumps(BASELINE))
    baseline["suites"]["sample"]["arms"]["default"]["hit@5"]["n"] = 41
    assert short(an_evaluation(hit_at_5=0.9), baseline) == [("hit@5", "41 cases", "40 cases")]


@pytest.fixture
def measured(monkeypatch):
    """Stands in for the process that measures."""

    def answer(evaluation):
        monkeypatch.setattr(evaluate.Command, "_start", lambda *_: evaluation)

    return answer


def test_the_command_fails_with_a_table_where_something_got_worse(measured, tmp_path, capsys):
    path = tmp_path / "baseline.json"
    measured(an_evaluation(hit_at_5=0.9))
    call_command("evaluate", "sample", write_baseline=path)
    call_command("evaluate", "sample", baselines=[path], gate=True)
    assert "figures and counts of the baseline hold" in capsys.readouterr().out
    measured(an_evaluation(hit_at_5=0.5))
    call_command("evaluate", "sample", baselines=[path])  # told, and no more
    with pytest.raises(CommandError, match="The gate is closed") as closed:
        call_command("evaluate", "sample", baselines=[path], gate=True)
    assert closed.value.returncode == 1
    assert "at least 0.880" in capsys.readouterr().out


def test_a_gate_needs_something_to_compare_with(measured, tmp_path):
    measured(an_evaluation())
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("evaluate", "sample", baselines=[tmp_path / "none.json"], gate=True)
    (tmp_path / "other.json").write_text('{"format": 99}')
    with pytest.raises(CommandError, match="no baseline in format 1"):
        call_command("evaluate", "sample", baselines=[tmp_path / "other.json"])


def test_a_command_is_told_without_somebodys_files():
    told = evaluate._command(["evaluate", "a b", "--output", "mine/x.json", "--half", "a", "--inside", "y"])
    assert told == "manage.py evaluate 'a b' --half a"


def test_a_file_that_is_no_output_is_named(tmp_path):
    (tmp_path / "found.json").write_text('{"format": 1, "suites": {"sample": {}}, "about": {}}')
    with pytest.raises(CommandError, match=r"found\.json is not what `evaluate --output` writes"):
        call_command("evaluate", "sample", earlier=[tmp_path / "found.json"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recipes": ["nonsense"]}, "no recipe nonsense. Use: default"),
        ({"arms": ["nonsense"]}, "no arm nonsense. Use: none, grep, bm25, mem0"),
    ],
)
def test_an_arm_that_is_not_there_is_named_with_those_that_are(options, message):
    with pytest.raises(CommandError, match=message):
        call_command("evaluate", "sample", **options)
