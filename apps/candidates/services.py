"""Every write to the queue short of a decision: propose, join, revise, withdraw, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, F, OuterRef, Q
from django_q.tasks import async_task

from apps.accounts.audit import audit_record
from apps.accounts.principal import Principal
from apps.candidates.access import is_proposer
from apps.candidates.models import ONCE_WHILE_OPEN, Candidate, CandidateEvidence, CandidateStatus, Proposer
from apps.candidates.near import near_by_text
from apps.candidates.proposal import (
    Checked,
    Proposal,
    ScopeInput,
    check_proposal,
    memory_ids,
    require_within_limits,
    scope_flags,
    source_flags,
)
from apps.candidates.transitions import candidate_move
from apps.core.clock import now
from apps.core.errors import TooMany, Unavailable
from apps.core.problems import constraint_of
from apps.core.wording import words
from apps.memories.fingerprints import fingerprint
from apps.memories.models import Action, Memory, MemoryStatus, Verdict
from apps.scopes.scope import ResolvedScope, Scope
from apps.scopes.services import scope_register
from apps.sources.models import Source
from apps.sources.services import SourceInput, sources_record
from apps.taxonomy.models import MemoryType

MAX_OPEN_PER_ORIGIN = 200
# However often the same is proposed, one candidate stays something that a person can look at.
MAX_EVIDENCE = 200
MAX_FLAGS = 200
REOPEN_AFTER = timedelta(days=30)
_ATTEMPTS = 3
_AT_THE_SAME_TIME = 50  # more requests of one origin than this are not on their way at once


@dataclass(frozen=True, slots=True)
class Duplicate:
    what: str  # memory | candidate
    id: UUID


@dataclass(frozen=True, slots=True)
class Proposed:
    """What became of a proposal. ``created`` is false when it joined, reopened or was decided before."""

    candidate: Candidate
    created: bool
    status: str
    reason: str
    duplicate_of: Duplicate | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """A proposal with its names turned into rows."""

    proposal: Proposal
    type: MemoryType
    scope: Scope
    sources: tuple[tuple[Source, SourceInput], ...]
    targets: tuple[Memory, ...]
    flags: tuple[dict[str, Any], ...]
    fingerprint: str
    corrects: Memory | None = None
    correction_kind: str = ""
    correction_reason: str = ""
    has_replacement: bool = False
    written_by: Principal | None = None
    look: bool = True

    @property
    def audience_ids(self) -> set[int]:
        """What came from a restricted source is restricted to the same audience, and so is what it replaces."""
        restricted = {source.audience_id for source, _ in self.sources if source.audience_id is not None}
        if self.corrects is not None:
            restricted.update(self.corrects.audience_ids)
        return restricted


def candidate_propose(
    *, principal: Principal, proposal: Proposal, written_by: Principal | None = None, look: bool = True
) -> Proposed:
    """Put a statement into the queue, or say what became of the same one before.

    ``written_by`` is who worded it where that is somebody else: they count as a proposer too, and so cannot approve it.
    Without ``look`` nothing is looked up that is near, for a caller who takes the proposal back in any case.

    Raises ``Invalid`` or ``Excluded`` naming the field, ``Forbidden`` outside the token's limits, ``TooMany``
    when too much of this origin is waiting already.
    """
    principal.require_write()
    checked = check_proposal(principal, proposal)
    with transaction.atomic():
        resolved = replace(_resolve(principal, proposal, checked), written_by=written_by, look=look)
        return settle(principal, resolved)


def _resolve(principal: Principal, proposal: Proposal, checked: Checked) -> Resolved:
    workspace, type_ = principal.workspace, checked.type
    assert type_ is not None  # every proposal names one, and it was looked up  # noqa: S101
    registered = _register_scope(principal, proposal.scope)
    sources = sources_record(workspace, proposal.sources)
    return Resolved(
        proposal=proposal,
        type=type_,
        scope=registered.scope,
        sources=tuple(sources),
        targets=checked.targets,
        flags=(*checked.flags, *scope_flags(registered), *source_flags(sources)),
        fingerprint=fingerprint(proposal.content, type_id=type_.pk, scope=registered.scope),
    )


def _register_scope(principal: Principal, scope: ScopeInput) -> ResolvedScope:
    registered = scope_register(principal.workspace, firm=scope.firm, domains=scope.domains, repos=scope.repos)
    require_within_limits(principal, registered.scope)
    return registered


def settle(principal: Principal, resolved: Resolved) -> Proposed:
    """Join the open candidate, answer with an earlier decision, or queue a new one.

    Another request may do the same at this moment: the unique index decides who inserts, the others look again.
    """
    for _ in range(_ATTEMPTS):
        answered = _answer_known(principal, resolved) if _is_known(principal, resolved.fingerprint) else None
        if answered is not None:
            return answered
        candidate = _insert(principal, resolved)
        if candidate is not None:
            return Proposed(candidate, True, candidate.status, candidate.status_reason)
    raise Unavailable("The same statement is being proposed many times at once. Try again in a moment.")


def _is_known(principal: Principal, fingerprint: str) -> bool:
    """Whether it is worth looking closer. Of most proposals nothing is known, and this is all that is asked."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM candidates_candidate WHERE workspace_id = %(workspace)s"
            " AND fingerprint = %(fingerprint)s) OR EXISTS (SELECT FROM memories_memory"
            " WHERE workspace_id = %(workspace)s AND fingerprint = %(fingerprint)s)",
            {"workspace": principal.workspace.pk, "fingerprint": fingerprint},
        )
        (known,) = cursor.fetchone()
        return bool(known)


