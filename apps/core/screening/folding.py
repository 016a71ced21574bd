"""Views of a text for matching, with a way back to the positions of the original.

A secret or an instruction can be split by a zero-width space, written in full-width letters or wrapped over
two lines. Patterns run over a folded view; what they find is reported, shown and masked in the original.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# Everything that takes part in a text without being seen in it. The classes are named in text.py.
TAGS: Final = "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
ZERO_WIDTH: Final = "\u034f\u180e\u200b-\u200d\u2060\u2065\ufeff\ufff0-\ufff8"
SOFT_HYPHEN: Final = "\u00ad"
VARIATION_SELECTORS: Final = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
INVISIBLE_OPERATORS: Final = "\u2061-\u2064"
FORMAT_CONTROLS: Final = "\u206a-\u206f\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
FILLERS: Final = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
PRIVATE_USE: Final = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
CONTROLS: Final = "\u007f-\u0084\u0086-\u009f"
HIDDEN: Final = "".join(
    (
        *(TAGS, BIDI, ZERO_WIDTH, SOFT_HYPHEN, VARIATION_SELECTORS, INVISIBLE_OPERATORS),
        *(FORMAT_CONTROLS, FILLERS, PRIVATE_USE, CONTROLS),
    )
)

_WIDE_RANGES: Final = ((0x2070, 0x209F), (0x2100, 0x214F), (0x2460, 0x24FF), (0x1D400, 0x1D7FF), (0xFF01, 0xFF5E))
_PLAIN: Final = {
    **dict.fromkeys(
        "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
    ),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033\u300c\u300d", '"'),
    **dict.fromkeys("\u2010\u2011\u2212\ufe63", "-"),
    "\u2236": ":",
    "\u0130": "I",  # the one letter whose lower case is two characters long
}


def _wide_letters() -> dict[str, str]:
    """Full-width, mathematical and enclosed letters; those that stand for no single ASCII character for themselves."""
    found = {}
    for first, last in _WIDE_RANGES:
        for character in map(chr, range(first, last + 1)):
            plain = unicodedata.normalize("NFKC", character)
            found[character] = plain if len(plain) == 1 and plain.isascii() else character
    return found


# Entities of escaped HTML, apart from those that name a character by its number.
_ENTITIES: Final = {
    **{"quot": '"', "apos": "'", "lt": "<", "gt": ">", "nbsp": " ", "amp": "&", "equals": "=", "colon": ":"},
    **{"commat": "@", "period": ".", "num": "#", "excl": "!", "dollar": "$", "percnt": "%", "ast": "*", "plus": "+"},
    **{"comma": ",", "hyphen": "-", "dash": "-", "sol": "/", "bsol": "\\", "semi": ";", "quest": "?", "lowbar": "_"},
    **{"grave": "`", "Hat": "^", "lpar": "(", "rpar": ")", "lsqb": "[", "rsqb": "]", "lcub": "{", "rcub": "}"},
    **{"verbar": "|", "vert": "|", "Tab": " ", "NewLine": "\n"},
}
_REPLACEMENTS: Final[dict[str, str]] = {**_wide_letters(), **_PLAIN}
# One set made of ranges, without alternatives: searching for that is thirty times as fast.
_WIDE: Final = "".join(f"{chr(first)}-{chr(last)}" for first, last in _WIDE_RANGES)
_SPECIAL: Final = re.compile(f"[{HIDDEN}{_WIDE}{''.join(_PLAIN)}]")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_ENTITY: Final = re.compile(rf"&(?:({'|'.join(_ENTITIES)})|#0{{0,6}}(\d{{1,3}})|#[xX]0{{0,6}}([0-9A-Fa-f]{{2}}));")
# As URLs and forms write a character, and strings of programs.
_ESCAPE: Final = re.compile(r"%([2-7][0-9A-Fa-f])|\\u00([2-7][0-9A-Fa-f])|\\x([2-7][0-9A-Fa-f])")
# An ampersand that was escaped begins an entity, and a percent sign an escape.
_LAYERS: Final = 2
HIDDEN_RUN: Final = re.compile(f"[{HIDDEN}]+")

_LONG_RUN: Final = re.compile(r"(?<!\S)\S{15,}")
_LINE_BREAK: Final = re.compile(r"[ \t]{0,3}\r?\n[ \t]{0,24}(?:[>|#*+][ \t]{0,3}){0,3}")
_RUNS_OVER_LINES: Final = re.compile(rf"(?<!\S)\S{{2,}}+(?:{_LINE_BREAK.pattern}\S{{2,}}+){{1,200}}")
_CONTINUATION: Final = re.compile(r"[\\=]?" + _LINE_BREAK.pattern)
# Between two pieces of one string: quotes that are joined, tags that break a line, a hyphen at its end.
JOINT: Final = re.compile(
    r"(?:[\"'](?<=\w[\"'])[ \t]{0,8}(?:[+.&][ \t]{0,8}(?:\\?\r?\n[ \t]{0,40})?|\\?\r?\n[ \t]{0,40}(?:[+.&][ \t]{0,8})?)"
    r"[\"']|<(?:wbr|br)[ \t]?/?>\s?|-(?<=\w-)\r?\n[ \t]{0,40})(?=\w)"
)
_SHORTEST_WRAPPED: Final = 24


@dataclass(frozen=True, slots=True)
class Folded:
    """A rewritten text and where its pieces came from. Without pieces it is the original itself."""

    text: str
    anchors: list[int] = field(default_factory=list)  # where pieces begin in ``text``
    origins: list[int] = field(default_factory=list)  # where they began in the text under it
    ends: dict[int, int] = field(default_factory=dict)  # where a character ended that was written with several
    under: Folded | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The original's half-open interval behind a non-empty interval of the rewritten text."""
        if self.anchors:
            start, end = self._origin(start), self.ends.get(end - 1) or self._origin(end - 1) + 1
        return self.under.span(start, end) if self.under else (start, end)

    def _origin(self, index: int) -> int:
        piece = bisect_right(self.anchors, index) - 1
        return self.origins[piece] + index - self.anchors[piece]


