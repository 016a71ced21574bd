"""What is Firm Memory's in a file that people write: everything between two marker lines, and nothing else.

Each marker stands alone on its line, and each is in a file at most once::

    begin = "<!-- firm-memory:begin" *( " " name "=" value ) " -->"
    end   = "<!-- firm-memory:end -->"
"""

from __future__ import annotations

import re
from typing import Final

_BEGIN_LINE: Final = re.compile(r"[ \t]*<!-- firm-memory:begin(?: [a-z_]+=[^\s>]*)* -->[ \t]*")
_END_LINE: Final = re.compile(r"[ \t]*<!-- firm-memory:end -->[ \t]*")
_ANY: Final = re.compile(r"<!--\s*firm-memory\s*:", re.IGNORECASE)
_BREAK: Final = re.compile(r"\r\n|\n|\r")
# A line that makes whoever reads the file read another one, and where such words stand in what people wrote: not where
# a comment, a fence, an indented line or inline code only shows them.
_INCLUDES: Final = re.compile(r"@(?:\./)?(?P<path>\S+)")
_INCLUDED: Final = re.compile(
    r"<!--(?:.*?-->|.*\Z)"
    r"|^ {0,3}(?P<fence>`{3,}+(?![^\n]*`)|~{3,}+).*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|^(?: {4,}| {0,3}\t)[ \t]*@[^\n]*"
    r"|(?<!`)(?P<ticks>`++)(?:[^`\n]|\n(?!\n))+(?P=ticks)"
    r"|(?<!\S)@(?:\./)?(?P<path>\S+)",
    re.DOTALL | re.MULTILINE,
)
_MARK: Final = "\ufeff"


class BrokenMarkers(ValueError):
    """The markers in a text do not say which part of it is ours; the message is a sentence that says what to do."""


def check_block(block: str) -> None:
    """That ``block`` is one block from its begin to its end marker, and nothing around it."""
    text = block.strip("\r\n")
    if span_of(text) != (0, len(text)):
        raise BrokenMarkers("What the service answered is no block between its markers.")


def merged(existing: str, block: str) -> str:
    """``existing`` with ``block``, which holds its marker lines, in the place of the one it had, or at its end.

    Everything else stays as it is, with its line breaks and a byte order mark. A file that the block would include and
    that the rest includes already is not included twice.
    """
    check_block(block)
    found = span_of(existing)
    start, stop = found or (len(existing), len(existing))
    around = existing[:start] + existing[stop:]
    newline = _newline_of(around)
    lines = _BREAK.split(block.strip("\r\n"))
    kept = _without_doubles(lines, around)
    ours = newline.join(kept)
    if found is not None:
        return f"{existing[:start]}{ours}{existing[stop:]}"
    if not existing.removeprefix(_MARK).strip():
        return f"{_MARK if existing.startswith(_MARK) else ''}{ours}{newline}"
    if kept != lines and not "".join(kept[1:-1]).strip():
        return existing  # nothing is left to say
    gap = "" if _ends_with_a_break(existing, newline) else newline
    return f"{existing}{gap}{newline}{ours}{newline}"


def _without_doubles(lines: list[str], around: str) -> list[str]:
    """The lines of a block without those that include what the file around it includes already."""
    named = {line: found["path"] for line in lines if (found := _INCLUDES.fullmatch(line.strip()))}
    there = _included(around) if named else set()
    return [line for line in lines if named.get(line) not in there]


def _included(text: str) -> set[str]:
    plain = _BREAK.sub("\n", text.removeprefix("\ufeff"))
    return {found["path"] for found in _INCLUDED.finditer(plain) if found["path"]}


def span_of(text: str) -> tuple[int, int] | None:
    """Where the block begins and ends, without the break behind it; None where there is none."""
    begins: list[int] = []
    ends: list[int] = []
    for number, (start, stop) in enumerate(_lines(text), start=1):
        line = text[start:stop]
        if not _ANY.search(line):
            continue
        if _BEGIN_LINE.fullmatch(line):
            begins.append(start)
        elif _END_LINE.fullmatch(line):
            ends.append(stop)
        else:
            raise BrokenMarkers(
                f"Line {number} holds a marker of Firm Memory that does not stand alone on its line, or is misspelt. "
                "Mend or remove it."
            )
    if not begins and not ends:
        return None
    if len(begins) > 1 or len(ends) > 1:
        raise BrokenMarkers("There is more than one block of Firm Memory in it. Remove all but one.")
    if not begins or not ends or ends[0] < begins[0]:
        raise BrokenMarkers("A block of Firm Memory in it has only one of its markers. Remove what is left of it.")
    return begins[0], ends[0]


def _lines(text: str) -> list[tuple[int, int]]:
    spans = []
    at = 1 if text.startswith(_MARK) else 0
    for found in _BREAK.finditer(text, at):
        spans.append((at, found.start()))
        at = found.end()
    return [*spans, (at, len(text))]


def _ends_with_a_break(text: str, newline: str) -> bool:
    """Whether ``newline`` behind it begins another line: a ``\\n`` behind a bare ``\\r`` would only end it, too."""
    return text.endswith("\n") or (text.endswith("\r") and newline != "\n")


def _newline_of(text: str) -> str:
    """The line break that most lines of ``text`` end with."""
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda each: counts[each])
