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
        ("FR14 2004 1010 0505 0001 3M02 606 it is.", "bank account"),
        ("card=5555555555554444", "payment card"),
        ("3782 822463 10005", "payment card"),
        ("6011-1111-1111-1117.", "payment card"),
        ("Ask +493090182011.", "telephone number"),
        ("Ask 0049 30 90182011.", "telephone number"),
        ("+48 123 456 789", "telephone number"),
        ("https://firm.de/?who=jane@firm.de", "e-mail address"),
        ("jane.doe+4711@firm.de", "e-mail address"),
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
        "Use deploy@git.firm.de:acme/pay.git, ssh://jane@git.firm.de/acme and https://jane@git.firm.de/x.",
        "Run `ssh deploy@build.firm.de` or `ssh -p 22 deploy@build.firm.de`.",
        "you@example.com, A@EXAMPLE.ORG, a@b.example.net, a@b.test, a@b.invalid, root@localhost.",
        "Write to security@firm.de; mails come from no-reply@firm.de.",
        "Pin lodash@4.17.21, react@18.3.0-canary.rc, checkout@v4.1.x and @scope/pkg@1.2.3-beta.rc.",
        "Restart getty@tty1.service; ship logo@2x.png.",
        "As said in CAF4Au4xYtv3aBc9Zq1kT7u8@mail.gmail.com.",
        "It grew by +10 000 000 rows, +10000000 bytes, +12.345.678 of them, +1 000 000 000 in all.",
        "Order 0012345678 and case 00123456789012 are padded.",
        "At 10:00 2024-05-31 and UTC +2 2024-05-31 10:00:00.",
        "The mask is +10011010010, the sum +345678.5432.",
        "41111111-1111-4111-8111-111111111111 and urn:uuid:41111111-1111-4111-8111-111111111111",
        "sha1 4111111111111111411111111111111141111111, sha256:4111111111111111aaaa",
        "https://firm.de/runs/4111111111111111 and #4111111111111111, run-4111111111111111",
        "v4111111111111111, 4111111111111111.5, 1700000000123456 and 1700000000123456789.",
        "The steps were 4111 1111 1111 and 1111.",
        "ZZ82 WEST 1234 5698 7654 32 has no country, GB82 WEST 1234 5698 7654 33 no check.",
        "SHA2 5612 3456 7890 1234, AB12 CD34 EF56 GH78.",
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


@pytest.mark.parametrize(
    "unit",
    [
        "a.",
        "1 ",
        "a@",
        "+1 ",
        "DE12 ",
        "9",
        "a-",
        "(1)",
        "0171 ",
        "01 ",
        "030/1234 ",
        "a(at)",
        "a (at) b(dot)",
        "a at b dot ",
        "&#48;",
        "%30",
    ],
)
def test_cost_grows_with_the_length_and_not_faster(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        started = time.perf_counter()
        find_personal(text)
        return time.perf_counter() - started

    def least(length: int) -> float:
        """Whatever else the machine does only adds to it."""
        return min(seconds(length) for _ in range(5))

    seconds(1_000)
    assert least(160_000) < 40 * max(least(20_000), 0.001)
