"""How long something takes, and waiting for what has to come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for it, and for that alone; after so long it will not come true any more."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "This did not come true in time."
        time.sleep(0.02)


def in_time(work: Callable[[], T], *, below: float, above: float = 0.0) -> T:
    """What ``work`` gave back, which took more than ``above`` and less than ``below`` seconds."""
    began = time.monotonic()
    found = work()
    took = time.monotonic() - began
    assert above < took < below, f"It took {took:.2f} seconds."
    return found
