"""The admin, for curators and admins of the session's workspace.

Who may do what follows from the role in that workspace alone: Django's staff and superuser flags open nothing
here. Every list, object and choice is of that workspace, nothing is deleted, and every change is recorded in the
audit trail with what stood there before. Rooms register subclasses of ``WorkspaceModelAdmin``; what other
packages register is left out, since it knows of no workspace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import unquote
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Field, Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from apps.accounts.audit import audit_record
from apps.accounts.models import AuditEvent, Role, Workspace
from apps.accounts.principal import Principal
from apps.accounts.sessions import session_principal
from apps.core.addresses import repeatable_path
from apps.core.errors import DomainError, Forbidden


class FirmAdminSite(admin.AdminSite):
    site_header = site_title = "Firm Memory"
    index_title = "Curation"

    def has_permission(self, request: HttpRequest) -> bool:
        principal = _principal_or_none(request)
        return principal is not None and principal.has_role(Role.CURATOR)

    def register(
        self, model_or_iterable: Any, admin_class: type[admin.ModelAdmin[Any]] | None = None, **options: Any
    ) -> None:
        if admin_class is not None and issubclass(admin_class, WorkspaceModelAdmin):
            super().register(model_or_iterable, admin_class, **options)

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """One place to sign in for the whole site."""
        target = request.GET.get("next") or reverse("admin:index")
        if self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        if request.user.is_authenticated:
            raise Forbidden("Only a person with the curator role may use the admin.")
        return redirect_to_login(repeatable_path(target))

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method == "POST":
            logout(request)
        return HttpResponseRedirect("/")

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return HttpResponseRedirect(reverse("account_change_password"))

    def get_urls(self) -> list[Any]:
        # The shortcut by content type would lead to objects of every workspace.
        return [url for url in super().get_urls() if getattr(url, "name", None) != "view_on_site"]

    def get_log_entries(self, request: HttpRequest) -> QuerySet[LogEntry]:
        return LogEntry.objects.none()  # changes are in the audit trail


class WorkspaceModelForm(forms.ModelForm):
    """Checks what is unique in a workspace before PostgreSQL has to refuse it."""

    workspace: ClassVar[Workspace]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.instance.workspace = self.workspace

    def _get_validation_exclusions(self) -> set[str]:
        excluded: set[str] = super()._get_validation_exclusions()  # type: ignore[misc]
        return excluded - {"workspace"}


class WorkspaceRelatedFilter(admin.RelatedFieldListFilter):
    def field_choices(self, field: Any, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> Any:
        related = field.remote_field.model
        rows = scoped(related._default_manager.all(), admin_principal(request).workspace)
        return [(row.pk, str(row)) for row in rows]


class WorkspaceModelAdmin(admin.ModelAdmin):
    """Base of every admin page. ``role`` is the least role that may see and change these rows."""

    role: ClassVar[Role] = Role.CURATOR
    form: type[forms.ModelForm] = WorkspaceModelForm
    view_on_site = False
    audit_kind: ClassVar[str] = ""  # what the audit trail calls these rows; the model's name unless said
    audit_hidden: ClassVar[Sequence[str]] = ()  # columns that it does not keep

    # --- only this workspace ---
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return scoped(super().get_queryset(request), admin_principal(request).workspace)

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [*(super().get_exclude(request, obj) or ()), "workspace"]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        # Made anew for each request, so it can carry the workspace.
        form = super().get_form(request, obj, change=change, **kwargs)
        form.workspace = admin_principal(request).workspace  # type: ignore[attr-defined]
        return form

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return super().formfield_for_foreignkey(db_field, request, **self._choices(db_field, request, kwargs))

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return super().formfield_for_manytomany(db_field, request, **self._choices(db_field, request, kwargs))

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [self._filter(item) for item in super().get_list_filter(request)]

    def _choices(self, db_field: Any, request: HttpRequest, options: dict[str, Any]) -> dict[str, Any]:
        rows = options.get("queryset")
        if rows is None:
            rows = db_field.remote_field.model._default_manager.all()
        return {**options, "queryset": scoped(rows, admin_principal(request).workspace)}

    def _filter(self, item: Any) -> Any:
        if isinstance(item, str) and "__" not in item and self.model._meta.get_field(item).is_relation:
            return (item, WorkspaceRelatedFilter)
        return item

    # --- only by role ---
    def has_module_permission(self, request: HttpRequest) -> bool:
        return self._allowed(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._allowed(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._allowed(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._allowed(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def _allowed(self, request: HttpRequest) -> bool:
        principal = _principal_or_none(request)
        return principal is not None and principal.has_role(self.role)

    # --- every change leaves a row ---
    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().changeform_view(request, *args, **kwargs)
        except DomainError as error:
            self.message_user(request, error.detail, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            stored = self.get_queryset(request).select_for_update(of=("self",)).get(pk=obj.pk)
            request._before = self.snapshot(stored)  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        self.audit(request, "add", obj, after=self.snapshot(obj))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        before: dict[str, Any] = getattr(request, "_before", {})
        after = self.snapshot(obj)
        changed = [name for name in after if before.get(name) != after[name]]
        if changed:
            self.audit(
                request,
                "change",
                obj,
                before={name: before.get(name) for name in changed},
                after={name: after[name] for name in changed},
            )

    def audit(
        self,
        request: HttpRequest,
        verb: str,
        obj: Model,
        *,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        audit_record(
            admin_principal(request),
            verb,
            subject_kind=self._audit_kind(),
            subject_id=self.audit_id(obj),
            before=before,
            after=after,
        )

    def audit_id(self, obj: Any) -> str:
        """What the audit trail calls one row."""
        return str(obj.pk)

    def _audit_kind(self) -> str:
        return self.audit_kind or str(self.model._meta.model_name)

    def snapshot(self, obj: Model) -> dict[str, Any]:
        """The row as the audit trail keeps it: all own columns and the ids of what is linked."""
        hidden = {"workspace", *self.audit_hidden}
        values = {
            column.name: column.value_from_object(obj)
            for column in obj._meta.concrete_fields
            if column.name not in hidden and not column.primary_key and not column.generated
        }
        for link in obj._meta.many_to_many:
            values[link.name] = sorted(getattr(obj, link.name).values_list("pk", flat=True))
        plain: dict[str, Any] = json.loads(json.dumps(values, cls=DjangoJSONEncoder))
        return plain

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        obj = self.get_object(request, unquote(object_id))
        events = AuditEvent.objects.none()
        if obj is not None and self.has_view_permission(request, obj):
            events = AuditEvent.objects.filter(
                workspace=admin_principal(request).workspace,
                subject_kind=self._audit_kind(),
                subject_id=self.audit_id(obj),
            ).order_by("id")
        context = {"action_list": [], "events": events, **(extra_context or {})}
        return super().history_view(request, object_id, context)

    object_history_template = "admin/accounts/history.html"


class ReadOnlyAdmin(WorkspaceModelAdmin):
    """For what only a service may write, or nobody."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def admin_principal(request: HttpRequest) -> Principal:
    """The person using the admin, whom the site has let in."""
    principal = _principal_or_none(request)
    if principal is None:
        raise Forbidden("Sign in as a member of a workspace first.")
    return principal


def scoped(rows: QuerySet[Any], workspace: Workspace) -> QuerySet[Any]:
    """Only the rows of one workspace; people are those who are members of it."""
    if rows.model is Workspace:
        return rows.filter(pk=workspace.pk)
    if rows.model is User:
        return rows.filter(memberships__workspace=workspace)
    if "workspace" in _field_names(rows.model._meta.get_fields()):
        return rows.filter(workspace=workspace)
    return rows.none()


def _field_names(fields: Iterable[Any]) -> set[str]:
    return {field.name for field in fields if isinstance(field, Field)}


def _principal_or_none(request: HttpRequest) -> Principal | None:
    try:
        principal = session_principal(request, "admin")
    except Forbidden:
        return None
    request.principal = principal  # type: ignore[attr-defined]
    return principal
