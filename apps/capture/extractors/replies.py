"""What a language model answered, read as strictly as its mistakes allow.

A reply is read once, from left to right, by a reader that knows what models do to JSON: fences and prose around it,
raw line breaks and control characters in strings, a comma too many or too few, quotation marks that nobody escaped, a
tail that was cut off. Whatever of a reply cannot be read is refused with a reason; the rest of it stands. The time is
linear in the length of the reply, whatever it holds, and nesting is bounded.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from apps.capture.extractors.base import ExtractorError, Fact, Refused
from apps.core.screening import clean_text, normalise_for_fingerprint

MAX_CONTENT: Final = 8_000
MAX_REFERENCES: Final = 20
# A reply with more than these is a model that has lost its way.
MAX_FACTS: Final = 500
DROPPED: Final = "dropped_classifier"

NO_CONFIDENCE: Final = "The model gave it a confidence that is no number from 0 to 1."
AFTER_A_BREAK: Final = "It stood behind a part of the model's reply that could not be read."

_MAX_REFERENCE = 100
_EXCERPT = 200
_DEPTH = 12
# However a reply is built, so often is each of its characters looked at on average, and no more.
_LOOKS = 4
# So often the search begins at something that turns out to be no answer, such as braces in prose.
_FALSE_STARTS = 5_000
_NAMES: Final = {list: "a list", dict: "an object", str: "a text", bool: "true or false", float: "a number"}


class UnreadableReply(ExtractorError):
    """The model answered, and not with what it was asked for."""


@dataclass(frozen=True, slots=True)
class ReadFact:
    """A fact as the model wrote it. ``type`` is not looked up yet, and ``quote`` not compared with the material."""

    content: str
    type: str
    confidence: float | None = None
    supersedes: tuple[str, ...] = ()
    quote: str = ""
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """``notes`` are sentences about what was repaired or left out."""

    facts: tuple[ReadFact, ...]
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of the list that was asked for. ``doubtful``: the reader had lost its place before it."""

    value: Any
    doubtful: bool = False


@dataclass(slots=True)
class Items:
    """``torn`` is what was begun when the reply ended, ``unread`` holds the beginnings of what could not be read."""

    items: list[Item] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    torn: Any = None
    cut: bool = False


def read_facts(text: str) -> Reply:
    """The facts of a reply ``{"facts": [{content, type, confidence, supersedes, quote}]}``.

    An empty list is an answer. Raises ``UnreadableReply`` where no list of facts can be found, and where nothing of
    one is whole.
    """
    found = read_items(text, key="facts", mark="content")
    read = [_fact(item) for item in found.items[:MAX_FACTS]]
    facts: dict[str, ReadFact] = {}
    for fact, _ in read:
        if isinstance(fact, ReadFact):
            keep_one(facts, fact)
    notes = [note for _, noted in read for note in noted]
    repeated = sum(isinstance(fact, ReadFact) for fact, _ in read) - len(facts)
    if repeated:
        notes.append(f"The model repeated {_counted(repeated, 'fact')}.")
    left = max(0, len(found.items) - MAX_FACTS) + max(0, len(found.unread) - MAX_FACTS)
    if left:
        notes.append(f"The model's reply is far too long: {left:,} of its entries were left out.")
    if found.cut:
        notes.append(f"The model's reply was cut off after {_counted(len(found.items), 'whole fact')}.")
    refused = [fact for fact, _ in read if isinstance(fact, Refused)]
    refused += [
        Refused(begins, DROPPED, "This part of the model's reply could not be read.")
        for begins in found.unread[:MAX_FACTS]
    ]
    if found.torn is not None:
        refused.append(Refused(_shown(found.torn), DROPPED, "The model's reply was cut off inside this fact."))
    return Reply(tuple(facts.values()), tuple(refused), tuple(dict.fromkeys(notes)))


AnyFact = TypeVar("AnyFact", ReadFact, Fact)


