"""Reading the ledger for somebody. Every function takes the principal and shows nothing it may not see."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection

from apps.accounts.principal import Principal
from apps.core.errors import NotFound
from apps.memories.models import Memory, MemoryQuerySet, SubjectKind, Verdict
from apps.memories.verdicts import REPLACED_BY_HIDDEN, replaced_by, verdict_shown, verdicts_of
from apps.scopes.models import Repository
from apps.scopes.selectors import scope_slugs
from apps.sources.models import Source

# One way of writing each: what is written otherwise names nothing, rather than what it may have been meant for.
_NUMBER = re.compile(r"M-([1-9][0-9]{0,17})")
_ID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def memories_visible(principal: Principal) -> MemoryQuerySet:
    """In the workspace, within the audiences, and within the repositories that a token is limited to."""
    rows: MemoryQuerySet = Memory.objects.of(principal.workspace).visible_to(principal.audience_ids)
    limit = principal.repository_limit
    return rows.in_scope(domain_ids=domains_of(limit), repo_ids=limit) if limit else rows


def domains_of(repo_ids: Iterable[int]) -> set[int]:
    rows = Repository.objects.filter(pk__in=list(repo_ids)).values_list("domain_ids", flat=True)
    return {domain_id for ids in rows for domain_id in ids}


def memories_by_reference(principal: Principal, references: Sequence[str]) -> dict[str, Memory]:
    """By id or by number (``M-1042``); what is not there or may not be seen is left out."""
    wanted = {reference: _key(reference) for reference in references}
    ids = [key for key in wanted.values() if isinstance(key, UUID)]
    numbers = [key for key in wanted.values() if isinstance(key, int)]
    if not ids and not numbers:
        return {}
    rows = memories_visible(principal).select_related("type")
    found: dict[UUID | int, Memory] = {}
    for memory in rows.filter(pk__in=ids) | rows.filter(number__in=numbers):
        found[memory.pk] = found[memory.number] = memory
    return {reference: found[key] for reference, key in wanted.items() if key is not None and key in found}


def _key(reference: str) -> UUID | int | None:
    if match := _NUMBER.fullmatch(reference):
        return int(match[1])
    return UUID(reference) if _ID.fullmatch(reference) else None


def memory_for(principal: Principal, reference: str | UUID, *, lock: bool = False) -> Memory:
    """Raises ``NotFound`` alike for what does not exist, belongs to another workspace, or may not be seen."""
    key = _key(str(reference))
    rows = memories_visible(principal).select_related("type__category", "verdict")
    if lock:
        rows = rows.select_for_update(of=("self",))
    memory: Memory | None = None
    if key is not None:
        rows = rows.filter(number=key) if isinstance(key, int) else rows.filter(pk=key)
        memory = rows.first()
    if memory is None:
        raise NotFound("There is no such memory.")
    return memory


def evidence_shown(source: Source | SourceRow, quote: str) -> dict[str, Any]:
    """A source with the words of it that support the statement; the same for candidates, memories and notes."""
    return {
        "id": source.pk,
        "kind": source.kind,
        "reference": source.reference,
        "url": source.url,
        "title": source.title,
        "occurred_at": source.occurred_at.isoformat() if source.occurred_at else None,
        "commit": source.commit,
        "quote": quote,
    }


def may_see_source(principal: Principal, source: Source | SourceRow) -> bool:
    return source.audience_id is None or source.audience_id in principal.audience_ids


def scopes_shown(rows: Iterable[Any]) -> dict[Any, dict[str, Any]]:
    """Scope in names, by primary key, for anything that carries scope arrays. One query for all."""
    rows = list(rows)
    domains, repos = scope_slugs(
        (pk for row in rows for pk in row.domain_ids), (pk for row in rows for pk in row.repo_ids)
    )
    return {
        row.pk: {
            "firm": row.firm,
            "domains": sorted(domains[pk] for pk in row.domain_ids),
            "repos": sorted(repos[pk] for pk in row.repo_ids),
        }
        for row in rows
    }


class SourceRow(NamedTuple):
    """What is shown of a source, and who may see it."""

    pk: int
    kind: str
    reference: str
    url: str
    title: str
    occurred_at: datetime | None
    commit: str | None
    audience_id: int | None


# Every answer asks this. The ORM takes 3.3 ms of this process to word it and to make objects of ten memories with their
# types and sources; written out, all of it takes 0.8 ms.
_SHOWN: Final = """
SELECT memory.id, memory.number, memory.content, type.slug, category.slug, memory.firm,
    ARRAY(SELECT slug FROM scopes_domain WHERE id = ANY(memory.domain_ids)),
    ARRAY(SELECT slug FROM scopes_repository WHERE id = ANY(memory.repo_ids)),
    memory.tier, memory.status, memory.confidence,
    memory.valid_from, memory.valid_to, memory.recorded_at, memory.retired_at
FROM memories_memory AS memory
JOIN taxonomy_memorytype AS type ON type.id = memory.type_id
JOIN taxonomy_category AS category ON category.id = type.category_id
WHERE memory.id = ANY(%s)
"""
_EVIDENCE: Final = """
SELECT evidence.memory_id, evidence.quote, source.id, source.kind, source.reference, source.url, source.title,
    source.occurred_at, source.commit, source.audience_id
