"""Material read sentence by sentence, each with its place and what it stands under.

Works on what ``splitting.readable`` gives. Code, tables and unticked boxes state nothing and are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.capture.splitting import LABELS, SENTENCE_END, SPEAKER, UNSPOKEN_KINDS, speaker_of

MAX_SENTENCE: Final = 600


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of a text, and the block (paragraph, list item or turn) that it is in.

    ``text`` is the sentence on one line without markup; ``start`` and ``end`` are where it stands in the material.
    ``heading`` is the nearest heading or label above it, in lower case. ``quoted`` says that the author repeats
    somebody else.
    """

    text: str
    start: int
    end: int
    block: int
    title: str = ""
    heading: str = ""
    speaker: str = ""
    bullet: bool = False
    quoted: bool = False

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("\"'”’)*_ ").endswith(("?", "？"))


_FENCE: Final = re.compile(r"[ \t]{0,8}(?:```|~~~)")
_HEADING: Final = re.compile(r"[ ]{0,3}(?:(?P<marks>#{1,6})|h(?P<level>[1-6])\.)[ \t]{1,20}(?P<title>\S[^\n]{0,200})")
_BOLD_HEADING: Final = re.compile(r"[ \t]{0,3}(?:\*\*|__)(?P<title>[^*_\n]{2,80})(?:\*\*|__):?[ \t]{0,4}$")
_QUOTE: Final = re.compile(r"[ \t]{0,3}(?:(?:>|&gt;)(?![ \t]?[\d=])[ \t]{0,3}){1,5}")
_CALLOUT: Final = re.compile(r"\[![A-Za-z]|\*\*|⚠|ℹ|💡")
_BULLET: Final = re.compile(r"[ \t]{0,12}(?:[-*+•‣◦]|\d{1,3}[.)])[ \t]{1,4}")
_BOX: Final = re.compile(r"\[(?P<tick>[ xX])\][ \t]{1,4}")
_TABLE: Final = re.compile(r"[ \t]{0,8}\|")
_RULE: Final = re.compile(r"[ \t]{0,8}[-=_*]{3,}[ \t]{0,8}$")
_CLOCK: Final = re.compile(
    r"[ \t]{0,4}[\[(]?(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d(?::\d\d)?(?: ?UTC)?[\])]?[ \t]{1,4}[-–—]?[ \t]{0,4}"
)
_LABEL: Final = re.compile(
    r"(?:\*\*|__)?(?P<label>[^\W\d_][\w/’' -]{1,40}?)(?:\*\*|__)?[ \t]?(?::(?=[*_\s]|$)|：)(?:\*\*|__)?[ \t]{0,4}"
)
_LABEL_ROOM: Final = 60
# What masking left in the place of a secret or of somebody's address. It is no name, and alone it says nothing.
_MARK: Final = (
    r"(?:[\"'`*_<(|-]{0,3}[ \t]{0,3}\[secret: [a-z0-9][a-z0-9 ._-]{0,40}\][\"'`*_>)|.,;]{0,3}[ \t]{0,3}){1,5}"
)
_ONLY_MARKS: Final = re.compile(rf"[ \t]{{0,8}}(?:[\w./-][\w ./-]{{0,40}}[:=][ \t]{{0,3}})?{_MARK}[ \t\r]{{0,8}}$")
_MASKED_SPEAKER: Final = re.compile(rf"[ \t]{{0,3}}{_MARK}:[ \t]{{1,4}}(?=\S)")
_LABEL_WORDS: Final = 2


