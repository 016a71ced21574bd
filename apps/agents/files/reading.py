"""A rules file as its statements: each bullet whole, with the words that it stands under, and nothing made up.

The words of a statement are words of the file in their order. What goes before a bullet is the heading above it, the
line that introduces its list and the bullet that it is nested in, each with a colon where it has none. Code, tables of
contents, imports and links to other files state nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from apps.agents.files.formats import Format, format_of
from apps.agents.files.front_matter import Head, head_of
from apps.agents.files.markers import unmerged
from apps.capture.extractors.decisiveness import FORBIDS, ORDER, THRESHOLD, score_of
from apps.capture.statements import Statement as Sentence
from apps.capture.statements import statements_of
from apps.core.screening import clean_text
from apps.core.screening.signals import meanings_of

MAX_STATEMENT: Final = 8_000
MAX_CONTEXT: Final = 300
MAX_HEADING: Final = 160
RULES_FILE: Final = "rules_file"
_LOOKED_AHEAD: Final = 50


@dataclass(frozen=True, slots=True)
class Found:
    """One statement of a file. ``line`` is where it begins, counted from 1; ``heading`` the nearest one above it.

    ``body`` is what it says with what introduces it; ``content`` with the heading before that; ``own`` are its own
    words alone. ``code`` is a block of code within the bullet, which goes along where screening lets it.
    """

    line: int
    heading: str
    content: str
    body: str
    own: str
    code: str = ""
    is_bullet: bool = True


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of a file that no statement was made of, and why, as a sentence."""

    line: int
    reason: str


@dataclass(slots=True)
class Reading:
    format: Format
    found: list[Found] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


CODE: Final = "A block of code states nothing by itself."
IMPORT: Final = "It imports another file, which is read by itself."
POINTER: Final = "It only points to another file or page."
PROSE: Final = "Prose that states no rule outright."
INTRODUCES: Final = "It only introduces what follows it."
SHORT: Final = "A single word says nothing by itself."
LONG: Final = f"It is longer than {MAX_STATEMENT:,} characters."
BROKEN: Final = (
    "A marker of Firm Memory has no other one that goes with it. What may stand between them was not taken in."
)

# Headings that say nothing about what stands under them.
_GENERIC: Final = {
    *("overview", "rules", "guidelines", "conventions", "notes", "note", "important", "general", "instructions"),
    *("principles", "guidance", "summary", "introduction"),
    *("general rules", "general guidelines", "golden rules", "key rules", "key points", "key principles"),
    *("best practices", "important notes", "coding guidelines", "additional notes", "project rules"),
}

_FENCE: Final = re.compile(r"(?P<indent>[ \t]*)(?:>[ \t]?)?(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING: Final = re.compile(r"[ ]{0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<title>.*))?")
_UNDERLINE: Final = re.compile(r"[ ]{0,3}(?:(?P<first>=+)|-{2,})[ \t]*")
_RULE: Final = re.compile(r"[ ]{0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_BULLET: Final = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+•‣◦]|\d{1,9}[.)])(?P<gap>[ \t]+|$)(?P<text>.*)")
_BOX: Final = re.compile(r"\[[ xX]\][ \t]+")
_TABLE: Final = re.compile(r"[ \t]*\|")
_DASHES: Final = re.compile(r"[ \t]*:?-+:?[ \t]*")
_CELL: Final = re.compile(r"(?:`[^`]*`|\\.|[^|`\\]|`)*")
_QUOTE: Final = re.compile(r"[ ]{0,3}>[ \t]?")
_CALLOUT: Final = re.compile(r"\[![A-Za-z]+\][ \t]*")
_DEFINITION: Final = re.compile(r"[ ]{0,3}\[[^\]]+\]:[ \t]*\S+")
_TAG: Final = re.compile(r"[ \t]*</?[A-Za-z][^<>]*>[ \t]*")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IMPORT: Final = re.compile(r"@(?:[~./]|[\w-]+[./])[^\s`]*|@[\w.-]+\.\w{1,10}")
_BOLD_LINE: Final = re.compile(
    r"(?:\*\*|__)(?P<title>[^*_]{2,120})(?:\*\*|__)[ \t]*:?|(?:\*\*|__)[^*_]{2,120}:(?:\*\*|__)"
)
_EMPHASIS: Final = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)")
_LINK: Final = r"(?:!?\[[^\]]*\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])|<?https?://\S+>?)"
_FILE: Final = r"`?(?:[\w.@~-]+/)*[\w.-]+\.(?:mdc?|markdown|rst|txt|adoc)`?"
# A link or the name of a document, perhaps behind “See” or a label, and then at most what the other file is about.
_POINTER: Final = re.compile(
    rf"(?:(?:see(?: also)?|read|refer to)\b:?[ ])?(?:(?:\*\*|__)[^*_]{{1,80}}(?:\*\*|__):?[ ]?:?[ ]?)?"
    rf"(?:{_LINK}|{_FILE}|{_IMPORT.pattern})(?:[ ]?[,&][ ]?(?:and[ ])?{_LINK})*(?:[ ]*(?:[—–:-]|\()[ ]*.*)?[.]?",
    re.IGNORECASE | re.DOTALL,
)
_FIRST_SENTENCE: Final = re.compile(r".{10,}?[.!?](?=\s)")
_SENTENCE_END: Final = re.compile(r"(?<=[^.\s]{2}[.!?])\s+(?=[^\W\d_a-z]|[*`\"'(])")
_LETTERS: Final = re.compile(r"[^\W_]+")


