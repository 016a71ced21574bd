"""Domains and repositories, for curators: confirm what proposals have named, and say what belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, IntegerField, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse

from apps.accounts.admin_site import admin_principal
from apps.accounts.curated_admin import CuratedAdmin, CuratedForm
from apps.accounts.principal import Principal
from apps.accounts.uses import uses_of
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

MAX_LISTED = 50


class ConfirmableAdmin(CuratedAdmin):
    given_once = ("slug",)
    list_filter = ["confirmed"]
    readonly_fields = ["used_by"]
    actions = ["confirm"]
    what: ClassVar[str] = ""
    column: ClassVar[str] = ""

    @admin.display(description="what a change affects")
    def used_by(self, row: Any) -> str:
        chosen = f"?{urlencode({self.what: row.slug})}"
        return uses_of(row.reader, **{f"{self.column}__contains": [row.pk]}).sentence(
            str(self.model._meta.verbose_name),
            memories=reverse("retrieval:memories") + f"{chosen}&status=all",
            waiting=reverse("approvals:queue") + chosen,
        )

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
    what, column = "domain", "domain_ids"
    list_display = ["slug", "confirmed"]
    readonly_fields = ["used_by", "repositories"]
    search_fields = ["slug"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["used_by", "slug", "confirmed", "repositories"] if obj else ["slug"]

    @admin.display(description="repositories that bring it along")
    def repositories(self, row: Domain) -> str:
        rows = Repository.objects.filter(workspace=row.workspace_id, domain_ids__contains=[row.pk])
        return (
            ", ".join(rows.values_list("slug", flat=True)[:MAX_LISTED]) or "None yet. A repository names its domains."
        )

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


# How a repository gets its domains, for whoever has to see to it.
HOW = (
    "A repository that a proposal or an import names for the first time is registered as unconfirmed, word for word, "
    "and flagged to reviewers. Check that it is spelled right, give other spellings and remotes as aliases, tick the "
    "domains that it belongs to, then confirm it. From then on a search in the repository finds what holds in its "
    "domains as well; what is stored already stays as it is."
)


class WithoutDomains(admin.SimpleListFilter):
    title = "domains"
    parameter_name = "domains"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("none", "None yet"), ("some", "Some")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "none":
            return queryset.filter(domain_ids=[])
        return queryset.exclude(domain_ids=[]) if self.value() == "some" else queryset


@admin.register(Repository)
class RepositoryAdmin(ConfirmableAdmin):
    form = RepositoryForm
    what, column = "repo", "repo_ids"
    list_filter = ["confirmed", WithoutDomains]
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
        return ["used_by", *fields, "confirmed"] if obj else fields

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": self.get_fields(request, obj), "description": HOW if obj else ""})]

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