def keep_one(facts: dict[str, AnyFact], fact: AnyFact) -> None:
    """Add a fact by what it says; of two that say the same, the undoubted and then the more confident one stays."""
    key = normalise_for_fingerprint(fact.content)
    known = facts.get(key)
    if known is None or _weight(fact) > _weight(known):
        facts[key] = fact


def _weight(fact: ReadFact | Fact) -> tuple[bool, float]:
    return not fact.doubt, -1.0 if fact.confidence is None else fact.confidence


def read_items(text: str, *, key: str, mark: str) -> Items:
    """The entries of every list under ``key``; ``mark`` is a key by which an entry is known where the list is bare.

    Raises ``UnreadableReply`` where there is none, and where the reply ended before one entry was whole.
    """
    text = _after_thinking(_decoded(text))
    found = _search(text, key, mark)
    if found is None and _TYPESET.search(text):
        found = _search(text.translate(_STRAIGHT), key, mark)
    if found is None:
        raise UnreadableReply(_what_is_missing(text, key))
    if found.cut and not found.items and not found.unread:
        raise UnreadableReply("The model's reply was cut off before anything in it was whole.")
    if found.unread and not found.items:
        raise UnreadableReply("Nothing in the list that the model answered with could be read.")
    return found


# --- One fact ----------------------------------------------------------------------------------------------


def _fact(item: Item) -> tuple[ReadFact | Refused, list[str]]:
    value = item.value
    if not isinstance(value, dict):
        reason = f"It is {_name(value)} in the model's reply, and not an object with content and type."
        return Refused(_shown(value), DROPPED, reason), []
    content, notes = clean_text(value["content"]) if isinstance(value.get("content"), str) else ("", [])
    content = content.strip()
    if problem := _problem(value, content):
        return Refused(content[:MAX_CONTENT] or _shown(value), DROPPED, problem), notes
    confidence = confidence_of(value.get("confidence"))
    doubts = [NO_CONFIDENCE] if confidence is None and value.get("confidence") is not None else []
    doubts += [AFTER_A_BREAK] if item.doubtful else []
    references, ignored = _references(value.get("supersedes"))
    if ignored:
        notes.append("Left out what a fact wants to supersede, where that is no reference.")
    quote = _single(value.get("quote"))
    read = ReadFact(content, _text(value.get("type")), confidence, references, _text(quote), " ".join(doubts))
    return read, notes


def _problem(value: dict[str, Any], content: str) -> str:
    if not isinstance(value.get("content", ""), str):
        return f"Its content is {_name(value['content'])} in the model's reply, and not a text."
    if not content:
        return "It has no content."
    if len(content) > MAX_CONTENT:
        return f"Its content has {len(content):,} characters, and at most {MAX_CONTENT:,} are kept."
    if value.get("type") is not None and not isinstance(value["type"], str):
        return f"Its type is {_name(value['type'])} in the model's reply, and not a text."
    return ""


def confidence_of(value: Any) -> float | None:
    """A number from 0 to 1, or ``None``: nothing else is turned into one."""
    if isinstance(value, str):
        try:
            value = float(value[:20])
        except ValueError:
            return None
    return value if isinstance(value, float) and 0 <= value <= 1 else None


def _references(value: Any) -> tuple[tuple[str, ...], bool]:
    """What it supersedes, and whether something there is no reference."""
    entries = value if isinstance(value, list) else [] if value is None or value == "" else [value]
    read = [_text(entry) for entry in entries]
    kept = [reference for reference in read if 0 < len(reference) <= _MAX_REFERENCE][:MAX_REFERENCES]
    return tuple(dict.fromkeys(kept)), len(kept) < len(entries)


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(value: Any) -> str:
    return clean_text(value)[0].strip() if isinstance(value, str) else ""


def _name(value: Any) -> str:
    return "nothing" if value is None else _NAMES[type(value)]


def _shown(value: Any) -> str:
    """As much of something that is no fact as a person needs to recognise it."""
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        value = value["content"]
    try:
        shown = value if isinstance(value, str) else repr(value)
    except RecursionError:
        shown = ""
    return clean_text(shown)[0][:_EXCERPT]


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


