"""What is ours in a file that people write: everything between two marker lines, and nothing else.

The grammar, which other tools rely on (``docs/export.md``)::

    begin = "<!-- firm-memory:begin" *( " " name "=" value ) " -->"
    end   = "<!-- firm-memory:end -->"

Each stands alone on its line, in a file at most once. A value is percent-encoded: it holds no space and no ``>``.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

END: Final = "<!-- firm-memory:end -->"
_BEGIN_LINE: Final = re.compile(r"[ \t]*<!-- firm-memory:begin(?: [a-z_]+=[^\s>]*)* -->[ \t]*")
_END_LINE: Final = re.compile(r"[ \t]*<!-- firm-memory:end -->[ \t]*")
# Whatever somebody may have made of a marker: it is told apart from text that only speaks of markers by the comment.
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


class BrokenMarkers(ValueError):
    """The markers in a file do not say which part of it is ours; the message is a sentence that says what to do."""


def begin(**values: str) -> str:
    """The line that opens a block; names and values stand in the order in which they are given."""
    said = "".join(f" {name}={quote(value, safe='/')}" for name, value in values.items())
    return f"<!-- firm-memory:begin{said} -->"


def merged(existing: str, block: str) -> str:
    """``existing`` with ``block``, both marker lines included, in the place of the one that it had, or at its end.

    Everything else stays as it is, with its line breaks and a byte order mark. A file that the block would include and
    that the rest includes already is not included twice. Raises ``BrokenMarkers`` where there is more or less than one
    pair in the file, or one that does not stand alone on its lines.
    """
    found = _span(existing)
    start, stop = found or (len(existing), len(existing))
    around = existing[:start] + existing[stop:]
    newline = _newline_of(around)
    lines = _BREAK.split(block.strip("\r\n"))
    kept = _without_doubles(lines, around)
    ours = newline.join(kept)
    if found is not None:
        return f"{existing[:start]}{ours}{existing[stop:]}"
    if not existing.removeprefix("\ufeff").strip():
        return f"{existing[:1] if existing.startswith(chr(0xFEFF)) else ''}{ours}{newline}"
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


def unmerged(text: str) -> tuple[str, list[int]]:
    """``text`` with blank lines in the place of ours, and the numbers of the marker lines that do not pair.

    What follows a marker that is never closed counts as ours: nothing that may be is taken in again.
    """
    kept: list[str] = []
    faults: list[int] = []
    opened = 0
    for number, line in enumerate(_BREAK.split(text), start=1):
        marks = _ANY.search(line.removeprefix("\ufeff")) is not None
        closes = marks and _END_LINE.fullmatch(line) is not None
        if opened:
            opened = 0 if closes else opened
            kept.append("")
        elif closes:
            faults.append(number)
            kept.append("")
        elif marks:
            opened = number
            kept.append("")
        else:
            kept.append(line)
    return "\n".join(kept), [*faults, *([opened] if opened else [])]


def _ends_with_a_break(text: str, newline: str) -> bool:
    """Whether ``newline`` behind it begins another line: a ``\\n`` behind a bare ``\\r`` would only end it, too."""
    return text.endswith("\n") or (text.endswith("\r") and newline != "\n")


def _newline_of(text: str) -> str:
    """The line break that most lines of ``text`` end with."""
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda each: counts[each])


def _span(text: str) -> tuple[int, int] | None:
    """Where our block begins and ends, without the break behind it; ``None`` where there is none."""
    begins: list[int] = []
    ends: list[int] = []
    at = 1 if text.startswith("\ufeff") else 0
    for number, (start, stop) in enumerate(_lines(text, at), start=1):
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
        raise BrokenMarkers(
            "There is more than one block of Firm Memory in the file. Remove all but one, each from its begin to its "
            "end marker."
        )
    if not begins or not ends or ends[0] < begins[0]:
        missing = "begins and never ends" if begins and not ends else "ends before it begins"
        raise BrokenMarkers(
            f"The block of Firm Memory in the file {missing}. Remove what is left of it, and it is written anew at "
            "the end."
        )
    return begins[0], ends[0]


def _lines(text: str, at: int) -> list[tuple[int, int]]:
    """Start and end of each line, without its break."""
    spans = []
    for found in _BREAK.finditer(text, at):
        spans.append((at, found.start()))
        at = found.end()
    return [*spans, (at, len(text))]
