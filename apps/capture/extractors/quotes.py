"""Whether a passage stands in the material, whatever its case, spacing and typography, and which passage supports a
statement that came without one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_QUOTE: Final = 500
NOT_THERE: Final = "Its quote is not in the material."
NONE_GIVEN: Final = "It came without a quote from the material."

# Of the words of a statement, so many must stand in one passage for it to count as its support.
ENOUGH: Final = 0.5

_STRAIGHT: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛´′", "'"),
        **dict.fromkeys("“”„‟«»″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("*`>\u00ad\u200b\u200c\u200d\u2060\ufeff"),
    }
)
# In bytes: less of it, such as a single word, supports nothing.
_SHORTEST: Final = 8
_LONGEST: Final = 2_000  # of a quote, only so much is looked for
_EDGES: Final = " \"'.,;:!?…-"
_ELLIPSIS: Final = re.compile(r"\s*(?:\[\s*(?:\.\.\.|…)\s*\]|\(\s*(?:\.\.\.|…)\s*\)|\.\.\.|…)\s*")
_PASSAGE: Final = re.compile(r"[^\n]+")
_SENTENCE: Final = re.compile(
    r".{1,400}?(?:[.!?…。！？][\"'”’»)」』]*(?=\s|$|(?<=[。！？」』]))|$)|.{1,400}", re.DOTALL
)
_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD: Final = re.compile(rf"[{_CJK}]|[^\W{_CJK}]{{3,}}")
_STEM: Final = 6


class Passages:
    """One part of the material, in the form in which passages are compared."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._split: list[tuple[str, frozenset[str]]] | None = None
        self._folded, self._places = _folded(text)

    def find(self, quote: str) -> str:
        """The passage that ``quote`` repeats, as the material has it; empty where it is not there.

        Where the quote leaves something out (``…``), each piece must follow the one before, and the longest is given.
        """
        pieces = [
            piece for piece in (_folded(piece)[0].strip(_EDGES) for piece in _ELLIPSIS.split(quote[:_LONGEST])) if piece
        ]
        if len("".join(pieces).encode()) < min(_SHORTEST, len(self._folded)):
            return ""
        found: list[str] = []
        position = 0
        for wanted in pieces:
            position = self._folded.find(wanted, position)
            if position < 0:
                return ""
            end = position + len(wanted)
            found.append(self._text[self._places[position] : self._places[end - 1] + 1])
            position = end
        return shortened(max(found, key=len, default=""))

    def holds(self, word: str) -> bool:
        """Whether ``word`` stands there with no other word or digit touching it."""
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self._text, re.IGNORECASE) is not None

    def supporting(self, statement: str) -> str:
        """The sentence that shares most words with ``statement``; empty where none shares enough."""
        wanted = _words(statement)
        best, share = "", 0.0
        for sentence, words in self._sentences():
            common = len(wanted & words) / len(wanted) if wanted else 0.0
            if common > share:
                best, share = sentence, common
        return shortened(best.strip()) if share >= ENOUGH else ""

    def _sentences(self) -> list[tuple[str, frozenset[str]]]:
        if self._split is None:
            found = (sentence for line in _PASSAGE.finditer(self._text) for sentence in _SENTENCE.findall(line[0]))
            self._split = [(sentence, _words(sentence)) for sentence in found]
        return self._split


def shortened(quote: str) -> str:
    """At most ``MAX_QUOTE`` characters, cut between words where there are any."""
    if len(quote) <= MAX_QUOTE:
        return quote
    cut = quote.rfind(" ", MAX_QUOTE // 2, MAX_QUOTE)
    return quote[: cut if cut > 0 else MAX_QUOTE]


def _folded(text: str) -> tuple[str, list[int]]:
    """``text`` without differences that do not matter, and for each of its characters where it came from."""
    folded: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            same = " " if folded and folded[-1] != " " else ""
        elif character.isascii():
            same = character.lower().translate(_STRAIGHT)
        else:
            same = unicodedata.normalize("NFKD", character.translate(_STRAIGHT)).casefold()
        folded.extend(same)
        places.extend([place] * len(same))
    return "".join(folded), places


def _words(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()))
