"""Answers in the words of the memories themselves, and how minds were changed, from a chain's own texts and dates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.utils.formats import date_format

from apps.answers.sentences import CHANGED, QUOTED, Sentence, source_of
from apps.retrieval.contents import Contents, contents_of
from apps.retrieval.likeness import say_the_same

# Of a longer memory, the passage that has most to do with the question.
MAX_QUOTE: Final = 700
QUOTED_AT_MOST: Final = 5
# Of 24 questions about 44 statements all have a cosine of 0.35 with the right one, by the local model; of 20 about
# something else none has more than 0.30 with any. Or so much of the question, weighed by how rare its words are.
NEAR: Final = 0.35
COVERED: Final = 0.5
NAMED: Final = 0.5
# Of the score of the best: what is far below it only fills the answer up.
TAIL: Final = 0.6
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|\n+|(?<=[。！？])")
_READ: Final = 20_000


def quoted(question: str, results: Sequence[dict[str, Any]]) -> list[Sentence]:
    """The best results that answer, each as a sentence; where it replaced another, with what held before.

    What amends another of them is told with that one. None is said twice.
    """
    chosen = quotable(results)
    amending = {each["id"] for result in chosen for each in result["amended_by"]}
    said: list[Contents] = []
    told: set[str] = set()
    sentences: list[Sentence] = []
    for result in sorted(chosen, key=lambda result: result["id"] in amending):
        contents = contents_of(result["content"])
        if result["id"] not in told and not any(say_the_same(contents, earlier) for earlier in said):
            said.append(contents)
            told.add(result["id"])
            sentences += _quoted(question, result, {each["id"]: each for each in chosen}, told)
    return sentences


def quotable(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of the best those that have enough to do with the question, and not far less than the first of them.

    A search shows what is nearest; what is quoted reads as an answer.
    """
    chosen = [result for result in results[:QUOTED_AT_MOST] if _answers(result)]
    best = max((result["score"] for result in chosen), default=0.0)
    return [result for result in chosen if result["score"] >= TAIL * best]


def _answers(result: dict[str, Any]) -> bool:
    scores = result["scores"]
    return (
        max(scores.get("vector", 0.0), scores.get("replaced", 0.0)) >= NEAR
        or scores.get("coverage", 0.0) >= COVERED
        or scores.get("identifier", 0.0) >= NAMED
    )


def _quoted(
    question: str, result: dict[str, Any], chosen: Mapping[str, dict[str, Any]], told: set[str]
) -> Iterator[Sentence]:
    changes = changes_of(question, result)
    yield from changes
    if not changes:
        yield Sentence(passage_of(result["content"], question), (source_of(result),), QUOTED)
    yield from _amendments(question, result, chosen, told)


def _amendments(
    question: str, result: dict[str, Any], chosen: Mapping[str, dict[str, Any]], told: set[str]
) -> Iterator[Sentence]:
    for each in result["amended_by"]:
        if each["id"] in told:
            continue
        told.add(each["id"])
        how = "In part it is replaced:" if each["kind"] == "partial" else "It is amended:"
        # What amends it may be served, or it would not be there; whether it is disputed, its own page says.
        known = chosen.get(each["id"], {"status": "active"})
        source = source_of({**each, "status": known["status"]})
        yield Sentence(passage_of(each["content"], question), (source,), QUOTED, how)
        if each["id"] in chosen:
            yield from _amendments(question, chosen[each["id"]], chosen, told)


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
