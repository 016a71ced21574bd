"""The filter of a search, in Python: what ``PoolQuery`` promises, for one record."""

from __future__ import annotations

from apps.memories.providers.base import REPLACED, MemoryRecord, PoolQuery


def admits(query: PoolQuery, record: MemoryRecord) -> bool:
    """Whether the record may be found by the query at all; the pool's table decides the same in SQL."""
    return (
        record.workspace == query.workspace
        and record.tier in query.tiers
        and record.status in query.effective_statuses
        and (query.types is None or record.type in query.types)
        and _in_scope(query, record)
        and query.audiences.issuperset(record.audience_ids)
        and _valid(query, record)
        and _known(query, record)
    )


def _in_scope(query: PoolQuery, record: MemoryRecord) -> bool:
    return (
        query.everything
        or record.firm
        or not query.domain_ids.isdisjoint(record.domain_ids)
        or not query.repo_ids.isdisjoint(record.repo_ids)
    )


def _valid(query: PoolQuery, record: MemoryRecord) -> bool:
    if record.valid_from is not None and record.valid_from > query.valid_instant:
        return False
    if record.valid_to is None or record.valid_to > query.valid_instant:
        return True
    if query.with_replaced and record.status == REPLACED:
        return True
    return record.closed_at is not None and record.closed_at > query.known_instant


def _known(query: PoolQuery, record: MemoryRecord) -> bool:
    if record.recorded_at > query.known_instant:
        return False
    return record.retired_at is None or record.retired_at > query.known_instant
