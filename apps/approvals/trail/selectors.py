"""Everything that was done, in one list: verdicts from the ledger, and what the audit trail has besides.

A decision leaves a verdict and an audit event. It is listed once, as the verdict, which holds the reason and both
wordings. Both tables are read in the order of time, each by an index, and put together; so a page costs the same
however long the trail is.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    UUIDField,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Left

from apps.accounts.models import AuditEvent, Role, admitted
from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.capture.models import CaptureEvent
from apps.core.errors import Invalid
from apps.memories.models import Action, Memory, SubjectKind, Verdict
from apps.memories.selectors import hidden_among
from apps.memories.verdicts import REPLACED_BY_HIDDEN, replaced_by
from apps.sources.models import Source

CAPTURED: Final = "capture event"
REFUSED: Final = "refused"  # every attempt that was refused, whatever it was to be
_UUID: Final = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_NUMBER: Final = r"^[0-9]{1,18}$"
_EXPORTED_AT_ONCE: Final = 2_000
_BEGINNING: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailFilter:
    """``None`` means "not asked for". ``subject`` is an id, a number such as M-12, or a kind of subject."""

    actor: str | None = None
    verb: str | None = None
    kind: str | None = None
    subject: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    request: str | None = None
    batch: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One thing that was done. ``key`` tells it from everything else of the same moment."""

    at: datetime
    key: str
    actor: str
    verb: str
    subject_kind: str
    subject_id: str
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]
    via: str
    request_id: str
    batch_id: UUID | None
    second_person: bool

    @property
    def is_verdict(self) -> bool:
        return self.key.startswith("v")


@dataclass(frozen=True, slots=True)
class TrailPage:
    entries: list[Entry]
    older: str | None
    newer: str | None


@dataclass(frozen=True, slots=True)
class _Position:
    """Just before, or just after, an entry of that moment and key."""

    at: datetime
    key: str
    newer: bool


def trail_page(principal: Principal, asked: TrailFilter, *, limit: int, cursor: str | None = None) -> TrailPage:
    """One page, the newest first. Raises ``Invalid`` for a cursor that was not given out for this list."""
    position = _decode(cursor) if cursor else None
    newer = position is not None and position.newer
    found = _merged(principal, asked, position, limit=limit + 1)
    more, found = len(found) > limit, found[:limit]
    if newer:
        found.reverse()
    has_older = bool(found) and (more or newer)
    has_newer = bool(found) and position is not None and (more or not newer)
    return TrailPage(
        found,
        _encode(found[-1], newer=False) if has_older else None,
        _encode(found[0], newer=True) if has_newer else None,
    )


def trail_entries(principal: Principal, asked: TrailFilter) -> Iterator[Entry]:
    """All of it, the newest first, a few thousand in memory at a time."""
    position: _Position | None = None
    while found := _merged(principal, asked, position, limit=_EXPORTED_AT_ONCE):
        yield from found
        position = _Position(found[-1].at, found[-1].key, newer=False)


def _merged(principal: Principal, asked: TrailFilter, position: _Position | None, *, limit: int) -> list[Entry]:
    newer = position is not None and position.newer
    sides = (_events(principal, asked), _verdicts(principal, asked))
    found = [_read(rows, prefix, position, limit=limit) for rows, prefix in zip(sides, ("e", "v"), strict=True)]
    merged = heapq.merge(*found, key=lambda entry: (entry.at, entry.key), reverse=not newer)
    return _without_hidden(principal, [entry for entry, _ in zip(merged, range(limit), strict=False)])


def _without_hidden(principal: Principal, entries: list[Entry]) -> list[Entry]:
    """What replaced a memory is not named to a reader who may not see that."""
    hidden = hidden_among(principal, [by for row in entries if (by := replaced_by(row.verb, row.after))])
    return [
        replace(row, reason=REPLACED_BY_HIDDEN, after={**row.after, "by": None})
        if replaced_by(row.verb, row.after) in hidden
        else row
        for row in entries
    ]


def _read(rows: QuerySet[Any] | None, prefix: str, position: _Position | None, *, limit: int) -> list[Entry]:
    """The rows beyond a position. Keys of one table sort before those of the other, as their first letter does."""
    if rows is None:
        return []
    newer = position is not None and position.newer
    if position is not None:
        rows = rows.filter(_beyond(prefix, position))
    order = ("created_at", "pk") if newer else ("-created_at", "-pk")
    values = rows.order_by(*order).values(*_COLUMNS)[:limit]
    return [_entry(prefix, row) for row in values]


