"""How a memory's status and validity follow from the ledger. One function decides; the pool is told the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from apps.core.errors import Conflict, Unavailable
from apps.memories.models import (
    IN_FORCE,
    Action,
    EdgeKind,
    Memory,
    MemoryCounter,
    MemoryEvidence,
    MemoryStatus,
    Supersession,
    Verdict,
)
from apps.memories.providers.base import MemoryRecord, PayloadPatch, Prepared, ProviderError
from apps.memories.providers.registry import get_provider
from apps.scopes.scope import Scope
from apps.taxonomy.models import MemoryType

# What may be done to a memory, and in which status.
TRANSITIONS: dict[Action, frozenset[str]] = {
    Action.CORRECT: frozenset({MemoryStatus.ACTIVE, MemoryStatus.DISPUTED}),
    Action.RETIRE: frozenset({MemoryStatus.ACTIVE, MemoryStatus.DISPUTED, MemoryStatus.SUPERSEDED}),
    Action.RESTORE: frozenset({MemoryStatus.RETIRED}),
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What a reviewer approved, word for word."""

    content: str
    type: MemoryType
    scope: Scope
    audience_ids: tuple[int, ...]
    tier: str
    confidence: float | None
    valid_from: datetime | None
    fingerprint: str
    evidence: tuple[tuple[int, str], ...]  # (source id, quote)


def require_transition(memory: Memory, action: Action) -> None:
    if memory.status not in TRANSITIONS[action]:
        raise Conflict(
            f"{memory.label} is {memory.status}, so it cannot be {action.label.lower()}.",
            code="wrong_status",
            extra={"memory": str(memory.pk), "status": memory.status},
        )


def memory_write(statement: Statement, *, verdict: Verdict, prepared: Prepared, number: int, at: datetime) -> Memory:
    """Write an approved statement to ledger and pool, under a number taken in this transaction."""
    approved = [(statement, verdict, prepared)]
    return memories_write(approved, workspace_id=verdict.workspace_id, first_number=number, at=at)[0]


def memories_write(
    approved: Sequence[tuple[Statement, Verdict, Prepared]], *, workspace_id: int, first_number: int, at: datetime
) -> list[Memory]:
    """Write approved statements of one workspace; the number of queries does not grow with theirs."""
    memories = [
        _build(statement, verdict, number=first_number + position, at=at)
        for position, (statement, verdict, _) in enumerate(approved)
    ]
    Memory.objects.bulk_create(memories)
    MemoryEvidence.objects.bulk_create(
        MemoryEvidence(memory=memory, source_id=source_id, workspace_id=workspace_id, quote=quote)
        for memory, (statement, _, _) in zip(memories, approved, strict=True)
        for source_id, quote in statement.evidence
    )
    get_provider().insert_many(
        [(pool_record(memory), prepared) for memory, (_, _, prepared) in zip(memories, approved, strict=True)]
    )
    return memories


def _build(statement: Statement, verdict: Verdict, *, number: int, at: datetime) -> Memory:
    return Memory(
        workspace_id=verdict.workspace_id,
        number=number,
        content=statement.content,
        type=statement.type,
        firm=statement.scope.firm,
        domain_ids=list(statement.scope.domain_ids),
        repo_ids=list(statement.scope.repo_ids),
        audience_ids=sorted(statement.audience_ids),
        tier=statement.tier,
        confidence=statement.confidence,
        valid_from=statement.valid_from,
        recorded_at=at,
        verdict=verdict,
        fingerprint=statement.fingerprint,
    )


def numbers_take(workspace_id: int, count: int) -> int:
    """The first of ``count`` numbers; they follow each other without gaps, for the counter rolls back with us.

    From here to the end of the transaction nothing else comes into force in the workspace: whoever looks whether a
    statement is known already takes its number first.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {MemoryCounter._meta.db_table} AS counter (workspace_id, last) VALUES (%s, %s) "
            "ON CONFLICT (workspace_id) DO UPDATE SET last = counter.last + excluded.last RETURNING last",
            [workspace_id, count],
        )
        (last,) = cursor.fetchone()
    return int(last) - count + 1


def pool_record(memory: Memory) -> MemoryRecord:
    return MemoryRecord(
        id=memory.pk,
        workspace=memory.workspace_id,
        content=memory.content,
        tier=memory.tier,
        status=memory.status,
        type=memory.type.slug,
        firm=memory.firm,
        recorded_at=memory.recorded_at,
        domain_ids=tuple(memory.domain_ids),
        repo_ids=tuple(memory.repo_ids),
        audience_ids=tuple(memory.audience_ids),
        confidence=memory.confidence,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        closed_at=memory.closed_at,
        retired_at=memory.retired_at,
        number=memory.number,
        fingerprint=memory.fingerprint,
    )


def edges_write(
    new: Memory, olds: Sequence[Memory], *, verdict: Verdict, kind: EdgeKind = EdgeKind.FULL, at: datetime
) -> None:
    """Add approved edges and let the old memories' validity follow. The olds are locked by the caller."""
    Supersession.objects.bulk_create(
        Supersession(
            workspace_id=verdict.workspace_id,
            old=old,
            new=new,
            kind=kind,
            holds_from=new.valid_from or at,
            verdict=verdict,
        )
        for old in olds
    )
    if kind is EdgeKind.FULL:
        memories_refresh(olds, at=at)


