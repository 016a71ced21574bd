from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.differences import CONTEXT, MAX_SHOWN, difference_shown, word_difference


def test_single_words_are_marked() -> None:
    shown = difference_shown("Exports close at midnight, always.", "Exports close at one, always.")
    assert shown.before == "Exports close at <del>midnight</del>, always."
    assert shown.after == "Exports close at <ins>one</ins>, always."


def test_scripts_without_spaces_change_sign_by_sign() -> None:
    shown = difference_shown("支払いは月末に締める。", "支払いは月初に締める。")
    assert shown.after == "支払いは月<ins>初</ins>に締める。"


def test_text_is_escaped_before_it_is_marked_up() -> None:
    shown = difference_shown("Say <b>it</b> as it is, all of you.", "Say <ins>it</ins> as it is, all of you.")
    for side in (shown.before, shown.after):
        assert "<b>" not in side
        assert "&lt;" in side
    assert shown.after.count("<ins>") == shown.after.count("</ins>")


def test_what_hides_is_shown_in_a_difference_too() -> None:
    assert "\u202e" not in difference_shown("Plain \u202e text stays.", "Plain text stays.").before


def test_texts_that_have_little_in_common_carry_no_confetti() -> None:
    shown = difference_shown("Payouts leave at noon on banking days.", "Caches expire quietly, and nobody minds.")
    assert not shown.marked
    assert "<" not in shown.before + shown.after


def test_a_long_stretch_that_both_have_is_left_out() -> None:
    same = "The same words again and again. " * 100
    shown = difference_shown(f"Old. {same}", f"New. {same}")
    assert "more characters" in shown.after
    assert len(shown.after) < 2 * CONTEXT + 300


def test_a_brief_one_is_short_and_spaces_between_two_changes_are_part_of_them() -> None:
    same = "The same words again and again. " * 40
    shown = difference_shown(f"Old and tried. {same}", f"New to all. {same}", brief=True)
    assert shown.before.startswith("<del>Old and tried</del>. The same")
    assert len(shown.before) < 250


@given(st.text(max_size=400), st.text(max_size=400))
def test_both_texts_are_there_again(before: str, after: str) -> None:
    difference = word_difference(before, after)
    assert "".join(piece.text for piece in difference.before) == before
    assert "".join(piece.text for piece in difference.after) == after
    common = ["".join(p.text for p in side if not p.changed) for side in (difference.before, difference.after)]
    assert common[0] == common[1]


def _signs(alphabet: str, between: str = "") -> str:
    draw = random.Random(alphabet)
    return between.join(draw.choice(alphabet) for _ in range(20_000 // (1 + len(between))))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_signs("支払月末締"), _signs("締末月払支")),
        (_signs("abc", " "), _signs("cba", " ")),
        ("." * 20_000, ".a" * 10_000),
        ("\n" * 20_000, "\n\n x" * 5_000),
        ("a. " * 6_666, "b. a. " * 3_333),
    ],
    ids=["signs", "words", "stops", "breaks", "sentences"],
)
def test_the_worst_texts_take_less_than_a_second_and_a_page_stays_small(before: str, after: str) -> None:
    began = time.process_time()
    shown = difference_shown(before, after)
    assert time.process_time() - began < 1
    assert max(len(shown.before), len(shown.after)) < 12 * MAX_SHOWN