def _beyond(prefix: str, position: _Position) -> Q:
    side = "gt" if position.newer else "lt"
    edge = Q(**{f"created_at__{side}e": position.at})
    if prefix != position.key[0]:
        comes_after = (prefix > position.key[0]) == position.newer
        return edge if comes_after else Q(**{f"created_at__{side}": position.at})
    key = int(position.key[1:]) if prefix == "e" else UUID(position.key[1:])
    return edge & (Q(**{f"created_at__{side}": position.at}) | Q(created_at=position.at, **{f"pk__{side}": key}))


_COLUMNS: Final = (
    *("pk", "created_at", "who", "what", "subject_kind", "subject_text", "why", "before", "after"),
    *("door", "request_id", "batch", "second"),
)


def _entry(prefix: str, row: dict[str, Any]) -> Entry:
    return Entry(
        # Numbers are padded, so that texts sort as the numbers do.
        key=f"e{row['pk']:020d}" if prefix == "e" else f"v{row['pk']}",
        at=row["created_at"],
        actor=row["who"],
        verb=row["what"],
        subject_kind=row["subject_kind"],
        subject_id=row["subject_text"],
        reason=row["why"],
        before=row["before"],
        after=row["after"],
        via=row["door"],
        request_id=row["request_id"],
        batch_id=row["batch"],
        second_person=row["second"],
    )


# --- what there is, and who may see it ------------------------------------------------------------------------
def _verdicts(principal: Principal, asked: TrailFilter) -> QuerySet[Any] | None:
    if asked.kind is not None and asked.kind not in SubjectKind.values:
        return None
    if asked.verb is not None and asked.verb not in Action.values:
        return None
    rows = Verdict.objects.filter(workspace=principal.workspace).filter(_common(asked, actor="reviewer_name"))
    if asked.kind is not None:
        rows = rows.filter(subject_kind=asked.kind)
    if asked.verb is not None:
        rows = rows.filter(action=asked.verb)
    if asked.batch is not None:
        rows = rows.filter(batch_id=asked.batch)
    if asked.subject is not None:
        rows = rows.filter(subject_id__in=_subject_ids(principal, asked.subject))
    for model, kind in ((Candidate, SubjectKind.CANDIDATE), (Memory, SubjectKind.MEMORY)):
        hidden = model._default_manager.filter(pk=OuterRef("subject_id")).exclude(admitted(principal.audience_ids))
        rows = rows.exclude(Q(subject_kind=kind) & Exists(hidden))
    return rows.annotate(
        who=F("reviewer_name"),
        what=F("action"),
        why=F("reason"),
        subject_text=Cast("subject_id", CharField()),
        door=F("via"),
        batch=F("batch_id"),
        second=F("second_person"),
    )


def _events(principal: Principal, asked: TrailFilter) -> QuerySet[Any] | None:
    if asked.batch is not None:
        return None
    rows = AuditEvent.objects.filter(workspace=principal.workspace).filter(_common(asked, actor="actor"))
    if asked.verb == REFUSED:
        rows = rows.filter(verb__startswith="was refused to ")
    elif asked.verb is not None:
        rows = rows.filter(verb=asked.verb)
    if asked.kind is not None:
        rows = rows.filter(subject_kind=asked.kind)
    if asked.subject is not None:
        named = [str(pk) for pk in _subject_ids(principal, asked.subject)]
        rows = rows.filter(subject_id__in=[asked.subject, *named])
    rows = rows.annotate(
        as_uuid=_as("subject_id", _UUID, UUIDField(), Q(subject_kind__in=[*SubjectKind.values, CAPTURED])),
        as_number=_as("subject_id", _NUMBER, BigIntegerField(), Q(subject_kind__in=("source", "audience"))),
    )
    # What a verdict tells, with its reason and both wordings, is not told twice.
    rows = rows.exclude(verb__in=Action.values, subject_kind__in=SubjectKind.values)
    return _seen_events(principal, rows).annotate(
        who=F("actor"),
        what=F("verb"),
        why=Value("", TextField()),
        subject_text=F("subject_id"),
        door=Value("", CharField()),
        batch=Value(None, UUIDField()),
        second=Value(True),
    )


def _as(column: str, pattern: str, field: Any, condition: Q) -> Case:
    """A text as the key that it may be, for conditions that ask an index for it."""
    return Case(
        When(condition & Q(**{f"{column}__regex": pattern}), then=Cast(column, field)), default=None, output_field=field
    )


