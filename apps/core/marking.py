"""Text as a reviewer must see it: what hides in it made visible, what talks to its reader set apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core.screening import HIDDEN_CHARACTERS, INSTRUCTIONS, hidden_characters

_INSTRUCTION_TITLE = "This passage speaks to whoever reads it. It decides nothing."


@dataclass(frozen=True, slots=True)
class Mark:
    """A stretch of a text. A hidden one is replaced by ``shown``; an instruction stays as it is."""

    kind: str
    start: int
    end: int
    shown: str


def marks_of_flags(flags: Iterable[Mapping[str, Any]], *, field: str) -> list[Mark]:
    """The marks that the flags of a candidate put on one of its fields."""
    return [
        Mark(flag["kind"], flag["start"], flag["end"], flag["shown"])
        for flag in flags
        if flag["kind"] in (HIDDEN_CHARACTERS, INSTRUCTIONS) and flag["field"] == field
    ]


def marks_of_hidden(text: str) -> list[Mark]:
    return [Mark(HIDDEN_CHARACTERS, span.start, span.end, span.shown) for span in hidden_characters(text)]


def marked(text: str, marks: Iterable[Mark]) -> SafeString:
    """``text`` escaped, with its marks as ``<mark>``. Marks that do not fit the text are left out."""
    rows = sorted((mark for mark in marks if 0 <= mark.start < mark.end <= len(text)), key=lambda mark: mark.start)
    hidden = [mark for mark in rows if mark.kind == HIDDEN_CHARACTERS]
    instructions = list(_apart(mark for mark in rows if mark.kind == INSTRUCTIONS))
    return _join(_pieces(text, hidden, instructions))


def _apart(marks: Iterable[Mark]) -> Iterator[Mark]:
    """The first of those that overlap is enough to draw the eye."""
    end = 0
    for mark in marks:
        if mark.start >= end:
            yield mark
            end = mark.end


def _pieces(text: str, hidden: list[Mark], instructions: list[Mark]) -> Iterator[SafeString]:
    at = 0
    for mark in instructions:
        yield _with_hidden(text, hidden, at, mark.start)
        inside = _with_hidden(text, hidden, mark.start, mark.end)
        yield format_html('<mark class="speaks" title="{}">{}</mark>', _INSTRUCTION_TITLE, inside)
        at = mark.end
    yield _with_hidden(text, hidden, at, len(text))


def _with_hidden(text: str, hidden: list[Mark], start: int, end: int) -> SafeString:
    pieces: list[SafeString] = []
    at = start
    for mark in hidden:
        if mark.start < at or mark.end > end:
            continue
        pieces.append(format_html("{}", text[at : mark.start]))
        # The characters themselves are left out: some of them turn the text around them.
        pieces.append(format_html('<mark class="hidden">{}</mark>', mark.shown))
        at = mark.end
    pieces.append(format_html("{}", text[at:end]))
    return _join(pieces)


def _join(pieces: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((piece,) for piece in pieces))