# --- Finding the list --------------------------------------------------------------------------------------

_OPENING: Final = re.compile(r"\{(?=\s*[\"'/\w])|\[(?=\s*[{\]/])")
# Control characters may stand in strings. A whole number may have a million digits, which only ``float`` reads quickly.
_VALID: Final = json.JSONDecoder(strict=False, parse_int=float)
_RECURSION: Final = 1_000
_EMPTY: Final = re.compile(r"\s*(?:```\w{0,10}\s*)?\[\s*\]\s*(?:```\s*)?")
_THOUGHT: Final = re.compile(r"\s*<(think|thinking|reasoning)>")


# Some models set the quotation marks of their JSON as a printer would.
_TYPESET: Final = re.compile(r"[{\[,]\s{0,80}[“”„]")
_STRAIGHT: Final = str.maketrans(dict.fromkeys("“”„", '"'))


def _decoded(text: str) -> str:
    """Some models write their JSON as a string of JSON."""
    if not text.lstrip().startswith('"'):
        return text
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) else text


def _after_thinking(text: str) -> str:
    """Some models think aloud first, and draft their answer there."""
    if thought := _THOUGHT.match(text):
        return text[thought.end() :].partition(f"</{thought[1]}>")[2]
    return text


def _search(text: str, key: str, mark: str) -> Items | None:
    found: Items | None = None
    budget = _LOOKS * len(text) + 1_000
    false_starts = position = 0
    while budget > 0 and false_starts < _FALSE_STARTS and (opening := _OPENING.search(text, position)):
        start = opening.start()
        reader = _Reader(text, start, key)
        items = _items(reader, text, start, key, mark)
        budget -= reader.furthest - start + 1
        if items is None:
            false_starts += 1
            position = start + 1
        else:
            found = items if found is None else _both(found, items)
            position = reader.position
    return found


def _items(reader: _Reader, text: str, start: int, key: str, mark: str) -> Items | None:
    """What stands at ``start``, if it is the answer or a part of it. What is valid is taken as it is."""
    try:
        value, reader.position = _VALID.raw_decode(text, start)
        reader.furthest = reader.position
    except (ValueError, RecursionError) as error:
        reader.furthest = getattr(error, "pos", start + _RECURSION)
        try:
            value = reader.value(listed=True)
        except _Unreadable:
            return None
    entries = _entries(value, reader, key, mark)
    if entries is None and isinstance(value, list) and not value and _EMPTY.fullmatch(text):
        entries = []
    if entries is None:
        return None
    broken_at = len(entries) if reader.broken_at is None else reader.broken_at
    items = [Item(entry, doubtful=number >= broken_at) for number, entry in enumerate(entries)]
    return Items(items, reader.unread, reader.torn, reader.cut and not reader.closed)


def _entries(value: Any, reader: _Reader, key: str, mark: str) -> list[Any] | None:
    if isinstance(value, dict) and key in value:
        return _listed(value[key], mark)
    if isinstance(value, dict) and mark in value:
        if not reader.cut:
            return [value]
        reader.torn = value
        return []
    if isinstance(value, list) and any(isinstance(entry, dict) and mark in entry for entry in [*value, reader.torn]):
        return value
    return None


def _listed(value: Any, mark: str) -> list[Any] | None:
    if isinstance(value, dict):
        numbered = mark not in value and all(isinstance(entry, dict) for entry in value.values())
        return list(value.values()) if numbered else [value]
    return [] if value is None else value if isinstance(value, list) else None


def _both(one: Items, other: Items) -> Items:
    """Some models write an object for each fact, or a list for each type."""
    return Items(one.items + other.items, one.unread + other.unread, other.torn, one.cut or other.cut)


def _what_is_missing(text: str, key: str) -> str:
    if not text.strip():
        return "The model's reply is empty."
    if "{" not in text and "[" not in text:
        return "The model's reply holds no JSON."
    return f"The model's reply holds no list under {key!r} that could be read."


