from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core.screening.personal import find_personal


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ask jane.doe@firm-intern.de about it.", "e-mail address"),
        ("<jane+x@mail.firm.co.uk>", "e-mail address"),
        ("Call +49 30 901820-11 at night.", "telephone number"),
        ("Call +1 (415) 555-0132.", "telephone number"),
        ("The card 4111 1111 1111 1111 was refused.", "payment card"),
        ("Pay to DE89 3704 0044 0532 0130 00 by Friday.", "bank account"),
        ("GB82WEST12345698765432", "bank account"),
    ],
)
def test_personal_data_is_found(text: str, kind: str) -> None:
    assert [finding.kind for finding in find_personal(text)] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Clone git@git.firm.de:acme/pay.git first.",
        "Tests use jane@example.com and joe@mail.example.",
        "Use @decorator and user@host.",
        "The order 4111 1111 1111 1112 fails the check.",
        "DE00 3704 0044 0532 0130 00 is a placeholder.",
        "Version 2.10.3, commit 3f786850e387550fdab836ed7e6dc881de23001b.",
        "0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b",
        "The limit is 1000000000000000 bytes; 0000000000000000 is the default.",
        "It took 12.5 + 300 ms in 2024-05-31T10:00:00+02:00.",
        "Ports 8000-8100, RFC 9457, PEP 484, 10.0.0.1.",
    ],
)
def test_engineering_prose_is_left_alone(text: str) -> None:
    assert find_personal(text) == []


@given(st.text(max_size=400))
def test_positions_are_in_order_and_within_the_text(text: str) -> None:
    end = 0
    for finding in find_personal(text):
        assert end <= finding.start < finding.end <= len(text)
        end = finding.end


@pytest.mark.parametrize("unit", ["a.", "1 ", "a@", "+1 ", "DE12 ", "9", "a-", "(1)"])
def test_cost_grows_with_the_length_and_not_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        started = time.perf_counter()
        find_personal(text)
        return time.perf_counter() - started

    seconds(1_000)
    assert seconds(160_000) < 40 * max(seconds(20_000), 0.001)