class _Reader:
    """Walks the lines of a text and gathers those that belong together into blocks."""

    def __init__(self, text: str, kind: str) -> None:
        self._text = text
        self._spoken = kind not in UNSPOKEN_KINDS
        self._title = self._heading = self._label = self._speaker = ""
        self._fenced = self._bullet = self._quoted = self._callout = False
        self._begin = self._end = -1
        self._block = 0

    def statements(self) -> Iterator[Statement]:
        position = 0
        while position < len(self._text):
            end = self._text.find("\n", position)
            end = len(self._text) if end < 0 else end
            yield from self._line(position, end)
            position = end + 1
        yield from self._close()

    def _line(self, start: int, end: int) -> Iterator[Statement]:
        line = self._text[start : min(end, start + 300)]
        if _FENCE.match(line):
            self._fenced = not self._fenced
            yield from self._close()
        elif not line.strip():
            self._callout = False
            yield from self._close()
        elif self._fenced or _TABLE.match(line) or _RULE.match(line):
            yield from self._close()
        elif heading := _HEADING.match(line) or _BOLD_HEADING.match(line):
            yield from self._close()
            self._enter(heading)
        else:
            yield from self._prose(line, start, end)

    def _enter(self, heading: re.Match[str]) -> None:
        title = _plain(heading["title"].rstrip(" \t\r#"))
        if heading.re is _HEADING and (heading["marks"] == "#" or heading["level"] == "1"):
            self._title = title
        self._heading, self._label, self._speaker = title.casefold().strip(" :."), "", ""

    def _prose(self, line: str, start: int, end: int) -> Iterator[Statement]:
        begin = start
        opens = False
        if quote := _QUOTE.match(line):
            begin, opens = start + quote.end(), True
            yield from self._close()
        elif self._spoken and (turn := SPEAKER.match(line)) and (speaker := speaker_of(turn)):
            yield from self._close()
            self._speaker, self._label = speaker, ""
            begin, opens = start + turn.end(), True
        elif self._spoken and (turn := _MASKED_SPEAKER.match(line)):
            yield from self._close()
            self._speaker = self._label = ""
            begin, opens = start + turn.end(), True
        elif clock := _CLOCK.match(line):
            yield from self._close()
            begin, opens = start + clock.end(), True
        self._callout = bool(quote) and (self._callout or bool(_CALLOUT.match(self._text, begin, end)))
        self._quoted = bool(quote) and not self._callout
        rest = self._text[begin : min(end, begin + 300)]
        if _ONLY_MARKS.match(rest):
            yield from self._close()
            return
        if bullet := _BULLET.match(rest):
            yield from self._close()
            begin, opens = begin + bullet.end(), True
            box = _BOX.match(self._text, begin, end)
            if box and box["tick"] == " ":
                return
            begin = box.end() if box else begin
            self._bullet = True
        if opens or self._begin < 0:
            begin = self._labelled(begin, end)
            self._begin = begin
        self._end = end
        if quote:
            yield from self._close()
            self._quoted = False

    def _labelled(self, begin: int, end: int) -> int:
        """Where the text behind a label such as ``Decision:`` begins."""
        found = _LABEL.match(self._text, begin, min(end, begin + _LABEL_ROOM))
        words = found["label"].casefold().split() if found else []
        if not found or len(words) > _LABEL_WORDS or words[0] not in LABELS:
            return begin
        self._label = found["label"].casefold()
        return found.end()

    def _close(self) -> Iterator[Statement]:
        begin, end, bullet = self._begin, self._end, self._bullet
        self._begin = self._end = -1
        self._bullet = False
        label, self._label = self._label, ""
        if begin < 0 or begin >= end:
            if label:
                self._label = label  # a label alone on its line stands over what follows
            return
        self._block += 1
        for start, stop in _sentences(self._text, begin, end):
            text = _plain(self._text[start:stop])
            if text:
                yield Statement(
                    text,
                    start,
                    stop,
                    self._block,
                    self._title,
                    label or self._heading,
                    self._speaker,
                    bullet,
                    self._quoted,
                )


def statements_of(text: str, kind: str) -> Iterator[Statement]:
    """The sentences of ``text`` in order, in linear time. What is longer than 600 characters is cut."""
    return _Reader(text, kind).statements()


# --- Sentences ---------------------------------------------------------------------------------------------

_SHORTENED: Final = """
    e.g i.e etc vs cf resp approx no nr fig sec ca z.b d.h u.a bzw usw p.ex ex p.ej ej mr mrs dr st inc ltd incl
    max min vgl ggf inkl
"""
_ABBREVIATIONS: Final = frozenset(_SHORTENED.split())
_LAST_WORD: Final = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]{1,8}$")


def _sentences(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    start = begin
    for found in SENTENCE_END.finditer(text, begin, end):
        if found[0][0] == "." and _abbreviates(text, start, found.start()):
            continue
        if found.start() - start < MAX_SENTENCE and text.count("`", start, found.start()) % 2:
            continue  # inside of inline code
        stop = found.start() + len(found[0].rstrip())
        yield from _bounded(text, start, stop)
        start = found.end()
    yield from _bounded(text, start, end)


def _abbreviates(text: str, start: int, dot: int) -> bool:
    word = _LAST_WORD.search(text, max(start, dot - 12), dot)
    if not word:
        return False
    return word[0].casefold() in _ABBREVIATIONS or (len(word[0]) == 1 and word[0].isupper())


def _bounded(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    while start < stop and text[start].isspace():
        start += 1
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    while stop - start > MAX_SENTENCE:
        cut = text.rfind(" ", start + MAX_SENTENCE // 2, start + MAX_SENTENCE)
        cut = cut if cut > 0 else start + MAX_SENTENCE
        yield start, cut
        start = cut
    if stop > start:
        yield start, stop


_LINKED: Final = re.compile(r"!?\[(?P<label>[^\[\]\n]{0,200})\]\([^()\s]{0,1000}\)")
_EMPHASIS: Final = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|~~")
_ICONS: Final = re.compile("[\u2190-\u21ff\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]+ ?|:[a-z0-9_+-]{2,30}:(?=\\s|$)")


def _plain(text: str) -> str:
    """One line without the marks of emphasis, links and icons. Inline code keeps its marks."""
    if "](" in text:
        text = _LINKED.sub(lambda link: link["label"], text)
    text = _EMPHASIS.sub("", text) if "`" not in text else re.sub(r"\*{2,3}", "", text)
    if not text.isascii() or ":" in text:
        text = _ICONS.sub(lambda icon: "→ " if icon[0].startswith("→") else "", text)
    return " ".join(text.split())
