"""Long material, cut on its own structure into parts that a model can read.

``readable`` turns an exported session (JSON lines, or one JSON document) into ``speaker: text`` turns and leaves any
other text as it is. ``parts_of`` cuts what ``readable`` gives. A text is walked in windows of one budget, so time is
linear in its length and, beside the text and the answer, memory is one window.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from apps.core.screening import clean_text
from apps.core.tokens import ASCII_WEIGHT, BYTE_WEIGHT, TOKEN, weight_of

MIN_BUDGET: Final = 32
# A character is four bytes of UTF-8 at most.
_HEAVIEST: Final = 4 * BYTE_WEIGHT


@dataclass(frozen=True, slots=True)
class Part:
    """``text`` is ``readable(…)[start:end]``, without blank edges.

    ``heading`` says what the part stands under: the Markdown headings that enclose its start, outermost first and
    joined by `` > ``, and the speaker if the part begins inside somebody's turn. It may be empty.
    """

    text: str
    start: int
    end: int
    heading: str


def _reach(text: str, start: int, weight: int) -> int:
    """The furthest position such that what lies between it and ``start`` weighs no more than ``weight``."""
    size = weight // ASCII_WEIGHT
    window = text[start : start + size]
    if weight_of(window) <= weight:
        return start + len(window)
    low, high = weight // _HEAVIEST, len(window)
    while high - low > 1:
        middle = (low + high) // 2
        if weight_of(window[:middle]) <= weight:
            low = middle
        else:
            high = middle
    return start + max(low, 1)


# --- Structure ---------------------------------------------------------------------------------------------

UNSPOKEN_KINDS: Final = frozenset({"document", "rules_file", "commit"})

_TIME: Final = r"(?:\d{4}-\d\d-\d\d[T ])?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,6})?(?: ?[AaPp]\.?[Mm]\.?)?Z?"
_NAME: Final = (
    r"@?[^\W\d_][\w.'’-]{0,30}"
    r"(?:[ \t](?:[^\Wa-z_][\w.'’-]{0,30}|von|van|de|der|den|da|do|dos|la|bin|al|\([^()\n]{1,30}\))){0,3}"
)
SPEAKER: Final = re.compile(
    rf"^[ \t]{{0,3}}(?:[\[(]?{_TIME}[\])]?[ \t]{{1,4}}(?:-[ \t])?)?"
    rf"(?:\*{{0,2}}(?P<said>{_NAME})(?:[ \t][\[(]{_TIME}[\])])?\*{{0,2}}(?::\*{{0,2}}(?=\s|\Z)|：)"
    rf"|<(?!@)(?P<typed>{_NAME})>(?=[ \t])"
    rf"|\*{{0,2}}(?P<posted>{_NAME})\*{{0,2}}[ \t]{{1,4}}(?:APP[ \t]{{1,2}})?[\[(]?{_TIME}[\])]?[ \t]{{0,4}}$)",
    re.MULTILINE,
)
_WIDE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_WIDE_NAME: Final = 8  # what is longer in these scripts is the beginning of a sentence
# Words that stand before a colon as a speaker does and name what follows.
_LABELS: Final = """
    login passphrase passwd password passwort pin pw pwd secret token
    action actions alternatives answer caveat cause cc changes closes conclusion consequence consequences context cure
    decided decision decisions details edit edited example examples fix fixes follow-up followup fyi goal goals hint
    hinweis impact important info issue lesson lessons link links mitigation nb note notes notice option options
    outcome owner owners policy problem proposal ps question rationale reason reasons refs related reminder resolution
    result results risk risks root rule rules see solution source status subject summary symptom symptoms background
    timeline title tl;dr tldr todo topic trigger update usage warning why workaround entscheidung grund begründung
    ursache regel beschluss décision raison règle decisión motivo regla razón decisão regra razão causa 決定 理由
    結論 原因 背景 决定 结论 规则
