"""The trail as files: comma-separated values for a spreadsheet, JSON lines for a program, both as they are read."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from apps.approvals.trail.selectors import Entry

COLUMNS: Final = (
    *("at", "record", "actor", "verb", "subject_kind", "subject_id", "reason", "before", "after"),
    *("via", "second_person", "request_id", "batch_id"),
)
# What a spreadsheet would take for the beginning of a formula, also behind spaces and in full width.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "＝", "＋", "－", "＠")


def as_csv(entries: Iterable[Entry]) -> Iterator[str]:
    """With the names of the columns first. Values are text, so that a spreadsheet calculates none of them."""
    writer = csv.writer(_Line(), lineterminator="\r\n")
    yield writer.writerow(COLUMNS)
    for entry in entries:
        yield writer.writerow([_cell(value) for value in _row(entry).values()])


def as_json_lines(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        yield json.dumps(_row(entry), ensure_ascii=False) + "\n"


FORMATS: Final[dict[str, tuple[str, Callable[[Iterable[Entry]], Iterator[str]]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "jsonl": ("application/x-ndjson; charset=utf-8", as_json_lines),
}


def _row(entry: Entry) -> dict[str, Any]:
    values = (
        *(entry.at.isoformat(), "verdict" if entry.is_verdict else "event", entry.actor, entry.verb),
        *(entry.subject_kind, entry.subject_id, entry.reason, entry.before, entry.after),
        *(entry.via, entry.second_person, entry.request_id, str(entry.batch_id) if entry.batch_id else None),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _cell(value: Any) -> str:
    """A value as text that begins no formula: an apostrophe in front says to a spreadsheet that it is one."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if value else ""
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


class _Line:
    """What ``csv.writer`` writes to; the line is handed on instead of being kept."""

    def write(self, line: str) -> str:
        return line
