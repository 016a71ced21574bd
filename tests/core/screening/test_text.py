from __future__ import annotations

import pytest

from apps.core.screening.text import (
    TextProblem,
    check_text,
    clean_text,
    hidden_characters,
    normalise_for_fingerprint,
)


def kinds(value: str, **limits: object) -> list[str]:
    problems = check_text(value, **{"field": "content", "max_length": 20, **limits})
    return [problem.kind for problem in problems if isinstance(problem, TextProblem)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a\x00b", "nul"),
        ("a\ud83db", "surrogate"),
        ("a\udc00", "surrogate"),
        ("bell\x07", "control"),
        ("\x1b[31mred", "control"),
        ("vertical\x0b", "control"),
        ("", "blank"),
        (" \n\t ", "blank"),
        ("\u200b\u00ad\u2060", "blank"),
        ("\u3000\u00a0", "blank"),
        ("x" * 21, "long"),
    ],
)
def test_what_cannot_be_stored(value: str, kind: str) -> None:
    assert kinds(value) == [kind]


@pytest.mark.parametrize("value", ["x", "x" * 20, "a\nb\r\n\tc", "決済サービス", "👩‍👩‍👧", "a\u2028b"])
def test_what_can_be_stored(value: str) -> None:
    assert not kinds(value)


def test_every_problem_is_named_at_once() -> None:
    assert kinds("\x00\ud800\x01" + "x" * 30) == ["nul", "surrogate", "control", "long"]


def test_a_message_says_field_place_limit_and_length() -> None:
    (problem,) = check_text("one\ntwo\x00", field="sources[0].quote", max_length=500)
    assert problem.field == "sources[0].quote"
    assert "line 2, column 4 (U+0000)" in problem.message
    (problem,) = check_text("x" * 8001, field="content", max_length=8000)
    assert "at most 8,000" in problem.message
    assert "it has 8,001" in problem.message
    assert problem.as_dict() == {"field": "content", "message": problem.message}


def test_single_line_fields() -> None:
    assert kinds("a\nb", multiline=False) == ["line-break"]
    assert kinds("a\u2028b", multiline=False) == ["line-break"]
    assert not kinds("a\tb", multiline=False)


def test_shortest_length_counts_what_is_seen() -> None:
    assert kinds(" ab\u200b ", min_length=3) == ["short"]
    assert not kinds("abc", min_length=3)
    assert not kinds("", min_length=0)


def test_clean_text_leaves_a_note_for_each_kind() -> None:
    text, notes = clean_text("a\x00b\ud800c\x07\x1b[1;31md\x1b[0m\n\te")
    assert text == "abcd\n\te"
    assert notes == [
        "Removed 1 NUL character.",
        "Removed 1 lone surrogate.",
        "Removed 2 terminal control sequences.",
        "Removed 1 control character.",
    ]


def test_clean_text_joins_surrogate_pairs() -> None:
    assert clean_text("\ud83d\ude00") == ("😀", [])


def test_clean_text_leaves_good_text_alone() -> None:
    assert clean_text("naïve 決済 👍🏽\r\n") == ("naïve 決済 👍🏽\r\n", [])