def _answer_known(principal: Principal, resolved: Resolved) -> Proposed | None:
    earlier = _earlier(principal, resolved)
    if earlier is not None:
        return _answer_earlier(principal, resolved, earlier)
    return _known_memory(principal, resolved)


def _earlier(principal: Principal, resolved: Resolved) -> Candidate | None:
    """The same statement as proposed before: the open one, else the one decided last. Locked."""
    found = said_before(principal, resolved.fingerprint)
    return next((row for row in found if row.is_open or _repeats(resolved, row)), None)


def said_before(principal: Principal, fingerprint: str) -> list[Candidate]:
    """Candidates of this fingerprint that still count, locked: the open one, then decisions that stand, newest first.

    A decision about what this principal may not see is not told; an open one is, since there can be one at most.
    """
    rows = Candidate.objects.filter(workspace=principal.workspace, fingerprint=fingerprint).exclude(
        status=CandidateStatus.WITHDRAWN, decision__isnull=True
    )
    found = rows.select_for_update(of=("self",)).select_related("type", "decision").order_by("-created_at")[:20]
    counting = [row for row in found if row.is_open or (_stands(row) and _may_be_told(principal, row))]
    return sorted(counting, key=lambda row: not row.is_open)


def _stands(decided: Candidate) -> bool:
    """Not where a reviewer had taken the decision back before its proposer took back the proposal."""
    if decided.status != CandidateStatus.WITHDRAWN:
        return True
    return not _was_approved(decided) and _rejections_in_a_row(decided) > 0


def _may_be_told(principal: Principal, decided: Candidate) -> bool:
    return set(decided.audience_ids) <= principal.audience_ids or is_proposer(principal, decided)


def _repeats(resolved: Resolved, decided: Candidate) -> bool:
    """Whether a proposal says what was decided before.

    An origin's reports on one memory share a fingerprint: only a dismissed one that says the same is repeated, while
    one that was upheld has had its effect.
    """
    if resolved.corrects is None:
        return True
    said = (decided.correction_kind, decided.correction_reason, decided.has_replacement, decided.content)
    says = (
        resolved.correction_kind,
        resolved.correction_reason,
        resolved.has_replacement,
        resolved.proposal.content,
    )
    return said == says and not _was_approved(decided)


def _was_approved(candidate: Candidate) -> bool:
    return candidate.decision is not None and candidate.decision.action == Action.APPROVE


def _answer_earlier(principal: Principal, resolved: Resolved, earlier: Candidate) -> Proposed:
    if earlier.is_open:
        return _join(principal, resolved, earlier)
    if _was_approved(earlier):
        return _answer_approved(principal, resolved, earlier)
    return _answer_rejected(principal, resolved, earlier)


def _join(principal: Principal, resolved: Resolved, candidate: Candidate) -> Proposed:
    had = candidate.evidence.count()
    changed = _add_support(principal, resolved, candidate) | _lift(principal, resolved, candidate)
    candidate.seen_count = F("seen_count") + 1
    if changed:
        candidate.version += 1
    candidate.save(
        update_fields=[
            *("seen_count", "version", "flags", "audience_ids", "status", "status_reason"),
            "updated_at",
        ]
    )
    candidate.refresh_from_db(fields=["seen_count"])
    reason = _join_reason(resolved, candidate, had)
    return Proposed(candidate, False, candidate.status, reason, Duplicate("candidate", candidate.pk))


