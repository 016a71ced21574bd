"""How long something takes, on a machine that may be busy with other things as well."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for it, and for that alone; after so long it will not come true any more."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "This did not come true in time."
        time.sleep(0.02)


def in_time(work: Callable[[], T], *, below: float, above: float = 0.0, tries: int = 3) -> T:
    """What ``work`` gave back when it took less than so many seconds, and never less than ``above``.

    What waits too long by itself does so at every try, and what a busy machine holds up does not.
    """
    took: list[float] = []
    while len(took) < tries:
        began = time.monotonic()
        found = work()
        took.append(time.monotonic() - began)
        assert took[-1] > above
        if took[-1] < below:
            return found
    raise AssertionError(f"At best it took {min(took):.2f} seconds, and it should take less than {below}.")
