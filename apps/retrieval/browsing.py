"""Reading the ledger by page: what is listed, and everything that belongs to one memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery

from apps.accounts.principal import Principal
from apps.memories.history import Entry, history_of
from apps.memories.models import Action, Memory, MemoryQuerySet, MemoryStatus, Supersession
from apps.memories.selectors import chain_of, memories_shown, memories_visible
from apps.memories.verdicts import verdicts_of
from apps.scopes.selectors import domain_named, find_repository
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import find_types


def listed(
    principal: Principal,
    *,
    statuses: Sequence[str] | None,
    type: str | None = None,
    repo: str | None = None,
    domain: str | None = None,
    types: Sequence[MemoryType] | None = None,
) -> MemoryQuerySet:
    """``statuses`` ``None`` is every one. Unknown repositories and domains match nothing; ``Invalid`` for a type."""
    rows = memories_visible(principal)
    if statuses is not None:
        rows = rows.filter(status__in=statuses)
    if type is not None:
        found = find_types(principal.workspace, [type], field="type", active_only=False, known=types)
        rows = rows.filter(type__in=found)
    if repo is not None:
        repository = find_repository(principal.workspace, repo)
        rows = rows.filter(repo_ids__contains=[repository.pk]) if repository else rows.none()
    if domain is not None:
        rows = rows.filter(domain_ids__overlap=ArraySubquery(domain_named(principal.workspace, domain)))
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One memory of a chain and what it replaced there. ``current`` is the one the page is about."""

    memory: Memory
    replaced: tuple[str, ...]
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A memory with everything its page says about it."""

    memory: Memory
    shown: dict[str, Any]
    chain: list[Link]
    successors: list[Memory]
    history: list[Entry]
    report: Entry | None
    retirement: Entry | None


def leaf(principal: Principal, memory: Memory) -> Leaf:
    (shown,) = memories_shown(principal, [memory])
    members = chain_of(principal, memory)
    edges = _edges(members)
    verdicts = sorted(
        [*verdicts_of(memory.verdict.subject_id), *verdicts_of(memory.pk)], key=lambda verdict: verdict.created_at
    )
    history = history_of(principal, verdicts)
    by_id = {row.pk: row for row in members}
    return Leaf(
        memory=memory,
        shown=shown,
        chain=[
            Link(
                memory=row,
                replaced=tuple(by_id[old].label for old, new in edges if new == row.pk),
                current=row.pk == memory.pk,
            )
            for row in members
        ],
        successors=[by_id[new] for old, new in edges if old == memory.pk],
        history=history,
        report=_newest(history, Action.CORRECT) if memory.status == MemoryStatus.DISPUTED else None,
        retirement=_newest(history, Action.RETIRE, Action.REOPEN) if memory.status == MemoryStatus.RETIRED else None,
    )


def _edges(members: Sequence[Memory]) -> list[tuple[UUID, UUID]]:
    if len(members) < 2:
        return []
    rows = Supersession.objects.live().filter(old__in=members, new__in=members)
    return list(rows.values_list("old_id", "new_id"))


def _newest(history: Sequence[Entry], *actions: Action) -> Entry | None:
    return next((entry for entry in reversed(history) if entry.verdict.action in actions), None)
