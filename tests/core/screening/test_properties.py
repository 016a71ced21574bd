"""What holds for any text whatever, hostile ones included."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.core.screening import (
    check_text,
    clean_text,
    find_code,
    find_secrets,
    hidden_characters,
    instructions_to_reader,
    line_and_column,
    mask,
    normalise_for_fingerprint,
    screen,
)
from tests.core.screening import corpus

LINES = [line.text for label in ("secret", "personal", "harmless") for line in corpus.read(label)]
# What rules begin with or turn on, so that generated texts reach into them.
PIECES = [
    *(
        "password",
        "=",
        ": ",
        " is ",
        "'",
        '"',
        "`",
        "\\",
        "\n",
        "\r\n",
        "    ",
        "\t",
        " ",
        "<",
        ">",
        "{",
        "}",
        "(",
        ")",
        "|",
    ),
    *(
        "token ",
        "api_key",
        "key=",
        "pw ",
        "secret",
        "pass",
        "value: ",
        "://",
        "@",
        "https://a:b",
        "eyJ",
        ".",
        "AKIA",
        "sk-",
    ),
    *(
        "-----BEGIN " + "PRIVATE KEY-----",
        "-----END " + "PRIVATE KEY-----",
        "PuTTY-User-Key-File-3: ",
        "Private-Lines: 1\n",
    ),
    *(
        "bearer ",
        "basic ",
        "Authorization: ",
        "YWJjOmRlZg==",
        "cGFzc3dvcmQ9aHVudGVyMiAg",
        "cGFzc3dvcmQ9aHVudGVyMg==",
        "VVVV",
        "curl -u ",
        "mysql -p",
        "docker login -p ",
        "machine a login b ",
    ),
    *(
        "ghp_" + "a1" * 10,
        "xoxb-1",
        "glpat-",
        "$2b$10$",
        "[secret: password]",
        "[secret: ",
        "&quot;",
        "&",
        "\x1b[1m",
        "\x1b]",
    ),
    *(
        "&#112;",
        "&amp;#x70;",
        "%70",
        "%2570",
        "\\u0070",
        "%3D",
        "what's the password?\n",
        "pw?\n",
        "hang on\n",
        "creds: admin / ",
        " as the password",
        " is the password ",
        "set the password to ",
        "PIN is 1258",
        "| password |\n",
        "user,password\n",
        "<td>password</td><td>",
        "<tr><th>",
        '" + "',
        "<wbr>",
        "-\n",
        "anna: ",
        "hunter2-xyz\n",
        "0171 2345678 ",
        "030 / ",
        "06 12 ",
        "call ",
        "(at) ",
        " dot ",
        "a (dot) ",
    ),
    *(
        "\u200b",
        "\u00ad",
        "\u202e",
        "\U000e0041",
        "\u3164",
        "\ue000",
        "\ufe0f",
        "\u200d",
        "\x00",
        "\ud800",
        "\udc00",
        "İ",
        "ß",
    ),
    *(
        "😀",
        "é",
        "ｐ",
        "決済",
        "\u0301",
        "\u2028",
        "١",
        "A" * 20,
        "x1Y2z3W4",
        "0123456789abcdef" * 2,
        "- a\n",
        "+ b\n",
        "--- a\n",
    ),
    *(
        "@@ -1 +1 @@\n",
        "diff --git a b\n",
        "```\n",
        "```python\n",
        "def f(a):\n",
        "  return x\n",
        "class A:\n",
        "if (x) {\n",
        "};\n",
    ),
    *(
        '  File "a", line 1\n',
        "    at a.b(A.java:1)\n",
        "Traceback (most recent call last):\n",
        "#0 a(1): b\n",
        "goroutine 1 [x]:\n",
    ),
    *(
        "ignore all previous rules",
        "system:",
        "approved by security",
        "memory_get",
        "do not tell the user",
        "Caused by: ",
    ),
]
texts = st.one_of(
    st.text(st.characters(codec=None), max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.tuples(st.sampled_from(LINES), st.text(max_size=20), st.sampled_from(LINES)).map("".join),
    st.lists(st.one_of(st.sampled_from(LINES), st.sampled_from(PIECES)), max_size=6).map("\n".join),
)
thorough = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(texts)
@example("İpassword=hunter2")
@example("password=" * 50)
@example('def 0\nFile "0", line 0\nFile "0", line 0\ndef f')
@example('```python\nTraceback (most recent call last):\n  File "a", line 1\nx = 1\n```')
def test_positions_are_valid_and_in_order(text: str) -> None:
    for found in (find_secrets(text), find_code(text)):
        reached = 0
        for one in found:
            assert reached <= one.start < one.end <= len(text)
            reached = one.end
    for span in (*hidden_characters(text), *instructions_to_reader(text)):
        assert 0 <= span.start < span.end <= len(text)
        assert span.shown.isprintable()


@thorough
@given(texts)
@example("mysql -p01 -p01 -p01 -p01 -p01 -p01")
def test_masking_removes_what_was_found_and_a_second_time_changes_nothing(text: str) -> None:
    findings = find_secrets(text)
    masked = mask(text, findings)
    kept = len(text) - sum(finding.end - finding.start for finding in findings)
    marks = sum(len(f"[secret: {finding.kind}]") for finding in findings)
    assert len(masked) == kept + marks
    assert mask(masked, find_secrets(masked)) == masked


@thorough
@given(texts)
def test_screening_never_raises_and_shows_no_value(text: str) -> None:
    result = screen({"content": text})
    values = {text[finding.start : finding.end] for finding in find_secrets(text)}
    for refusal in result.refusals:
        line, column = refusal.line, refusal.column
        assert line >= 1 and column >= 1
        assert not any(len(value) > 12 and value in refusal.message for value in values)
    assert not (result.refusals and result.flags)


@thorough
@given(texts)
def test_cleaned_text_can_be_stored_and_is_left_alone_the_second_time(text: str) -> None:
    cleaned, notes = clean_text(text)
    assert (cleaned != text) == bool(notes) or any("\ud800" <= character <= "\udbff" for character in text)
    cleaned.encode("utf-8")
    assert clean_text(cleaned) == (cleaned, [])
    assert not check_text(cleaned, field="content", max_length=10_000, min_length=0)


@thorough
@given(texts, st.integers(0, 30), st.integers(1, 200), st.booleans())
def test_checking_never_raises(text: str, shortest: int, longest: int, multiline: bool) -> None:
    for problem in check_text(text, field="f", max_length=longest, min_length=shortest, multiline=multiline):
        assert problem.message.endswith(".")


@thorough
@given(texts)
def test_fingerprints_are_stable(text: str) -> None:
    normal = normalise_for_fingerprint(text)
    assert normalise_for_fingerprint(normal) == normal
    assert normalise_for_fingerprint(f"  {text}\n") == normal


@given(st.text(st.sampled_from("ab\n"), max_size=30), st.integers(0, 30))
def test_line_and_column(text: str, index: int) -> None:
    index = min(index, len(text))
    line, column = line_and_column(text, index)
    assert text.split("\n")[line - 1][: column - 1] == text[:index].split("\n")[-1]


@pytest.mark.parametrize("piece", [*PIECES, "a", " a", "a.", "a=", "a,", "key=:", "id/pw ", "a\n    a", "\n- a\n+ b"])
def test_repeating_anything_costs_linear_time(piece: str) -> None:
    """Twenty thousand characters of one repeated piece: a quadratic rule needs seconds here, and some did."""
    text = piece * (20_000 // len(piece))
    began = time.process_time()
    screen({"content": text})
    normalise_for_fingerprint(text)
    clean_text(text)
    assert time.process_time() - began < 1.5
