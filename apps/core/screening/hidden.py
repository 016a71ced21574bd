"""Characters that are in a text but not to be seen in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from apps.core.screening import folding
from apps.core.screening.spans import EXCERPT, MAX_SPANS, Span

_KIND_CHARACTERS: Final = {
    "zero-width": folding.ZERO_WIDTH,
    "soft-hyphen": folding.SOFT_HYPHEN,
    "bidi": folding.BIDI,
    "tag": folding.TAGS,
    "variation-selector": folding.VARIATION_SELECTORS,
    "invisible-operator": folding.INVISIBLE_OPERATORS,
    "filler": folding.FILLERS,
    "private-use": folding.PRIVATE_USE,
    "format": folding.FORMAT_CONTROLS,
    "control": folding.CONTROLS,
}
_KINDS: Final = tuple(_KIND_CHARACTERS)
_RUN_OF_ONE_KIND: Final = re.compile("|".join(f"([{chars}]+)" for chars in _KIND_CHARACTERS.values()))
_EMOJI: Final = re.compile(
    "[#*0-9\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf"
    "\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_PICTURE: Final = re.compile("[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]")
_JOINING: Final = re.compile(  # Arabic, Syriac, N'Ko, Indic, Tibetan, Mongolian and their extensions
    "[\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af\ua840-\ua8ff\ua980-\ua9df"
    "\ufb50-\ufdff\ufe70-\ufefc\U00011000-\U000116cf]"
)
_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf]")
_RIGHT_TO_LEFT: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_IDEOGRAPH: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_VARIED: Final = re.compile(  # letters and signs that have standardised variation sequences
    "[0\u1000-\u109f\u1820-\u18aa\u2200-\u22ff\u2a00-\u2aff\u3001\u3002\uff01-\uff1f\ua840-\ua87f]"
)
_BRAILLE: Final = re.compile("[\u2801-\u28ff]")
_JAMO: Final = re.compile("[\u1100-\u11ff]")
_FLAGS: Final = frozenset(f"{nation}\x7f" for nation in ("gbeng", "gbsct", "gbwls"))


def hidden_characters(value: str) -> list[Span]:
    """Characters that are in the text but not to be seen in it, apart from those its script or an emoji needs.

    Neighbours of one kind make one span. At most ``MAX_SPANS`` spans are returned, the first ones.
    """
    if value.isascii() and "\x7f" not in value:
        return []
    spans: list[Span] = []
    for found in _runs_of_one_kind(value):
        kind, (start, end) = _KINDS[(found.lastindex or 1) - 1], found.span()
        if _belongs(kind, found[0], value[start - 1 : start], value[end : end + 1]):
            continue
        spans.append(Span(kind, start, end, _rendered(kind, found[0])))
        if len(spans) == MAX_SPANS:
            break
    return spans


def _runs_of_one_kind(value: str) -> Iterator[re.Match[str]]:
    for run in folding.HIDDEN_RUN.finditer(value):
        yield from _RUN_OF_ONE_KIND.finditer(value, run.start(), run.end())


def _belongs(kind: str, run: str, left: str, right: str) -> bool:
    """Whether an emoji or the script of its neighbours needs this run of one kind of hidden characters."""
    if kind == "tag":
        return left == "\U0001f3f4" and spelled_by_tags(run, with_end=True) in _FLAGS
    if kind == "filler" and set(run) == {"\u2800"}:
        return bool(_BRAILLE.match(left) or _BRAILLE.match(right))
    if len(run) > 1:
        return False
    match kind:
        case "zero-width" if run == "\u200d":
            return bool(_PICTURE.match(left) and _PICTURE.match(right)) or _both(_JOINING, left, right)
        case "zero-width" if run == "\u200c":
            return _both(_JOINING, left, right)
        case "zero-width" if run == "\u200b":
            return _both(_UNSPACED, left, right)
        case "bidi" if run in "\u061c\u200e\u200f":
            return bool(_RIGHT_TO_LEFT.match(left) or _RIGHT_TO_LEFT.match(right))
        case "variation-selector" if run in "\ufe0e\ufe0f":
            return bool(_EMOJI.match(left)) and (not left.isascii() or right == "\u20e3")
        case "variation-selector" if run > "\ufe0f":
            return bool(_IDEOGRAPH.match(left))
        case "variation-selector":
            return bool(_VARIED.match(left) or _IDEOGRAPH.match(left))
        case "filler" if run in "\u115f\u1160":
            return bool(_JAMO.match(left) or _JAMO.match(right))
    return False


def _both(pattern: re.Pattern[str], left: str, right: str) -> bool:
    return bool(pattern.match(left) and pattern.match(right))


def spelled_by_tags(run: str, *, with_end: bool = False) -> str:
    """The ASCII text that tag characters spell without showing it."""
    last = 0x7F if with_end else 0x7E
    return "".join(chr(code) for code in (ord(c) - 0xE0000 for c in run) if 0x20 <= code <= last)


def _rendered(kind: str, run: str) -> str:
    first = f"U+{ord(run[0]):04X} {unicodedata.name(run[0], kind.replace('-', ' ').upper())}"
    if len(run) == 1:
        return f"[{first}]"
    if kind == "tag" and (spelled := spelled_by_tags(run[:EXCERPT])):
        return f'[{len(run)} tag characters spelling "{spelled}"]'
    return f"[{first} and {len(run) - 1:,} more]"
