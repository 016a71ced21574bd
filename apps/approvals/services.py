"""Decisions. Single, bulk, REST, pages and import all come through these functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import transaction

from apps.accounts.audit import audit_record
from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.approvals import policy
from apps.approvals.amendments import (
    PREFIX,
    Amendment,
    amended_content,
    build_statement,
    changes,
    check_amendment,
    lock_targets,
)
from apps.candidates.access import candidate_for, is_proposer
from apps.candidates.corrections import open_reports, report_settled
from apps.candidates.models import Candidate, CandidateStatus, CorrectionKind
from apps.candidates.proposal import require_within_limits, screened
from apps.candidates.services import look_for_near
from apps.candidates.transitions import candidate_apply, require_transition, require_version
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, Refusals
from apps.core.screening import check_text
from apps.memories.lifecycle import (
    Statement,
    edges_void,
    edges_write,
    holds_at,
    memory_end,
    memory_revive,
    memory_write,
    numbers_take,
    pool_needed,
)
from apps.memories.lifecycle import require_transition as require_memory_transition
from apps.memories.models import IN_FORCE, Action, Memory, MemoryStatus, SubjectKind, Supersession, Verdict
from apps.memories.providers.base import Prepared
from apps.memories.providers.registry import get_provider
from apps.memories.selectors import memory_for
from apps.memories.verdicts import verdict_record

MAX_REASON = 2_000
STILL_OPEN = "The candidate is still open."
NOTHING_CHANGED = "Nothing was changed."


@dataclass(frozen=True, slots=True)
class Approved:
    """``memory`` is the new one, or the retired one when a report without a replacement was approved."""

    candidate: Candidate
    memory: Memory


def candidate_approve(
    *,
    principal: Principal,
    candidate_id: UUID,
    version: int,
    amendment: Amendment | None = None,
    note: str = "",
    batch_id: UUID | None = None,
    prepared: Prepared | None = None,
) -> Approved:
    """Let a statement into the memory, in one transaction over ledger and pool.

    ``version`` is the one the reviewer looked at. Raises ``Forbidden`` for anybody but a reviewer who is not the
    proposer, ``Stale``/``AlreadyDecided``/``Conflict`` when things moved on, ``Invalid``/``Excluded`` for an
    amendment that will not do, ``Unavailable`` when it cannot be embedded or stored; the candidate then stays open.
    """
    amendment = amendment or Amendment()
    note = checked_reason(principal, note, required=False, field="note")
    if prepared is None:
        prepared = approval_prepare(
            principal=principal, candidate_id=candidate_id, version=version, amendment=amendment
        )
    try:
        with pool_needed(STILL_OPEN), transaction.atomic():
            return _approve_locked(principal, candidate_id, version, amendment, note, batch_id, prepared)
    except Forbidden as refusal:
        policy.refuse(principal, refusal, to="approve a candidate", subject_kind="candidate", subject_id=candidate_id)


def approval_prepare(
    *, principal: Principal, candidate_id: UUID, version: int, amendment: Amendment, note: str = ""
) -> Prepared | None:
    """Everything of an approval that may be slow, to be done before its transaction: checks, and the embedding.

    ``None`` for a report that brings no new wording. Raises what ``candidate_approve`` raises.
    """
    candidate = _candidate_to_decide(principal, candidate_id, version, Action.APPROVE)
    try:
        policy.second_person(principal, candidate)
    except Forbidden as refusal:
        policy.refuse(
            principal, refusal, to="approve an own proposal", subject_kind="candidate", subject_id=candidate.pk
        )
    checked_reason(principal, note, required=False, field="note")
    check_amendment(principal, candidate, amendment)
    if not candidate.brings_memory:
        return None
    with pool_needed(STILL_OPEN):
        return get_provider().prepare(amended_content(candidate, amendment))


def _candidate_to_decide(principal: Principal, candidate_id: UUID, version: int, action: Action) -> Candidate:
    policy.require_reviewer(
        principal, to=f"{action.value} a candidate", subject_kind="candidate", subject_id=candidate_id
    )
    candidate = candidate_for(principal, candidate_id)
    require_within_limits(principal, candidate.scope)
    _require_decidable(candidate, version, action)
    return candidate


def _require_decidable(candidate: Candidate, version: int, action: Action) -> None:
    require_transition(candidate, action)
    require_version(candidate, version)


def _approve_locked(
    principal: Principal,
    candidate_id: UUID,
    version: int,
    amendment: Amendment,
    note: str,
    batch_id: UUID | None,
    prepared: Prepared | None,
) -> Approved:
    principal.require_role(Role.REVIEWER, to="approve a candidate")
    candidate = candidate_for(principal, candidate_id, lock=True)
    _require_decidable(candidate, version, Action.APPROVE)
    second = policy.second_person(principal, candidate)
    at = now()
    targets = lock_targets(principal, candidate, amendment)
    statement = build_statement(principal, candidate, amendment) if candidate.brings_memory else None
    number = 0
    if statement is not None:
        _require_room(candidate, statement, targets)
        # The number first: it holds back every other approval here, so that no twin comes into force meanwhile.
        number = numbers_take(principal.workspace.pk, 1)
        _require_news(principal, statement)
    before, after = changes(candidate, statement, targets) if statement else ({}, {})
    verdict = candidate_apply(
        candidate,
        Action.APPROVE,
        principal=principal,
        at=at,
        reason=note,
        before=before,
        after=after,
        second_person=second,
        batch_id=batch_id,
    )
    if statement is not None and prepared is not None:
        if targets and statement.valid_from is None:
            # It holds from the moment it replaces something, or both would be true of the time before.
            statement = replace(statement, valid_from=at)
        memory = memory_write(statement, verdict=verdict, prepared=prepared, number=number, at=at)
        _replace(principal, memory, targets, verdict, at=at)
    else:
        memory = targets[0]
        if holds_at(memory, at):
            _retire(principal, memory, verdict, stale=candidate.correction_kind == CorrectionKind.STALE, at=at)
    _audit(principal, "approve", candidate, memory)
    return Approved(candidate, memory)


def _require_room(candidate: Candidate, statement: Statement, targets: Sequence[Memory]) -> None:
    """What is replaced held until its replacement began; that must leave it a time in which it held.

    Not where it is replaced because it never held, nor where no date is given: then it ends now, even if it was to
    begin later.
    """
    begins = statement.valid_from
    if begins is None or candidate.correction_kind == CorrectionKind.WRONG:
        return
    late = next((target for target in targets if target.valid_from is not None and target.valid_from > begins), None)
    if late is not None and late.valid_from is not None:
        raise Invalid.field(
            f"{PREFIX}valid_from",
            f"{late.label} holds from {late.valid_from:%Y-%m-%d}, so what replaces it cannot hold from "
            f"{begins:%Y-%m-%d}: {late.label} would never have held. Give a later date; or report it as wrong, "
            "if that is what it is.",
            code="never_held",
        )


def _require_news(principal: Principal, statement: Statement) -> None:
    twin = (
        Memory.objects.of(principal.workspace)
        .visible_to(principal.audience_ids)
        .filter(fingerprint=statement.fingerprint, status__in=IN_FORCE)
        .first()
    )
    if twin is not None:
        raise Conflict(
            f"{twin.label} says the same already. Reject this one as known, or amend it.",
            code="already_known",
            extra={"memory": {"id": str(twin.pk), "number": twin.label}},
        )


def _replace(
    principal: Principal, memory: Memory, targets: Sequence[Memory], verdict: Verdict, *, at: datetime
) -> None:
    if not targets:
        return
    edges_write(memory, targets, verdict=verdict, at=at)
    Verdict.objects.bulk_create(
        Verdict(
            workspace_id=verdict.workspace_id,
            subject_kind=SubjectKind.MEMORY,
            subject_id=target.pk,
            action=Action.SUPERSEDE,
            reviewer=principal.user,
            token=principal.token,
            reviewer_name=principal.name,
            reason=f"Replaced by {memory.label}.",
            after={"status": target.status, "by": str(memory.pk)},
            via=principal.via,
            second_person=verdict.second_person,
            request_id=principal.request_id,
            batch_id=verdict.batch_id,
            created_at=at,
        )
        for target in targets
    )


def _retire(principal: Principal, memory: Memory, verdict: Verdict, *, stale: bool, at: datetime) -> None:
    before = {"status": memory.status}
    memory_end(memory, at=at, stale=stale)
    verdict_record(
        principal,
        Action.RETIRE,
        subject_kind=SubjectKind.MEMORY,
        subject_id=memory.pk,
        at=at,
        reason=verdict.reason or "A report about it was approved.",
        before=before,
        after={"status": memory.status, "stale": stale, "report": str(verdict.subject_id)},
        second_person=verdict.second_person,
        batch_id=verdict.batch_id,
    )


def candidate_reject(
    *, principal: Principal, candidate_id: UUID, version: int, reason: str, batch_id: UUID | None = None
) -> Candidate:
    """Turn a statement down, with a reason that its proposer gets to read. A report about a memory is dismissed."""
    _candidate_to_decide(principal, candidate_id, version, Action.REJECT)
    reason = checked_reason(principal, reason)
    with pool_needed(STILL_OPEN), transaction.atomic():
        candidate = candidate_for(principal, candidate_id, lock=True)
        _require_decidable(candidate, version, Action.REJECT)
        candidate_apply(
            candidate,
            Action.REJECT,
            principal=principal,
            at=now(),
            reason=reason,
            second_person=not is_proposer(principal, candidate),
            batch_id=batch_id,
        )
        report_settled(candidate)
        _audit(principal, "reject", candidate)
    return candidate


def candidate_reopen(*, principal: Principal, candidate_id: UUID, version: int, reason: str) -> Candidate:
    """Undo a decision. What an approval did is taken back: its memory retires, its edges are voided.

    Raises ``Conflict`` where that would put a second head beside what holds now: when something replaced the memory
    since, or says again what the memory had replaced.
    """
    _candidate_to_decide(principal, candidate_id, version, Action.REOPEN)
    reason = checked_reason(principal, reason)
    with pool_needed(NOTHING_CHANGED), transaction.atomic():
        candidate = candidate_for(principal, candidate_id, lock=True)
        _require_decidable(candidate, version, Action.REOPEN)
        _require_no_twin(candidate)
        return _reopen_locked(principal, candidate, reason)


def _reopen_locked(principal: Principal, candidate: Candidate, reason: str) -> Candidate:
    at = now()
    decision, was_approved = candidate.decision, candidate.status == CandidateStatus.APPROVED
    assert decision is not None  # a constraint holds it  # noqa: S101
    verdict = candidate_apply(
        candidate,
        Action.REOPEN,
        principal=principal,
        at=at,
        reason=reason,
        second_person=not is_proposer(principal, candidate),
    )
    if was_approved:
        _take_back(principal, candidate, decision, verdict, at=at)
    elif candidate.corrects_id is not None:
        report_settled(candidate)
    look_for_near(candidate)
    _audit(principal, "reopen", candidate)
    return candidate


def _require_no_twin(candidate: Candidate) -> None:
    twins = Candidate.objects.open().filter(workspace=candidate.workspace_id, fingerprint=candidate.fingerprint)
    twin = twins.exclude(pk=candidate.pk).first()
    if twin is not None:
        raise Conflict(
            "The same statement is waiting for review again; decide about that one.",
            code="duplicate",
            extra={"duplicate_of": {"what": "candidate", "id": str(twin.pk)}},
        )


def _take_back(
    principal: Principal, candidate: Candidate, decision: Verdict, verdict: Verdict, *, at: datetime
) -> None:
    memory = Memory.objects.filter(verdict=decision).first()
    if memory is None:
        _take_back_report(principal, candidate, verdict, at=at)
        return
    edges = list(Supersession.objects.live().filter(new=memory))
    locked = {row.pk: row for row in _locked([memory.pk, *(edge.old_id for edge in edges)])}
    memory = locked.pop(memory.pk)
    _require_not_replaced(memory)
    if memory.retired_at is None:
        before = memory.status
        memory_end(memory, at=at, stale=False)
        _memory_verdict(
            principal, Action.RETIRE, memory, before=before, reason=verdict.reason, at=at, second=verdict.second_person
        )
    edges_void(edges, verdict=verdict, at=at, disputed=open_reports(list(locked)))
    for old in Memory.objects.filter(pk__in=locked, status__in=IN_FORCE):
        _require_no_second_head(old)


def _locked(ids: Sequence[UUID]) -> list[Memory]:
    """In the order in which approvals lock what they replace, so that the two never wait for each other."""
    rows = Memory.objects.filter(pk__in=ids).select_related("type")
    return list(rows.select_for_update(of=("self",)).order_by("pk"))


def _require_not_replaced(memory: Memory) -> None:
    edge = Supersession.objects.live().full().filter(old=memory).select_related("new").first()
    if edge is not None:
        raise Conflict(
            f"{memory.label} was replaced by {edge.new.label} since. Undo that approval first.",
            code="replaced_since",
            extra={"successor": {"id": str(edge.new.pk), "number": edge.new.label}},
        )


def _take_back_report(principal: Principal, candidate: Candidate, verdict: Verdict, *, at: datetime) -> None:
    """The report is open again, so the memory it had retired is in force and disputed."""
    assert candidate.corrects_id is not None  # a decision without a memory is one about a report  # noqa: S101
    (memory,) = _locked([candidate.corrects_id])
    last = Verdict.objects.filter(subject_id=memory.pk, action=Action.RETIRE).order_by("created_at").last()
    if memory.status != MemoryStatus.RETIRED or last is None or last.after.get("report") != str(candidate.pk):
        return  # restored meanwhile, or ended for a reason of its own
    memory_revive(memory, at=at, disputed=True)
    _require_no_second_head(memory)
    _memory_verdict(
        principal,
        Action.RESTORE,
        memory,
        before=MemoryStatus.RETIRED,
        reason=verdict.reason,
        at=at,
        second=verdict.second_person,
    )


def memory_retire(*, principal: Principal, reference: str | UUID, reason: str) -> Memory:
    """Stop believing a memory. What it had replaced does not come back by that."""
    return _change_memory(principal, reference, reason, Action.RETIRE)


def memory_restore(*, principal: Principal, reference: str | UUID, reason: str) -> Memory:
    """Undo a retirement. Raises ``Conflict`` when that would put a second head beside what holds now."""
    return _change_memory(principal, reference, reason, Action.RESTORE)


def _change_memory(principal: Principal, reference: str | UUID, reason: str, action: Action) -> Memory:
    found = memory_for(principal, reference)
    policy.require_reviewer(principal, to=f"{action.value} a memory", subject_kind="memory", subject_id=found.pk)
    require_within_limits(principal, found.scope)
    reason = checked_reason(principal, reason)
    with pool_needed(NOTHING_CHANGED), transaction.atomic():
        memory = memory_for(principal, found.pk, lock=True)
        require_memory_transition(memory, action)
        before, at = memory.status, now()
        if action is Action.RETIRE:
            memory_end(memory, at=at, stale=False)
        else:
            _require_approval_stands(memory)
            memory_revive(memory, at=at, disputed=bool(open_reports([memory.pk])))
            _require_no_second_head(memory)
        _memory_verdict(principal, action, memory, before=before, reason=reason, at=at)
    return memory


def _require_approval_stands(memory: Memory) -> None:
    candidate = Candidate.objects.select_related("decision").get(pk=memory.verdict.subject_id)
    if candidate.decision_id != memory.verdict_id or candidate.status != CandidateStatus.APPROVED:
        raise Conflict(
            f"The approval of {memory.label} was reopened. Approve its candidate again instead.",
            code="approval_reopened",
            extra={"candidate": str(candidate.pk)},
        )


def _require_no_second_head(memory: Memory) -> None:
    """A memory that has come back may not say what another one in force says to the same people."""
    if memory.status not in IN_FORCE:
        return
    numbers_take(memory.workspace_id, 0)
    twin = (
        Memory.objects.filter(workspace=memory.workspace_id, fingerprint=memory.fingerprint, status__in=IN_FORCE)
        .filter(audience_ids=memory.audience_ids)
        .exclude(pk=memory.pk)
        .first()
    )
    if twin is not None:
        raise Conflict(
            f"{twin.label} says the same and is in force; {memory.label} would be a second head beside it.",
            code="second_head",
            extra={"memory": {"id": str(twin.pk), "number": twin.label}},
        )


def _memory_verdict(
    principal: Principal,
    action: Action,
    memory: Memory,
    *,
    before: str,
    reason: str,
    at: datetime,
    second: bool = True,
) -> None:
    verdict_record(
        principal,
        action,
        subject_kind=SubjectKind.MEMORY,
        subject_id=memory.pk,
        at=at,
        reason=reason,
        before={"status": before},
        after={"status": memory.status},
        second_person=second,
    )
    audit_record(
        principal,
        action.value,
        subject_kind="memory",
        subject_id=memory.pk,
        before={"status": before},
        after={"status": memory.status},
    )


def checked_reason(principal: Principal, reason: str, *, required: bool = True, field: str = "reason") -> str:
    """Reasons are kept for good, so they are screened like any other text."""
    if not reason and not required:
        return ""
    refusals = Refusals()
    refusals.add(check_text(reason, field=field, max_length=MAX_REASON))
    with refusals.collecting():
        screened(principal.workspace, {field: reason})
    refusals.raise_all(f"The {field} will not do.")
    return reason.strip()


def _audit(principal: Principal, verb: str, candidate: Candidate, memory: Memory | None = None) -> None:
    after = {"status": candidate.status, "version": candidate.version}
    audit_record(
        principal,
        verb,
        subject_kind="candidate",
        subject_id=candidate.pk,
        after=after | ({"memory": str(memory.pk), "number": memory.label} if memory else {}),
    )