def _join_reason(resolved: Resolved, candidate: Candidate, had: int) -> str:
    if candidate.evidence.count() > had:
        return "The same statement is already waiting for review; your source was added to it."
    if new_sources(candidate, resolved.sources):
        return f"The same statement is already waiting for review, with {had} sources; yours was not added to them."
    return "The same statement, with this source, is already waiting for review."


def _lift(principal: Principal, resolved: Resolved, candidate: Candidate) -> bool:
    """Out of quarantine, when somebody proposes the same with enough confidence: a doubt of one hides nothing."""
    proposal = resolved.proposal
    status, _ = gate(resolved.type, proposal.confidence, principal.confidence_ceiling, doubt=proposal.doubt)
    if candidate.status != CandidateStatus.QUARANTINED or status != CandidateStatus.PENDING:
        return False
    candidate.status = status
    candidate.status_reason = f"{principal.name} proposed the same with enough confidence."
    return True


def _add_support(principal: Principal, resolved: Resolved, candidate: Candidate) -> bool:
    """Add sources and proposer that are new to a locked candidate. Whether anything was."""
    room = max(0, MAX_EVIDENCE - candidate.evidence.count())
    new = new_sources(candidate, resolved.sources)[:room]
    evidence_add(candidate, new)
    joined = _proposers_add(principal, resolved, candidate)
    audiences = sorted({*candidate.audience_ids, *resolved.audience_ids})
    wanted = (*resolved.flags, *_joined_flags(resolved, candidate))
    flags = (candidate.flags + [flag for flag in wanted if flag not in candidate.flags])[:MAX_FLAGS]
    changed = bool(new) or joined or audiences != sorted(candidate.audience_ids) or flags != candidate.flags
    candidate.audience_ids, candidate.flags = audiences, flags
    return changed


def _proposers_add(principal: Principal, resolved: Resolved, candidate: Candidate) -> bool:
    """Add whoever is not among the proposers yet. Whether anybody was."""
    new = [
        each
        for each in _proposers(principal, resolved)
        if not candidate.proposers.filter(token=each.token, user=each.user).exists()
    ]
    for each in new:
        proposer_add(each, candidate)
    return bool(new)


def _proposers(principal: Principal, resolved: Resolved) -> list[Principal]:
    """Whoever proposes, and whoever worded it."""
    writer = resolved.written_by
    return [principal] if writer is None or writer.key == principal.key else [principal, writer]


def _joined_flags(resolved: Resolved, candidate: Candidate) -> list[dict[str, Any]]:
    """What whoever joins asked for otherwise. It is not applied, and the reviewer gets to see it."""
    proposal = resolved.proposal
    asked: list[tuple[str, bool, str]] = [
        (
            "supersedes",
            bool(resolved.targets) and set(memory_ids(resolved.targets)) != set(candidate.supersedes),
            ", ".join(memory.label for memory in resolved.targets),
        ),
        (
            "valid_from",
            proposal.valid_from not in (None, candidate.valid_from),
            proposal.valid_from.isoformat() if proposal.valid_from else "",
        ),
        ("tier", proposal.tier != candidate.tier, str(proposal.tier)),
        ("kind", resolved.correction_kind != candidate.correction_kind, resolved.correction_kind),
        ("reason", resolved.correction_reason != candidate.correction_reason, resolved.correction_reason),
        (
            "replacement",
            resolved.has_replacement and proposal.content != candidate.content,
            proposal.content,
        ),
    ]
    return [
        {"kind": "joined-differs", "field": field, "shown": shown[:500]} for field, differs, shown in asked if differs
    ]


def new_sources(
    candidate: Candidate, sources: Sequence[tuple[Source, SourceInput]]
) -> list[tuple[Source, SourceInput]]:
    known = set(candidate.evidence.values_list("source_id", flat=True))
    return [(source, given) for source, given in sources if source.pk not in known]


