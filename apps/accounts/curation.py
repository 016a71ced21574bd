"""Rows that people with a role keep in order: every addition and every change leaves an audit event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from django.db.models import Model

from apps.accounts.audit import audit_record
from apps.accounts.principal import Principal

Row = TypeVar("Row", bound=Model)


def row_add(principal: Principal, row: Row, *, shown: Mapping[str, Any]) -> Row:
    """Insert ``row`` and record ``shown``. The caller has checked who asks and what for."""
    row.save(force_insert=True)
    audit_record(principal, "add", subject_kind=_kind(row), subject_id=row.pk, after=_plain(shown))
    return row


def row_change(principal: Principal, row: Row, values: Mapping[str, Any]) -> Row:
    """Save what differs of a locked ``row``, and record only that. Nothing differs: nothing is written."""
    before = {name: getattr(row, name) for name, value in values.items() if getattr(row, name) != value}
    if not before:
        return row
    for name in before:
        setattr(row, name, values[name])
    row.save(update_fields=list(before))
    after = {name: values[name] for name in before}
    audit_record(
        principal, "change", subject_kind=_kind(row), subject_id=row.pk, before=_plain(before), after=_plain(after)
    )
    return row


def _kind(row: Model) -> str:
    return str(row._meta.model_name)


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Rows by the name that people know them by: an id says nothing to whoever reads the trail."""
    return {name: str(value) if isinstance(value, Model) else value for name, value in values.items()}
