"""A statement as one line of a file that agents' tools read as instructions, in which it can be nothing but words.

Statements come from outside and are data. In such files a line break ends a bullet, a fence hides what follows, a
comment ends a block of ours, and ``@path`` makes a tool read another file. Nothing of it gets through.
"""

from __future__ import annotations

import re
from typing import Final

from apps.core.fencing import defused
from apps.core.screening import folding

MAX_SHOWN: Final = 1_000
CUT: Final = " … (cut; look it up for the rest)"

_HIDDEN: Final = folding.HIDDEN_RUN
_FENCED: Final = re.compile(
    r"^[ \t]*(?P<marks>`{3,}|~{3,})[^\n]*\n(?P<code>.*?)(?:^[ \t]*(?P=marks)[ \t]*$|\Z)", re.M | re.S
)
_MANY_TICKS: Final = re.compile(r"`{3,}")
_MANY_TILDES: Final = re.compile(r"~{3,}")
_TICKS: Final = re.compile(r"`+")
# An at sign that begins something. Within an address or a version (`a@b`) it is none, and behind a backtick it is code.
# An even number of backslashes before it leaves it as it is: each of them escapes the next one.
_INCLUDE: Final = re.compile(r"(?<![^\W_])(?<![`\\])(?P<escaped>(?:\\\\)*)@(?=\S)")
_SENTENCE: Final = re.compile(r"[.!?](?=\s)")
_HEADING: Final = re.compile(r"#{1,6}\s+(?P<title>.*)")


def harmless(content: str) -> str:
    """One line of at most about ``MAX_SHOWN`` characters that says what ``content`` says."""
    # What hides goes first: it could stand inside of what is looked for, which would be whole without it.
    text = " ".join(defused(_gist(_with_code_inline(_HIDDEN.sub("", content)))).split())
    text = _shortened(text)
    text = _MANY_TILDES.sub("~", _MANY_TICKS.sub("`", text))
    if not _spans_are_closed(text):
        text = text.replace("`", "'")
    text = text.replace("<!--", "&lt;!--").replace("-->", "--&gt;").replace("--!>", "--!&gt;")
    return _INCLUDE.sub(r"\g<escaped>\\@", text)


def _with_code_inline(content: str) -> str:
    """A block of code as its lines, each a span of code."""

    def inline(found: re.Match[str]) -> str:
        lines = (line.strip().replace("`", "'") for line in found["code"].split("\n"))
        return " ".join(f"`{line}`" for line in lines if line)

    return _FENCED.sub(inline, content)


def _gist(content: str) -> str:
    """Of a document with headings its title and what it decides; everything else as it is."""
    lines = content.strip().split("\n")
    headings = {at: found["title"] for at, line in enumerate(lines) if (found := _HEADING.fullmatch(line.strip()))}
    chosen = next((at for at, title in headings.items() if "decision" in title.lower()), None)
    if chosen is None:
        return content
    end = next((at for at in headings if at > chosen), len(lines))
    return f"{lines[0].rstrip(' .:')}: {' '.join(lines[chosen + 1 : end])}"


def _shortened(text: str) -> str:
    if len(text) <= MAX_SHOWN:
        return text
    ends = [found.end() for found in _SENTENCE.finditer(text, 0, MAX_SHOWN)]
    end = ends[-1] if ends and ends[-1] > MAX_SHOWN // 2 else MAX_SHOWN
    return text[:end].rstrip() + CUT


def _spans_are_closed(text: str) -> bool:
    """Whether each run of backticks has its partner of the same length, as Markdown pairs them."""
    runs = [found[0] for found in _TICKS.finditer(text)]
    at = 0
    while at < len(runs):
        partner = next((there for there in range(at + 1, len(runs)) if runs[there] == runs[at]), None)
        if partner is None:
            return False
        at = partner + 1
    return True
