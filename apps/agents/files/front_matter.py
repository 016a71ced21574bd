"""The head of a file: simple ``key: value`` lines, read without YAML's machinery.

Tools write values there that YAML refuses (``globs: **/*.ts``), and nothing from outside is handed to a parser that
knows anchors and types. Lists are read in both spellings; everything is text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_FENCE: Final = re.compile(r"---[ \t]*")
# Of lines without spaces at their end: to look for these from each place in a line takes its length squared.
_PAIR: Final = re.compile(r"(?P<key>[A-Za-z][\w -]{0,40}?)[ \t]*:(?:[ \t]+(?P<value>.*))?")
_ITEM: Final = re.compile(r"[ \t]*-(?:[ \t]+(?P<value>.*))?")
MAX_LINES: Final = 100


@dataclass(frozen=True, slots=True)
class Head:
    """``lines`` is how many lines of the file the head takes; keys are in lower case with dashes for spaces and _."""

    values: dict[str, list[str]] = field(default_factory=dict)
    lines: int = 0

    def first(self, *names: str) -> str:
        return next((value for name in names for value in self.values.get(name, ()) if value), "")

    def every(self, *names: str) -> list[str]:
        return [value for name in names for value in self.values.get(name, ()) if value]


def head_of(lines: list[str]) -> Head:
    """The front matter between ``---`` lines; an empty head where the file begins otherwise, or it never ends."""
    if not lines or not _FENCE.fullmatch(lines[0]):
        return Head()
    for at, line in enumerate(lines[1:MAX_LINES], start=1):
        if _FENCE.fullmatch(line) or line.strip() == "...":
            return Head(_pairs(lines[1:at]), at + 1)
    return Head()


def headers_of(lines: list[str]) -> Head:
    """Header lines as in a PEP or a mail: ``Status: Accepted``, until the first blank line. At least two of them."""
    taken: list[str] = []
    for line in lines[:MAX_LINES]:
        if not line.strip():
            break
        if not _PAIR.fullmatch(line.rstrip(" \t")) and not (taken and line[:1] in " \t"):
            return Head()
        taken.append(line)
    values = _pairs(taken)
    return Head(values, len(taken)) if len(values) > 1 and "status" in values else Head()


def _pairs(lines: list[str]) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    key = ""
    for line in (line.rstrip(" \t") for line in lines):
        if (item := _ITEM.fullmatch(line)) and key:
            values[key].append(_plain(item["value"] or ""))
        elif pair := _PAIR.fullmatch(line):
            key = re.sub(r"[ _]+", "-", pair["key"].strip().lower())
            values[key] = _listed(pair["value"] or "")
    return values


def _listed(value: str) -> list[str]:
    if value.startswith("[") and value.endswith("]"):
        return [_plain(each) for each in value[1:-1].split(",") if each.strip()]
    return [_plain(value)] if value else []


def _plain(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return value.strip()
