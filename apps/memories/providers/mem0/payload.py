"""A memory as mem0 keeps it: one JSON payload for each passage, in which ``data`` is the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid5

from apps.memories.providers.base import MemoryRecord, NoteRecord, PayloadPatch, Prepared

Payload = dict[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS: Final = frozenset({"valid_from", "valid_to", "closed_at", "recorded_at", "retired_at"})
_LISTS: Final = frozenset({"domain_ids", "repo_ids", "audience_ids"})
# Kept under names that mem0 gives them, or in the row's own key.
_RENAMED: Final = frozenset({"id", "content"})


def passage_id(memory_id: UUID, passage: int) -> UUID:
    """The key of a passage's row: the memory's own id for the first, one derived from it for the others."""
    return memory_id if passage == 0 else uuid5(memory_id, str(passage))


def passage_payloads(record: MemoryRecord, prepared: Prepared) -> Iterator[Payload]:
    """One payload for each passage. The first holds the whole text, so that it can be given back verbatim."""
    common = {
        item.name: _stored(item.name, getattr(record, item.name))
        for item in fields(record)
        if item.name not in _RENAMED
    }
    for number, passage in enumerate(prepared.passages):
        text = passage.text if number else record.content
        yield common | {"data": text, "memory_id": str(record.id), "passage": number}


def note_payloads(record: NoteRecord, prepared: Prepared) -> Iterator[Payload]:
    """One payload for each passage of a working note, without its text."""
    for number in range(len(prepared.passages)):
        yield {"note_id": str(record.id), "workspace": record.workspace, "task": record.task, "passage": number}


def patch_payload(patch: PayloadPatch) -> Payload:
    """The part of a payload that a patch replaces."""
    return {name: _stored(name, value) for name, value in patch.changes().items()}


def record_from(memory_id: UUID, payload: Mapping[str, Any]) -> MemoryRecord:
    """The memory whose first passage has this payload."""
    values = {
        item.name: _restored(item.name, payload[item.name])
        for item in fields(MemoryRecord)
        if item.name not in _RENAMED
    }
    return MemoryRecord(id=memory_id, content=payload["data"], **values)


def epoch_seconds(moment: datetime) -> float:
    """Seconds since 1970 in UTC: what can be compared in an index, unlike a date written out."""
    return (moment - _EPOCH).total_seconds()


def _stored(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _MOMENTS:
        return epoch_seconds(value)
    return list(value) if name in _LISTS else value


def _restored(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _MOMENTS:
        return _EPOCH + timedelta(seconds=value)
    return tuple(value) if name in _LISTS else value
