"""What changed between two texts, word by word, for people who compare them side by side.

The texts come from outside. Sentences are matched first and words within what is left, and the work spent on words has
a limit: what lies beyond it is shown as replaced as a whole. Everything is escaped before it is marked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core.marking import marked, marks_of_hidden

# Scripts that put no space between words change sign by sign.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f"
_WORD = re.compile(rf"\s+|[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_SENTENCE = re.compile(r".+?(?:[.!?;:。！？]\s+|[。！？]|\n+|$)|\n+", re.DOTALL)

# Pairs of words that are looked at in all, which keeps the worst texts below a second.
MAX_PAIRS = 1_500_000
# Of a long stretch that both have, this much is shown beside what changed; and of a side no more than this.
CONTEXT, MAX_SHOWN = 160, 4_000
# The same where several comparisons stand below one another.
BRIEF_CONTEXT, BRIEF_SHOWN = 50, 700
# Two changes with less than this between them read better as one.
_BETWEEN = 4
# Below this share of common text, marks on single words would be confetti.
_ALIKE = 0.35


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one text: both have it, or it alone does."""

    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Difference:
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]

    @property
    def alike(self) -> bool:
        """Whether the two have so much in common that their differences say something."""
        common = sum(len(piece.text) for piece in self.before if not piece.changed)
        longest = max(_length(self.before), _length(self.after))
        return longest == 0 or common / longest >= _ALIKE


def _length(pieces: Iterable[Piece]) -> int:
    return sum(len(piece.text) for piece in pieces)


@dataclass(frozen=True, slots=True)
class _Step:
    """What stands in both, or what one has in the place of what the other has."""

    before: str
    after: str

    @property
    def common(self) -> bool:
        return self.before == self.after


@dataclass(slots=True)
class _Steps:
    steps: list[_Step] = field(default_factory=list)
    pairs_left: int = MAX_PAIRS

    def add(self, before: str, after: str) -> None:
        if before or after:
            self.steps.append(_Step(before, after))


def word_difference(before: str, after: str) -> Difference:
    found = _Steps()
    _compare(found, _SENTENCE.findall(before), _SENTENCE.findall(after), by_sentence=True)
    steps = [(step, step.common and not _between(found.steps, at)) for at, step in enumerate(found.steps)]
    return Difference(
        _pieces((step.before, common) for step, common in steps),
        _pieces((step.after, common) for step, common in steps),
    )


def _between(steps: Sequence[_Step], at: int) -> bool:
    """Whether this is a space or a little word that two rewritten stretches happen to share."""
    if len(steps[at].before.strip()) >= _BETWEEN or at in (0, len(steps) - 1):
        return False
    return not steps[at - 1].common and not steps[at + 1].common


def _pieces(parts: Iterable[tuple[str, bool]]) -> tuple[Piece, ...]:
    """Neighbours of a kind are one piece."""
    runs = ((common, "".join(text for text, _ in run)) for common, run in groupby(parts, key=itemgetter(1)))
    return tuple(Piece(text, not common) for common, text in runs if text)


def _compare(found: _Steps, before: Sequence[str], after: Sequence[str], *, by_sentence: bool) -> None:
    for kind, a0, a1, b0, b1 in _blocks(found, before, after):
        old, new = "".join(before[a0:a1]), "".join(after[b0:b1])
        if kind == "equal":
            found.add(old, old)
        elif by_sentence and old and new:
            _compare(found, _WORD.findall(old), _WORD.findall(new), by_sentence=False)
        else:
            found.add(old, new)


def _blocks(found: _Steps, before: Sequence[str], after: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if before == after:
        return [("equal", 0, len(before), 0, len(after))]
    start, end = _common_ends(before, after)
    a1, b1 = len(before) - end, len(after) - end
    pairs = (a1 - start) * (b1 - start)
    inner: Sequence[tuple[str, int, int, int, int]] = [("replace", start, a1, start, b1)]
    if pairs <= found.pairs_left:
        found.pairs_left -= pairs
        matcher = SequenceMatcher(None, before[start:a1], after[start:b1])
        inner = [(kind, *(at + start for at in places)) for kind, *places in matcher.get_opcodes()]  # type: ignore[misc]
    return [("equal", 0, start, 0, start), *inner, ("equal", a1, len(before), b1, len(after))]


def _common_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return start, end


# --- as a page shows it ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Shown:
    """Both sides, escaped and marked up. ``marked`` says whether single words are marked at all."""

    before: SafeString
    after: SafeString
    marked: bool


def difference_shown(before: str, after: str, *, brief: bool = False) -> Shown:
    difference = word_difference(before, after)
    most, context = (BRIEF_SHOWN, BRIEF_CONTEXT) if brief else (MAX_SHOWN, CONTEXT)
    if not difference.alike:
        left, right = (_side([Piece(text, False)], "", most, context) for text in (before, after))
        return Shown(left, right, marked=False)
    old, new = _side(difference.before, "del", most, context), _side(difference.after, "ins", most, context)
    return Shown(old, new, marked=before != after)


def _side(pieces: Sequence[Piece], tag: str, most: int, context: int) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in _parts(pieces, tag, most, context)))


def _parts(pieces: Sequence[Piece], tag: str, most: int, context: int) -> Iterator[SafeString]:
    left = most
    if len(pieces) == 1 and not pieces[0].changed:
        # Nothing to compare with: as much as there is room for.
        yield _shown(pieces[0].text[:most])
        left = most - len(pieces[0].text)
        if left < 0:
            yield _gap(-left)
        return
    for at, piece in enumerate(pieces):
        if left <= 0:
            yield _gap(_length(pieces[at:]))
            return
        if piece.changed:
            yield format_html("<{0}>{1}</{0}>", SafeString(tag), _shown(piece.text[:left]))
            left -= len(piece.text)
        else:
            shown = list(_stretch(piece.text, context, first=at == 0, last=at == len(pieces) - 1))
            yield from (part for part, _ in shown)
            left -= sum(length for _, length in shown)
        if left < 0:
            yield _gap(-left)


def _stretch(text: str, context: int, *, first: bool, last: bool) -> Iterator[tuple[SafeString, int]]:
    """What both have, without the middle of what is long, and with the characters that it takes."""
    before, after = (0 if first else context), (0 if last else context)
    if len(text) <= before + after + context:
        yield _shown(text), len(text)
        return
    yield _shown(text[:before]), before
    yield _gap(len(text) - before - after), 0
    yield _shown(text[len(text) - after :]), after


def _gap(length: int) -> SafeString:
    return format_html('<span class="gap">… {} more characters …</span>', f"{length:,}")


def _shown(text: str) -> SafeString:
    return marked(text, marks_of_hidden(text))
