"""The taxonomy, for curators: add, describe, weigh and retire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts.admin_site import admin_principal
from apps.accounts.curated_admin import CuratedAdmin, CuratedForm, wordings_of
from apps.accounts.principal import Principal
from apps.accounts.uses import OPEN, uses_of
from apps.core.errors import FieldError
from apps.taxonomy.models import Category, Exclusion, MemoryType
from apps.taxonomy.services import (
    category_add,
    category_change,
    check_category,
    check_description,
    check_type,
    check_type_spellings,
    exclusion_add,
    exclusion_change,
    memory_type_add,
    memory_type_change,
)

# What the code itself does about an exclusion, so that nobody expects retiring one to do more.
ENFORCED = {
    "source-code": "Proposals that hold source code, a diff or a stack trace are refused. Retiring this lets them in.",
    "secrets-personal-data": "Secrets are refused or masked always; retiring this only takes it out of prompts.",
}


class MemoryTypeForm(CuratedForm):
    class Meta:
        model = MemoryType
        fields = ["slug", "name", "description", "category", "always_human", "min_confidence", "is_active"]

    def refusals(self, values: dict[str, Any]) -> Sequence[FieldError]:
        errors = check_type(self.workspace, values)
        if self.instance._state.adding:
            errors += check_type_spellings(self.workspace, slug=values["slug"], name=values["name"])
        return errors


def count_of(relation: str, **conditions: Any) -> Coalesce:
    """How many rows of a room above use the type; this room knows them by the name of the relation alone."""
    rows = MemoryType._meta.get_field(relation).related_model._default_manager  # type: ignore[union-attr]
    counted = rows.filter(type=OuterRef("pk"), **conditions).order_by().values("type").annotate(n=Count("pk"))
    return Coalesce(Subquery(counted.values("n")), 0)


@admin.register(MemoryType)
class MemoryTypeAdmin(CuratedAdmin):
    form = MemoryTypeForm
    given_once = ("slug", "name")
    list_display = ["slug", "memories", "waiting", "category", "always_human", "min_confidence", "is_active", "name"]
    list_select_related = ["category"]
    list_filter = ["is_active", "always_human", "category"]
    search_fields = ["slug", "name", "description"]
    readonly_fields = ["used_by", "described"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[MemoryType]:
        rows: QuerySet[MemoryType] = super().get_queryset(request)
        seen = {"audience_ids__contained_by": list(admin_principal(request).audience_ids)}
        return rows.annotate(
            memory_count=count_of("memories", **seen), waiting_count=count_of("candidates", status__in=OPEN, **seen)
        )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = ["slug", "name", "description", "category", "always_human", "min_confidence"]
        return ["used_by", *fields, "is_active", "described"] if obj else fields

    @admin.display(description="memories", ordering="memory_count")
    def memories(self, row: Any) -> int:
        count: int = row.memory_count
        return count

    @admin.display(description="waiting for review", ordering="waiting_count")
    def waiting(self, row: Any) -> int:
        count: int = row.waiting_count
        return count

    @admin.display(description="what a change affects")
    def used_by(self, row: Any) -> str:
        return uses_of(row.reader, type=row.pk).sentence(
            "type",
            memories=f"{reverse('admin:memories_memory_changelist')}?type__id__exact={row.pk}",
            waiting=f"{reverse('approvals:queue')}?type={row.slug}",
        )

    @admin.display(description="what the description said")
    def described(self, row: Any) -> str:
        return wordings_of(row.reader, "memorytype", row.pk, field="description")

    def row_add(self, principal: Principal, values: dict[str, Any]) -> MemoryType:
        return memory_type_add(principal=principal, **values)

    def row_change(self, principal: Principal, row: MemoryType, values: dict[str, Any]) -> None:
        memory_type_change(principal=principal, type_id=row.pk, **values)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and "is_active" in form.changed_data and not obj.is_active and obj.waiting_count:
            self.message_user(
                request,
                f"Candidates of this type that wait for review: {obj.waiting_count}. Each has to be amended to a type "
                "in use, or rejected.",
                messages.WARNING,
            )


class CategoryForm(CuratedForm):
    class Meta:
        model = Category
        fields = ["slug", "half_life_days", "ttl_days", "weights"]

    def clean_weights(self) -> Any:
        return self.cleaned_data["weights"] or {}

    def refusals(self, values: dict[str, Any]) -> Sequence[FieldError]:
        return check_category(values)


@admin.register(Category)
class CategoryAdmin(CuratedAdmin):
    form = CategoryForm
    given_once = ("slug",)
    list_display = ["slug", "half_life_days", "ttl_days", "weights", "types_listed"]
    search_fields = ["slug"]
    readonly_fields = ["effect"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = ["slug", "half_life_days", "ttl_days", "weights"]
        return [*fields, "effect"] if obj else fields

    @admin.display(description="what a change does")
    def effect(self, row: Category) -> SafeString:
        address = f"{reverse('retrieval:weights')}?category={row.slug}"
        return format_html('<a href="{}">Try another weighting on a question</a> before you change it here.', address)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Category]:
        rows: QuerySet[Category] = super().get_queryset(request).prefetch_related("types")
        return rows

    @admin.display(description="types")
    def types_listed(self, row: Category) -> str:
        return ", ".join(type_.slug for type_ in row.types.all())

    def row_add(self, principal: Principal, values: dict[str, Any]) -> Category:
        return category_add(principal=principal, **values)

    def row_change(self, principal: Principal, row: Category, values: dict[str, Any]) -> None:
        category_change(principal=principal, category_id=row.pk, **values)


class ExclusionForm(CuratedForm):
    class Meta:
        model = Exclusion
        fields = ["slug", "description", "is_active"]

    def refusals(self, values: dict[str, Any]) -> Sequence[FieldError]:
        return check_description(values["description"])


@admin.register(Exclusion)
class ExclusionAdmin(CuratedAdmin):
    form = ExclusionForm
    given_once = ("slug",)
    list_display = ["slug", "description", "is_active"]
    list_filter = ["is_active"]
    search_fields = ["slug", "description"]
    readonly_fields = ["enforced"]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["slug", "description", "is_active", "enforced"] if obj else ["slug", "description"]

    @admin.display(description="what enforces it")
    def enforced(self, row: Exclusion) -> str:
        return ENFORCED.get(row.slug, "It stands in the prompts of extraction, and reviewers go by it.")

    def row_add(self, principal: Principal, values: dict[str, Any]) -> Exclusion:
        return exclusion_add(principal=principal, **values)

    def row_change(self, principal: Principal, row: Exclusion, values: dict[str, Any]) -> None:
        exclusion_change(principal=principal, exclusion_id=row.pk, **values)