def file_read(path: str, content: str) -> Reading:
    """What a rules file states. Works in time linear in its length and raises nothing, whatever is in it."""
    text, faults = unmerged(clean_text(content)[0].removeprefix("\ufeff"))
    lines = text.split("\n")
    head = head_of(lines)
    lines[: head.lines] = [""] * head.lines
    lines = _without_comments("\n".join(lines)).split("\n")
    reading = Reading(format_of(path), skipped=[Skipped(line, BROKEN) for line in faults])
    _Reader(lines, reading, where=_holds_for(head)).read()
    reading.found.sort(key=lambda found: found.line)
    reading.skipped.sort(key=lambda skipped: skipped.line)
    return reading


def _holds_for(head: Head) -> str:
    """The files that a rule is for, in the words of the head: without them it would say too much."""
    if head.first("alwaysapply").lower() == "true":
        return ""
    globs = [part.strip() for value in head.every("globs", "applyto") for part in value.split(",")]
    listed = ", ".join(glob for glob in globs if glob and glob not in ("**", "*", "**/*"))
    return listed if len(listed) <= MAX_CONTEXT else ""


def _without_comments(text: str) -> str:
    """Comments are for people; a fence that shows one is code and no statement either way."""
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)


@dataclass(slots=True)
class _Item:
    """An open bullet. ``indent`` is the column of its mark, ``inner`` the one where its text begins."""

    line: int
    indent: int
    inner: int
    parts: list[str]
    code: list[str] = field(default_factory=list)
    has_children: bool = False

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.parts).split())


