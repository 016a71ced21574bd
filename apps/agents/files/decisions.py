"""A decision record as one statement: its title, its text and what it says of its own status.

Read are MADR (front matter, ``## Decision Outcome``), Nygard's form (``## Status``, ``## Decision``) and the header
lines of PEPs and KEPs. What becomes of a status is what ``import_records`` makes of it: it stays in the text, and what
was turned down is a rejected approach.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from apps.agents.files.formats import Format
from apps.agents.files.front_matter import Head, head_of, headers_of
from apps.agents.files.markers import unmerged
from apps.agents.files.reading import BROKEN, CODE, Skipped
from apps.approvals.importing.records import TURNED_DOWN
from apps.core.screening import clean_text
from apps.memories.models import MAX_CONTENT, Tier

EMPTY: Final = "There is no text under its title."
CUT: Final = f"It was cut at {MAX_CONTENT[Tier.INDEX]:,} characters."
_MAX_TITLE: Final = 300

_HEADING: Final = re.compile(r"[ ]{0,3}#{1,6}[ \t]+(?P<title>.*)")
_UNDERLINE: Final = re.compile(r"(?:={3,}|-{3,}|~{3,})[ \t]*")
_FENCE: Final = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})")
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Lines that say who, when and in which state; Nygard's and MADR's older form write them under the title.
_FACT: Final = re.compile(
    r"[ \t]*(?:[-*][ \t]+)?(?:\*\*|__)?(?P<name>status|date|deciders?|decision[- ]makers?|consulted|informed|authors?"
    r"|supersedes|replaces|technical story|tags)(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(?P<value>.*)",
    re.IGNORECASE,
)
_NAMES_OLD: Final = re.compile(r"\b(?:supersed(?:es|ing)|replac(?:es|ing))\b:?(?P<rest>[^.\n]{0,200})", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(?<![\w.])(?:(?:adr|pep|kep|rfc)[-_ #]?)?0*(?P<number>\d{1,5})(?![\d%])", re.IGNORECASE)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d{1,2}-[A-Z][a-z]{2}-\d{4}")
_STATUS_LOOKED_AT: Final = 500
_STATUS: Final = re.compile(r"[a-z][a-z -]{2,30}")


@dataclass(frozen=True, slots=True)
class Decision:
    """``replaces`` are the numbers of records that it says it replaces; a proposal may wish for no more than that."""

    title: str
    content: str
    status: str
    held_from: datetime | None
    replaces: tuple[int, ...]
    skipped: tuple[Skipped, ...]
    format: Format = Format.DECISION

    @property
    def is_turned_down(self) -> bool:
        return self.status in TURNED_DOWN

    @property
    def tier(self) -> str:
        return Tier.DURABLE if len(self.content) <= MAX_CONTENT[Tier.DURABLE] else Tier.INDEX


def decision_read(content: str) -> Decision:
    """What a decision record says. ``content`` is empty where it has a title and no text."""
    text, faults = unmerged(clean_text(content)[0].removeprefix("\ufeff"))
    skipped = [Skipped(line, BROKEN) for line in faults]
    lines = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text).split("\n")
    head = head_of(lines)
    if not head.lines:
        head = headers_of(lines)
    body, facts = _without_facts(_without_code(lines[head.lines :], head.lines, skipped))
    title, body = _titled(body, head)
    status = _status(head.first("status") or facts.get("status", ""))
    if not "".join(body).strip():
        return Decision(title, "", status, None, (), (*skipped, Skipped(1, EMPTY)))
    said = "\n".join(body).strip()
    told = f"\n\nStatus where it was written: {status}." if status else ""
    whole = f"{title}\n\n{re.sub(chr(10) + '{3,}', chr(10) * 2, said)}"
    room = MAX_CONTENT[Tier.INDEX] - len(told)
    if len(whole) > room:
        skipped.append(Skipped(1, CUT))
        whole = whole[:room].rstrip()
    old = " ".join([*head.every("supersedes", "replaces"), facts.get("supersedes", ""), facts.get("replaces", "")])
    named = [*_NUMBER.finditer(old), *_named_in(facts.get("status", ""))]
    return Decision(
        title=title,
        content=whole + told,
        status=status,
        held_from=_moment(head.first("date", "created", "creation-date") or facts.get("date", "")),
        replaces=tuple(dict.fromkeys(int(found["number"]) for found in named)),
        skipped=tuple(skipped),
    )


def _without_code(lines: list[str], before: int, skipped: list[Skipped]) -> list[str]:
    kept: list[str] = []
    marks = ""
    for number, line in enumerate(lines, start=before + 1):
        fence = _FENCE.match(line)
        if marks:
            marks = "" if fence and line.strip() == fence["marks"] and fence["marks"].startswith(marks) else marks
        elif fence:
            marks = fence["marks"]
            skipped.append(Skipped(number, CODE))
        else:
            kept.append(line)
    return kept


def _without_facts(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    """The text without who, when and status; these by name. A section named Status is one of them."""
    kept: list[str] = []
    facts: dict[str, str] = {}
    in_status = False
    for line in lines:
        heading = _HEADING.fullmatch(line)
        if heading:
            in_status = heading["title"].strip(" #*:").lower() == "status"
            if not in_status:
                kept.append(line)
        elif fact := _FACT.fullmatch(line) if len(kept) < _FACTS_WITHIN or in_status else None:
            facts.setdefault(fact["name"].lower(), fact["value"].strip(" *_"))
        elif in_status:
            facts["status"] = f"{facts.get('status', '')} {line.strip()}".strip()
        else:
            kept.append(line)
    return kept, facts


_FACTS_WITHIN: Final = 30


def _titled(lines: list[str], head: Head) -> tuple[str, list[str]]:
    """The title and the rest. Without a heading it is the head's, and without one there the first line."""
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return head.first("title")[:_MAX_TITLE], []
    heading = _HEADING.fullmatch(lines[first])
    underlined = first + 1 < len(lines) and _UNDERLINE.fullmatch(lines[first + 1]) is not None
    named = head.first("title")
    if heading or (underlined and not named):
        title = heading["title"].strip(" #") if heading else lines[first].strip()
        return title[:_MAX_TITLE], lines[first + 1 + (underlined and not heading) :]
    if named:
        return named[:_MAX_TITLE], lines[first:]
    return lines[first].strip()[:_MAX_TITLE], lines[first + 1 :]


def _status(text: str) -> str:
    """The word or two that a status begins with: “accepted” of “Accepted, supersedes ADR-3”."""
    bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text[:_STATUS_LOOKED_AT]).strip(" *_.\"'").lower()
    found = _STATUS.match(bare)
    if not found:
        return ""
    words = found[0].split()
    if words[0] in ("superseded", "replaced"):
        return bare[:100].rstrip(" .")
    return words[0]


def _named_in(status: str) -> list[re.Match[str]]:
    """Numbers behind “supersedes”, and not those behind “superseded by”."""
    return [number for said in _NAMES_OLD.finditer(status) for number in _NUMBER.finditer(said["rest"])]


def _moment(text: str) -> datetime | None:
    found = _DATE.search(text)
    if not found:
        return None
    try:
        day = date.fromisoformat(found[0])
    except ValueError:
        try:
            day = datetime.strptime(found[0], "%d-%b-%Y").replace(tzinfo=UTC).date()
        except ValueError:
            return None
    return datetime.combine(day, time(), tzinfo=UTC)
