"""Half characters in what an agent sends.

Clients cut texts in the middle of an emoji and send the half of it as JSON allows, and the SDK's parser refuses the
whole message for it: over HTTP with an answer that ends the turn, over stdio with none at all. So the message is given
to the SDK with a replacement character in that place, and over HTTP the tool itself sees what was sent.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import IO, Any, Final

_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_HALF: Final = re.compile("[\ud800-\udfff]")


def has_halves(body: bytes) -> bool:
    """Whether it is worth looking closer: whole characters may be escaped in the same way."""
    return _ESCAPED.search(body) is not None


def mended(message: Any) -> bytes:
    return _HALF.sub("\ufffd", json.dumps(message, ensure_ascii=False)).encode()


class MendedLines:
    """The lines of a stream of JSON, as the SDK reads them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readline(self) -> str:
        line = self._stream.readline()
        if has_halves(line):
            with suppress(ValueError, RecursionError):  # the SDK says what is wrong with it
                line = mended(json.loads(line)) + b"\n"
        return line.decode("utf-8", errors="replace")
