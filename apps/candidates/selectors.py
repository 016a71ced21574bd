"""Reading the queue for somebody: filters, and candidates as answers carry them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet

from apps.accounts.models import ApiToken, TokenKind
from apps.accounts.principal import Principal
from apps.candidates.access import candidates_visible, own
from apps.candidates.models import OPEN, REFERS, Candidate, CandidateEvidence, CandidateQuerySet, CandidateStatus
from apps.candidates.near import covers
from apps.core.clock import now
from apps.memories.facets import counts_of
from apps.memories.models import IN_FORCE, Memory, Supersession, Verdict
from apps.memories.selectors import evidence_shown, may_see_source, memories_visible, scopes_shown
from apps.memories.verdicts import verdict_shown
from apps.memories.words import AllWords
from apps.scopes.selectors import domain_named, find_repository
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import find_types

TARGET_NOT_IN_FORCE = "target-not-in-force"
NARROWER_THAN_TARGET = "narrower-than-target"


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


def queue(principal: Principal, asked: QueueFilter, *, types: Sequence[MemoryType] | None = None) -> CandidateQuerySet:
    """The candidates that a principal may see and asked for; without a status, those that are pending.

    Unknown repositories and domains match nothing. Raises ``Invalid`` for an unknown type.
    """
    return in_any_status(principal, asked, types=types).filter(status=asked.status or CandidateStatus.PENDING)


def in_any_status(
    principal: Principal, asked: QueueFilter, *, types: Sequence[MemoryType] | None = None
) -> CandidateQuerySet:
    """The same whatever the status, which is what the counts beside the queue are made of.

    ``types`` are the workspace's where the caller has fetched them already.
    """
    rows = candidates_visible(principal)
    if asked.type is not None:
        found = find_types(principal.workspace, [asked.type], field="type", active_only=False, known=types)
        rows = rows.filter(type__in=found)
    if asked.repo is not None:
        repository = find_repository(principal.workspace, asked.repo)
        rows = rows.filter(repo_ids__contains=[repository.pk]) if repository else rows.none()
    if asked.domain is not None:
        domain = domain_named(principal.workspace, asked.domain)
        rows = rows.filter(domain_ids__contains=[domain.pk]) if domain else rows.none()
    return _narrow(rows, asked)


def counts_by_status(principal: Principal, rows: CandidateQuerySet) -> dict[str, int]:
    """How many of ``rows`` are in each status, in one query. None is counted further than ``facets.MOST`` + 1.

    In the order of the queue, so that an index leads to the first ones: a table may hold others for long at its start.
    """
    ordered = rows.order_by("created_at", "id")
    return counts_of(principal, {status: ordered.filter(status=status) for status in CandidateStatus.values})


def _narrow(rows: CandidateQuerySet, asked: QueueFilter) -> CandidateQuerySet:
    if asked.origin is not None:
        rows = rows.filter(_of_origin(asked.origin))
    if asked.flag == TARGET_NOT_IN_FORCE:
        rows = rows.filter(REFERS, Exists(_moved_on()), status__in=OPEN)
    elif asked.flag is not None:
        rows = rows.filter(~Q(flags=[]), flags__contains=[{"kind": asked.flag}])
    if asked.age is not None:
        rows = rows.filter(created_at__lte=now() - timedelta(days=asked.age))
    if asked.confidence is not None:
        rows = rows.filter(Q(confidence__gte=asked.confidence) | Q(confidence__isnull=True))
    if asked.q is not None:
        rows = rows.filter(search_vector=AllWords(asked.q))
    return rows


def _of_origin(origin: str) -> Q:
    """A name, or a kind of origin. Tokens are looked up first, so that an index leads to what they proposed."""
    named = Q(origin_name=origin)
    if origin in TokenKind.values:
        return named | Q(origin_token__in=ApiToken.objects.filter(kind=origin).values("pk"))
    return named | Q(origin_token__isnull=True) if origin == "person" else named


def _moved_on() -> QuerySet[Memory]:
    """Of an outer candidate: what it would replace and somebody else has replaced or retired since."""
    replaced = Supersession.objects.live().full().filter(old=OuterRef("pk"))
    gone: QuerySet[Memory] = Memory.objects.filter(Exists(replaced) | ~Q(status__in=IN_FORCE))
    # One list, so that one look at the index of memories serves both.
    targets = Func(OuterRef("supersedes"), OuterRef("corrects"), function="array_append")
    return gone.filter(_Among(F("pk"), targets))


class _Among(Func):
    template, arg_joiner, output_field = "%(expressions)s)", " = ANY(", BooleanField()


def candidates_shown(
    principal: Principal, candidates: Sequence[Candidate], *, with_verdicts: bool = True
) -> list[dict[str, Any]]:
    """As answers carry them. The number of queries does not grow with the number of candidates."""
    ids = [row.pk for row in candidates]
    scopes = scopes_shown(candidates)
    sources = _sources(principal, ids)
    near = near_shown(principal, candidates)
    verdicts = _verdicts(principal, candidates) if with_verdicts else {}
    about_targets = target_flags(principal, candidates)
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
            "near": near[row.pk],
            "supersedes": [str(pk) for pk in row.supersedes],
            "corrects": _correction(row),
            "flags": row.flags + about_targets.get(row.pk, []),
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
            found[row.candidate_id].append(evidence_shown(row.source, row.quote))
    return found


def _verdicts(principal: Principal, candidates: Sequence[Candidate]) -> dict[UUID, list[dict[str, Any]]]:
    """Who joined a restricted proposal without seeing its sources reads the verdicts, and not what was reworded."""
    hidden = {row.pk for row in candidates if not set(row.audience_ids) <= principal.audience_ids}
    found: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for verdict in Verdict.objects.filter(subject_id__in=[row.pk for row in candidates]).order_by("created_at", "id"):
        found[verdict.subject_id].append(verdict_shown(verdict, in_full=verdict.subject_id not in hidden))
    return found


def target_flags(principal: Principal, candidates: Sequence[Candidate]) -> dict[UUID, list[dict[str, Any]]]:
    """By open candidate: flags for what it would replace and somebody else has replaced or retired since, and for
    what holds where the candidate would not.

    Two queries where any of them replaces something.
    """
    wanted = {row.pk: _targets(row) for row in candidates if row.is_open}
    targets = [target for targets in wanted.values() for target in targets]
    if not targets:
        return {}
    visible = memories_visible(principal)
    rows = {row.pk: row for row in visible.filter(pk__in=targets)}
    moved = {pk: row for pk, row in rows.items() if row.status not in IN_FORCE}
    edges = Supersession.objects.live().full().filter(old__in=targets, new__in=visible).select_related("old", "new")
    successors = {edge.old_id: edge for edge in edges}
    sentences = {row.pk: f"{row.label} was {row.status} meanwhile" for row in moved.values()}
    sentences |= {pk: f"{edge.old.label} was replaced by {edge.new.label}" for pk, edge in successors.items()}
    # What is only reported is not to be replaced: a successor that begins later stands in nobody's way.
    replacing = {row.pk: row for row in candidates if row.brings_memory}
    return {
        pk: [
            _target_flag(TARGET_NOT_IN_FORCE, target, sentences[target])
            for target in targets
            if target in sentences and (pk in replacing or target in moved)
        ]
        + [
            _target_flag(NARROWER_THAN_TARGET, target, rows[target].label)
            for target in targets
            if pk in replacing and target in rows and not covers(replacing[pk], rows[target])
        ]
        for pk, targets in wanted.items()
    }


def _target_flag(kind: str, target: UUID, shown: str) -> dict[str, Any]:
    return {"kind": kind, "field": "supersedes", "shown": shown, "memory": str(target)}


def _targets(candidate: Candidate) -> list[UUID]:
    corrected = [candidate.corrects_id] if candidate.corrects_id is not None else []
    return list(dict.fromkeys([*candidate.supersedes, *corrected]))


def near_shown(principal: Principal, candidates: Sequence[Candidate]) -> dict[UUID, list[dict[str, Any]]]:
    """What each candidate is near to, as far as this reader may be told.

    Of others' proposals a proposer learns only that they exist.
    """
    listed = [entry for row in candidates for entry in row.near]
    found = _near_memories(principal, {entry["id"] for entry in listed if entry["what"] == "memory"})
    found |= _near_candidates(principal, {entry["id"] for entry in listed if entry["what"] == "candidate"})
    return {
        row.pk: [_near_entry(entry, found[entry["id"]]) for entry in row.near if entry["id"] in found]
        for row in candidates
    }


def _near_entry(entry: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Cues quote both texts, so they are for those who may read both."""
    hidden = {"suggests"} if told["content"] is None else set()
    return {name: value for name, value in entry.items() if name not in hidden} | told


def _near_memories(principal: Principal, ids: set[str]) -> dict[str, dict[str, Any]]:
    if not ids:
        return {}
    return {str(row.pk): _near_memory(row) for row in memories_visible(principal).filter(pk__in=ids)}


def _near_candidates(principal: Principal, ids: set[str]) -> dict[str, dict[str, Any]]:
    if not ids:
        return {}
    readable = candidates_visible(principal).filter(pk=OuterRef("pk"))
    rows = Candidate.objects.of(principal.workspace).visible_to(principal.audience_ids).filter(pk__in=ids)
    shown = rows.annotate(is_readable=Exists(readable)).values_list("pk", "content", "status", "is_readable")
    return {
        str(pk): {"content": content if is_readable else None, "status": status}
        for pk, content, status, is_readable in shown
    }


def _near_memory(memory: Memory) -> dict[str, Any]:
    return {"content": memory.content, "number": memory.label, "status": memory.status}


def own_candidates(principal: Principal) -> CandidateQuerySet:
    """What this principal proposed or joined, in any status, newest first."""
    rows: CandidateQuerySet = Candidate.objects.filter(own(principal), workspace=principal.workspace)
    return rows.order_by("-created_at", "id")
