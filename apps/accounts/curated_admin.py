"""Admin pages whose every write goes through a service, which checks and records it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.accounts.admin_site import WorkspaceModelAdmin, WorkspaceModelForm, admin_principal
from apps.accounts.models import AuditEvent
from apps.accounts.principal import Principal
from apps.core.differences import difference_shown
from apps.core.errors import FieldError

MAX_EVENTS = 100


def wordings_of(principal: Principal, kind: str, pk: int, *, field: str) -> SafeString:
    """What one field said over time, the newest change first: who changed it when, and what changed word by word."""
    rows = AuditEvent.objects.filter(workspace=principal.workspace, subject_kind=kind, subject_id=str(pk))
    changes = [event for event in rows.order_by("-id")[:MAX_EVENTS] if field in event.before and field in event.after]
    if not changes:
        return SafeString("It has not been changed since it was written.")
    return format_html_join("", "<p><strong>{}</strong>, {}</p>{}", (_wording(event, field) for event in changes))


def _wording(event: AuditEvent, field: str) -> tuple[str, str, SafeString]:
    told = difference_shown(str(event.before[field]), str(event.after[field]))
    return (
        event.actor,
        f"{event.created_at:%Y-%m-%d %H:%M} UTC",
        format_html("<p>Before: {}</p><p>After: {}</p>", told.before, told.after),
    )


class CuratedForm(WorkspaceModelForm):
    """Shows beside each field what the service would refuse it for."""

    def refusals(self, values: dict[str, Any]) -> Sequence[FieldError]:
        """The service's own judgement of values that have passed the fields' checks."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        if not self.errors:
            for refusal in self.refusals(values):
                name = refusal.field.partition("[")[0]
                self.add_error(name if name in self.fields else None, refusal.message)
        return values


class CuratedAdmin(WorkspaceModelAdmin):
    """``given_once`` are the names by which others know a row, so they stay as they were first given."""

    actions: Any = None
    given_once: ClassVar[tuple[str, ...]] = ()

    def row_add(self, principal: Principal, values: dict[str, Any]) -> Model:
        raise NotImplementedError

    def row_change(self, principal: Principal, row: Any, values: dict[str, Any]) -> None:
        raise NotImplementedError

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """With whoever looks at it, for what a page says of other rows: an admin page serves all threads."""
        found: Any = super().get_object(request, object_id, from_field)
        if found is not None:
            found.reader = admin_principal(request)
        return found

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = [*super().get_readonly_fields(request, obj)]
        return [*shown, *self.given_once] if obj else shown

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        principal = admin_principal(request)
        if change:
            self.row_change(principal, obj, form.cleaned_data)
        else:
            obj.pk = self.row_add(principal, form.cleaned_data).pk

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The service has recorded it."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """The service has recorded it."""
