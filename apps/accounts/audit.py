"""The audit trail: one row for every change and every refused attempt to decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.accounts.models import AuditEvent
from apps.accounts.principal import Principal


def audit_record(
    principal: Principal,
    verb: str,
    *,
    subject_kind: str,
    subject_id: object,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> AuditEvent:
    return AuditEvent.objects.create(
        workspace=principal.workspace,
        actor=principal.name,
        user=principal.user,
        token=principal.token,
        verb=verb,
        subject_kind=subject_kind,
        subject_id=str(subject_id),
        before=dict(before or {}),
        after=dict(after or {}),
        request_id=principal.request_id,
    )
