"""Stretches of a text, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# More than a reviewer would look at; a hostile text could otherwise fill a row with its flags.
MAX_SPANS: Final = 100
EXCERPT: Final = 120


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open interval that a reviewer should see, with a printable rendering of it."""

    kind: str
    start: int
    end: int
    shown: str


def line_and_column(value: str, index: int) -> tuple[int, int]:
    """Both counted from one, as editors do."""
    return value.count("\n", 0, index) + 1, index - value.rfind("\n", 0, index)
