"""Answers in the words of the memories themselves, and how minds were changed, from a chain's own texts and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.formats import date_format

from apps.answers.sentences import CHANGED, QUOTED, Sentence, source_of
from apps.retrieval.contents import Contents, contents_of
from apps.retrieval.likeness import say_the_same

# Of a longer memory, the passage that has most to do with the question.
MAX_QUOTE: Final = 700
QUOTED_AT_MOST: Final = 5
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|\n+|(?<=[。！？])")
_READ: Final = 20_000


def quoted(question: str, results: Sequence[dict[str, Any]]) -> list[Sentence]:
    """The best results, each as a sentence; where it replaced another, with what held before. None is said twice."""
    said: list[Contents] = []
    sentences: list[Sentence] = []
    for result in results[:QUOTED_AT_MOST]:
        contents = contents_of(result["content"])
        if not any(say_the_same(contents, earlier) for earlier in said):
            said.append(contents)
            sentences += _quoted(question, result)
    return sentences


def _quoted(question: str, result: dict[str, Any]) -> Iterator[Sentence]:
    changes = changes_of(question, result)
    yield from changes
    if not changes:
        yield Sentence(passage_of(result["content"], question), (source_of(result),), QUOTED)
    for each in result["amended_by"]:
        how = "In part it is replaced:" if each["kind"] == "partial" else "It is amended:"
        # What amends it may be served, or it would not be there; whether it is disputed, its own page says.
        source = source_of({**each, "status": "active"})
        yield Sentence(passage_of(each["content"], question), (source,), QUOTED, how)


def changes_of(question: str, result: dict[str, Any]) -> list[Sentence]:
    """What held until when, and what does since; empty where nothing was replaced, or no chain was asked for."""
    before = [entry for entry in result.get("chain", ()) if entry["status"] == "superseded" and _ever_held(entry)]
    if not before:
        return []
    said = [_sentence(question, entry, f"{_while(entry)} it was:") for entry in before]
    return [*said, _sentence(question, result, f"Since {_day(result['valid_from'] or result['recorded_at'])} it is:")]


def _sentence(question: str, entry: dict[str, Any], said_before: str) -> Sentence:
    return Sentence(passage_of(entry["content"], question), (source_of(entry),), CHANGED, said_before)


def _ever_held(entry: dict[str, Any]) -> bool:
    """What was replaced before it began was never in force."""
    since, until = entry["valid_from"], entry["valid_to"]
    return not (since and until) or datetime.fromisoformat(since) < datetime.fromisoformat(until)


def _while(entry: dict[str, Any]) -> str:
    until, since = entry["valid_to"], entry["valid_from"]
    if not until:
        return "Before that"
    return f"From {_day(since)} until {_day(until)}" if since else f"Until {_day(until)}"


def _day(moment: str) -> str:
    return date_format(datetime.fromisoformat(moment).astimezone(UTC), "j F Y")


def passage_of(content: str, question: str) -> str:
    """``content`` whole, or as much of it in one piece as may be quoted, where it has most to do with ``question``."""
    if len(content) <= MAX_QUOTE:
        return content
    pieces = [piece.strip()[:MAX_QUOTE] for piece in _SENTENCE_END.split(content[:_READ]) if piece.strip()]
    asked = contents_of(question[:_READ]).words
    shared = [contents_of(piece).words & asked for piece in pieces]
    best = max((_window(pieces, start) for start in range(len(pieces))), key=lambda window: _worth(shared, *window))
    first, last = best
    before, after = "… " if first else "", " …" if last < len(pieces) or len(content) > _READ else ""
    return f"{before}{' '.join(pieces[first:last])}{after}"


def _window(pieces: Sequence[str], start: int) -> tuple[int, int]:
    """As many pieces from ``start`` on as fit."""
    length = 0
    for end in range(start, len(pieces)):
        length += len(pieces[end]) + 1
        if length > MAX_QUOTE + 1:
            return start, max(end, start + 1)
    return start, len(pieces)


def _worth(shared: Sequence[frozenset[str]], first: int, last: int) -> tuple[int, int]:
    """How many words of the question it holds; of equals the first."""
    return len(frozenset().union(*shared[first:last])), -first