def _answer_rejected(principal: Principal, resolved: Resolved, candidate: Candidate) -> Proposed:
    """An earlier rejection stands, unless a source not seen before gives a reason to look again."""
    if _may_reopen(resolved, candidate):
        return _reopen_for_new_source(principal, resolved, candidate)
    verdict = candidate.decision
    assert verdict is not None  # a constraint holds it  # noqa: S101
    reason = f"{verdict.reviewer_name} rejected the same statement on {verdict.created_at:%Y-%m-%d}: {verdict.reason}"
    return Proposed(candidate, False, CandidateStatus.REJECTED, reason, Duplicate("candidate", candidate.pk))


def _may_reopen(resolved: Resolved, candidate: Candidate) -> bool:
    """At most once in 30 days, and never after a second rejection, until a reviewer reopens it."""
    if not new_sources(candidate, resolved.sources):
        return False
    if candidate.reopened_at is not None and now() - candidate.reopened_at < REOPEN_AFTER:
        return False
    return _rejections_in_a_row(candidate) < 2


def _rejections_in_a_row(candidate: Candidate) -> int:
    """Since a reviewer last reopened it."""
    rows = Verdict.objects.filter(subject_id=candidate.pk, action__in=(Action.REJECT, Action.REOPEN))
    actions = list(rows.order_by("-created_at").values_list("action", flat=True)[:2])
    return next((at for at, action in enumerate(actions) if action == Action.REOPEN), len(actions))


def _reopen_for_new_source(principal: Principal, resolved: Resolved, candidate: Candidate) -> Proposed:
    moment, before = now(), candidate.status
    _add_support(principal, resolved, candidate)
    status, why = gate(resolved.type, candidate.confidence, principal.confidence_ceiling)
    candidate_move(candidate, status, why or "A source not seen before reopened it after a rejection.")
    candidate.reopened_at = moment
    candidate.save()
    audit_record(
        principal,
        "reopen by a new source",
        subject_kind="candidate",
        subject_id=candidate.pk,
        before={"status": before},
        after={"status": status},
    )
    look_for_near(candidate)
    return Proposed(candidate, False, candidate.status, candidate.status_reason, Duplicate("candidate", candidate.pk))


def _answer_approved(principal: Principal, resolved: Resolved, candidate: Candidate) -> Proposed:
    """Known already. What was replaced or retired since does not come back by being said again."""
    memory = Memory.objects.filter(verdict__subject_id=candidate.pk).latest("number")
    if not set(memory.audience_ids) <= principal.audience_ids:  # restricted since this principal proposed it
        reason = "The same statement was approved before."
        return Proposed(candidate, False, CandidateStatus.APPROVED, reason, Duplicate("candidate", candidate.pk))
    return _already_known(candidate, memory)


def _already_known(candidate: Candidate, memory: Memory) -> Proposed:
    reason = f"This is already known as {memory.label}"
    if memory.status in (MemoryStatus.SUPERSEDED, MemoryStatus.RETIRED):
        reason += f", which is {memory.status}. Say what changed, in other words, if it holds again"
    return Proposed(candidate, False, CandidateStatus.APPROVED, f"{reason}.", Duplicate("memory", memory.pk))


def _known_memory(principal: Principal, resolved: Resolved) -> Proposed | None:
    """A memory that says the same though its own candidate was worded otherwise before it was amended.

    One whose approval was taken back is nothing that is known.
    """
    if resolved.corrects is not None:
        return None
    standing = Candidate.objects.filter(status=CandidateStatus.APPROVED, decision=OuterRef("verdict"))
    rows = Memory.objects.of(principal.workspace).visible_to(principal.audience_ids).filter(Exists(standing))
    memory = rows.filter(fingerprint=resolved.fingerprint).select_related("verdict").order_by("-number").first()
    if memory is None:
        return None
    return _already_known(Candidate.objects.get(pk=memory.verdict.subject_id), memory)


def _insert(principal: Principal, resolved: Resolved) -> Candidate | None:
    """Queue a new candidate; ``None`` when another request put the same one there first."""
    _require_room(principal)
    candidate = _build(principal, resolved)
    if resolved.look:
        candidate.near = near_by_text(candidate, [source for source, _ in resolved.sources])
    try:
        with transaction.atomic():
            candidate.save(force_insert=True)
    except IntegrityError as error:
        if constraint_of(error) == ONCE_WHILE_OPEN:
            return None
        raise
    evidence_add(candidate, resolved.sources)
    for each in _proposers(principal, resolved):
        proposer_add(each, candidate)
    audit_record(principal, "propose", subject_kind="candidate", subject_id=candidate.pk, after=_summary(candidate))
    if resolved.look:
        _look_by_vector(candidate)
    return candidate