# --- Reading JSON as models write it -----------------------------------------------------------------------

_SPACE: Final = re.compile(r"[\s\x00-\x1f\ufeff]*(?://[^\n]*[\s\x00-\x1f]*)*")
_WORD: Final = re.compile(r"true|false|null|True|False|None|NaN|-?Infinity")
_WORDS: Final[dict[str, Any]] = {"true": True, "True": True, "false": False, "False": False}
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_BARE_KEY: Final = re.compile(r"[A-Za-z_]\w{0,40}(?=\s{0,8}:)")
_NEXT_ENTRY: Final = re.compile(r"\}\s{0,80},?\s{0,80}(?=\{\s{0,80}[\"']?\w{1,40}[\"']?\s{0,8}:)")
_STRING_PART: Final = {mark: re.compile(rf"[^\\{mark}]+") for mark in "\"'"}
_AFTER_KEY: Final = re.compile(r"\s*:")
# A name that was asked for, inside a value: a quotation mark was missing before it.
_RUN_TOGETHER: Final = re.compile(
    r"[\"'](?:content|type|confidence|supersedes|quote|number|exclusion|text|attributed_to)[\"']\s{0,8}:"
)
# What may follow the last quotation mark of a string, and not a quotation mark inside it.
_GAP: Final = r"[\s\x00-\x1f]*+"
_NAMED: Final = r"[\"']\w{1,40}[\"']\s{0,8}:"
_TAIL: Final = rf",?{_GAP}(?:[\"']\w{{0,40}}[\"']?{_GAP})?\Z"
_AFTER_VALUE: Final = {
    "object": re.compile(rf"{_GAP}(?:\}}|,{_GAP}(?:\}}|{_NAMED})|{_NAMED}|{_TAIL})"),
    "object of bare names": re.compile(rf"{_GAP}(?:\}}|,{_GAP}(?:\}}|\w{{1,40}}\s{{0,8}}:)|,?{_GAP}\Z)"),
    "list": re.compile(rf"{_GAP}(?:\]|,{_GAP}[\"'\]{{\[]|,?{_GAP}\Z)"),
}
# Once a string has had quotation marks inside it, a brace behind the next one may belong to the text as well.
_CLOSED: Final = rf",?{_GAP}\}}{_GAP}(?:,{_GAP}(?:[{{\"'\]}}/]|\Z)|[\]}}{{]|\Z)"
_AFTER_INNER_MARKS: Final = re.compile(rf"{_GAP}(?:{_CLOSED}|,{_GAP}{_NAMED}|{_NAMED}|{_TAIL})")
# Underscores are escaped in Markdown.
_ESCAPES: Final = {
    "_": "_",
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "/": "/",
    "\\": "\\",
    '"': '"',
    "'": "'",
}
_HEXADECIMAL: Final = re.compile(r"u([0-9a-fA-F]{4})")


class _Unreadable(Exception):
    """No JSON here, and none that a safe repair makes."""


