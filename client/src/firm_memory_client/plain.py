"""Text that other people wrote, made harmless for a terminal: it is shown, and does nothing."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Control characters of both sets but tab and line feed, half characters, and what turns the direction of writing.
_SPECIAL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_JOINERS: Final = "\u200c\u200d"


def plain(text: str) -> str:
    """``text`` with everything that a terminal would obey, or that hides, spelt out: ``\\x1b``, ``\\u202e``.

    Line feeds and tabs stay. Joiners between letters and in emoji stay, since scripts need them.
    """
    return _SPECIAL.sub(_spelt, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """``plain``, and on one line."""
    return " ".join(plain(text).split())


def barred(text: str, bar: str = "│ ") -> str:
    """``plain`` with a bar before each line, so that no line of it can pass for one of ours."""
    return "\n".join(f"{bar}{line}" for line in plain(text).split("\n"))


def _spelt(found: re.Match[str]) -> str:
    character = found[0]
    if character in _JOINERS and _joins(found):
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _joins(found: re.Match[str]) -> bool:
    """Between two characters of which none is ASCII: Persian, Indic scripts, families of emoji."""
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    sides = (before, after)
    return all(side and not side.isascii() and unicodedata.category(side)[0] in "LMS" for side in sides)
