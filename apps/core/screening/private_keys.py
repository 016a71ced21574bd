"""Private keys: PEM, OpenSSH, SSH2, PGP and PuTTY, also where the line breaks were lost or escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

Span = tuple[int, int]

_BEGIN: Final = re.compile(r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END: Final = re.compile(r"-{4,5} ?END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
# White space, escaped line breaks, quoting and string concatenation that may stand between the lines of a key.
_GAP: Final = r"(?:\s|\\[nr]|[|>\"',+`])"
_BODY: Final = re.compile(
    rf"{_GAP}{{0,40}}(?:[A-Z][\w-]{{2,30}}: ?[^\n\\]{{1,200}}{_GAP}{{1,40}}){{0,6}}"
    rf"(?:[A-Za-z0-9+/=]{{2,200}}+{_GAP}{{0,40}}+){{0,2000}}"
)
_KEY_MATERIAL: Final = re.compile(r"[A-Za-z0-9+/=]{16}")
_NOTHING_FOLLOWS: Final = re.compile(r"(?:\s|\\[nr]){0,40}(?:\Z|[A-Za-z0-9+/=]{4,200}(?:\s|\\[nr]|\Z))")
_MAX_KEY: Final = 30_000

_PUTTY: Final = re.compile(r"PuTTY-User-Key-File-\d: ")
_PUTTY_PRIVATE: Final = re.compile(r"Private-Lines: ?\d{1,4}")
_PUTTY_END: Final = re.compile(r"Private-(?:MAC|Hash): ?[0-9a-f]{16,128}")


def find_private_keys(text: str) -> Iterator[Span]:
    """Keys from their first to their last line; a header that is only spoken of is none."""
    if "PRIVATE KEY" in text:
        ends = [match.span() for match in _END.finditer(text)]
        position = reached = 0
        for begin in _BEGIN.finditer(text):
            if begin.start() < position:
                continue
            while reached < len(ends) and ends[reached][0] < begin.end():
                reached += 1
            end = _key_end(text, begin, ends[reached] if reached < len(ends) else None)
            if end:
                position = end
                yield begin.start(), end
    if "PuTTY-User-Key-File-" in text:
        for begin in _PUTTY.finditer(text):
            private = _PUTTY_PRIVATE.search(text, begin.end(), begin.end() + _MAX_KEY)
            if private:
                closing = _PUTTY_END.search(text, private.end(), private.end() + _MAX_KEY)
                yield begin.start(), closing.end() if closing else _body_end(text, private.end())


def _key_end(text: str, begin: re.Match[str], closing: Span | None) -> int:
    if closing and closing[0] - begin.end() <= _MAX_KEY:
        inside = text[begin.end() : closing[0]]
        if "BEGIN " not in inside and (_KEY_MATERIAL.search(inside) or len(inside.split()) == 1):
            return closing[1]
    end = _body_end(text, begin.end())
    if _KEY_MATERIAL.search(text, begin.end(), end):
        return end
    # A header alone on its line is taken for a key that was cut; one inside a sentence is not.
    line_start = text[text.rfind("\n", 0, begin.start()) + 1 : begin.start()]
    if not line_start.strip() and _NOTHING_FOLLOWS.match(text, begin.end()):
        return max(begin.end(), end)
    return 0


def _body_end(text: str, start: int) -> int:
    body = _BODY.match(text, start)
    return start + len(body[0].rstrip()) if body else start