class _Reader:
    def __init__(self, lines: list[str], reading: Reading, *, where: str) -> None:
        self._lines, self._reading, self._where = lines, reading, where
        self._items: list[_Item] = []
        self._paragraph: list[str] = []
        self._paragraph_line = 0
        self._heading = self._intro = ""
        # A table or a block of code has followed it, so that a list further down is not what it introduces.
        self._intro_is_used = False
        self._is_title = False
        self._after_blank = False
        self._columns: list[str] | None = None

    def read(self) -> None:
        at = 0
        while at < len(self._lines):
            at = self._take(at)
        self._close()

    def _take(self, at: int) -> int:
        """Read the line at ``at``, with what belongs to it; answers where to go on."""
        line = self._lines[at]
        if fence := _FENCE.match(line):
            return self._code(at, fence)
        if not line.strip():
            self._after_blank = True
            self._close_paragraph()
            self._columns = None
            return at + 1
        if self._is_indented_code(line):
            return self._indented(at)
        self._line(at, line)
        self._after_blank = False
        return at + 1

    def _line(self, at: int, line: str) -> None:
        if heading := _HEADING.fullmatch(line):
            self._enter((heading["title"] or "").rstrip(" \t#"), is_title=heading["marks"] == "#")
        elif self._paragraph and not self._items and (under := _UNDERLINE.fullmatch(line)):
            title, self._paragraph = " ".join(self._paragraph), []
            self._enter(title, is_title=under["first"] is not None)
        elif _RULE.fullmatch(line):
            self._close()
        elif self._begins_table(at, line):
            if self._items:
                self._close_items(down_to=0)
                self._intro = ""  # it introduced the list
            self._close_paragraph(before_list=True)
            self._row(at, line)
        elif bullet := _BULLET.fullmatch(line):
            self._open(at, bullet)
        elif self._items and (not self._after_blank or _column(line) > self._items[0].indent):
            self._go_on(line)
        else:
            self._prose(at, line)

    # --- headings ----------------------------------------------------------------------------------------------

    def _enter(self, title: str, *, is_title: bool) -> None:
        self._close()
        self._heading = _without_marks(title)[:MAX_HEADING].strip()
        self._is_title, self._intro, self._columns = is_title, "", None

    # --- code --------------------------------------------------------------------------------------------------

    def _code(self, at: int, fence: re.Match[str]) -> int:
        end = at + 1
        while end < len(self._lines) and not self._closes(self._lines[end], fence["marks"]):
            end += 1
        block = self._lines[at : end + 1]
        if self._items and _column(self._lines[at]) > self._items[-1].indent:
            self._items[-1].code.append(_dedented(block))
        else:
            self._close_paragraph()
            self._intro_is_used = True
            self._skip(at, CODE)
        self._after_blank = False
        return end + 1

    @staticmethod
    def _closes(line: str, marks: str) -> bool:
        bare = _QUOTE.sub("", line, count=1).strip()
        return len(bare) >= len(marks) and set(bare) == {marks[0]}

    def _is_indented_code(self, line: str) -> bool:
        return self._after_blank and not self._items and not self._paragraph and _column(line) >= 4

    def _indented(self, at: int) -> int:
        end = at
        while end < len(self._lines) and (not self._lines[end].strip() or _column(self._lines[end]) >= 4):
            end += 1
        # Lists that somebody indented are lists all the same.
        if any(_BULLET.fullmatch(line) for line in self._lines[at : min(end, at + _LOOKED_AHEAD)]):
            self._after_blank = False
            self._line(at, self._lines[at])
            return at + 1
        self._skip(at, CODE)
        return end

    # --- tables ------------------------------------------------------------------------------------------------

    def _begins_table(self, at: int, line: str) -> bool:
        """A row with a bar at its edge; or one without, over a line of dashes or in a table that has begun so."""
        if _TABLE.match(line):
            return True
        if "|" not in line or self._items:
            return False
        below = self._lines[at + 1] if at + 1 < len(self._lines) else ""
        return self._columns is not None or ("|" in below and _is_delimiter(below))

    def _row(self, at: int, line: str) -> None:
        self._intro_is_used = True
        cells = _cells(line)
        if self._columns is None:
            self._columns = [_without_marks(cell) for cell in cells]
        elif not _is_delimiter(line):
            said = [
                f"{name}: {cell}" if name else cell
                for cell, name in zip(cells, [*self._columns, *[""] * len(cells)], strict=False)
                if cell
            ]
            own = "; ".join(said)
            if len(said) > 1:
                body = " ".join(filter(None, (_introducing(self._intro), own)))
                self._state(at, body, own=own, is_bullet=True)
            else:
                self._skip(at, "A row of a table with one cell says nothing by itself.")

    # --- bullets -----------------------------------------------------------------------------------------------

    def _open(self, at: int, bullet: re.Match[str]) -> None:
        self._close_paragraph(before_list=True)
        if self._intro_is_used:
            self._intro, self._intro_is_used = "", False
        self._columns = None
        indent = _column(bullet["indent"] + "x")
        self._close_items(down_to=indent)
        if self._items:
            self._items[-1].has_children = True
        inner = indent + len(bullet["mark"]) + max(len(bullet["gap"]), 1)
        self._items.append(_Item(at + 1, indent, inner, [_BOX.sub("", bullet["text"], count=1)]))

    def _go_on(self, line: str) -> None:
        """A line that belongs to a bullet: to the innermost one, or after a gap to the one it is indented like."""
        if self._after_blank:
            column = _column(line)
            while len(self._items) > 1 and column <= self._items[-1].indent:
                self._end(self._items.pop())
        self._items[-1].parts.append(_QUOTE.sub("", line, count=1))

    def _close_items(self, *, down_to: int) -> None:
        while self._items and self._items[-1].indent >= down_to:
            self._end(self._items.pop())

    def _end(self, item: _Item) -> None:
        own = item.words
        if item.has_children and own.endswith((":", "：")):
            return  # these words go before each bullet under it
        parents = [_introducing(parent.words) for parent in self._items]
        intro = [_introducing(self._intro)] if self._intro else []
        body = " ".join([*intro, *filter(None, parents), own])
        if _IMPORT.fullmatch(own):
            self._skip(item.line - 1, IMPORT)
        elif _POINTER.fullmatch(own) and not item.code:
            self._skip(item.line - 1, POINTER)
        else:
            self._state(item.line - 1, body, own=own, is_bullet=True, code="\n\n".join(item.code))

    # --- prose -------------------------------------------------------------------------------------------------

    def _prose(self, at: int, line: str) -> None:
        self._close_items(down_to=0)
        quoted = _QUOTE.match(line)
        text = _CALLOUT.sub("", line[quoted.end() :] if quoted else line, count=1).strip()
        if not text or _DEFINITION.match(line) or _TAG.fullmatch(line):
            return
        if quoted and (bullet := _BULLET.fullmatch(text)):
            self._open(at, bullet)
            return
        if _IMPORT.fullmatch(text):
            self._close_paragraph()
            self._skip(at, IMPORT)
            return
        if not self._paragraph:
            self._paragraph_line = at
        self._paragraph.append(text)

    def _close_paragraph(self, *, before_list: bool = False) -> None:
        if not self._paragraph:
            return
        text = " ".join(" ".join(self._paragraph).split())
        at, self._paragraph = self._paragraph_line, []
        self._intro, self._intro_is_used = "", False
        if _BOLD_LINE.fullmatch(text) or text.endswith((":", "：")):
            self._intro = _without_marks(text) if _BOLD_LINE.fullmatch(text) else _last_sentence(text)
            if not (before_list or self._list_follows(at)):
                self._skip(at, INTRODUCES)
        elif _POINTER.fullmatch(text):
            self._skip(at, POINTER)
        elif _is_decisive(text, self._heading):
            self._state(at, text, own=text, is_bullet=False)
        else:
            self._skip(at, PROSE)

    def _list_follows(self, at: int) -> bool:
        """Whether the next line behind the paragraph, which is closed at a blank one, begins a list or a table."""
        below = at + 1
        while below < len(self._lines) and self._lines[below].strip():
            below += 1
        while below < len(self._lines) and not self._lines[below].strip():
            below += 1
        following = self._lines[below] if below < len(self._lines) else ""
        return _BULLET.fullmatch(following) is not None or self._begins_table(below, following)

    # --- what comes of it --------------------------------------------------------------------------------------

    def _close(self) -> None:
        self._close_items(down_to=0)
        self._close_paragraph()

    def _state(self, at: int, body: str, *, own: str, is_bullet: bool, code: str = "") -> None:
        content = " ".join(filter(None, (self._over(body, own, is_bullet=is_bullet), body)))
        if len(_LETTERS.findall(content)) < 2:
            self._skip(at, SHORT)
        elif len(content) > MAX_STATEMENT:
            self._skip(at, LONG)
        else:
            found = Found(at + 1, self._heading, content, body, own, code, is_bullet)
            self._reading.found.append(found)

    def _over(self, body: str, own: str, *, is_bullet: bool) -> str:
        """What goes before a statement: the files that it is for, and the heading over it."""
        heading = self._heading
        named = heading.casefold().strip(" :.!")
        if not heading or named in _GENERIC or body.casefold().startswith(named):
            heading = ""
        elif FORBIDS.match(heading):
            # Such words turn the bullets right under them, and nothing that has an order or an introduction of its own.
            turns = is_bullet and self._columns is None and not self._intro and not ORDER.match(own)
            heading = heading if turns else ""
        elif self._is_title:
            heading = ""
        return " ".join(filter(None, (f"For {self._where}:" if self._where else "", _introducing(heading))))

    def _skip(self, at: int, reason: str) -> None:
        self._reading.skipped.append(Skipped(at + 1, reason))


