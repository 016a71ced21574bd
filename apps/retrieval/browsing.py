"""Reading the ledger by page: what is listed, and everything that belongs to one memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.accounts.principal import Principal
from apps.memories.facets import Facets, facets_of
from apps.memories.history import Entry, history_of
from apps.memories.models import Action, EdgeKind, Memory, MemoryQuerySet, MemoryStatus, Supersession
from apps.memories.selectors import chain_of, memories_shown, memories_visible, verdicts_about
from apps.memories.words import AllWords
from apps.retrieval.drawing import DrawnRow, drawn
from apps.scopes.selectors import domain_named, find_repository
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import find_types

FACETS = ("type", "repo", "domain", "status", "tier")


def listed(
    principal: Principal,
    *,
    statuses: Sequence[str] | None,
    type: str | None = None,
    repo: str | None = None,
    domain: str | None = None,
    tier: str | None = None,
    words: str | None = None,
    types: Sequence[MemoryType] | None = None,
) -> MemoryQuerySet:
    """``statuses`` ``None`` is every one, and every one of ``words`` has to occur.

    Unknown repositories and domains match nothing; ``Invalid`` for a type.
    """
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
        row = domain_named(principal.workspace, domain)
        rows = rows.filter(domain_ids__contains=[row.pk]) if row else rows.none()
    if tier is not None:
        rows = rows.filter(tier=tier)
    if words is not None:
        rows = rows.filter(search_vector=AllWords(words))
    return rows


def facets_listed(rows: MemoryQuerySet) -> Facets:
    """What the browser's rows can be narrowed by."""
    return facets_of(rows, FACETS, order=("-number",))


def facets_found(principal: Principal, memory_ids: Sequence[str]) -> Facets:
    """The same for what a search has found."""
    return facets_listed(memories_visible(principal).filter(pk__in=memory_ids))


@dataclass(frozen=True, slots=True)
class Replaced:
    label: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One memory of a chain and what it replaced there. ``current`` is the one the page is about."""

    memory: Memory
    replaced: tuple[Replaced, ...]
    current: bool
    drawn: DrawnRow | None


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
    (shown,) = memories_shown(principal, [memory.pk])
    members = chain_of(principal, memory)
    edges = _edges(members)
    history = history_of(principal, verdicts_about(principal, memory))
    by_id = {row.pk: row for row in members}
    order, drawing = drawn([row.pk for row in members], [(old, new, kind == EdgeKind.FULL) for old, new, kind in edges])
    return Leaf(
        memory=memory,
        shown=shown,
        chain=[
            Link(
                memory=by_id[pk],
                replaced=tuple(Replaced(by_id[old].label, _HOW[kind]) for old, new, kind in edges if new == pk),
                current=pk == memory.pk,
                drawn=drawing.get(pk),
            )
            for pk in order
        ],
        successors=[by_id[new] for old, new, _ in edges if old == memory.pk],
        history=history,
        report=_newest(history, Action.CORRECT) if memory.status == MemoryStatus.DISPUTED else None,
        retirement=_newest(history, Action.RETIRE, Action.REOPEN) if memory.status == MemoryStatus.RETIRED else None,
    )


_HOW = {EdgeKind.FULL: "replaces", EdgeKind.PARTIAL: "replaces in part", EdgeKind.AMENDS: "amends"}


def _edges(members: Sequence[Memory]) -> list[tuple[UUID, UUID, EdgeKind]]:
    if len(members) < 2:
        return []
    rows = Supersession.objects.live().filter(old__in=members, new__in=members)
    listed_edges = rows.order_by("kind", "id").values_list("old_id", "new_id", "kind")
    return [(old, new, EdgeKind(kind)) for old, new, kind in listed_edges]


def _newest(history: Sequence[Entry], *actions: Action) -> Entry | None:
    return next((entry for entry in reversed(history) if entry.verdict.action in actions), None)
