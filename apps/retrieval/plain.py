"""A text for whoever reads it as it is: without characters that nobody sees and that change how the rest looks."""

from __future__ import annotations

import re
from typing import Final

from apps.core.screening import folding

_LINE_BREAK: Final = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
# Joiners stay, since scripts need them; so do tabs and line breaks.
_UNSEEN: Final = re.compile(
    f"[\x00-\x08\x0b-\x1f\u200b\u2060\u2065\ufeff"
    f"{folding.BIDI}{folding.TAGS}{folding.FORMAT_CONTROLS}{folding.INVISIBLE_OPERATORS}{folding.CONTROLS}]"
)


def plain(text: str) -> str:
    """``text`` without bidirectional overrides, control characters, tags and the like."""
    return _UNSEEN.sub("", _LINE_BREAK.sub("\n", text))
