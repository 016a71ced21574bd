"""How long material is cut, and how an exported session is made readable."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tracemalloc
from itertools import pairwise
from pathlib import Path

import pytest

from apps.capture.splitting import Part, parts_of, readable
from apps.core.tokens import estimated_tokens

ROOT = Path(__file__).parents[2]


def line(role: str, content: object, **more: object) -> str:
    return json.dumps({"type": role, "sessionId": "s", "message": {"role": role, "content": content}, **more})


def text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


WORDS = ["queue", "ledger", "retry", "export", "nightly", "because", "payments", "the", "of", "team", "table", "index"]


def sentences(count: int, seed: int = 1) -> str:
    shuffled = random.Random(seed)
    return " ".join(" ".join(shuffled.choices(WORDS, k=9)).capitalize() + f" {n}." for n in range(count))


def uncovered(text: str, parts: list[Part]) -> str:
    """What of ``text`` stands in no part, white space aside."""
    rest, reached = [], 0
    for part in parts:
        rest.append(text[reached : max(reached, part.start)])
        reached = max(reached, part.end)
    return "".join("".join([*rest, text[reached:]]).split())


# --- tokens -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("four", 1), ("eight ch", 2), ("決定", 2), ("ü" * 3, 2), ("🎉" * 3, 4), ("\ud83d", 1)],
)
def test_tokens_are_estimated_by_script(text, tokens):
    assert estimated_tokens(text) == tokens


# --- parts --------------------------------------------------------------------------------------------------
def test_what_fits_is_one_part():
    assert parts_of("  One decision.\n", "document", budget=100) == [Part("One decision.", 2, 15, "")]


def test_a_blank_text_has_no_parts():
    assert parts_of(" \n\t\n", "document", budget=100) == []


def test_a_budget_that_nothing_can_be_cut_by_is_refused():
    with pytest.raises(ValueError, match="A budget of 8 tokens is too small"):
        parts_of("text", "document", budget=8)


MIXED = "a" * 1500 + " 決定しました。" * 300 + "🎉" * 400 + "\n\n" + sentences(60) + "\n# Titel\nüber " * 40


@pytest.mark.parametrize("kind", ["transcript", "document", "chat"])
@pytest.mark.parametrize("budget", [32, 150, 1000])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(sentences(300), id="one long paragraph"),
        pytest.param("\n\n".join(sentences(3, n) for n in range(90)), id="paragraphs"),
        pytest.param("\n".join(f"Anna: {sentences(2, n)}\nben: no" for n in range(90)), id="turns"),
        pytest.param("\n".join(f"## Part {n}\n\n{sentences(4, n)}" for n in range(60)), id="headings"),
        pytest.param("x" * 20_000, id="no place to cut at"),
        pytest.param("支払いは三回まで再試行する。" * 900, id="no spaces"),
        pytest.param(MIXED, id="mixed scripts"),
        pytest.param("a: b\n" * 3000, id="tiny turns"),
        pytest.param("\r\n".join([sentences(2)] * 80), id="carriage returns"),
    ],
)
def test_every_character_is_in_a_part_and_no_part_is_over_budget(text, budget, kind):
    parts = parts_of(text, kind, budget=budget)

    assert uncovered(text, parts) == ""
    assert all(part.text == text[part.start : part.end] for part in parts)
    assert all(estimated_tokens(part.text) <= budget for part in parts)
    assert all(before.end < after.end for before, after in pairwise(parts))


def test_the_tail_of_a_long_transcript_is_in_the_last_part():
    tail = "Anna: we decided to keep the outbox because the broker loses messages."
    text = "\n".join(f"ben: {sentences(3, n)}" for n in range(4000)) + "\n" + tail

    assert parts_of(text, "transcript", budget=500)[-1].text.endswith(tail)


def test_turns_are_kept_whole_where_they_fit():
    text = "\n".join(f"{name}: {sentences(4, n)}" for n, name in enumerate(["Anna Smith", "ben"] * 40))
    turns = text.split("\n")

    for part in parts_of(text, "transcript", budget=300):
        assert set(part.text.split("\n")) <= set(turns)
        assert part.heading == ""


@pytest.mark.parametrize(
    "turn",
    [
        "[10:42] anna: {}",
        "2026-05-01 10:42 anna: {}",
        "[2026-05-01T10:42:13Z] anna: {}",
        "**anna:** {}",
        "@anna: {}",
        "<anna> {}",
        "anna [10:42 AM]\n{}",
        "anna  10:42 AM\n{}",
        "anna：{}",
    ],
)
def test_turns_are_known_by_how_chats_write_them(turn):
    text = "\n".join(turn.format(sentences(12, n)) for n in range(20))
    first = turn.partition("{}")[0]

    parts = parts_of(text, "chat", budget=300)

    assert len(parts) > 5
    assert all(part.text.startswith(first) for part in parts)


def test_a_turn_that_is_cut_goes_on_under_its_speaker():
    text = f"Anna Smith: {sentences(60)}\nben: agreed"

    first, *others = parts_of(text, "transcript", budget=200)

    assert first.heading == ""
    assert {part.heading for part in others[:-1]} == {"Anna Smith"}


def test_a_label_is_no_speaker():
    text = f"Decision: {sentences(60)}"

    assert {part.heading for part in parts_of(text, "transcript", budget=200)} == {""}


def test_a_part_says_which_headings_it_stands_under():
    text = f"# Payments\n\n{sentences(8)}\n\n## Retries\n\n{sentences(8, 2)}\n\n# Search\n\n{sentences(8, 3)}"

    parts = parts_of(text, "document", budget=170)

    assert [part.text.splitlines()[0] for part in parts] == ["# Payments", "## Retries", "# Search"]
    assert [part.heading for part in parts] == ["", "Payments", "Payments > Retries"]


def test_a_comment_in_fenced_code_is_no_heading():
    text = f"# Setup\n\n```sh\n# not a heading\nmake up\n```\n\n{sentences(40)}"

    assert {part.heading for part in parts_of(text, "document", budget=120)[1:]} == {"Setup"}


def test_nothing_is_repeated_where_no_paragraph_was_cut():
    text = "\n\n".join(sentences(5, n) for n in range(50))

    parts = parts_of(text, "document", budget=200)

    assert all(before.end <= after.start for before, after in pairwise(parts))


def test_the_end_of_a_cut_paragraph_is_repeated_from_a_sentence_on():
    text = sentences(200)

    parts = parts_of(text, "document", budget=400)

    for before, after in pairwise(parts):
        assert 0 < before.end - after.start <= 160
        assert text[after.start - 2 : after.start] == ". "


def test_parts_of_a_session_are_parts_of_what_is_readable():
    session = "\n".join(line("user", f"Question {n}. {sentences(5, n)}") for n in range(50))
    text = readable(session, "transcript")

    parts = parts_of(session, "transcript", budget=200)

    assert parts == parts_of(text, "transcript", budget=200)
    assert uncovered(text, parts) == ""


# --- sessions -----------------------------------------------------------------------------------------------
def test_a_session_becomes_turns():
    session = "\n".join(
        [
            line("user", "Why is the ledger append-only?"),
            line("assistant", [text_block("Because auditors asked for it."), text_block("See ADR 7.")]),
        ]
    )

    assert readable(session, "transcript") == (
        "user: Why is the ledger append-only?\n\nassistant: Because auditors asked for it.\n\nSee ADR 7."
    )


@pytest.mark.parametrize(
    "noise",
    [
        line("user", [{"type": "tool_result", "tool_use_id": "t", "content": "NOISE"}]),
        line("assistant", [{"type": "thinking", "thinking": "NOISE"}]),
        line("assistant", [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "NOISE"}}]),
        line("user", "NOISE", isMeta=True),
        line("user", "<command-name>/clear NOISE</command-name>"),
        line("user", "<local-command-stdout>NOISE</local-command-stdout>"),
        line("system", "NOISE"),
        line("user", None),
        json.dumps({"type": "summary", "summary": "NOISE", "leafUuid": "u"}),
        json.dumps({"type": "file-history-snapshot", "snapshot": {"NOISE": 1}}),
        json.dumps({"type": "progress", "data": {"type": "hook", "command": "NOISE"}}),
        json.dumps({"type": "response_item", "payload": {"type": "function_call_output", "output": "NOISE"}}),
        '"NOISE"',
        "42",
        "[1]",
        json.dumps({"type": "user", "message": "NOISE"}),
    ],
)
def test_what_is_no_turn_is_left_out(noise):
    session = "\n".join([line("user", "first"), noise, line("assistant", "last")])

    assert readable(session, "transcript") == "user: first\n\nassistant: last"


def test_a_reminder_of_the_client_is_cut_out_of_a_turn():
    said = "Keep this. <system-reminder>NOISE</system-reminder> And this. <system-reminder>open"

    assert readable(line("user", said), "agent") == "user: Keep this.  And this. <system-reminder>open"


@pytest.mark.parametrize("broken", ['{"type":"user","message":{"content":"we deci', "{" * 5000, "[" * 5000, "plain"])
def test_a_line_that_is_no_json_is_kept_word_for_word(broken):
    session = "\n".join([line("user", "first"), line("user", "second"), broken])

    assert readable(session, "transcript").endswith(f"unreadable: {broken}")


def test_a_cut_off_first_line_does_not_hide_the_session():
    session = "\n".join(['ent":"half of a line"}}', line("user", "second"), line("assistant", "third")])

    assert readable(session, "transcript") == (
        'unreadable: ent":"half of a line"}}\n\nuser: second\n\nassistant: third'
    )


@pytest.mark.parametrize(
    "session",
    [
        line("user", "one"),
        json.dumps({"loglines": [json.loads(line("user", "one"))]}),
        json.dumps({"title": "x", "messages": [{"role": "user", "content": "one"}]}, indent=2),
        json.dumps([{"role": "human", "content": [text_block("one")]}]),
        json.dumps({"role": "user", "message": {"content": [text_block("one")]}}),
        json.dumps(
            {
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
            }
        ),
    ],
)
def test_sessions_are_read_in_the_forms_that_clients_export(session):
    assert readable(session, "transcript") == "user: one"


def test_a_slack_export_becomes_turns():
    day = json.dumps(
        [
            {"type": "message", "user": "U1", "subtype": "channel_join", "text": "<@U1> has joined"},
            {"type": "message", "user": "U1", "text": "we cap it at 5 &gt; 3", "user_profile": {"real_name": "Anna S"}},
            {"type": "message", "user": "U2", "text": "ok"},
            {"type": "message", "subtype": "bot_message", "bot_id": "B1", "text": ""},
        ]
    )

    assert readable(day, "chat") == "Anna S: we cap it at 5 > 3\n\nU2: ok"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Anna: we decided it.\n\n{not json", "transcript"),
        ('{"action": "opened", "pull_request": {"body": "x"}}', "merge_request"),
        ('{"id": 1, "content": "a row"}\n{"id": 2, "content": "another"}', "document"),
        ("[10:42] anna: hello", "chat"),
        ("[1, 2, 3]", "document"),
        ("", "chat"),
        (line("user", "an example in the rules"), "rules_file"),
    ],
)
def test_other_text_is_left_as_it_is(text, kind):
    assert readable(text, kind) == text


@pytest.mark.parametrize("pasted", [line("user", "inner"), f"{line('user', 'inner')}\n" * 60, json.dumps([1]), ""])
def test_reading_twice_changes_nothing(pasted):
    once = readable("\n".join([line("user", pasted), line("assistant", pasted), "{broken"]), "transcript")

    assert readable(once, "transcript") == once


def test_what_no_column_can_store_does_not_come_out_of_the_escapes_of_a_session():
    assert readable('{"type":"user","message":{"content":"a\\u0000b\\ud83dc"}}', "transcript") == "user: abc"


# --- size ---------------------------------------------------------------------------------------------------
MEASURED = """
from pathlib import Path
from tests.capture.test_splitting import line, sentences
from apps.capture.splitting import parts_of
said = [line("user", sentences(40, n) + " 🎉") for n in range(50)]
size = sum(map(len, said)) + len(said)
text = "\\n".join(said * (20_000_000 // size) + [line("user", "we decided the last thing")])
assert len(text) > 19_500_000
parts = parts_of(text, "transcript", budget=3000)
assert parts[-1].text.endswith("we decided the last thing")
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) // 1024)  # the process's own: ru_maxrss begins with what its parent held
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="The peak of a process is read from /proc.")
def test_a_session_of_20_mb_is_cut_in_less_than_300_mb():
    process = subprocess.run(
        [sys.executable, "-c", MEASURED], cwd=ROOT, capture_output=True, text=True, check=True, timeout=100
    )

    assert int(process.stdout) < 300


@pytest.mark.parametrize(
    "text",
    ["a\n" * 500_000, "\n" * 1_000_000, "**" * 500_000, "A B C D " * 125_000, "[" * 1_000_000, "# a\n" * 250_000],
    ids=["lines", "breaks", "stars", "names", "brackets", "headings"],
)
def test_memory_does_not_grow_with_the_number_of_places_to_cut_at(text):
    parts_of("warm up", "transcript", budget=3000)
    tracemalloc.start()
    try:
        parts_of(text, "transcript", budget=3000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 6 * len(text)