def edges_void(edges: Iterable[Supersession], *, verdict: Verdict, at: datetime, disputed: frozenset[UUID]) -> None:
    """Take back the edges that an approval made, and recompute what they had closed."""
    rows = list(edges)
    Supersession.objects.filter(pk__in=[edge.pk for edge in rows]).update(voided_by=verdict)
    olds = Memory.objects.filter(pk__in={edge.old_id for edge in rows}).select_related("type")
    memories_refresh(list(olds.select_for_update(of=("self",)).order_by("pk")), at=at, disputed=disputed)


def memories_refresh(memories: Sequence[Memory], *, at: datetime, disputed: frozenset[UUID] | None = None) -> None:
    """Recompute end of validity and status of locked memories from their live full edges; save and tell the pool.

    ``disputed`` names those with an open report; ``None`` leaves that as it is.
    """
    edges = Supersession.objects.live().full().filter(old__in=memories)
    ends: dict[UUID, list[datetime]] = {}
    for edge in edges:
        ends.setdefault(edge.old_id, []).append(edge.holds_from)
    for memory in memories:
        _follow_edges(memory, ends.get(memory.pk, []), at=at)
        is_disputed = memory.status == MemoryStatus.DISPUTED if disputed is None else memory.pk in disputed
        memory_save(memory, status=status_of(memory, ends.get(memory.pk, []), disputed=is_disputed, at=at))


def _follow_edges(memory: Memory, ends: list[datetime], *, at: datetime) -> None:
    """The earliest successor ends a memory. Without a successor nothing but a retirement as stale does."""
    end = min(ends, default=None)
    ended_as_stale = memory.status == MemoryStatus.RETIRED and memory.retired_at is None
    if end == memory.valid_to or (end is None and ended_as_stale):
        return
    memory.valid_to = end
    memory.closed_at = None if end is None else at


def status_of(memory: Memory, ends: Sequence[datetime], *, disputed: bool, at: datetime) -> MemoryStatus:
    """The one rule. A successor that takes effect later leaves its predecessor in force until then."""
    if memory.retired_at is not None:
        return MemoryStatus.RETIRED
    if ends:
        if min(ends) <= at:
            return MemoryStatus.SUPERSEDED
    elif memory.valid_to is not None:
        return MemoryStatus.RETIRED
    return MemoryStatus.DISPUTED if disputed else MemoryStatus.ACTIVE


@contextmanager
def pool_needed(otherwise: str) -> Iterator[None]:
    """Around a transaction that tells the pool: when it cannot be told, say what that means, and to try again."""
    try:
        yield
    except ProviderError as error:
        raise Unavailable(f"{otherwise} {error.message}", code="provider_unavailable") from error


def memory_save(memory: Memory, *, status: MemoryStatus) -> None:
    memory.status = status
    memory.save(update_fields=["status", "valid_to", "closed_at", "retired_at"])
    get_provider().update(
        memory.pk,
        PayloadPatch(status=status, valid_to=memory.valid_to, closed_at=memory.closed_at, retired_at=memory.retired_at),
    )


def holds_at(memory: Memory, at: datetime) -> bool:
    """Whether it is in force, as far as its status and its own end say; a successor may take effect later."""
    return memory.status in IN_FORCE and (memory.valid_to is None or memory.valid_to > at)


def memory_end(memory: Memory, *, at: datetime, stale: bool) -> None:
    """Retire a locked memory: as stale it held until now, otherwise it is no longer believed at all."""
    if stale and memory.valid_to is None:
        memory.valid_to = memory.closed_at = at
    else:
        memory.retired_at = at
    memory_save(memory, status=MemoryStatus.RETIRED)


def memory_revive(memory: Memory, *, at: datetime, disputed: bool) -> None:
    """Undo ``memory_end``; what replaced the memory meanwhile stays in force."""
    if memory.retired_at is None:
        memory.valid_to = memory.closed_at = None
    memory.retired_at = None
    memory.status = MemoryStatus.ACTIVE
    memories_refresh([memory], at=at, disputed=frozenset({memory.pk}) if disputed else frozenset())


def memory_dispute(memory: Memory, *, disputed: bool, at: datetime) -> None:
    memories_refresh([memory], at=at, disputed=frozenset({memory.pk}) if disputed else frozenset())


def memory_audiences_add(memory: Memory, audience_ids: Iterable[int]) -> None:
    """Restrict a locked memory further; an audience is never taken off."""
    memory.audience_ids = sorted({*memory.audience_ids, *audience_ids})
    memory.save(update_fields=["audience_ids"])
    get_provider().update(memory.pk, PayloadPatch(audience_ids=tuple(memory.audience_ids)))