def _introducing(words: str) -> str:
    """Words that go before others, with a colon; of long ones their first sentence."""
    words = words.strip()
    if len(words) > MAX_CONTEXT:
        first = _FIRST_SENTENCE.match(words[:MAX_CONTEXT])
        words = first[0] if first else words[:MAX_CONTEXT].rsplit(" ", 1)[0]
    return f"{words.rstrip(' .:：')}:" if words else ""


def _last_sentence(text: str) -> str:
    """Of a paragraph before a list the sentence that introduces it."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text)]
    return text[ends[-1] :] if ends else text


def _column(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))


def _dedented(block: list[str]) -> str:
    least = min((_column(line) for line in block if line.strip()), default=0)
    return "\n".join(line.expandtabs(4)[least:].rstrip() for line in block)


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    cells = [found[0].strip() for found in _cells_of(bare)]
    return cells[:-1] if cells and not cells[-1] else cells


def _is_delimiter(line: str) -> bool:
    """Whether it is the line of dashes under the head of a table."""
    bare = line.strip(" \t").removeprefix("|").removesuffix("|")
    return all(_DASHES.fullmatch(cell) for cell in bare.split("|"))


def _cells_of(row: str) -> Iterator[re.Match[str]]:
    at = 0
    while at <= len(row) and (found := _CELL.match(row, at)):
        yield found
        at = found.end() + 1


def _without_marks(text: str) -> str:
    """One line without emphasis; inline code keeps its marks."""
    return " ".join((_EMPHASIS.sub("", text) if "`" not in text else re.sub(r"\*{2,3}", "", text)).split())


def _is_decisive(text: str, heading: str) -> bool:
    """Whether a paragraph states a rule outright, as capture without a model tells it."""
    return any(not sentence.is_question and _scores(sentence, heading) for sentence in statements_of(text, RULES_FILE))


def _scores(sentence: Sentence, heading: str) -> bool:
    meanings = meanings_of(sentence.text, ())
    return score_of(sentence, meanings, RULES_FILE) >= THRESHOLD
