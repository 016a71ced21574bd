"""Our part of a file is replaced and nobody else's is touched."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.agents.files.markers import END, BrokenMarkers, begin, merged, unmerged
from firm_memory_client.markers import merged as merged_by_the_client

BEGIN = begin(repo="acme/pay", format="agents_md")
BLOCK = f"{BEGIN}\n- M-1: Use tabs.\n{END}"
signs = [*"ab #-<!>@`\n\r\t\ufeff\u2028é", "@AGENTS.md", "\n@AGENTS.md\n", "```", "<!--", "-->"]
lines = st.lists(st.sampled_from(signs), max_size=60).map("".join)


def test_a_file_that_has_none_gets_it_at_the_end():
    assert merged("# Mine\n", BLOCK) == f"# Mine\n\n{BLOCK}\n"
    assert merged("# Mine", BLOCK) == f"# Mine\n\n{BLOCK}\n"
    assert merged("", BLOCK) == f"{BLOCK}\n"


def test_the_old_block_makes_room_for_the_new_one():
    old = f"# Mine\n\n{begin(repo='x')}\nold\n{END}\n\nBelow.\n"

    assert merged(old, BLOCK) == f"# Mine\n\n{BLOCK}\n\nBelow.\n"


def test_line_breaks_and_a_byte_order_mark_stay():
    text = f"\ufeff# Mine\r\n\r\n{BEGIN}\r\nold\r\n{END}\r\nBelow.\r\n"

    done = merged(text, BLOCK)

    assert done == f"\ufeff# Mine\r\n\r\n{BEGIN}\r\n- M-1: Use tabs.\r\n{END}\r\nBelow.\r\n"
    assert merged("\ufeff", BLOCK) == f"\ufeff{BLOCK}\n"
    assert merged(f"\ufeff{BLOCK}\n", BLOCK) == f"\ufeff{BLOCK}\n"


@pytest.mark.parametrize("merged", [merged, merged_by_the_client], ids=["service", "client"])
@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("a\rb\r", "\r"),
        ("a\rb", "\r"),
        ("a\r\nb\r\nc\r", "\r\n"),
        ("a\nb\nc\r", "\n"),
        ("a\nb\n\r", "\n"),
        ("a\r\nb\nc\n", "\n"),
        ("a\n\rb\r\n", "\n"),
        ("a", "\n"),
    ],
    ids=repr,
)
def test_an_empty_line_stands_before_it_whatever_ends_a_line(merged, text, newline):
    done = merged(text, BLOCK)
    lines = re.split(r"\r\n|\n|\r", done)
    before = re.split(r"\r\n|\n|\r", text)

    assert done.startswith(text)
    at = lines.index(BEGIN)
    assert lines[:at] == [*(before if before[-1] else before[:-1]), ""]
    assert newline.join(BLOCK.split("\n")) in done
    assert merged(done, BLOCK) == done
    old = done.replace("- M-1: Use tabs.", "\n".join("old" * 20))
    assert merged(old, BLOCK) == done


INCLUDE = "@AGENTS.md"
INCLUDING = f"{BEGIN}\n{INCLUDE}\n{END}"
NOT_INCLUDING = f"{BEGIN}\n{END}"
THERE = [
    INCLUDE,
    f"{INCLUDE}\n",
    f"\ufeff{INCLUDE}\r\n",
    f"# Ours\r\n\r\n{INCLUDE}\r\n\r\nMore.\r\n",
    f"# Ours\r\r{INCLUDE}\r",
    "@./AGENTS.md\n",
    f"  {INCLUDE}\t\n",
    f"- {INCLUDE}\n",
    f"> {INCLUDE}\n",
    f"See {INCLUDE} and @docs/style.md\n",
    f"```sh\nmake test\n```\n{INCLUDE}\n",
    f"~~~\n```\n~~~\n{INCLUDE}\n",
    f"````\n```\n````\n{INCLUDE}\n",
    f"<!-- ``` -->\n{INCLUDE}\n",
    f"It`s\n\n{INCLUDE}\n\nit`s\n",
    f"<!-- {INCLUDE} -->\n{INCLUDE}\n",
    f"    {INCLUDE}\n\n{INCLUDE}\n",
]
ONLY_SHOWN = [
    "# Ours\n",
    "See AGENTS.md.\n",
    "@AGENTS.md.bak\n",
    "@docs/AGENTS.md\n",
    "@../AGENTS.md\n",
    "@agents.md\n",
    "me@AGENTS.md\n",
    "(@AGENTS.md)\n",
    "[@AGENTS.md](AGENTS.md)\n",
    f"`{INCLUDE}` reads it.\n",
    f"`` {INCLUDE} `` reads it.\n",
    f"```\n{INCLUDE}\n```\n",
    f"```md\r\n{INCLUDE}\r\n```\r\n",
    f"~~~\n{INCLUDE}\n",
    f"<!-- {INCLUDE} -->\n",
    f"<!--\n{INCLUDE}\n",
    f"    {INCLUDE}\n",
    f"\t{INCLUDE}\n",
]
both = pytest.mark.parametrize("merged", [merged, merged_by_the_client], ids=["service", "client"])


@both
@pytest.mark.parametrize("text", THERE, ids=repr)
def test_what_people_include_by_hand_is_not_included_twice(merged, text):
    assert merged(text, INCLUDING) == text
    newline = "\r\n" if "\r\n" in text else "\r" if "\r" in text else "\n"
    for old in (f"{BEGIN}{newline}{INCLUDE}{newline}{END}", f"{BEGIN}{newline}{END}"):
        for around in (f"{text}{newline}{old}{newline}", f"# First{newline}{old}{newline}{text.lstrip(chr(0xFEFF))}"):
            done = merged(around, INCLUDING)
            assert done == around.replace(old, f"{BEGIN}{newline}{END}")
            assert merged(done, INCLUDING) == done


@both
@pytest.mark.parametrize("text", ONLY_SHOWN, ids=repr)
def test_what_only_shows_the_words_includes_nothing(merged, text):
    done = merged(text, INCLUDING)

    assert done.startswith(text)
    assert re.split(r"\r\n|\n|\r", done)[-4:] == [BEGIN, INCLUDE, END, ""]
    assert merged(done, INCLUDING) == done


@both
def test_what_was_removed_by_hand_is_included_again(merged):
    assert merged(f"# Ours\n\n{NOT_INCLUDING}\n", INCLUDING) == f"# Ours\n\n{INCLUDING}\n"
    assert merged("", INCLUDING) == f"{INCLUDING}\n"


@both
def test_a_statement_that_stands_by_hand_is_no_include(merged):
    assert merged("- M-1: Use tabs.\n", BLOCK) == f"- M-1: Use tabs.\n\n{BLOCK}\n"
    more = BLOCK.replace("- M-1", f"{INCLUDE}\n- M-1")
    assert merged(f"{INCLUDE}\n", more) == f"{INCLUDE}\n\n{BLOCK}\n"


@both
@pytest.mark.parametrize(
    "piece",
    [
        *("`", "a`", "`\n", "```\n", "~~~", "~~~\n", "<!--", "<!-- --", "@", " @a", "\t@", "    ", "\n"),
        *("`" * 50_000 + "x" * 50_000, "\n" + "`" * 50_000 + "x" * 50_000, "`" * 300 + "x" * 300),
    ],
    ids=lambda piece: repr(piece[:8]),
)
def test_looking_for_includes_takes_linear_time(merged, piece):
    text = f"x{piece * (100_000 // len(piece))}\n"
    began = time.process_time()
    merged(text, INCLUDING)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{BEGIN}\nx\n", "begins and never ends"),
        (f"x\n{END}\n", "ends before it begins"),
        (f"{END}\n{BEGIN}\n", "ends before it begins"),
        (f"{BLOCK}\n{BLOCK}\n", "more than one block"),
        (f"{BEGIN}\n{BEGIN}\n{END}\n", "more than one block"),
        (f"Text {BEGIN}\n{END}\n", "Line 1 holds a marker"),
        ("<!-- Firm-Memory:begin -->\n<!-- firm-memory:end -->\n", "Line 1 holds a marker"),
        ("a\n<!--firm-memory:end-->\n", "Line 2 holds a marker"),
    ],
    ids=range(8),
)
def test_broken_markers_are_refused_with_what_to_do(text, why):
    with pytest.raises(BrokenMarkers, match=why) as refusal:
        merged(text, BLOCK)
    assert str(refusal.value).endswith(".")


@settings(max_examples=300, deadline=None)
@given(lines, lines, lines)
def test_whatever_stands_around_it_stays_and_twice_is_once(before, after, inside):
    once = merged(before, BLOCK)
    assert once.startswith(before) or not before.strip("\ufeff \t\n\r\u2028")
    assert merged(once, BLOCK) == once
    including = merged(f"{before}{after}", INCLUDING)
    assert merged(including, INCLUDING) == including == merged_by_the_client(f"{before}{after}", INCLUDING)
    around = f"{before}\n{BEGIN}\n{inside}\n{END}\n{after}"
    done = merged(around, BLOCK)
    assert done.startswith(f"{before}\n{BEGIN}")
    assert done.endswith(f"{END}\n{after}")
    assert inside.strip() in ("", "-") or merged(done, BLOCK) == done


@given(st.text(max_size=40))
def test_no_name_of_a_repository_breaks_out_of_its_marker(name):
    line = begin(repo=name)

    assert merged(merged("x\n", f"{line}\ny\n{END}"), BLOCK) == f"x\n\n{BLOCK}\n"


def test_ours_is_blank_to_whoever_reads_the_file():
    assert unmerged(f"a\n{BLOCK}\nb") == ("a\n\n\n\nb", [])
    assert unmerged(f"a\n{END}\nb") == ("a\n\nb", [2])
    assert unmerged(f"a\n{BEGIN}\nb") == ("a\n\n", [2])
