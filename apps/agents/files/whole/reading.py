"""A file of an export, checked as a whole before anything of it is written.

The file comes from outside: its shape, its counts and its end are looked at first, and what will not do is refused with
the number of its line. It is never held in memory.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from apps.agents.files.whole import FORMAT, ORDER, VERSION
from apps.core.screening import check_text, find_secrets, masked
from apps.core.serializers import read_moment

MAX_LINE: Final = 16 * 1024 * 1024
# Far from the end of what PostgreSQL counts to, so that there is a next number.
MAX_NUMBER: Final = 10**15
_MAX_DEPTH: Final = 20

_KEYS: Final[dict[str, frozenset[str]]] = {
    "header": frozenset({"format", "version", "workspace", "exported_at", "last_number", "counts", "left_out"}),
    "category": frozenset({"slug", "half_life_days", "ttl_days", "weights"}),
    "type": frozenset({"slug", "name", "description", "category", "always_human", "min_confidence", "is_active"}),
    "exclusion": frozenset({"slug", "description", "is_active"}),
    "domain": frozenset({"slug", "confirmed"}),
    "repository": frozenset({"slug", "remote", "aliases", "domains", "confirmed"}),
    "audience": frozenset({"name"}),
    "source": frozenset({"kind", "reference", "commit", "url", "title", "occurred_at", "audience", "recorded_at"}),
    "memory": frozenset(
        {
            *("id", "number", "content", "type", "scope", "audiences", "tier", "status", "confidence"),
            *("valid_from", "valid_to", "closed_at", "recorded_at", "retired_at", "evidence", "verdicts"),
        }
    ),
    "edge": frozenset({"old", "new", "kind", "holds_from", "verdict", "voided_by"}),
    "trailer": frozenset({"lines", "sha256"}),
}
# Words that people wrote: what is a secret in them is masked here as everywhere else.
_WRITTEN: Final = frozenset({"content", "quote", "title", "reference", "url", "reason", "description", "reviewer"})
# What these hold is compared letter by letter.
_NAMES: Final = frozenset(
    {
        *("slug", "name", "remote", "aliases", "domains", "repos", "audience", "audiences", "type", "category"),
        *("commit", "via", "amended", "workspace"),
    }
)


class Refused(Exception):
    """The file is not taken; the message is the sentence that says why."""


@dataclass(frozen=True, slots=True)
class Row:
    """One record. ``Refused`` is raised for a value that is not of the kind that is asked for."""

    line: int
    values: Mapping[str, Any]
    path: str = ""  # where it stands in its line, such as ``verdicts[0].``

    @property
    def record(self) -> str:
        return str(self.values["record"])

    def refuse(self, why: str) -> Refused:
        return Refused(f"Line {self.line:,}: {why}")

    def at(self, name: str) -> str:
        return f"{self.path}{name}"

    def text(self, name: str) -> str:
        value = self.values[name]
        if not isinstance(value, str):
            raise self.refuse(f"{self.at(name)} is not text.")
        return value

    def optional(self, name: str) -> str | None:
        return None if self.values[name] is None else self.text(name)

    def flag(self, name: str) -> bool:
        if not isinstance(self.values[name], bool):
            raise self.refuse(f"{self.at(name)} is not true or false.")
        return bool(self.values[name])

    def whole(self, name: str) -> int:
        value = self.values[name]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
            raise self.refuse(f"{self.at(name)} is not a whole number.")
        return value

    def days(self, name: str) -> int | None:
        return None if self.values[name] is None else self.whole(name)

    def share(self, name: str) -> float | None:
        value = self.values[name]
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise self.refuse(f"{self.at(name)} is not a number from 0 to 1.")
        return float(value)

    def uuid(self, name: str) -> UUID:
        try:
            return UUID(self.text(name))
        except ValueError:
            raise self.refuse(f"{self.at(name)} is no id.") from None

    def optional_uuid(self, name: str) -> UUID | None:
        return None if self.values[name] is None else self.uuid(name)

    def moment(self, name: str) -> datetime:
        found = read_moment(self.text(name))
        if found is None:
            raise self.refuse(f"{self.at(name)} is no moment.")
        return found.astimezone(UTC)

    def optional_moment(self, name: str) -> datetime | None:
        return None if self.values[name] is None else self.moment(name)

    def texts(self, name: str) -> list[str]:
        value = self.values[name]
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.refuse(f"{self.at(name)} is not a list of texts.")
        return value

    def object(self, name: str) -> dict[str, Any]:
        if not isinstance(self.values[name], dict):
            raise self.refuse(f"{self.at(name)} is not an object.")
        return dict(self.values[name])

    def rows(self, name: str, keys: frozenset[str]) -> list[Row]:
        value = self.values[name]
        if not isinstance(value, list):
            raise self.refuse(f"{self.at(name)} is not a list.")
        return [self._inner(f"{name}[{position}]", each, keys) for position, each in enumerate(value)]

    def inner(self, name: str, keys: frozenset[str]) -> Row:
        return self._inner(name, self.values[name], keys)

    def _inner(self, name: str, value: Any, keys: frozenset[str]) -> Row:
        if not isinstance(value, dict) or set(value) != keys:
            raise self.refuse(f"{self.at(name)} does not hold {', '.join(sorted(keys))}, and nothing else.")
        return Row(self.line, value, f"{self.at(name)}.")


@dataclass(slots=True)
class Checked:
    """What a first look at the whole file found. ``digest`` tells in the second look that it is the same file.

    ``loosened`` says in sentences what the file lets through that this version would not.
    """

    header: Row
    digest: str = ""
    lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    loosened: list[str] = field(default_factory=list)


def export_check(path: Path) -> Checked:
    """Read the file once. Raises ``Refused`` for another format or version, and for one that is cut off or changed."""
    rows = export_rows(path)
    first = next(rows, None)
    if first is None:
        raise Refused("The file is empty.")
    checked = Checked(_header(first))
    checked.counts["header"], at = 1, 0
    trailer: Row | None = None
    for row in rows:
        if trailer is not None:
            raise row.refuse("Something follows the trailer.")
        place = ORDER.index(row.record)
        if place < at or place == 0:
            raise row.refuse(f"A {row.record} stands behind a {ORDER[at]}. The order of the lines was changed.")
        at = place
        checked.counts[row.record] += 1
        trailer = row if row.record == "trailer" else None
    if trailer is None:
        raise Refused("The file has no trailer: it was cut off. Export it again.")
    checked.lines, checked.digest = _sum(path)
    if trailer.whole("lines") != checked.lines or trailer.text("sha256") != checked.digest:
        raise Refused("The file is not what was exported: its lines are not those that its trailer counted.")
    _check_counts(checked)
    return checked


def _header(row: Row) -> Row:
    if row.record != "header" or row.values.get("format") != FORMAT:
        raise row.refuse("This is no export of a firm memory: its first line is no header.")
    version = row.values.get("version")
    if version != VERSION or isinstance(version, bool):
        told = f"version {version}" if isinstance(version, int) else "another version"
        raise row.refuse(f"It is of {told}; this Firm Memory reads version {VERSION}.")
    row = _complete(row)
    if row.whole("last_number") > MAX_NUMBER:
        raise row.refuse(f"last_number is greater than {MAX_NUMBER:,}.")
    row.whole("left_out")
    counts = Row(row.line, row.object("counts"), "counts.")
    for record in counts.values:
        if record not in ORDER:
            raise row.refuse("counts names a kind of record that there is not.")
        counts.whole(record)
    return row


def _complete(row: Row) -> Row:
    """Raises ``Refused`` where the keys are not those of its kind, or a value cannot be stored."""
    if set(row.values) - {"record"} != _KEYS[row.record]:
        raise row.refuse(f"A {row.record} holds {', '.join(sorted(_KEYS[row.record]))}, and nothing else.")
    return Row(row.line, _storable(row, row.values))


def _check_counts(checked: Checked) -> None:
    for record, count in checked.header.object("counts").items():
        if checked.counts[record] != count:
            raise checked.header.refuse(f"counts says {count:,} of {record}, and there are {checked.counts[record]:,}.")


def _sum(path: Path) -> tuple[int, str]:
    """How many lines stand before the last one, and the SHA-256 of these."""
    digest, count, last = hashlib.sha256(), 0, b""
    with path.open("rb") as file:
        for line in file:
            if last:
                digest.update(last)
                count += 1
            last = line
    return count, digest.hexdigest()


def export_rows(path: Path) -> Iterator[Row]:
    """Each line as a record of a known kind with the keys of it."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE + 1):
            number += 1
            yield _row(number, raw)


