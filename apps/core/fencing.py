"""Text from outside inside what a language model reads: data that cannot pass for anything else.

It stands between two markers that carry a random number of this call, so that no text can forge the end of it, and
what is special to models' own templates is defused.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Final

from apps.core.screening import folding

_MARKER: Final = re.compile(r"(?<!<)<{2,}+(?=\s{0,80}(?:BEGIN|END)\b)", re.IGNORECASE)
# What servers of models take for the end of a message or the beginning of another when they meet it in a text.
_TEMPLATE: Final = re.compile(
    r"<(?=[|｜])|(?<=[|｜])>|<(?=/?(?:s|bos|eos|pad|unk|(?:start|end)_of_turn|think|im_start|im_end)>)"
    r"|<(?=</?SYS>)|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)
_TAGS: Final = re.compile(f"[{folding.TAGS}]+")
_LINE: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def new_nonce(texts: Iterable[str]) -> str:
    """A random number that none of the texts holds."""
    texts = tuple(texts)
    while True:
        nonce = secrets.token_hex(8)
        if not any(nonce in text for text in texts):
            return nonce


def fenced(text: str, nonce: str) -> str:
    """``text`` between its markers."""
    return f"<<<BEGIN {nonce}>>>\n{defused(text)}\n<<<END {nonce}>>>"


def defused(text: str) -> str:
    """``text`` with a space inside everything that looks like a marker of ours or of a model's template.

    Tag characters go: models read them, and no person who looks at the material sees them.
    """
    text = _TAGS.sub("", text)
    return _TEMPLATE.sub(lambda found: f" {found[0]} ", _MARKER.sub(lambda found: " ".join(found[0]), text))


def barred(text: str) -> str:
    """Every line of ``text`` behind a bar, so that none can pass for a line of ours inside the same fence."""
    return "".join(f"| {line}\n" for line in _LINE.split(defused(text)))
