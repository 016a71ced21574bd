from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from apps.accounts.admin_site import ReadOnlyAdmin, WorkspaceModelAdmin, WorkspaceModelForm, admin_principal
from apps.accounts.models import ApiToken, Audience, AuditEvent, Membership, Role, TokenKind, Workspace
from apps.accounts.selectors import repositories
from apps.accounts.services import (
    member_add,
    member_remove,
    token_create,
    token_revoke,
    workspace_set_second_person,
)
from apps.core.clock import now
from apps.core.errors import DomainError


class WorkspaceSettingsForm(forms.ModelForm):
    """The form of the one row that belongs to no workspace, being one."""


@admin.register(Workspace)
class WorkspaceAdmin(WorkspaceModelAdmin):
    role = Role.ADMIN
    form = WorkspaceSettingsForm
    list_display = ["slug", "second_person"]
    fields = ["slug", "second_person"]
    readonly_fields = ["slug"]
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def audit_id(self, obj: Workspace) -> str:
        return obj.slug

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        workspace_set_second_person(principal=admin_principal(request), required=obj.second_person)

    def log_change(self, request: HttpRequest, obj: Workspace, message: Any) -> Any:
        """The service has recorded it."""


class MemberForm(WorkspaceModelForm):
    username = forms.CharField(max_length=150, help_text="Somebody new gets a password, shown once.")
    email = forms.EmailField(required=False, help_text="With it a person can sign in by Google, if set up.")

    class Meta:
        model = Membership
        fields = ["role"]


class RoleForm(WorkspaceModelForm):
    class Meta:
        model = Membership
        fields = ["role"]


@admin.register(Membership)
class MembershipAdmin(WorkspaceModelAdmin):
    role = Role.ADMIN
    list_display = ["user", "role"]
    list_filter = ["role"]
    search_fields = ["user__username"]
    actions = ["remove"]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change=change, **{**kwargs, "form": RoleForm if obj else MemberForm})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["user", "role"] if obj else ["username", "email", "role"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user"] if obj else []

    def audit_id(self, obj: Membership) -> str:
        return obj.user.get_username()

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        principal = admin_principal(request)
        username = obj.user.get_username() if change else form.cleaned_data["username"]
        password = member_add(
            principal=principal,
            username=username,
            role=obj.role,
            email="" if change else form.cleaned_data["email"],
        )
        if not change:
            stored = principal.workspace.memberships.select_related("user").get(user__username=username)
            obj.pk, obj.user = stored.pk, stored.user
            request._shown_once = password  # type: ignore[attr-defined]

    def log_addition(self, request: HttpRequest, obj: Membership, message: Any) -> Any:
        """The service has recorded it."""

    def log_change(self, request: HttpRequest, obj: Membership, message: Any) -> Any:
        """The service has recorded it."""

    def response_add(self, request: HttpRequest, obj: Membership, post_url_continue: str | None = None) -> HttpResponse:
        password: str | None = getattr(request, "_shown_once", None)
        if password is None:
            return super().response_add(request, obj, post_url_continue)
        return shown_once(self, request, what="password", of=request.POST["username"], secret=password)

    @admin.action(description="Remove the selected people from the workspace")
    def remove(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        removed = 0
        for membership in queryset.select_related("user"):
            try:
                member_remove(principal=admin_principal(request), user=membership.user)
                removed += 1
            except DomainError as error:
                self.message_user(request, error.detail, messages.ERROR)
        self.message_user(request, f"{removed} removed.", messages.SUCCESS)


_TOKEN_HELP = {
    "name": "What uses it, such as ci-bot. It stands beside everything that is proposed with it.",
    "kind": "An agent searches and proposes; a bot proposes, for a pipeline; a reviewer's token decides in your name."
    " The token is yours, so somebody else decides about what is proposed with it.",
    "read_only": "It searches and reads, and proposes nothing.",
    "expires_at": "Empty: it lasts until it is revoked.",
}


class TokenForm(WorkspaceModelForm):
    repository_ids = forms.TypedMultipleChoiceField(
        label="Repositories", required=False, coerce=int, help_text="None chosen: the token is not limited."
    )

    class Meta:
        model = ApiToken
        fields = ["name", "kind", "read_only", "confidence_ceiling", "expires_at", "repository_ids"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = repositories(self.workspace).order_by("slug").values_list("pk", "slug")
        self.fields["repository_ids"].choices = list(rows)  # type: ignore[attr-defined]
        # Where a token is only looked at there is no such field.
        for name in _TOKEN_HELP.keys() & self.fields.keys():
            self.fields[name].help_text = _TOKEN_HELP[name]

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        if moment is not None and moment <= now():
            raise forms.ValidationError("The token would have expired already. Choose a time in the future.")
        return moment


@admin.register(ApiToken)
class ApiTokenAdmin(WorkspaceModelAdmin):
    role = Role.ADMIN
    audit_kind = "token"
    form = TokenForm
    list_display = ["name", "kind", "owner", "prefix", "state", "last_used_at", "expires_at"]
    list_filter = ["kind", "owner"]
    search_fields = ["name"]
    fields = ["name", "kind", "read_only", "confidence_ceiling", "expires_at", "repository_ids"]
    actions = ["revoke"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="state")
    def state(self, token: ApiToken) -> str:
        if token.revoked_at:
            return "revoked"
        return "expired" if token.expires_at and token.expires_at <= now() else "active"

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        principal = admin_principal(request)
        token, secret = token_create(
            principal=principal,
            name=obj.name,
            kind=TokenKind(obj.kind),
            owner=principal.user,
            read_only=obj.read_only,
            expires_at=obj.expires_at,
            confidence_ceiling=obj.confidence_ceiling,
            repository_ids=obj.repository_ids,
        )
        obj.pk = token.pk
        request._shown_once = secret  # type: ignore[attr-defined]

    def log_addition(self, request: HttpRequest, obj: ApiToken, message: Any) -> Any:
        """The service has recorded it."""

    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None) -> HttpResponse:
        secret: str = request._shown_once  # type: ignore[attr-defined]
        return shown_once(self, request, what="token", of=obj.name, secret=secret)

    @admin.action(description="Revoke the selected tokens")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        for token in queryset:
            token_revoke(principal=admin_principal(request), token=token)
        self.message_user(request, f"{len(queryset)} revoked.", messages.SUCCESS)


@admin.register(Audience)
class AudienceAdmin(WorkspaceModelAdmin):
    role = Role.ADMIN
    list_display = ["name"]
    fields = ["name", "members", "tokens"]
    filter_horizontal = ["members", "tokens"]


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin):
    role = Role.ADMIN
    list_display = ["created_at", "actor", "verb", "subject_kind", "subject_id"]
    list_filter = ["verb", "subject_kind"]
    search_fields = ["actor", "subject_id"]
    date_hierarchy = "created_at"


def shown_once(page: WorkspaceModelAdmin, request: HttpRequest, *, what: str, of: str, secret: str) -> HttpResponse:
    """The answer to the form itself shows the secret: a message would carry it through a cookie."""
    context = {
        **page.admin_site.each_context(request),
        "opts": page.model._meta,
        "title": f"The {what} of {of}",
        "what": what,
        "secret": secret,
    }
    return TemplateResponse(request, "admin/accounts/shown_once.html", context)