class _Piece(NamedTuple):
    """What stands in a rewritten text, and where it stood."""

    start: int
    end: int
    text: str


def _assembled(pieces: Iterable[_Piece], under: Folded | None = None, separator: str = "") -> Folded:
    texts: list[str] = []
    anchors: list[int] = []
    origins: list[int] = []
    ends: dict[int, int] = {}
    length = 0
    for piece in pieces:
        if piece.text:
            texts.append(piece.text)
            anchors.append(length)
            origins.append(piece.start)
            if len(piece.text) == 1 and piece.end - piece.start > 1:
                ends[length] = piece.end
            length += len(piece.text) + len(separator)
    return Folded(separator.join(texts), anchors, origins, ends, under)


def _replaced(
    text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], begin: int = 0, end: int | None = None
) -> Iterator[_Piece]:
    position, end = begin, len(text) if end is None else end
    for match in pattern.finditer(text, begin, end):
        yield _Piece(position, match.start(), text[position : match.start()])
        yield _Piece(*match.span(), replace(match))
        position = match.end()
    yield _Piece(position, end, text[position:end])


def rewrite(under: Folded, pattern: re.Pattern[str], replace: Callable[[str], str]) -> Folded:
    """Every match replaced by at most one character."""
    return _rewritten(under, pattern, lambda match: replace(match[0]))


def _rewritten(under: Folded, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]) -> Folded:
    """Every match replaced by at most one character, or left as it is."""
    return _assembled(_replaced(under.text, pattern, replace), under=under)


def fold(text: str) -> Folded:
    """Hidden characters and terminal colours removed, other forms of ASCII characters made plain."""
    view = Folded(text)
    if not text.isascii() or "\x7f" in text:
        view = rewrite(view, _SPECIAL, lambda found: _REPLACEMENTS.get(found, ""))
    if "\x1b" in text:
        view = rewrite(view, _COLOURS, lambda _: "")
    for _ in range(_LAYERS):
        if "&" not in view.text or not _ENTITY.search(view.text):
            break
        view = _rewritten(view, _ENTITY, _of_entity)
    return view


def _of_entity(found: re.Match[str]) -> str:
    name, decimal, hexadecimal = found.groups()
    if name:
        return _ENTITIES[name]
    return _printable(int(decimal) if decimal else int(hexadecimal, 16)) or found[0]


def _printable(number: int) -> str:
    """The ASCII character of this number; blank for a control, and for what is no ASCII."""
    return " " if number in (9, 160) else chr(number) if 32 <= number < 127 or number == 10 else ""


def unescaped_lines(text: str) -> Folded:
    """Only the lines that hold characters in an escape of URLs or strings, with these in plain, one a line."""
    view = _assembled(_lines_with(text, _ESCAPE), separator="\n")
    for _ in range(_LAYERS):
        if not _ESCAPE.search(view.text):
            break
        view = _rewritten(view, _ESCAPE, lambda found: chr(int(found[1] or found[2] or found[3], 16)))
    return view


def _lines_with(text: str, pattern: re.Pattern[str]) -> Iterator[_Piece]:
    end = -1
    for match in pattern.finditer(text):
        if match.start() > end:
            begin = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            end = len(text) if end < 0 else end
            yield _Piece(begin, end, text[begin:end])


def long_runs(text: str) -> Folded:
    """Only the runs of visible characters that are too long for a word, one a line."""
    return _assembled((_Piece(*run.span(), run[0]) for run in _LONG_RUN.finditer(text)), separator="\n")


def joined(text: str) -> Folded:
    """The text without its joints."""
    return _assembled(_replaced(text, JOINT, lambda _: ""))


def wrapped_runs(text: str) -> Folded:
    """Runs that go on over line breaks, without these, one a line. Ordinary words at the ends of lines are left out."""
    pieces: list[_Piece] = []
    for run in _RUNS_OVER_LINES.finditer(text):
        if len(run[0]) >= _SHORTEST_WRAPPED and any(character.isdecimal() for character in run[0]):
            pieces.extend(_replaced(text, _CONTINUATION, lambda _: "", *run.span()))
            pieces.append(_Piece(run.end(), run.end(), "\n"))
    return _assembled(pieces)