"""
LABELS: Final = frozenset(_LABELS.split())
_MARK: Final = re.compile(
    r"^[ ]{0,3}(?:(?P<fence>```|~~~)|(?:(?P<marks>#{1,6})|h(?P<level>[1-6])\.)[ \t]{1,20}(?P<title>\S[^\n]{0,200}))",
    re.MULTILINE,
)
_PARAGRAPH: Final = re.compile(r"\n[ \t\r]*\n\s*")
SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]*_`]{0,4}\s+(?=\S)|[。！？][」』）\"”]{0,2}\s*")
_LINE_ROOM: Final = 300


@dataclass(frozen=True, slots=True)
class _Mark:
    """A heading (``level`` 1 to 6) or the beginning of a turn (``level`` 0) at ``position``."""

    position: int
    level: int
    title: str


class _Outline:
    """Reads headings and speakers in one pass, ahead of the part that is being cut."""

    def __init__(self, text: str, kind: str) -> None:
        self._text = text
        self._patterns = (_MARK,) if kind in UNSPOKEN_KINDS else (_MARK, SPEAKER)
        self._read_to = 0
        self._fenced = False
        self._titles: list[tuple[int, str]] = []
        self._speaker = ""
        self._ahead: list[_Mark] = []

    def marks_to(self, position: int) -> list[_Mark]:
        """The marks that have not been passed yet and stand before ``position``."""
        if position > self._read_to:
            found = [match for pattern in self._patterns for match in self._matches(pattern, position)]
            for match in sorted(found, key=lambda match: match.start()):
                self._take(match)
            self._read_to = position
        return [mark for mark in self._ahead if mark.position < position]

    def _matches(self, pattern: re.Pattern[str], position: int) -> Iterator[re.Match[str]]:
        for match in pattern.finditer(self._text, self._read_to, min(len(self._text), position + _LINE_ROOM)):
            if match.start() >= position:
                return
            yield match

    def _take(self, match: re.Match[str]) -> None:
        groups = match.groupdict()
        if groups.get("fence"):
            self._fenced = not self._fenced
        elif self._fenced:
            return
        elif title := groups.get("title"):
            level = len(groups["marks"]) if groups["marks"] else int(groups["level"])
            self._ahead.append(_Mark(match.start(), level, title.rstrip(" \t\r#")))
        elif "said" in groups and (speaker := speaker_of(match)):
            self._ahead.append(_Mark(match.start(), 0, speaker))

    def heading_at(self, position: int) -> str:
        """What stands over ``position``; what was passed is forgotten."""
        opens = any(mark.position == position for mark in self._ahead)
        passed = [mark for mark in self._ahead if mark.position < position]
        self._ahead = self._ahead[len(passed) :]
        for mark in passed:
            if mark.level:
                self._titles = [title for title in self._titles if title[0] < mark.level]
                self._titles.append((mark.level, mark.title))
            self._speaker = "" if mark.level else mark.title
        speaker = [] if opens or not self._speaker else [self._speaker]
        return " > ".join([*(title for _, title in self._titles), *speaker])


def speaker_of(match: re.Match[str]) -> str:
    """The name that a match of ``SPEAKER`` found, or an empty string where it is a label such as ``Decision:``."""
    name = (match["said"] or match["typed"] or match["posted"]).strip("* ")
    if name.casefold().split(" ")[0] in LABELS or (_WIDE.search(name) and len(name) > _WIDE_NAME):
        return ""
    return name


# --- Parts -------------------------------------------------------------------------------------------------


def parts_of(text: str, kind: str, *, budget: int) -> list[Part]:
    """Cut ``readable(text, kind)`` into parts of at most ``budget`` estimated tokens, in order and without a gap.

    A part ends before a heading, else before a turn, a paragraph, a line, a sentence or a word, whichever comes first
    in this list and stands in the second half of what fits. Only where a paragraph had to be cut does the next part
    repeat the end of the one before, up to a tenth of the budget. Raises ``ValueError`` for a budget below 32.
    """
    if budget < MIN_BUDGET:
        raise ValueError(f"A budget of {budget} tokens is too small to cut by: give at least {MIN_BUDGET}.")
    text = readable(text, kind)
    outline = _Outline(text, kind)
    parts: list[Part] = []
    begin = cut = 0
    while cut < len(text):
        heading = outline.heading_at(cut)
        end = _reach(text, begin, budget * TOKEN)
        inside = False
        if end < len(text):
            middle = max(begin + (end - begin) // 2, cut + 1)
            end, inside = _best_cut(text, middle, end, outline)
        if part := _part(text, begin, end, heading):
            parts.append(part)
        begin = _repeated_from(text, cut, end, budget, outline) if inside else end
        cut = end
    return parts


def _part(text: str, start: int, end: int, heading: str) -> Part | None:
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return None
    start += len(piece) - len(piece.lstrip())
    return Part(stripped, start, start + len(stripped), heading)


def _best_cut(text: str, low: int, high: int, outline: _Outline) -> tuple[int, bool]:
    """Where to cut in ``[low, high]``, and whether that is inside a paragraph."""
    marks = [mark for mark in outline.marks_to(high + 1) if mark.position >= low]
    if headings := [mark for mark in marks if mark.level]:
        highest = min(mark.level for mark in headings)
        return max(mark.position for mark in headings if mark.level == highest), False
    if marks:
        return marks[-1].position, False
    if paragraph := _last_end(_PARAGRAPH, text, low, high):
        return paragraph, False
    if line := text.rfind("\n", low, high) + 1:
        return line, True
    if sentence := _last_end(SENTENCE_END, text, low, high):
        return sentence, True
    return text.rfind(" ", low, high) + 1 or high, True


def _last_end(pattern: re.Pattern[str], text: str, low: int, high: int) -> int:
    end = 0
    for match in pattern.finditer(text, low, high):
        end = match.end()
    return end


def _repeated_from(text: str, low: int, cut: int, budget: int, outline: _Outline) -> int:
    """Where the part after ``cut`` begins: a sentence or word before it, never before the paragraph that was cut."""
    room = budget * TOKEN // 10
    low = max(low, cut - room // ASCII_WEIGHT)
    if turns := [mark.position for mark in outline.marks_to(cut) if mark.position >= low]:
        low = turns[-1]
    low = max(low, _last_end(_PARAGRAPH, text, low, cut))
    while weight_of(text[low:cut]) > room:
        low += max(1, (cut - low) // 8)
    if low == 0 or text[low - 1] == "\n":
        return low
    for pattern in (re.compile(r"\n"), SENTENCE_END, re.compile(r"\s")):
        if (found := pattern.search(text, low, cut)) and found.end() < cut:
            return found.end()
    return low


# --- Sessions ----------------------------------------------------------------------------------------------

_NEVER_SESSIONS: Final = frozenset({"rules_file", "commit"})
_PROBED: Final = 50
_LIST_KEY: Final = re.compile(r"\"(?:loglines|messages|turns|entries)\"\s{0,9}:\s{0,9}\[")
_HEAD: Final = 4000
_NEXT: Final = re.compile(r"[\s,]*")
_SPACE: Final = re.compile(r"\s*")
_PROSE: Final = re.compile(r"\s*\w[\w ]{0,40}: ")

_ROLES: Final = {"user": "user", "human": "user", "assistant": "assistant", "agent": "assistant", "ai": "assistant"}
_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})
_MEMBERSHIP: Final = ("channel_", "group_", "bot_add", "bot_remove", "pinned_item", "reminder_add", "tombstone")
# What a client writes into a session in the name of the user.
_CLIENT_TEXTS: Final = (
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<user-prompt-submit-hook>",
    "<environment_context>",
    "<user_instructions>",
    "Caveat: The messages below were generated by the user while running local commands",
    "[Request interrupted by user",
)
_REMINDER: Final = ("<system-reminder>", "</system-reminder>")

_decoder: Final = json.JSONDecoder()


def readable(text: str, kind: str) -> str:
    """An exported session as turns ``user: …`` and ``assistant: …`` with a blank line between; any other text as it is.

    Read are the JSON lines of coding agents, one document with its list of messages, and a day of a Slack export.
    Tool calls and their results, thinking, and what the client wrote about itself are left out, and so is what no
    column can store once it is decoded. A line that is no JSON is kept word for word behind ``unreadable:``. What was
    made readable once is not changed by a second call.
    """
    if kind in _NEVER_SESSIONS or not (entries := _entries(text)):
        return text
    return "\n\n".join(clean_text(turn)[0] for turn in map(_turn, entries) if turn)


def _entries(text: str) -> Iterator[Any] | None:
    """The entries of a session one by one, or ``None`` if this is none. A broken entry is a ``_Broken``."""
    begin = _SPACE.match(text).end()  # type: ignore[union-attr]  # it matches everywhere
    first = text[begin : begin + 1]
    if first == "[":
        return _probed(text, begin + 1)
    if first == "{" and (inside := _LIST_KEY.search(text, begin, begin + _HEAD)) and _is_one_document(text, begin):
        return _probed(text, inside.end())
    if not first or _PROSE.match(text[begin : begin + 60]):
        return None
    probes = [_parsed(line) for line, _ in zip(_lines(text, begin), range(_PROBED), strict=False)]
    parsed = sum(not isinstance(probe, _Broken) for probe in probes)
    if 2 * parsed < len(probes) or not any(map(_is_entry, probes)):
        return None
    return map(_parsed, _lines(text, begin))


@dataclass(frozen=True, slots=True)
class _Broken:
    text: str


def _lines(text: str, begin: int) -> Iterator[str]:
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        if line := text[begin:end].strip():
            yield line
        begin = end + 1


def _parsed(line: str) -> Any:
    try:
        return _decoder.decode(line)
    except (ValueError, RecursionError):
        return _Broken(line)


def _is_one_document(text: str, begin: int) -> bool:
    """Whether the object goes on past its first line, or is alone on it."""
    end = text.find("\n", begin)
    if end < 0 or _SPACE.match(text, end).end() == len(text):  # type: ignore[union-attr]  # it matches everywhere
        return True
    return isinstance(_parsed(text[begin:end]), _Broken)


def _probed(text: str, begin: int) -> Iterator[Any] | None:
    probes = [entry for entry, _ in zip(_elements(text, begin), range(_PROBED), strict=False)]
    return _elements(text, begin) if any(map(_is_entry, probes)) else None


def _elements(text: str, begin: int) -> Iterator[Any]:
    """The elements of a JSON array from behind its bracket, decoded one at a time."""
    while True:
        begin = _NEXT.match(text, begin).end()  # type: ignore[union-attr]  # it matches everywhere
        if begin >= len(text) or text[begin] == "]":
            return
        try:
            element, begin = _decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            yield _Broken(text[begin:].strip())
            return
        yield element


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    payload = entry.get("payload")
    message = payload if isinstance(payload, dict) else entry.get("message")
    of_session = isinstance(message, dict) and (
        "content" in message or message.get("role") in _ROLES or "sessionId" in entry or entry.get("type") in _ROLES
    )
    of_chat = entry.get("type") == "message" and isinstance(entry.get("text"), str)
    return of_session or of_chat or (entry.get("role") in _ROLES and "content" in entry)


def _turn(entry: Any) -> str:
    if isinstance(entry, _Broken):
        return f"unreadable: {entry.text}"
    if not isinstance(entry, dict) or entry.get("isMeta"):
        return ""
    if entry.get("type") == "message" and isinstance(entry.get("text"), str):
        return _posted(entry)
    holder = next((entry[key] for key in ("message", "payload") if isinstance(entry.get(key), dict)), entry)
    role = holder.get("role") or entry.get("role") or entry.get("type")
    speaker = _ROLES.get(role) if isinstance(role, str) else None
    if speaker is None:
        return ""
    if entry.get("isCompactSummary"):
        speaker = "summary"
    said = "\n\n".join(_texts(holder.get("content")))
    return f"{speaker}: {said}" if said else ""


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        blocks: list[Any] = [content]
    elif isinstance(content, list):
        blocks = content
    else:
        return
    for block in blocks:
        text = block if isinstance(block, str) else _block_text(block)
        text = _without_reminders(text).strip()
        if text and not text.startswith(_CLIENT_TEXTS):
            yield text


def _block_text(block: Any) -> str:
    if isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS and isinstance(block.get("text"), str):
        return str(block["text"])
    return ""


def _without_reminders(text: str) -> str:
    opening, closing = _REMINDER
    kept: list[str] = []
    begin = 0
    while (start := text.find(opening, begin)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept.append(text[begin:start])
        begin = end + len(closing)
    return "".join([*kept, text[begin:]])


def _posted(entry: dict[str, Any]) -> str:
    """A message of a Slack export. Joins, topics and the like say nothing."""
    text = html.unescape(str(entry["text"])).strip()
    subtype = entry.get("subtype")
    if not text or (isinstance(subtype, str) and subtype.startswith(_MEMBERSHIP)):
        return ""
    profile = entry.get("user_profile")
    names = [profile.get("real_name"), profile.get("name")] if isinstance(profile, dict) else []
    names += [entry.get("username"), entry.get("user"), entry.get("bot_id")]
    speaker = next((name for name in names if isinstance(name, str) and name.strip()), "somebody")
    return f"{' '.join(speaker.split())[:60]}: {text}"
