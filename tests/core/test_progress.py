"""What is said of long work while it runs."""

from __future__ import annotations

import pytest

from apps.core.progress import Progress


def told(*calls: tuple[int, int]) -> str:
    lines: list[str] = []
    progress = Progress("lines read", lines.append)
    for done, total in calls:
        progress.show(done, total)
    return lines[-1]


@pytest.mark.parametrize("calls", [[(15, 15)], [(0, 0)], [(7, 7), (7, 7)]], ids=["at once", "nothing", "twice"])
def test_work_that_was_done_when_it_was_first_looked_at_has_no_rate(calls):
    assert "a second" not in told(*calls)
    assert told(*calls).endswith("(100%)")


def test_work_that_is_seen_going_on_has_one():
    assert told((0, 15), (15, 15)).startswith("15 of 15 lines read (100%), ")
    assert told((0, 15), (15, 15)).endswith(" a second")
