"""Secrets that stand in base64 are refused and masked like others, and what else stands so is left alone."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.core.screening import SECRETS, find_secrets, mask, masked, screen
from apps.core.screening.encoded import decoded
from apps.core.screening.secret_rules import PHRASE_RULES, TOKEN_RULES
from tests.core.screening import corpus

# Assembled here, so that no scanner of repositories takes them for real ones.
GITHUB = "ghp_" + "n0tAR3alT0kenButShapedLikeOne1234567"
AWS = "AKIA" + "Z7Q4K2M9X1B3N5V8"
BODY = "MIIEpAIBAAKCAQEA1c7p0vVtq9mN3sXoB8rYkQe5uH2jLwZfTgPdRyCnSxAaUbEi\n" * 12
KEY = "-----BEGIN " + f"RSA PRIVATE KEY-----\n{BODY}-----END " + "RSA PRIVATE KEY-----\n"
SECRET = {
    "token": (GITHUB, "github token in base64"),
    "token in a sentence": (f"the runner has {GITHUB} still\n", "github token in base64"),
    "access key": (AWS, "aws access key in base64"),
    "password": ("password=hunter2", "password in base64"),
    "password of a settings file": ("db:\n  host: db\n  password: hunter2\n", "password in base64"),
    "password in JSON": ('{"user": "app", "password": "hunter2!"}', "password in base64"),
    "password in a URL": ("postgres://app:" + "s3cr3t@db/prod", "password in url in base64"),
    "private key": (KEY, "private key"),
    "private key behind other text": (f"# ours\n{KEY}", "private key in base64"),
}
ENCODE: dict[str, Callable[[bytes], bytes]] = {"standard": base64.b64encode, "url-safe": base64.urlsafe_b64encode}


def kinds(text: str) -> list[str]:
    return [finding.kind for finding in find_secrets(text)]


def encoded(text: str, how: str = "standard") -> str:
    return ENCODE[how](text.encode()).decode()


def wrapped(text: str, width: int, newline: str) -> str:
    return newline.join(text[at : at + width] for at in range(0, len(text), width))


@pytest.mark.parametrize("which", SECRET)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "It holds {} in its settings.",
        "`{}`",
        '"{}",',
        "data: {}\nmore: 3",
        "data:text/plain;base64,{}",
        "deploy/job/{}",
        "job-{}",
        "echo {}|base64 -d",
        "see\n{}\nand go on",
    ],
)
def test_a_secret_in_base64_is_found_and_masked_as_a_whole(around: str, which: str) -> None:
    plain, kind = SECRET[which]
    spellings = {given for how in ENCODE for given in (encoded(plain, how), encoded(plain, how).rstrip("="))}
    for given_as in spellings:
        text = around.format(given_as)
        assert masked(text) == around.format(f"[secret: {kind}]")
        assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\n    ", "\n> "], ids=repr)
@pytest.mark.parametrize("width", [60, 64, 70, 76])
@pytest.mark.parametrize("which", ["private key", "private key behind other text", "token in a sentence"])
def test_over_lines_it_is_masked_to_its_last_one(which: str, width: int, newline: str) -> None:
    plain, kind = SECRET[which]
    lines = wrapped(encoded(plain), width, newline)
    for before in ("The key:", "It is", "Some"):
        text = f"{before}{newline}{lines}\nThe next sentence, of March 3rd."
        assert masked(text) == f"{before}{newline}[secret: {kind}]\nThe next sentence, of March 3rd."


@pytest.mark.parametrize("joint", ['" + "', '"\n  "', "<wbr>", "\u200b", "\u00ad"], ids=repr)
def test_in_pieces_it_is_masked_to_its_end(joint: str) -> None:
    value = encoded(f"export TOKEN={GITHUB}")
    text = f'x = "{value[:21]}{joint}{value[21:]}" is used'
    assert masked(text) == 'x = "[secret: github token in base64]" is used'


def test_it_is_refused_with_its_place_and_without_its_value() -> None:
    value = encoded(f"the runner has {GITHUB}")
    (refusal,) = screen({"content": f"So:\n  it holds {value}."}, exclusions=()).refusals
    assert (refusal.exclusion, refusal.kind) == (SECRETS, "github token in base64")
    assert (refusal.line, refusal.column) == (2, 12)
    for secret in (value, GITHUB):
        assert secret not in repr(refusal.as_dict())


@pytest.mark.parametrize(
    "plain",
    [
        "We moved the worker to its own queue on Monday, because it was slow.",
        '{"alg": "RS256", "typ": "JWT", "kid": "2026-01"}',
        "password=<your password>",
        "password: ${{ secrets.DB_PASSWORD }}",
        "The password is rotated weekly and kept in Vault.",
        "a token of our own is kept in the vault: secret/ci/token",
        "api_key=4f9d0c2b7a6e1358",  # only its name tells what it is
        "-----BEGIN CERTIFICATE-----\n" + BODY + "-----END CERTIFICATE-----\n",
        "ghp_" + "x" * 36,
        "see AKIA and ghp_ for how they begin",
    ],
)
@pytest.mark.parametrize("how", ENCODE)
def test_what_holds_no_secret_is_left_alone(plain: str, how: str) -> None:
    for text in (encoded(plain, how), f"It says {encoded(plain, how)} there.", wrapped(encoded(plain, how), 76, "\n")):
        assert not find_secrets(text)


def test_many_beside_each_other_are_each_masked_by_its_own_kind() -> None:
    plain = [
        "password=hunter2",
        "We moved the worker on Monday.",
        f"x {GITHUB}",
        "the password:",
        AWS,
        "hunter2-is-below",
    ]
    said = masked(" ".join(encoded(each) for each in plain)).split("[")
    assert [each.partition("]")[0] for each in said[1:]] == [
        *("secret: password in base64", "secret: github token in base64", "secret: aws access key in base64")
    ]


def test_many_of_them_take_linear_time() -> None:
    line = f"{encoded('password=hunter2')}\n"
    began = time.process_time()
    assert len(find_secrets(line * 4_000)) == 4_000
    assert time.process_time() - began < 2


def test_two_levels_are_one_too_many() -> None:
    assert not find_secrets(encoded(encoded(f"the runner has {GITHUB}")))


def test_what_is_drawn_decodes_to_no_text() -> None:
    drawn = random.Random(1)
    for _ in range(200):
        for text in (drawn.randbytes(32).hex(), base64.b64encode(drawn.randbytes(300)).decode()):
            assert not find_secrets(text)
            assert len(list(decoded(text))) <= 1


def test_each_mark_is_known_again() -> None:
    for rule in (*TOKEN_RULES, *PHRASE_RULES):
        assert kinds(f"password = [secret: {rule.kind} in base64]") == [], rule.kind


def test_harmless_lines_are_harmless_in_base64() -> None:
    lines = [line.text for line in corpus.read("harmless")]
    assert not [text for text in lines for how in ENCODE if find_secrets(encoded(text, how))]


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12),
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=12),
    st.sampled_from(sorted(ENCODE)),
    st.sampled_from(["", "a", "ab", "Abc", "acme/", "x-", "v1.", "=", "é"]),
    st.sampled_from(["", "=", ".", "/x", "-y", "é", "zz"]),
)
def test_whatever_stands_beside_it_it_is_found(before: str, after: str, how: str, left: str, right: str) -> None:
    value = encoded(f"{before} {GITHUB} {after}", how)
    text = f"{left}{value}{right}"
    (finding,) = find_secrets(text)
    assert finding.start <= len(left) + 4 * (len(before) // 3 + 1)
    assert finding.end >= len(left) + len(value.rstrip("=")) - 4 * (len(after) // 3 + 1)
    assert encoded(GITHUB, how)[8:-8] not in mask(text, [finding])


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda raw: base64.b64encode(raw).decode()))
def test_what_is_decoded_stands_where_it_is_said_to(text: str) -> None:
    for found in decoded(text):
        assert 0 <= found.start < found.end <= len(text)
        assert found.text.isascii()
        body = text[found.start : found.end].rstrip("=").translate(str.maketrans("-_", "+/"))
        # It begins with the group that its first byte stands in.
        assert any(found.text[:9] in _plain(body[at:]) for at in range(4))


def _plain(body: str) -> str:
    body = body[: len(body) - (len(body) % 4 == 1)]
    return base64.b64decode(body + "=" * (-len(body) % 4)).decode("latin-1")
