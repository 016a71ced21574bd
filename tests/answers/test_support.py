"""How often the check of citations is right, on sentences that people have judged."""

from __future__ import annotations

import re
import time

import pytest

from apps.answers.support import supports
from tests.answers.labelled import HELD_BACK, SEEN, STATEMENTS, TURNED, UNSEEN

Case = tuple[str, tuple[str, ...], bool]


def shown(cases: list[Case]) -> list[bool]:
    return [supports(sentence, [STATEMENTS[name] for name in cited]) for sentence, cited, _ in cases]


def of(cases: list[Case], *, supported: bool) -> list[Case]:
    return [case for case in cases if case[2] is supported]


@pytest.mark.parametrize("cases", [SEEN, HELD_BACK, TURNED, UNSEEN], ids=["chosen by", "held back", "turned", "unseen"])
def test_what_is_not_supported_is_not_shown(cases: list[Case]) -> None:
    unsupported = of(cases, supported=False)
    assert [case[0] for case, is_shown in zip(unsupported, shown(unsupported), strict=True) if is_shown] == []


@pytest.mark.parametrize(
    ("cases", "least"),
    [(SEEN, 20 / 43), (HELD_BACK, 13 / 24), (TURNED, 0.85), (UNSEEN, 0.0)],
    ids=["chosen by", "held back", "turned", "unseen"],
)
def test_how_much_of_what_is_supported_is_shown(cases: list[Case], least: float) -> None:
    """As the decision record says: what is worded in another way is dropped."""
    told = shown(of(cases, supported=True))
    assert sum(told) / len(told) >= least


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_supports_its_own_words(name: str) -> None:
    text = STATEMENTS[name]
    assert supports(text, [text])
    assert supports(f" {text.rstrip('.')}  ", ["Something else is said here.", text.replace(" ", "  ")])


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - {"dont", "question"}))
def test_each_sentence_of_a_statement_is_supported(name: str) -> None:
    for sentence in re.split(r"(?<=[.;])\s|(?<=。)", STATEMENTS[name]):
        if sentence:
            assert supports(sentence, [STATEMENTS[name]]), sentence


@pytest.mark.parametrize(
    "words",
    ["not", "never", "no longer", "hardly", "only", "unless asked", "except on Fridays", "without a lock"],
)
def test_a_word_that_turns_a_clause_is_neither_left_out_nor_added(words: str) -> None:
    plain, turned = "The service calls the bank.", [f"The service {words} calls the bank."]
    turned += [f"The service calls {words} the bank.", f"The service calls the bank, {words}."]
    turned += [
        f"{words.capitalize()}, the service calls the bank.",
        f"The service calls the bank {words}, it is agreed.",
    ]
    for text in turned:
        assert not supports(plain, [text]), text
        assert not supports(text, [plain]), text
        assert supports(text, [text])


@pytest.mark.parametrize("start", ["No one", "Nobody", "None of the services", "Neither service", "Nothing", "Few"])
def test_a_subject_that_denies_stays(start: str) -> None:
    text = f"{start} may call the bank, because it blocks merchants."
    assert supports(f"{start} may call the bank.", [text])
    assert supports("It blocks merchants.", [text])
    for wrong in ("May call the bank.", "Services may call the bank.", "One may call the bank."):
        assert not supports(wrong, [text])


@pytest.mark.parametrize(
    "text",
    [
        "a and " * 3_000,
        "x, " * 5_000,
        "if " * 5_000,
        "支" * 8_000,
        "- a:\n" * 3_000,
        "and " * 5_000,
        "a and a and a. " * 999,
    ],
)
def test_any_text_is_compared_in_time(text: str) -> None:
    started = time.process_time()
    supports(text[:1_000], [text, text[1:]])
    supports("a and b", [text] * 3)
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize("sentence", ["", "   ", "It is.", "?", "\u200b", "x" * 1_001])
def test_what_says_nothing_or_too_much_is_supported_by_nothing(sentence: str) -> None:
    assert not supports(sentence, [sentence or "x"])


def test_nothing_supports_without_a_text() -> None:
    assert not supports("Payment retries stop.", [])
