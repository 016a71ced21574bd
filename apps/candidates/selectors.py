"""Reading the queue for somebody: filters, and candidates as answers carry them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.postgres.search import SearchQueryField
from django.db.models import Func, Q, Value

from apps.accounts.principal import Principal
from apps.candidates.access import candidates_visible, own
from apps.candidates.models import Candidate, CandidateEvidence, CandidateQuerySet, CandidateStatus
from apps.core.clock import now
from apps.memories.models import Memory, Verdict
from apps.memories.selectors import evidence_shown, may_see_source, memories_visible, scopes_shown
from apps.memories.verdicts import verdict_shown
from apps.scopes.models import Domain
from apps.scopes.selectors import find_repository
from apps.taxonomy.selectors import find_types


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFilter:
    """``None`` means "not asked for". ``age`` is the least age in days, ``confidence`` the least confidence."""

    status: str | None = None
    type: str | None = None
    repo: str | None = None
    domain: str | None = None
    origin: str | None = None
    flag: str | None = None
    age: int | None = None
    confidence: float | None = None
    q: str | None = None


def queue(principal: Principal, asked: QueueFilter) -> CandidateQuerySet:
    """The candidates that a principal may see and asked for; without a status, those that are pending.

    Unknown repositories and domains match nothing. Raises ``Invalid`` for an unknown type.
    """
    rows = candidates_visible(principal).filter(status=asked.status or CandidateStatus.PENDING)
    if asked.type is not None:
        types = find_types(principal.workspace, [asked.type], field="type", active_only=False)
        rows = rows.filter(type__in=types)
    if asked.repo is not None:
        repository = find_repository(principal.workspace, asked.repo)
        rows = rows.filter(repo_ids__contains=[repository.pk]) if repository else rows.none()
    if asked.domain is not None:
        domain = Domain.objects.filter(workspace=principal.workspace, slug=asked.domain).first()
        rows = rows.filter(domain_ids__contains=[domain.pk]) if domain else rows.none()
    return _narrow(rows, asked)


def _narrow(rows: CandidateQuerySet, asked: QueueFilter) -> CandidateQuerySet:
    if asked.origin is not None:
        rows = rows.filter(Q(origin_name=asked.origin) | Q(origin_token__kind=asked.origin))
    if asked.flag is not None:
        rows = rows.filter(flags__contains=[{"kind": asked.flag}])
    if asked.age is not None:
        rows = rows.filter(created_at__lte=now() - timedelta(days=asked.age))
    if asked.confidence is not None:
        rows = rows.filter(Q(confidence__gte=asked.confidence) | Q(confidence__isnull=True))
    if asked.q is not None:
        rows = rows.filter(search_vector=words(asked.q))
    return rows


def words(text: str) -> Func:
    """A tsquery that matches what holds every word of ``text``, parsed as documents are."""
    return Func(Value(text), function="fm_all_words", output_field=SearchQueryField())


def candidates_shown(
    principal: Principal, candidates: Sequence[Candidate], *, with_verdicts: bool = True
) -> list[dict[str, Any]]:
    """As answers carry them. The number of queries does not grow with the number of candidates."""
    ids = [row.pk for row in candidates]
    scopes = scopes_shown(candidates)
    sources = _sources(principal, ids)
    near = _near_contents(principal, candidates)
    verdicts = _verdicts(ids) if with_verdicts else {}
    return [
        {
            "id": str(row.pk),
            "content": row.content,
            "type": row.type.slug,
            "scope": scopes[row.pk],
            "tier": row.tier,
            "confidence": row.confidence,
            "valid_from": row.valid_from.isoformat() if row.valid_from else None,
            "sources": sources[row.pk],
            "origin": origin_shown(row),
            "near": [entry | near[entry["id"]] for entry in row.near if entry["id"] in near],
            "supersedes": [str(pk) for pk in row.supersedes],
            "corrects": _correction(row),
            "flags": row.flags,
            "seen_count": row.seen_count,
            "status": row.status,
            "reason": row.status_reason,
            "version": row.version,
            "created_at": row.created_at.isoformat(),
            "verdicts": verdicts.get(row.pk, []),
        }
        for row in candidates
    ]


def origin_shown(candidate: Candidate) -> dict[str, str]:
    kind = candidate.origin_token.kind if candidate.origin_token is not None else "person"
    return {"kind": kind, "name": candidate.origin_name}


def _correction(candidate: Candidate) -> dict[str, Any] | None:
    if candidate.corrects_id is None:
        return None
    return {
        "id": str(candidate.corrects_id),
        "kind": candidate.correction_kind,
        "reason": candidate.correction_reason,
        "has_replacement": candidate.has_replacement,
    }


def _sources(principal: Principal, ids: list[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in CandidateEvidence.objects.filter(candidate__in=ids).select_related("source"):
        if may_see_source(principal, row.source):
            found[row.candidate_id].append(evidence_shown(row))
    return found


def _verdicts(ids: list[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in Verdict.objects.filter(subject_id__in=ids).order_by("created_at", "id"):
        found[row.subject_id].append(verdict_shown(row))
    return found


def _near_contents(principal: Principal, candidates: Iterable[Candidate]) -> dict[str, dict[str, Any]]:
    """What this reader may be told of what is near. Of others' proposals a proposer learns only that they exist."""
    wanted = {entry["id"] for row in candidates for entry in row.near}
    if not wanted:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for memory in memories_visible(principal).filter(pk__in=wanted):
        found[str(memory.pk)] = _near_memory(memory)
    rows = Candidate.objects.of(principal.workspace).visible_to(principal.audience_ids).filter(pk__in=wanted)
    readable = set(rows.filter(pk__in=candidates_visible(principal).values("pk")).values_list("pk", flat=True))
    for candidate in rows:
        content = candidate.content if candidate.pk in readable else None
        found[str(candidate.pk)] = {"content": content, "status": candidate.status}
    return found


def _near_memory(memory: Memory) -> dict[str, Any]:
    return {"content": memory.content, "number": memory.label, "status": memory.status}


def own_candidates(principal: Principal) -> CandidateQuerySet:
    """What this principal proposed or joined, in any status, newest first."""
    rows: CandidateQuerySet = Candidate.objects.filter(own(principal), workspace=principal.workspace)
    return rows.order_by("-created_at", "id")
