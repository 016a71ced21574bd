"""The audit trail: one row for every change and every refused attempt to decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.accounts.models import AuditEvent
from apps.accounts.principal import Principal
from apps.core.screening.text import clean_text

MAX_SUBJECT_ID = 64


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
        # An attempt may name anything, and is recorded whatever it names.
        subject_id=clean_text(str(subject_id))[0][:MAX_SUBJECT_ID],
        before=dict(before or {}),
        after=dict(after or {}),
        request_id=principal.request_id,
    )