FROM memories_memoryevidence AS evidence JOIN sources_source AS source ON source.id = evidence.source_id
WHERE evidence.memory_id = ANY(%s) ORDER BY evidence.id
"""


def memories_shown(principal: Principal, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """As answers carry them, in the order of ``ids``, with sources and scope in names. Two queries, however many.

    That this reader may see the memories has been made sure of; which of their sources is looked at here.
    """
    if not ids:
        return []
    evidence: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_SHOWN, [list(ids)])
        rows = {row[0]: row for row in cursor.fetchall()}
        cursor.execute(_EVIDENCE, [list(ids)])
        for memory_id, quote, *values in cursor.fetchall():
            source = SourceRow(*values)
            if may_see_source(principal, source):
                evidence[memory_id].append(evidence_shown(source, quote))
    return [_shown(rows[pk], evidence[pk]) for pk in ids]


def _shown(row: tuple[Any, ...], sources: list[dict[str, Any]]) -> dict[str, Any]:
    memory_id, number, content, type_slug, category, firm, domains, repos, tier, status, confidence, *moments = row
    valid_from, valid_to, recorded_at, retired_at = map(_moment, moments)
    return {
        "id": str(memory_id),
        "number": f"M-{number}",
        "content": content,
        "type": type_slug,
        "category": category,
        "scope": {"firm": firm, "domains": sorted(domains), "repos": sorted(repos)},
        "tier": tier,
        "status": status,
        "confidence": confidence,
        "sources": sources,
        "valid_from": valid_from,
        "valid_to": valid_to,
        "recorded_at": recorded_at,
        "retired_at": retired_at,
    }


def _moment(value: Any) -> str | None:
    return value.isoformat() if value else None


def memory_shown(principal: Principal, memory: Memory) -> dict[str, Any]:
    """One memory in full: with its chain and every verdict on it and on the candidate it came from.

    What the candidate said in its other versions, perhaps in one that is open again, is for reviewers alone.
    """
    (shown,) = memories_shown(principal, [memory.pk])
    return shown | {
        "chain": [chain_entry(row) for row in chain_of(principal, memory)],
        "verdicts": [
            verdict_shown(row, in_full=principal.can_review or row.subject_kind == SubjectKind.MEMORY)
            for row in verdicts_about(principal, memory)
        ],
    }


def verdicts_about(principal: Principal, memory: Memory) -> list[Verdict]:
    """Every verdict on it and on the candidate it came from, the oldest first.

    What replaced it is not named to a reader who may not see that.
    """
    verdicts = [*verdicts_of(memory.verdict.subject_id), *verdicts_of(memory.pk)]
    hidden = hidden_among(principal, [by for row in verdicts if (by := replaced_by(row.action, row.after))])
    for row in verdicts:
        if replaced_by(row.action, row.after) in hidden:
            row.reason, row.after = REPLACED_BY_HIDDEN, {**row.after, "by": None}
    return sorted(verdicts, key=lambda row: row.created_at)


def hidden_among(principal: Principal, ids: Collection[str]) -> set[str]:
    """Those of some memories that this reader may not see, by their ids as verdicts hold them. At most one query."""
    if not ids:
        return set()
    seen = memories_visible(principal).filter(pk__in=ids).values_list("pk", flat=True)
    return set(ids) - {str(pk) for pk in seen}


def chain_entry(memory: Memory) -> dict[str, Any]:
    return {
        "id": str(memory.pk),
        "number": memory.label,
        "status": memory.status,
        "content": memory.content,
        "valid_from": _moment(memory.valid_from),
        "valid_to": _moment(memory.valid_to),
        "recorded_at": _moment(memory.recorded_at),
    }


# Both ends are looked up by an index of their own; of one condition over both the planner makes a scan.
_CHAINS = """
WITH RECURSIVE linked(root, id) AS (
    SELECT asked.id, asked.id FROM unnest(%s::uuid[]) AS asked(id)
    UNION
    SELECT linked.root, beside.id FROM linked CROSS JOIN LATERAL (
        SELECT new_id AS id FROM memories_supersession WHERE old_id = linked.id AND voided_by_id IS NULL
        UNION ALL
        SELECT old_id FROM memories_supersession WHERE new_id = linked.id AND voided_by_id IS NULL
    ) AS beside
)
SELECT root, array_agg(id) FROM (SELECT root, id FROM linked LIMIT %s) AS bounded GROUP BY root
"""
_LONGEST_CHAIN = 500


def chain_of(principal: Principal, memory: Memory) -> list[Memory]:
    """Everything that is linked to a memory by approved edges, forks and merges too, oldest first."""
    return chains_of(principal, [memory.pk])[memory.pk]


def chains_of(principal: Principal, ids: Sequence[UUID]) -> dict[UUID, list[Memory]]:
    """The chain of each of ``ids``, as far as this reader may see it. Two queries, however many there are."""
    with connection.cursor() as cursor:
        cursor.execute(_CHAINS, [list(ids), _LONGEST_CHAIN * max(len(ids), 1)])
        members: dict[UUID, list[UUID]] = dict(cursor.fetchall())
    wanted = {pk for chain in members.values() for pk in chain}
    rows = {row.pk: row for row in memories_visible(principal).filter(pk__in=wanted).select_related("type")}
    return {
        root: sorted(
            (rows[pk] for pk in chain if pk in rows),
            key=lambda row: (row.valid_from or row.recorded_at, row.number),
        )
        for root, chain in members.items()
    }
