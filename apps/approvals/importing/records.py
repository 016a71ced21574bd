"""Files of decision records, read line by line.

Two shapes are understood: decision records (``id, title, text``, and ``decision, repo, date, status``), and BEIR
rows (``_id, title, text`` with ``metadata``). What a record says of itself stays in its text; secrets and personal
data are masked before anything else happens to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final

from apps.core.screening import clean_text, find_personal, find_secrets, mask
from apps.memories.models import MAX_CONTENT, Tier

READ: Final = frozenset(
    {"id", "_id", "title", "text", "decision", "status", "memory_type", "repo", "date", "commit", "set", "metadata"}
)
READ_OF_METADATA: Final = frozenset({"repo", "project"})
READ_OF_EDGES: Final = frozenset({"old", "new", "kind", "effective", "stated_in", "new_date", "set"})
MAX_LINE: Final = 4 * 1024 * 1024
TURNED_DOWN: Final = frozenset({"rejected", "withdrawn"})


@dataclass(frozen=True, slots=True)
class Record:
    """One record, ready to be stored. ``notes`` say what was changed on the way in, ``unread`` which keys were not.

    ``type`` is the firm type that it names, by either spelling; without one its status decides.
    """

    line: int
    reference: str
    title: str
    content: str
    tier: str
    repos: tuple[str, ...]
    domains: tuple[str, ...]
    held_from: datetime | None
    is_turned_down: bool
    commit: str | None
    notes: tuple[str, ...]
    unread: tuple[str, ...] = ()
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that cannot be taken, and why, as a sentence."""

    line: int
    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A claim that one record replaces, partly replaces or amends another. ``held_from`` ends the old one."""

    line: int
    old: str
    new: str
    kind: str
    effective: bool
    held_from: datetime | None
    unread: tuple[str, ...] = ()


class Unreadable(ValueError):
    """A field of a line will not do; the message is the sentence for the report."""


def read_records(path: Path, *, only_set: str | None = None) -> Iterator[Record | Refused]:
    """Stream the file; a line that will not do is a ``Refused`` and the rest goes on."""
    for line, row in _rows(path):
        if isinstance(row, Refused):
            yield row
        elif only_set is None or row.get("set") == only_set:
            try:
                yield _record(line, row)
            except Unreadable as problem:
                yield Refused(line, str(row.get("id") or row.get("_id") or "")[:200], str(problem))


def read_edges(path: Path, *, only_set: str | None = None) -> Iterator[Edge | Refused]:
    """Stream the claims; of those that say which set they belong to, only the one asked for."""
    for line, row in _rows(path):
        if isinstance(row, Refused):
            yield row
            continue
        if only_set is not None and row.get("set", only_set) != only_set:
            continue
        try:
            yield _edge(line, row)
        except Unreadable as problem:
            yield Refused(line, f"{row.get('new')} → {row.get('old')}"[:200], str(problem))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | Refused]]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if raw.strip():
                yield number, _row(number, raw)


def _row(number: int, raw: bytes) -> dict[str, Any] | Refused:
    if len(raw) > MAX_LINE:
        return Refused(number, "", f"The line is longer than {MAX_LINE:,} bytes.")
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError):
        return Refused(number, "", "The line is not JSON.")
    return row if isinstance(row, dict) else Refused(number, "", "The line is not a JSON object.")


def _record(line: int, row: dict[str, Any]) -> Record:
    notes: list[str] = []
    reference = _text(row, "id" if "id" in row else "_id", notes).strip()
    if not reference:
        raise Unreadable("It has no id, which is the reference it would be found by.")
    if len(reference) > 500:
        raise Unreadable("Its id is longer than 500 characters.")
    metadata = row.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    status = _text(row, "status", notes).strip().lower()
    content, tier = _content(row, status, notes)
    return Record(
        line=line,
        reference=reference,
        title=" ".join(_text(row, "title", notes).split())[:500],
        content=content,
        tier=tier,
        repos=_names(row.get("repo") or metadata.get("repo")),
        domains=_names(metadata.get("project")),
        held_from=_begun(row.get("date"), notes),
        is_turned_down=status in TURNED_DOWN,
        commit=str(row["commit"])[:64] if isinstance(row.get("commit"), str) and row["commit"] else None,
        notes=tuple(dict.fromkeys(notes)),
        type=_text(row, "memory_type", notes).strip()[:100] or None,
        unread=(*_beyond(row, READ), *(f"metadata.{name}" for name in _beyond(metadata, READ_OF_METADATA))),
    )


def _beyond(row: dict[str, Any], read: frozenset[str]) -> tuple[str, ...]:
    return tuple(name[:60] for name in row if name not in read)


def _content(row: dict[str, Any], status: str, notes: list[str]) -> tuple[str, str]:
    """Title, text, decision and the record's own status; durable if it fits, else an index card."""
    parts = [_text(row, "title", notes), _text(row, "text", notes)]
    decision = _text(row, "decision", notes)
    if decision.strip():
        parts.append(f"Decision: {decision}")
    if status:
        parts.append(f"Status where it was written: {status}.")
    content = "\n\n".join(part.strip() for part in parts if part.strip())
    if not content:
        raise Unreadable("It has neither title nor text.")
    if len(content) > MAX_CONTENT[Tier.INDEX]:
        notes.append(f"cut at {MAX_CONTENT[Tier.INDEX]:,} characters")
        content = content[: MAX_CONTENT[Tier.INDEX]]
    return content, Tier.DURABLE if len(content) <= MAX_CONTENT[Tier.DURABLE] else Tier.INDEX


def _text(row: dict[str, Any], name: str, notes: list[str]) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable(f"Its {name} is not text.")
    cleaned, what = clean_text(value)
    notes.extend(what)
    findings = [*find_secrets(cleaned), *find_personal(cleaned)]
    if findings:
        notes.extend(f"masked: {finding.kind}" for finding in findings)
        cleaned = mask(cleaned, findings)
    return cleaned


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, str) or not value.strip():
        return ()
    return (" ".join(clean_text(value)[0].split())[:200],)


def _begun(value: Any, notes: list[str]) -> datetime | None:
    """A record is worth more than its date: one that is none is left out, and that is reported."""
    try:
        return _moment(value, "date")
    except Unreadable:
        notes.append("imported without a date, because what it gives is none such as 2024-05-31")
        return None


def _moment(value: Any, name: str) -> datetime | None:
    if value in (None, ""):
        return None
    try:
        return datetime.combine(date.fromisoformat(str(value)[:10]), time(), tzinfo=UTC)
    except ValueError:
        raise Unreadable(f"Its {name} is not a date such as 2024-05-31.") from None


def _edge(line: int, row: dict[str, Any]) -> Edge:
    old, new, kind = (row.get(name) for name in ("old", "new", "kind"))
    if not isinstance(old, str) or not isinstance(new, str) or not old or not new:
        raise Unreadable("It does not name an old and a new record.")
    if kind not in ("supersedes", "partially_supersedes", "amends"):
        raise Unreadable("Its kind is none of supersedes, partially_supersedes, amends.")
    stated = row.get("stated_in")
    stated_on = stated.get("date") if isinstance(stated, dict) else None
    return Edge(
        line=line,
        old=old,
        new=new,
        kind=str(kind),
        effective=row.get("effective") is True,
        held_from=_moment(stated_on or row.get("new_date"), "date"),
        unread=_beyond(row, READ_OF_EDGES),
    )
