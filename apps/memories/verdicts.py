from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from apps.accounts.principal import Principal
from apps.memories.models import Action, SubjectKind, Verdict


def verdict_record(
    principal: Principal,
    action: Action,
    *,
    subject_kind: SubjectKind,
    subject_id: UUID,
    at: datetime,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    second_person: bool = True,
    batch_id: UUID | None = None,
) -> Verdict:
    """Append what somebody did. PostgreSQL refuses a decision by anybody who is not a reviewer."""
    return Verdict.objects.create(
        workspace=principal.workspace,
        subject_kind=subject_kind,
        subject_id=subject_id,
        action=action,
        reviewer=principal.user,
        token=principal.token,
        reviewer_name=principal.name,
        reason=reason,
        before=dict(before or {}),
        after=dict(after or {}),
        via=principal.via,
        second_person=second_person,
        request_id=principal.request_id,
        batch_id=batch_id,
        created_at=at,
    )


REPLACED_BY_HIDDEN: Final = "Replaced by a memory that you may not see."


def replaced_by(action: str, after: Mapping[str, Any]) -> str | None:
    """The id of the memory that a verdict says replaced its subject."""
    return after.get("by") if action == Action.SUPERSEDE else None


def verdicts_of(subject_id: UUID) -> list[Verdict]:
    """Oldest first."""
    return list(Verdict.objects.filter(subject_id=subject_id).order_by("created_at", "id"))


def latest_decision(subject_id: UUID) -> Verdict | None:
    return Verdict.objects.filter(subject_id=subject_id).order_by("-created_at").first()


def verdict_shown(verdict: Verdict, *, in_full: bool = True) -> dict[str, Any]:
    """As answers carry it. Only in full does it hold the wordings before and after, which nobody may have approved."""
    return {
        "id": str(verdict.pk),
        "action": verdict.action,
        "reviewer": verdict.reviewer_name,
        "reason": verdict.reason,
        "before": verdict.before if in_full else {},
        "after": verdict.after if in_full else {},
        "via": verdict.via,
        "second_person": verdict.second_person,
        "batch": str(verdict.batch_id) if verdict.batch_id else None,
        "created_at": verdict.created_at.isoformat(),
    }
