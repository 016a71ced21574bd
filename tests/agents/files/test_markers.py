"""Our part of a file is replaced and nobody else's is touched."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.agents.files.markers import END, BrokenMarkers, begin, merged, unmerged
from firm_memory_client.markers import merged as merged_by_the_client

BEGIN = begin(repo="acme/pay", format="agents_md")
BLOCK = f"{BEGIN}\n- M-1: Use tabs.\n{END}"
lines = st.text(alphabet=st.sampled_from(list("ab #-<!>@`\n\r\t\ufeff\u2028é")), max_size=60)


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
