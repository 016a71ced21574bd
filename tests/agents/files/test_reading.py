"""Bullets stay whole, code and links are no facts, and nothing is made up."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.agents.files.decisions import decision_read
from apps.agents.files.formats import Format, check_path, folder_of, format_of, is_safe, place_of, reference_of
from apps.agents.files.reading import BROKEN, CODE, IMPORT, POINTER, PROSE, SHORT, _is_delimiter, file_read
from tests.agents.files import texts


def said(path: str, text: str) -> list[str]:
    return [found.content for found in file_read(path, text).found]


def test_what_a_file_with_every_trap_states():
    assert said("AGENTS.md", texts.AGENTS) == [
        "Setup: Install with `make setup`, never with pip alone, because the pins are hashed.",
        "Setup: Run the tests with `make test`",
        "Setup: Run the tests with `make test`: in two processes on a laptop",
        "Setup: Run the tests with `make test`: in eight on the build server",
        "Do not: Commit generated files.",
        "Do not: Edit `schema.sql` by hand",
        "Never push to main.",
        "Before you open a merge request: Run `make check` and read what it says.",
        "Before you open a merge request: Say in the description why, not what.",
        "Changed surface: `docs/**`; Required checks: `make lint-docs` and a look at the page",
        "Changed surface: Protobuf; Required checks: `make proto | tee log`, then the tests",
        "Every money amount must be an integer number of cents, never a float.",
        "Setext heading: Boxes are ticked by people",
        "Setext heading: One",
        "Setext heading: After the block there is a rule of our own.",
    ]


def test_what_states_nothing_is_named_with_its_line():
    skipped = [(one.line, one.reason) for one in file_read("AGENTS.md", texts.AGENTS).skipped]

    assert skipped == [(3, PROSE), (5, IMPORT), (7, PROSE), (16, POINTER), (18, CODE), (41, CODE)]


def test_every_word_of_a_statement_is_a_word_of_the_file_in_its_order():
    for path, text in texts.EVERY.items():
        plain = re.sub(r"\W+", " ", text)
        for found in file_read(path, text).found:
            # A row of a table is its cells, each behind the name of its column.
            parts = (
                re.split(r"; |(?<=surface): |(?<=checks): ", found.own) if "; Required" in found.own else [found.own]
            )
            assert all(re.sub(r"\W+", " ", part).strip() in plain for part in parts), found


@pytest.mark.parametrize(
    ("path", "text", "statements"),
    [
        (".cursorrules", texts.CURSORRULES, ["Always round half to even.", "Never log card numbers."]),
        (
            ".cursor/rules/api.mdc",
            texts.MDC,
            ["For services/api/**/*.py, services/web/**: Answer errors as problem+json."],
        ),
        (".cursor/rules/always.mdc", texts.MDC_ALWAYS, ["Keep handlers free of SQL."]),
        (".github/instructions/ts.instructions.md", texts.INSTRUCTIONS, ["For **/*.ts: Use `unknown`, not `any`."]),
    ],
    ids=["cursorrules", "globs", "always", "apply-to"],
)
def test_each_format_in_its_own_way(path, text, statements):
    assert said(path, text) == statements


def test_code_within_a_bullet_stays_in_one_piece():
    (found,) = file_read("AGENTS.md", "- Run this before you push:\n\n  ```sh\n  make lint\n  make test\n  ```\n").found

    assert found.content == "Run this before you push:"
    assert found.code == "```sh\nmake lint\nmake test\n```"


def test_of_a_paragraph_over_a_list_its_last_sentence_introduces_it():
    text = "We ship weekly, e.g. on Mondays. The rest is up to you. Before you ship:\n\n- Run make check and read it.\n"

    assert said("AGENTS.md", text) == ["Before you ship: Run make check and read it."]


def test_what_introduces_a_table_introduces_no_list_behind_it():
    text = "Run these checks:\n\n| Area | Checks |\n|---|---|\n| Docs | `make docs` |\n\n- Keep lines short here.\n"

    assert said("AGENTS.md", text) == [
        "Run these checks: Area: Docs; Checks: `make docs`",
        "Keep lines short here.",
    ]
    assert said("AGENTS.md", "Run:\n```\nmake x\n```\n\n- Keep lines short here.\n") == ["Keep lines short here."]


def test_a_byte_order_mark_and_other_line_breaks_make_no_difference():
    assert said("AGENTS.md", "\ufeff# Title\r\n\r\n- Use tabs\r\n  in makefiles.\r\n") == ["Use tabs in makefiles."]


def test_what_follows_a_marker_that_never_ends_is_not_taken_in():
    reading = file_read("AGENTS.md", "- Use tabs here.\n<!-- firm-memory:begin -->\n- M-1: Ours or not?\n")

    assert [found.content for found in reading.found] == ["Use tabs here."]
    assert [(one.line, one.reason) for one in reading.skipped] == [(2, BROKEN)]


def test_a_single_word_is_no_statement():
    assert [one.reason for one in file_read("AGENTS.md", "- Yes\n").skipped] == [SHORT]


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("-*+#>|`~=:.[]()<!@ \t\n1ab")), max_size=120))
def test_no_text_breaks_the_reader(text):
    file_read("AGENTS.md", text)
    decision_read(text)


@pytest.mark.parametrize(
    "text",
    ["a:\n\n" * 20_000, "- " * 60_000, "|" * 100_000, "`" * 100_000, "# " + " " * 100_000 + "x", "    x\n\n" * 20_000,
     "- x\n" + "  y\n" * 30_000, "[" * 50_000, "<!-- " * 20_000, "> " * 50_000, "**a" * 30_000, "x|\n" * 30_000,
     "a | b\n" + " " * 200_000 + "x|\n", "a | b\n" + " " * 200_000 + "-|" + " " * 200_000 + "x\n",
     "---\nglobs: a" + " " * 200_000 + "a\n---\n", "---\nglobs:\n- a" + " " * 200_000 + "a\n---\n",
     "---\nstatus: " + "[" * 200_000 + "\n---\n# T\n\nWe use it.\n", "** a " * 40_000],
    ids=range(18),
)  # fmt: skip
def test_no_text_takes_long(text):
    started = time.perf_counter()
    file_read("AGENTS.md", text)
    decision_read(text)
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    ("line", "is_one"),
    [("---|---", True), ("| :-- | --: |", True), ("|-|", True), ("||---|", False), ("|", False), ("--- x|", False)],
    ids=range(6),
)
def test_the_line_of_dashes_under_the_head_of_a_table(line, is_one):
    assert _is_delimiter(line) is is_one


# --- decisions ------------------------------------------------------------------------------------------------
def test_a_decision_in_madr():
    found = decision_read(texts.MADR)

    assert found.content == (
        "Use PostgreSQL for the queue\n\n## Context and Problem Statement\n\nWe need a queue.\n\n"
        "## Decision Outcome\n\n"
        "Chosen option: PostgreSQL, because we run it already.\n\nStatus where it was written: accepted."
    )
    assert (found.status, found.is_turned_down, found.tier) == ("accepted", False, "durable")
    assert found.held_from.isoformat() == "2024-05-31T00:00:00+00:00"
    assert [one.reason for one in found.skipped] == [CODE]


def test_a_decision_in_nygards_form_names_what_it_replaces():
    found = decision_read(texts.NYGARD)

    assert (found.title, found.status, found.replaces) == ("3. Rent the queue", "accepted", (2,))
    assert "Supersedes" not in found.content
    assert found.held_from.year == 2025


def test_one_that_was_turned_down():
    assert decision_read(texts.REJECTED).is_turned_down


def test_header_lines_as_in_a_pep():
    found = decision_read(texts.PEP)

    assert (found.title, found.status, found.replaces) == ("Numbers are cents", "superseded", (7,))
    assert found.content.endswith("Status where it was written: superseded.")
    assert found.held_from.year == 2021


def test_what_replaced_a_record_is_not_what_it_replaces():
    assert decision_read("# Old\n\n## Status\n\nSuperseded by ADR-9\n\n## Decision\n\nSo.\n").replaces == ()


# --- paths ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("AGENTS.md", Format.AGENTS_MD),
        ("services/api/agents.md", Format.AGENTS_MD),
        (".claude/CLAUDE.md", Format.CLAUDE_MD),
        (".cursorrules", Format.CURSORRULES),
        ("x/.cursor/rules/a/b.mdc", Format.CURSOR_RULES),
        (".github/copilot-instructions.md", Format.COPILOT),
        (".github/instructions/a/b.instructions.md", Format.INSTRUCTIONS),
        ("docs/adr/0001-use-x.md", Format.DECISION),
        ("docs/decisions/ADR-7.md", Format.DECISION),
        ("peps/pep-0008.rst", Format.DECISION),
        ("keps/sig-node/123-thing/README.md", Format.DECISION),
        ("docs/adr/README.md", Format.UNKNOWN),
        ("docs/adr/template.md", Format.UNKNOWN),
        ("README.md", Format.UNKNOWN),
    ],
)
def test_formats_by_name(path, expected):
    assert format_of(path) is expected


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../AGENTS.md", "a/../b.md", "a//b", "a/./b", "a\\b", "C:/x", ".git/hooks/x", "a/.GIT/x", "~/x",
     "a/ b", "a/b.", "a\nb", "", "x\u202eb", "a" * 251],
    ids=range(16),
)  # fmt: skip
def test_paths_that_leave_the_folder_are_refused(path):
    assert check_path(path, field="path")
    assert not is_safe(path)
    assert place_of("acme/pay", f"acme/pay:{path}#x") is None


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_place_is_read_back_from_its_reference(path, heading):
    if is_safe(path):
        read = place_of("acme/pay", reference_of("acme/pay", path, heading))
        assert read == (path, heading.rstrip()) or (read is not None and read[0] == path.rstrip())


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("AGENTS.md", ""),
        ("services/api/CLAUDE.md", "services/api"),
        (".github/copilot-instructions.md", ""),
        ("services/api/.cursor/rules/x.mdc", "services/api"),
        ("services/api/docs/adr/0001-x.md", "services/api"),
        ("docs/adr/0001-x.md", ""),
    ],
)
def test_the_folder_that_a_file_speaks_of(path, folder):
    assert folder_of(path) == folder