def _seen_events(principal: Principal, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Nothing about what this reader may not see: not that it is there, and not what it is called."""
    for model in (Candidate, Memory, CaptureEvent):
        hidden = model._default_manager.filter(pk=OuterRef("as_uuid")).exclude(admitted(principal.audience_ids))
        rows = rows.exclude(Q(as_uuid__isnull=False) & Exists(hidden))
    closed = Source.objects.filter(audience__isnull=False).exclude(audience__in=principal.audience_ids)
    rows = rows.exclude(Q(subject_kind="source") & Exists(closed.filter(pk=OuterRef("as_number"))))
    rows = rows.annotate(first=KeyTextTransform("first", "after"), last=KeyTextTransform("last", "after"))
    named = closed.filter(workspace=principal.workspace).filter(
        Q(reference=OuterRef("first")) | Q(reference=OuterRef("last"))
    )
    rows = rows.exclude(Q(verb="import") & Exists(named))
    if not principal.has_role(Role.ADMIN):
        rows = rows.exclude(Q(subject_kind="audience") & ~Q(as_number__in=list(principal.audience_ids)))
    return rows


def _common(asked: TrailFilter, *, actor: str) -> Q:
    condition = Q()
    if asked.actor is not None:
        condition &= Q(**{actor: asked.actor})
    if asked.since is not None:
        condition &= Q(created_at__gte=asked.since)
    if asked.until is not None:
        condition &= Q(created_at__lt=asked.until + timedelta(days=1))
    if asked.request is not None:
        condition &= Q(request_id=asked.request)
    return condition


def _subject_ids(principal: Principal, subject: str) -> list[UUID]:
    """A candidate or memory by its id; a memory by its number leads to the candidate that it came from as well."""
    text = subject.strip()
    if text[:2].upper() == "M-" and text[2:].isdecimal() and text.isascii() and len(text) <= 20:
        rows = Memory.objects.filter(workspace=principal.workspace, number=int(text[2:])).filter(
            admitted(principal.audience_ids)
        )
        return [pk for pair in rows.values_list("pk", "verdict__subject_id") for pk in pair]
    return [found] if (found := _id(text)) else []


# --- positions ------------------------------------------------------------------------------------------------
def _encode(entry: Entry, *, newer: bool) -> str:
    packed = json.dumps(["n" if newer else "o", entry.at.isoformat(), entry.key]).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def _decode(cursor: str) -> _Position:
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        direction, at, key = json.loads(packed)
        moment = datetime.fromisoformat(at)
        if direction not in ("n", "o") or moment.tzinfo is None:
            raise ValueError("not a cursor of ours")
        if key[0] not in "ev":
            raise ValueError("not a cursor of ours")
        known = int(key[1:]) < 2**63 if key[0] == "e" else UUID(key[1:]) is not None
        if not known:
            raise ValueError("not a cursor of ours")
    except (ValueError, TypeError, KeyError, IndexError, binascii.Error, RecursionError, AttributeError):
        raise Invalid.field(
            "cursor", "This cursor was not given out for this list. Start without one, then follow the links."
        ) from None
    return _Position(moment, key, newer=direction == "n")


def names_of_subjects(principal: Principal, entries: Sequence[Entry]) -> dict[str, str]:
    """Numbers of memories by id, for those whose subject is a memory, and for what an approval made."""
    ids = {UUID(entry.subject_id) for entry in entries if entry.is_verdict}
    if not ids:
        return {}
    rows = Memory.objects.filter(admitted(principal.audience_ids), workspace=principal.workspace)
    made = rows.filter(Q(pk__in=ids) | Q(verdict__in=[entry.key[1:] for entry in entries if entry.is_verdict]))
    found: dict[str, str] = {}
    for pk, number, verdict in made.values_list("pk", "number", "verdict"):
        found[str(pk)] = found[f"v{verdict}"] = f"M-{number}"
    return found


def beginnings_of_candidates(principal: Principal, entries: Sequence[Entry]) -> dict[str, str]:
    """The first words of candidates by id, so that a list of what was done to them says what they are about."""
    about = [entry.subject_id for entry in entries if entry.subject_kind == SubjectKind.CANDIDATE]
    ids = {found for text in about if (found := _id(text))}
    if not ids:
        return {}
    rows = Candidate.objects.filter(admitted(principal.audience_ids), workspace=principal.workspace, pk__in=ids)
    return {str(pk): text for pk, text in rows.values_list("pk", Left("content", _BEGINNING))}


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
