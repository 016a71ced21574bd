"""Sources, to look at, and to restrict to an audience together with everything that came from them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from apps.accounts.admin_site import WorkspaceModelForm, admin_principal
from apps.accounts.models import Audience
from apps.accounts.principal import Principal
from apps.approvals.restrictions import source_restrict
from apps.memories.admin import LedgerAdmin
from apps.sources.models import Source


class RestrictForm(WorkspaceModelForm):
    audience = forms.ModelChoiceField(
        queryset=Audience.objects.none(),
        help_text="Only its members will see the source from now on, and every candidate and memory that came from "
        "it. This cannot be undone: taking an audience off would show what was hidden.",
    )

    class Meta:
        model = Source
        fields = ["audience"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        audiences = Audience.objects.filter(workspace=self.workspace)
        self.fields["audience"].queryset = audiences  # type: ignore[attr-defined]


@admin.register(Source)
class SourceAdmin(LedgerAdmin):
    """``audience`` can be given while there is none; nothing else of a source ever changes."""

    form = RestrictForm
    list_display = ["reference", "kind", "title", "audience", "created_at"]
    list_select_related = ["audience"]
    list_filter = ["kind", "audience"]
    search_fields = ["reference", "title", "url"]
    ordering = ["-id"]
    shown = ("kind", "reference", "address", "title", "occurred_at", "commit", "supports", "created_at")

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        return rows.filter(Q(audience__isnull=True) | Q(audience__in=principal.audience_ids))

    def has_change_permission(self, request: HttpRequest, obj: Source | None = None) -> bool:
        return self._allowed(request) and (obj is None or obj.audience_id is None)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*self.shown, "audience"]

    @admin.display(description="address")
    def address(self, source: Source) -> str:
        if not source.url.startswith(("http://", "https://")):
            return source.url
        return format_html('<a href="{}" rel="noopener noreferrer">{}</a>', source.url, source.url)

    @admin.display(description="supports")
    def supports(self, source: Source) -> str:
        return format_html(
            '<a href="{}?source__id__exact={}">memories</a>, <a href="{}?source__id__exact={}">candidates</a>',
            reverse("admin:memories_memoryevidence_changelist"),
            source.pk,
            reverse("admin:candidates_candidateevidence_changelist"),
            source.pk,
        )

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        source_restrict(
            principal=admin_principal(request), source_id=obj.pk, audience_id=form.cleaned_data["audience"].pk
        )

    def log_change(self, request: HttpRequest, obj: Source, message: Any) -> Any:
        """The service has recorded it."""

    def response_change(self, request: HttpRequest, obj: Source) -> HttpResponse:
        audience = form_audience(obj)
        gone = "" if audience.pk in admin_principal(request).audience_ids else " You are not in it, so it is gone here."
        self.message_user(request, f"The {obj} is restricted to {audience.name}.{gone}", messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:sources_source_changelist"))


def form_audience(source: Source) -> Audience:
    assert source.audience is not None  # the form demands one  # noqa: S101
    return source.audience