class _Reader:
    """Reads one value. Where the text ends too early, ``cut`` is set and what there is of the value comes back.

    The list that is asked for, under ``key`` or the outermost, goes on behind an entry that cannot be read, and is
    ``closed`` once nothing more of it is to come.
    """

    def __init__(self, text: str, position: int, key: str) -> None:
        self.text = text
        self.position = position
        self.furthest = position
        self.cut = False
        self.torn: Any = None
        self.unread: list[str] = []
        self.broken_at: int | None = None
        self.closed = False
        self._key = key

    def value(self, *, inside: str = "list", depth: int = 0, listed: bool = False) -> Any:
        character = self._next()
        if character == "":
            self.cut = True
            return None
        if depth > _DEPTH:
            raise self._lost()
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._list(depth, goes_on=listed)
        if character in "\"'":
            return self._string(_AFTER_VALUE[inside], _AFTER_INNER_MARKS if inside == "object" else None)
        return self._plain()

    def _object(self, depth: int) -> dict[str, Any]:
        self.position += 1
        found: dict[str, Any] = {}
        while (character := self._next()) != "}":
            if character == ",":
                self.position += 1
                continue
            name = self._key_name(character)
            if self.cut:
                return found
            if self._next() != ":":
                raise self._lost()
            self.position += 1
            inside = "object" if character in "\"'" else "object of bare names"
            value = self.value(inside=inside, depth=depth + 1, listed=depth == 0 and name == self._key)
            if not self.cut or value is not None:
                found[name] = value
            if self.cut:
                return found
        self.position += 1
        return found

    def _key_name(self, character: str) -> str:
        if character == "":
            self.cut = True
            return ""
        if character in "\"'":
            return self._string(_AFTER_KEY)
        bare = _BARE_KEY.match(self.text, self.position)
        if bare is None:
            raise self._lost()
        self.position = bare.end()
        return bare[0]

    def _list(self, depth: int, *, goes_on: bool) -> list[Any]:
        self.position += 1
        found: list[Any] = []
        while (character := self._next()) != "]":
            if character == "":
                self.cut = True
                return found
            if character == ",":
                self.position += 1
                continue
            start = self.position
            try:
                value = self.value(inside="list", depth=depth + 1)
            except _Unreadable:
                if not goes_on or not self._find_next_entry(start, len(found)):
                    raise
                if self.closed:
                    return found
                continue
            if self.cut:
                self.torn = value
                return found
            found.append(value)
        self.position += 1
        self.closed = self.closed or goes_on
        return found

    def _find_next_entry(self, start: int, count: int) -> bool:
        """Whether the list is worth keeping. It is closed where no object follows that may be its next entry."""
        following = _NEXT_ENTRY.search(self.text, self.position)
        if following is None and not count:
            return False
        self.unread.append(clean_text(self.text[start : start + _EXCERPT])[0])
        self.broken_at = count if self.broken_at is None else self.broken_at
        self.closed = following is None
        self.position = following.end() if following else len(self.text)
        self.furthest = max(self.furthest, self.position)
        return True

    def _string(self, after: re.Pattern[str], after_inner_marks: re.Pattern[str] | None = None) -> str:
        mark = self.text[self.position]
        plain = _STRING_PART[mark]
        self.position += 1
        parts: list[str] = []
        first_inner: int | None = None
        while self.position < len(self.text):
            if run := plain.match(self.text, self.position):
                parts.append(run[0])
                self.position = run.end()
            elif self.text[self.position] == "\\":
                parts.append(self._escaped())
            else:
                self.position += 1
                if after.match(self.text, self.position):
                    self.furthest = max(self.furthest, self.position)
                    return "".join(parts)
                if first_inner is None:
                    first_inner, after = self.position, after_inner_marks or after
                if after is not _AFTER_KEY and _RUN_TOGETHER.match(self.text, self.position - 1):
                    self.furthest, self.position = max(self.furthest, self.position), first_inner
                    raise _Unreadable
                parts.append(mark)
        self.cut = True
        self.furthest = self.position
        return "".join(parts)

    def _escaped(self) -> str:
        character = self.text[self.position + 1 : self.position + 2]
        if number := _HEXADECIMAL.match(self.text, self.position + 1):
            self.position = number.end()
            return chr(int(number[1], 16))
        self.position += 2
        # A backslash before anything else is a path or a pattern whose backslash was not doubled.
        return _ESCAPES.get(character, f"\\{character}")

    def _plain(self) -> Any:
        if word := _WORD.match(self.text, self.position):
            self.position = word.end()
            return _WORDS.get(word[0])
        number = _NUMBER.match(self.text, self.position)
        if number is None:
            raise self._lost()
        self.position = number.end()
        return float(number[0])

    def _next(self) -> str:
        space = _SPACE.match(self.text, self.position)
        assert space is not None  # it matches nothing, too  # noqa: S101
        self.position = space.end()
        self.furthest = max(self.furthest, self.position)
        return self.text[self.position : self.position + 1]

    def _lost(self) -> _Unreadable:
        self.furthest = max(self.furthest, self.position)
        return _Unreadable()
