from __future__ import annotations

import math

import pytest

from apps.evals.quality import missing
from apps.evals.quality.measures import difference, figure, ranked

QRELS = {"a": {"x": 1}, "b": {"y": 1, "z": 1}, "c": {"w": 1}}
RANKINGS = {"a": ["k", "x"], "b": ["y", "k", "l", "m", "n", "z"], "elsewhere": ["x"]}


def test_rankings_are_measured_question_by_question_and_no_answer_counts_as_none():
    values = ranked(QRELS, RANKINGS, several=True)
    assert values["hit@1"] == {"a": 0, "b": 1, "c": 0}
    assert values["hit@5"] == {"a": 1, "b": 1, "c": 0}
    assert values["recall@5"] == {"a": 1, "b": 0.5, "c": 0}
    assert values["recall@10"] == {"a": 1, "b": 1, "c": 0}
    assert values["precision@5"] == {"a": 0.2, "b": 0.2, "c": 0}
    assert values["MRR@10"] == {"a": 0.5, "b": 1, "c": 0}
    assert values["nDCG@10"]["a"] == pytest.approx(1 / math.log2(3))


def test_with_one_relevant_record_nothing_is_said_that_hit_says_already():
    assert not {"precision@5", "recall@5"} & ranked({"a": {"x": 1}}, {"a": ["x"]}, several=False).keys()


def test_the_order_of_a_ranking_counts_and_not_its_names():
    first = ranked({"a": {"z": 1}}, {"a": ["z", "a", "b"]}, several=False)
    last = ranked({"a": {"a": 1}}, {"a": ["z", "b", "a"]}, several=False)
    assert (first["MRR@10"]["a"], last["MRR@10"]["a"]) == (1, pytest.approx(1 / 3))


def test_an_interval_narrows_with_more_questions_and_is_the_same_each_time():
    few, many = figure([1.0, 0.0] * 10), figure([1.0, 0.0] * 500)
    assert few.value == many.value == 0.5
    assert few.low < many.low < 0.5 < many.high < few.high
    assert figure([1.0, 0.0] * 10) == few
    assert (figure([1.0] * 7).low, figure([1.0] * 7).n) == (1.0, 7)
    with pytest.raises(ValueError, match="Nothing was measured"):
        figure([])


def test_a_lead_is_measured_question_by_question():
    ours, other = {"a": 1.0, "b": 1.0, "c": 0.0}, {"c": 0.0, "b": 0.0, "a": 1.0}
    assert difference(ours, other).value == pytest.approx(1 / 3)
    assert difference(ours, ours) == figure([0.0, 0.0, 0.0])


def test_a_missing_package_is_named_with_what_to_do():
    with pytest.raises(missing.MissingPackage, match="Evaluating needs Nonsense, which is not installed"):
        missing.require("no_such_module_here", package="Nonsense")