def _row(number: int, raw: bytes) -> Row:
    if len(raw) > MAX_LINE:
        raise Refused(f"Line {number:,}: It is longer than {MAX_LINE:,} bytes.")
    if not raw.endswith(b"\n"):
        raise Refused(f"Line {number:,}: It has no end, so the file was cut off. Export it again.")
    try:
        values = json.loads(raw)
    except (ValueError, RecursionError):
        raise Refused(f"Line {number:,}: It is not JSON.") from None
    if not isinstance(values, dict) or values.get("record") not in ORDER:
        raise Refused(f"Line {number:,}: It is no record that this version knows.")
    row = Row(number, values)
    if row.record == "header" and number == 1:
        return row  # of another version it may have other keys, which is said by its version
    return _complete(row)


def _storable(row: Row, value: Any, *, name: str = "", written: bool = False, depth: int = 0) -> Any:
    """``value`` with secrets and personal data masked where people wrote it; refused where no column holds it.

    A name with a secret in it is refused: masked, it would be another name.
    """
    if isinstance(value, str):
        if check_text(value, field="", max_length=len(value) + 1, min_length=0):
            holder = name if name in _WRITTEN | _NAMES else "It"
            raise row.refuse(f"{holder} holds a character that cannot be stored.")
        if written:
            return masked(value)
        if name in _NAMES and find_secrets(value):
            raise row.refuse(f"There is a secret in {name}. Take it out where the file was exported, and revoke it.")
        return value
    if depth > _MAX_DEPTH:
        raise row.refuse("It holds lists within lists to no end.")
    if isinstance(value, list):
        return [_storable(row, each, name=name, written=written, depth=depth + 1) for each in value]
    if isinstance(value, dict):
        return {
            str(_storable(row, key)): _storable(
                row,
                each,
                name=key,
                written=key in _WRITTEN or key in ("before", "after") or written,
                depth=depth + 1,
            )
            for key, each in value.items()
        }
    return value
