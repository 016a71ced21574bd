"""Who may decide. The gate is a person with the reviewer role who is not the proposer."""

from __future__ import annotations

from typing import NoReturn

from apps.accounts.audit import audit_record
from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.candidates.access import is_proposer
from apps.candidates.models import Candidate, Opened
from apps.core.errors import DomainError, Forbidden
from apps.core.wording import words


def require_reviewer(principal: Principal, *, to: str, subject_kind: str, subject_id: object) -> None:
    """Raise ``Forbidden`` for everybody but reviewers, and leave the attempt in the audit trail."""
    try:
        principal.require_role(Role.REVIEWER, to=to)
    except DomainError as refusal:
        refuse(principal, refusal, to=to, subject_kind=subject_kind, subject_id=subject_id)


def refuse(principal: Principal, refusal: DomainError, *, to: str, subject_kind: str, subject_id: object) -> NoReturn:
    """Record a refused attempt, then raise it. Called before any transaction is opened, so that the row stays."""
    record_refusal(principal, refusal, to=to, subject_kind=subject_kind, subject_id=subject_id)
    raise refusal


def record_refusal(
    principal: Principal, refusal: DomainError, *, to: str, subject_kind: str, subject_id: object
) -> None:
    audit_record(
        principal,
        f"was refused to {to}",
        subject_kind=subject_kind,
        subject_id=subject_id,
        after={"detail": refusal.detail},
    )


def second_person(principal: Principal, candidate: Candidate) -> bool:
    """Whether somebody other than a proposer decides. Raises ``Forbidden`` where the workspace demands it."""
    known: bool | None = getattr(candidate, "is_own", None)  # what ``candidate_for`` found on the way
    if not (is_proposer(principal, candidate) if known is None else known):
        return True
    if principal.workspace.second_person:
        raise Forbidden(
            "You proposed this, yourself or with a token of yours; somebody else has to approve it.",
            code="own_proposal",
        )
    return False


def require_opened(principal: Principal, candidate: Candidate, version: int) -> None:
    """Some types are never waved through: the reviewer must have looked at this version by itself."""
    if not candidate.type.always_human:
        return
    seen = Opened.objects.filter(candidate=candidate, user=principal.user, version=version)
    if not seen.exists():
        raise Forbidden(
            f"What is filed under {words(candidate.type.slug)} is never approved in bulk unseen: open this candidate "
            "first.",
            code="not_opened",
            extra={"candidate": str(candidate.pk)},
        )
