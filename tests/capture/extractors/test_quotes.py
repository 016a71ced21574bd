"""Quotes: what counts as word for word, and what is given back."""

from __future__ import annotations

import time

import pytest

from apps.capture.extractors.quotes import MAX_QUOTE, Passages

TEXT = """\
ana: We “never” retry a payment twice,
because the bank   books both.
> **Decision:** keep `oms-api` on Ｐｏｓｔｇｒｅｓ 16 — not 17.
佐藤: 決済サービスは再試行しない。
Die Straße heißt café.
"""


@pytest.mark.parametrize(
    ("quote", "passage"),
    [
        ("We “never” retry a payment twice", "We “never” retry a payment twice"),
        ('we "never" RETRY a payment twice', "We “never” retry a payment twice"),
        ("twice, because the bank books both.", "twice,\nbecause the bank   books both"),
        ('"because the bank books both"', "because the bank   books both"),
        (
            "Decision: keep oms-api on Postgres 16 - not 17",
            "Decision:** keep `oms-api` on Ｐｏｓｔｇｒｅｓ 16 — not 17",
        ),
        ("決済サービスは再試行しない。", "決済サービスは再試行しない。"),
        ("DIE STRASSE HEISST CAFÉ", "Die Straße heißt café"),
        ("heißt cafe\u0301", "heißt café"),
        ("never” retry … the bank books both", "the bank   books both"),
        ("never” retry [...] the bank books both...", "the bank   books both"),
    ],
)
def test_case_spacing_and_typography_do_not_matter(quote, passage):
    assert Passages(TEXT).find(quote) == passage


@pytest.mark.parametrize(
    "quote",
    [
        "",
        " … ",
        "never",
        "We always retry a payment twice",
        "the bank books both … never” retry a payment",  # the other way round
        "We never retry a payment twice",  # without the marks it says something else
        "決済サービスは再試行する。",
        "\x00",
        "a" * 100_000,
    ],
)
def test_what_is_not_there_is_not_found(quote):
    assert Passages(TEXT).find(quote) == ""


def test_a_short_text_may_be_its_own_quote():
    assert Passages("use pnpm").find("Use pnpm.") == "use pnpm"
    assert Passages("pnpm").find("pnpm") == "pnpm"


def test_a_long_quote_is_cut_between_words():
    text = "word " * 400
    found = Passages(text).find(text)
    assert len(found) <= MAX_QUOTE
    assert found.endswith("word")
    assert len(Passages("字" * 900).find("字" * 900)) == MAX_QUOTE


@pytest.mark.parametrize(
    ("word", "held"),
    [("M-12", True), ("m-12", True), ("M-1", False), ("M-123", False), ("ADR 7", True), ("DR 7", False), ("(x", False)],
)
def test_a_reference_is_there_as_a_whole(word, held):
    assert Passages("This replaces M-12, see ADR 7.").holds(word) is held


def test_the_sentence_that_shares_most_words_supports_a_statement():
    passages = Passages(TEXT)
    assert passages.supporting("Payments are never retried twice, the bank would book both.") == ""
    assert passages.supporting("A payment must never be retried twice") == "ana: We “never” retry a payment twice,"
    assert passages.supporting("決済サービスは再試行しない方針") == "佐藤: 決済サービスは再試行しない。"
    assert passages.supporting("The team moved to Kafka") == ""
    assert passages.supporting("") == ""


def test_long_material_is_compared_in_linear_time():
    passages = Passages("x " * 200_000 + "y" * 100_000)
    started = time.process_time()
    passages.find("z " * 50_000)
    passages.supporting("word " * 1_000)
    passages.supporting("another")
    assert time.process_time() - started < 5
