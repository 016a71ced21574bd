"""How often the check of citations is right, on sentences that people have judged."""

from __future__ import annotations

import pytest

from apps.answers.support import supports
from tests.answers.labelled import HELD_BACK, SEEN, STATEMENTS, UNSEEN

Case = tuple[str, tuple[str, ...], bool]


def shown(cases: list[Case]) -> list[bool]:
    return [supports(sentence, [STATEMENTS[name] for name in cited]) for sentence, cited, _ in cases]


def of(cases: list[Case], *, supported: bool) -> list[Case]:
    return [case for case in cases if case[2] is supported]


@pytest.mark.parametrize(("cases", "wrongly"), [(SEEN, 0), (HELD_BACK, 1)], ids=["chosen by", "held back"])
def test_what_is_not_supported_is_not_shown(cases: list[Case], wrongly: int) -> None:
    assert sum(shown(of(cases, supported=False))) <= wrongly


@pytest.mark.parametrize(("cases", "least"), [(SEEN, 0.85), (HELD_BACK, 0.8)], ids=["chosen by", "held back"])
def test_most_of_what_is_supported_is_shown(cases: list[Case], least: float) -> None:
    told = shown(of(cases, supported=True))
    assert sum(told) / len(told) >= least


def test_who_does_what_to_whom_is_not_seen() -> None:
    """What the decision record says of its limits; a check that can do more makes this fail."""
    assert shown(of(UNSEEN, supported=False)) == [True] * 4
    assert shown(of(UNSEEN, supported=True)) == [False] * 2


@pytest.mark.parametrize("sentence", ["", "   ", "It is.", "?", "\u200b", "x" * 1_001])
def test_what_says_nothing_or_too_much_is_supported_by_nothing(sentence: str) -> None:
    assert not supports(sentence, [sentence or "x"])


def test_nothing_supports_without_a_text() -> None:
    assert not supports("Payment retries stop.", [])