def _build(principal: Principal, resolved: Resolved) -> Candidate:
    proposal = resolved.proposal
    status, why = gate(resolved.type, proposal.confidence, principal.confidence_ceiling, doubt=proposal.doubt)
    return Candidate(
        workspace=principal.workspace,
        content=proposal.content,
        type=resolved.type,
        firm=resolved.scope.firm,
        domain_ids=list(resolved.scope.domain_ids),
        repo_ids=list(resolved.scope.repo_ids),
        audience_ids=sorted(resolved.audience_ids),
        tier=proposal.tier,
        confidence=proposal.confidence,
        valid_from=proposal.valid_from,
        status=status,
        status_reason=why,
        fingerprint=resolved.fingerprint,
        origin_token=principal.token,
        origin_user=principal.user,
        origin_name=principal.name,
        supersedes=memory_ids(resolved.targets),
        corrects=resolved.corrects,
        correction_kind=resolved.correction_kind,
        correction_reason=resolved.correction_reason,
        has_replacement=resolved.has_replacement,
        flags=list(resolved.flags),
        created_at=now(),
    )


def gate(
    type_: MemoryType, confidence: float | None, ceiling: float, *, doubt: str = ""
) -> tuple[CandidateStatus, str]:
    """Pending, or quarantined with the reason as a sentence. Absent confidence counts as the ceiling."""
    if doubt:
        return CandidateStatus.QUARANTINED, doubt
    counted = effective_confidence(confidence, ceiling)
    if counted >= type_.min_confidence:
        return CandidateStatus.PENDING, ""
    asked = f"{type_.min_confidence:.2g} that its type, {words(type_.slug)}, asks for"
    return CandidateStatus.QUARANTINED, f"Its confidence of {counted:.2g} is below the {asked}."


def effective_confidence(confidence: float | None, ceiling: float) -> float:
    return ceiling if confidence is None else min(confidence, ceiling)


def _require_room(principal: Principal) -> None:
    if not settings.FIRM_MEMORY_THROTTLE:
        return
    waiting = Candidate.objects.open().filter(origin(principal), workspace=principal.workspace)[:MAX_OPEN_PER_ORIGIN]
    if waiting.count() < MAX_OPEN_PER_ORIGIN - _AT_THE_SAME_TIME:
        return
    hold_origin(principal)
    if waiting.count() >= MAX_OPEN_PER_ORIGIN:
        raise TooMany(
            f"{MAX_OPEN_PER_ORIGIN} of your proposals are waiting for review already. Wait until some are decided, "
            "or withdraw some.",
            code="queue_full",
        )


def origin(principal: Principal) -> Q:
    """Candidates that this principal proposed first."""
    return Q(origin_token=principal.token, origin_user=principal.user)


def hold_origin(principal: Principal) -> None:
    """Until the transaction ends, another request of this origin waits here: what counts its rows must not race."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('firm-memory origin'), hashtext(%s))", [principal.key])


def evidence_add(candidate: Candidate, sources: Sequence[tuple[Source, SourceInput]]) -> None:
    CandidateEvidence.objects.bulk_create(
        CandidateEvidence(
            candidate=candidate, source=source, workspace_id=candidate.workspace_id, quote=given.quote.strip()
        )
        for source, given in sources
    )


def proposer_add(principal: Principal, candidate: Candidate) -> None:
    Proposer.objects.create(
        candidate=candidate,
        workspace_id=candidate.workspace_id,
        token=principal.token,
        user=principal.user,
        name=principal.name,
    )


def _summary(candidate: Candidate) -> dict[str, Any]:
    return {"status": candidate.status, "type": candidate.type.slug, "tier": candidate.tier}


def look_for_near(candidate: Candidate) -> None:
    """By text now, for the answer; by vector in the worker, because embedding is slow."""
    candidate.near = near_by_text(candidate)
    if candidate.near:
        Candidate.objects.filter(pk=candidate.pk).update(near=candidate.near)
    _look_by_vector(candidate)


def _look_by_vector(candidate: Candidate) -> None:
    async_task("apps.candidates.tasks.find_near_by_vector", str(candidate.pk))
