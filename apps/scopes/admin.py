"""Domains and repositories, for curators: confirm what proposals have named, and say what belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet
from django.http import HttpRequest

from apps.accounts.admin_site import admin_principal
from apps.accounts.curated_admin import CuratedAdmin, CuratedForm
from apps.accounts.principal import Principal
from apps.core.errors import FieldError
from apps.core.forms import Lines
from apps.scopes.curation import (
    check_domain,
    check_repository,
    domain_add,
    domain_change,
    repository_add,
    repository_change,
    scopes_confirm,
)
from apps.scopes.models import Domain, Repository


class ConfirmableAdmin(CuratedAdmin):
    given_once = ("slug",)
    list_filter = ["confirmed"]
    actions = ["confirm"]

    @admin.action(description="Confirm the selected ones")
    def confirm(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        confirmed = scopes_confirm(principal=admin_principal(request), model=self.model, ids=ids)
        self.message_user(request, f"{confirmed} confirmed.", messages.SUCCESS)


class DomainForm(CuratedForm):
    class Meta:
        model = Domain
        fields = ["slug", "confirmed"]

    def refusals(self, values: dict[str, Any]) -> Sequence[FieldError]:
        return check_domain(self.workspace, values["slug"]) if self.instance._state.adding else []


@admin.register(Domain)
class DomainAdmin(ConfirmableAdmin):
    form = DomainForm
    list_display = ["slug", "confirmed"]
    search_fields = ["slug"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["slug", "confirmed"] if obj else ["slug"]

    def row_add(self, principal: Principal, values: dict[str, Any]) -> Domain:
        return domain_add(principal=principal, slug=values["slug"])

    def row_change(self, principal: Principal, row: Domain, values: dict[str, Any]) -> None:
        domain_change(principal=principal, domain_id=row.pk, **values)


class RepositoryForm(CuratedForm):
    remote = forms.CharField(
        required=False, max_length=500, help_text="As `git clone` takes it; user, port and `.git` make no difference."
    )
    aliases = Lines(rows=4, help_text="Other names and remotes that lead to it, one a line.")
    domain_ids = forms.TypedMultipleChoiceField(
        label="Domains",
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text="A search in the repository brings these domains along.",
    )

    class Meta:
        model = Repository
        fields = ["slug", "remote", "aliases", "domain_ids", "confirmed"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Domain.objects.filter(workspace=self.workspace).values_list("pk", "slug")
        self.fields["domain_ids"].choices = list(rows)  # type: ignore[attr-defined]

    def refusals(self, values: dict[str, Any]) -> Sequence[FieldError]:
        adding = self.instance._state.adding
        return check_repository(
            self.workspace,
            slug=values["slug"] if adding else self.instance.slug,
            remote=values["remote"],
            aliases=values["aliases"],
            domain_ids=values["domain_ids"],
            row=None if adding else self.instance,
        )


@admin.register(Repository)
class RepositoryAdmin(ConfirmableAdmin):
    form = RepositoryForm
    list_display = ["slug", "remote", "aliases_listed", "domains_listed", "confirmed"]
    search_fields = ["slug", "remote", "aliases"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Repository]:
        named = Func(OuterRef("domain_ids"), F("pk"), function="array_position", output_field=IntegerField())
        domains = Domain.objects.filter(workspace=OuterRef("workspace")).alias(named=named).filter(named__isnull=False)
        rows: QuerySet[Repository] = super().get_queryset(request)
        rows = rows.annotate(domain_names=ArraySubquery(domains.values("slug")))
        return rows

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = ["slug", "remote", "aliases", "domain_ids"]
        return [*fields, "confirmed"] if obj else fields

    @admin.display(description="aliases")
    def aliases_listed(self, row: Repository) -> str:
        return ", ".join(row.aliases)

    @admin.display(description="domains")
    def domains_listed(self, row: Any) -> str:
        return ", ".join(row.domain_names)

    def row_add(self, principal: Principal, values: dict[str, Any]) -> Repository:
        return repository_add(principal=principal, **values)

    def row_change(self, principal: Principal, row: Repository, values: dict[str, Any]) -> None:
        repository_change(principal=principal, repository_id=row.pk, **values)
