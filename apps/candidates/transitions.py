"""A candidate's states: one table, one function that applies it. REST, pages, bulk and admin all come through here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.accounts.principal import Principal
from apps.candidates.models import OPEN, Candidate, CandidateStatus
from apps.core.errors import AlreadyDecided, Stale
from apps.memories.models import Action, SubjectKind, Verdict
from apps.memories.verdicts import latest_decision, verdict_record

CLOSED = frozenset({CandidateStatus.APPROVED, CandidateStatus.REJECTED})

# Action → (from which statuses, to which). ``None``: the gate decides between pending and quarantined.
TRANSITIONS: dict[Action, tuple[frozenset[str], CandidateStatus | None]] = {
    Action.APPROVE: (frozenset(OPEN), CandidateStatus.APPROVED),
    Action.REJECT: (frozenset(OPEN), CandidateStatus.REJECTED),
    Action.WITHDRAW: (frozenset(OPEN), CandidateStatus.WITHDRAWN),
    Action.REVISE: (frozenset(OPEN), None),
    Action.REOPEN: (CLOSED, CandidateStatus.PENDING),
}


def require_version(candidate: Candidate, version: int) -> None:
    """A decision names the version it was made on. Raises ``Stale`` or, when somebody was faster, who decided."""
    if candidate.version != version:
        if not candidate.is_open:
            raise already_decided(candidate)
        raise Stale(
            f"This candidate has changed since version {version}; it is now version {candidate.version}. "
            "Look at it again before you decide.",
            extra={"version": candidate.version, "status": candidate.status} | _latest(candidate),
        )


def require_transition(candidate: Candidate, action: Action) -> None:
    allowed, _ = TRANSITIONS[action]
    if candidate.status not in allowed:
        raise already_decided(candidate)


def already_decided(candidate: Candidate) -> AlreadyDecided:
    """Who decided what and when, for whoever came second."""
    latest = _latest(candidate)
    if candidate.is_open:
        detail = f"This candidate is {candidate.status}: nothing has been decided that could be undone."
    elif latest["decided_by"]:
        detail = (
            f"{latest['decided_by']} has already {_PAST[latest['action']]} this candidate ({latest['decided_at']})."
        )
    else:
        detail = f"This candidate is already {candidate.status}."
    return AlreadyDecided(detail, extra={"version": candidate.version, "status": candidate.status} | latest)


_PAST = {action.value: action.label.lower() for action in Action}


def _latest(candidate: Candidate) -> dict[str, Any]:
    verdict = latest_decision(candidate.pk)
    if verdict is None:
        return {"decided_by": None, "action": None, "decided_at": None}
    return {
        "decided_by": verdict.reviewer_name,
        "action": verdict.action,
        "decided_at": verdict.created_at.isoformat(),
        "reason": verdict.reason,
    }


def candidate_apply(
    candidate: Candidate,
    action: Action,
    *,
    principal: Principal,
    at: datetime,
    to: CandidateStatus | None = None,
    status_reason: str = "",
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    second_person: bool = True,
    batch_id: UUID | None = None,
) -> Verdict:
    """Move a locked candidate, write the verdict, raise the version. The caller checked version and right.

    Saves status, version and what belongs to them; other changed fields are the caller's to save first.
    """
    require_transition(candidate, action)
    verdict = verdict_record(
        principal,
        action,
        subject_kind=SubjectKind.CANDIDATE,
        subject_id=candidate.pk,
        at=at,
        reason=reason,
        before={"status": candidate.status, "version": candidate.version} | dict(before or {}),
        after=after,
        second_person=second_person,
        batch_id=batch_id,
    )
    candidate_move(candidate, to or TRANSITIONS[action][1] or CandidateStatus(candidate.status), status_reason)
    if candidate.status in CLOSED:
        candidate.decision = verdict
    candidate.save(
        update_fields=[
            *("status", "status_reason", "version", "decision", "vector", "claimed_by", "claimed_until"),
            "updated_at",
        ]
    )
    return verdict


def candidate_move(candidate: Candidate, to: CandidateStatus, status_reason: str) -> None:
    """Set the status in memory. What only an open candidate needs is cleared when it closes."""
    candidate.status = to
    candidate.status_reason = status_reason
    candidate.version += 1
    if not candidate.is_open:
        candidate.vector = candidate.claimed_by = candidate.claimed_until = None
