from __future__ import annotations

import time

import pytest

from apps.evals.benchmarks.measuring import Ratio, Times, in_turn, quantile, ratio, spread


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 5), (0.95, 10), (0.99, 10), (1.0, 10), (0.1, 1), (0.11, 2)]
)
def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed(share, expected):
    assert quantile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == expected


def test_contestants_take_turns_and_neither_always_goes_first():
    calls = []
    times = in_turn(
        {"a": lambda item: calls.append(("a", item)), "b": lambda item: calls.append(("b", item))}, [1, 2], rounds=2
    )
    assert calls[:4] == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]  # untimed
    assert calls[4:8] == [("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert calls[8:] == [("b", 1), ("a", 1), ("a", 2), ("b", 2)]
    assert [len(one) for one in times["a"].rounds] == [2, 2]


def test_the_ratio_is_the_median_of_the_rounds_with_its_spread():
    ours = Times(((2.0, 2.0), (6.0, 6.0), (3.0, 3.0)))
    other = Times(((1.0, 1.0), (2.0, 2.0), (2.0, 2.0)))
    assert ratio(ours, other) == Ratio(2.0, 1.5, 3.0)
    assert str(ratio(ours, other)) == "2.00 (1.50–3.00)"


def test_what_takes_longer_has_the_larger_ratio():
    times = in_turn({"slow": lambda _: time.sleep(0.004), "fast": lambda _: None}, [1, 2, 3], rounds=2, warm=False)
    assert ratio(times["slow"], times["fast"]).value > 5


def test_a_spread_of_rates():
    assert spread([3.0, 1.0, 2.0]) == Ratio(2.0, 1.0, 3.0)