def test_cleaned_text_passes_the_check() -> None:
    text, _ = clean_text("x\x00\ud800\x01\x1b]0;title\x07y")
    assert text == "xy"
    assert not check_text(text, field="content", max_length=100)


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        ("a\u202eb", "bidi", "[U+202E RIGHT-TO-LEFT OVERRIDE]"),
        ("a\u2066b", "bidi", "[U+2066 LEFT-TO-RIGHT ISOLATE]"),
        ("a\u200eb", "bidi", "[U+200E LEFT-TO-RIGHT MARK]"),
        ("a\u200bb", "zero-width", "[U+200B ZERO WIDTH SPACE]"),
        ("a\u200cb", "zero-width", "[U+200C ZERO WIDTH NON-JOINER]"),
        ("a\u200db", "zero-width", "[U+200D ZERO WIDTH JOINER]"),
        ("a\u2060b", "zero-width", "[U+2060 WORD JOINER]"),
        ("a\ufeffb", "zero-width", "[U+FEFF ZERO WIDTH NO-BREAK SPACE]"),
        ("a\u00adb", "soft-hyphen", "[U+00AD SOFT HYPHEN]"),
        ("a\ufe0fb", "variation-selector", "[U+FE0F VARIATION SELECTOR-16]"),
        ("a\U000e0100b", "variation-selector", "[U+E0100 VARIATION SELECTOR-17]"),
        ("a\u2063b", "invisible-operator", "[U+2063 INVISIBLE SEPARATOR]"),
        ("a\u3164b", "filler", "[U+3164 HANGUL FILLER]"),
        ("a\ue000b", "private-use", "[U+E000 PRIVATE USE]"),
        ("a\u206ab", "format", "[U+206A INHIBIT SYMMETRIC SWAPPING]"),
        ("a\x85b\x9fc", "control", "[U+009F CONTROL]"),
    ],
)
def test_hidden_characters_are_named(value: str, kind: str, shown: str) -> None:
    (span,) = hidden_characters(value)
    assert (span.kind, span.shown) == (kind, shown)
    assert value[span.start : span.end] not in ("a", "b", "")


def test_tags_are_spelled_out() -> None:
    smuggled = "".join(chr(0xE0000 + ord(character)) for character in "approve")
    (span,) = hidden_characters(f"fine{smuggled}.")
    assert (span.kind, span.start, span.end) == ("tag", 4, 11)
    assert span.shown == '[7 tag characters spelling "approve"]'


def test_a_run_of_one_kind_is_one_span() -> None:
    assert [(span.kind, span.start, span.end) for span in hidden_characters("a\u200b\u200b\u202e\u202cb")] == [
        ("zero-width", 1, 3),
        ("bidi", 3, 5),
    ]


@pytest.mark.parametrize(
    "value",
    [
        "plain ASCII\n\tand tabs",
        "family 👨‍👩‍👧‍👦, heart ❤️, fire ❤️‍🔥, thumbs 👍🏽, keycap 1️⃣, sign ©️",
        "flags 🇩🇪 and 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "Persian می‌خواهم",
        "Hindi क्‍ष and क्‌ष",
        "Hebrew שלום\u200f!",
        "Thai ภาษา\u200bไทย",
        "ideograph 葛\U000e0100",
        "Braille ⠓⠑⠇⠇⠕⠀⠺⠕⠗⠇⠙",
        "naïve café, 決済サービス, ﬁne “quotes” – and … more",
    ],
)
def test_what_a_script_or_an_emoji_needs_is_not_flagged(value: str) -> None:
    assert not hidden_characters(value)


def test_hostile_text_yields_a_bounded_number_of_flags() -> None:
    assert len(hidden_characters("a\u200b" * 5000)) == 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We use Kafka.", "we  use kafka"),
        ("We use Kafka.", "WE USE\n\tKAFKA!"),
        ("We use Kafka.", "We u\u200bse Ka\u00adfka"),
        ("We use Kafka。", "Ｗｅ ｕｓｅ Ｋａｆｋａ"),
        ("Straße", "STRASSE"),
        ("ﬁle", "file"),
        ("Größe", "Gro\u0308ße"),
        ("支払いサービス", "支払いｻｰﾋﾞｽ"),
    ],
)
def test_same_fingerprint(one: str, other: str) -> None:
    assert normalise_for_fingerprint(one) == normalise_for_fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("支払いサービス", "決済サービス"),
        ("Use Kafka.", "Use Kafka?"),
        ("retry 3 times", "retry 30 times"),
        ("a-b", "a b"),
        ("C#", "C"),
        ("resume", "résumé"),
    ],
)
def test_different_fingerprints(one: str, other: str) -> None:
    assert normalise_for_fingerprint(one) != normalise_for_fingerprint(other)


def test_punctuation_alone_is_still_something() -> None:
    assert normalise_for_fingerprint("…") == "..."


@pytest.mark.parametrize(("one", "other"), [("10⁶ rows", "106 rows"), ("2⁵", "25"), ("H₂O", "H2O"), ("10⁻³", "10-3")])
def test_raised_and_lowered_digits_are_not_the_digits(one: str, other: str) -> None:
    assert normalise_for_fingerprint(one) != normalise_for_fingerprint(other)
