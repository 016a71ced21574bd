"""What curators change in the taxonomy. Nothing is deleted: a type or an exclusion retires, and may come back."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction

from apps.accounts.curation import row_add, row_change
from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal
from apps.core.errors import Conflict, FieldError, Invalid, NotFound
from apps.core.screening import check_text, screen
from apps.core.wording import words
from apps.taxonomy.intents import INTENTS
from apps.taxonomy.models import Category, Exclusion, MemoryType

MAX_DESCRIPTION: Final = 2_000
MAX_DAYS: Final = 36_500
MAX_WEIGHT: Final = 10
_SLUG: Final = re.compile(r"[a-z][a-z0-9_-]*")
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*")


# --- types ----------------------------------------------------------------------------------------------------


@transaction.atomic
def memory_type_add(
    *,
    principal: Principal,
    slug: str,
    name: str,
    description: str,
    category: Category,
    always_human: bool = False,
    min_confidence: float = 0.6,
) -> MemoryType:
    """Raises ``Invalid`` naming each value that will not do."""
    workspace = _begin(principal)
    values = {
        "description": description,
        "category": category,
        "always_human": always_human,
        "min_confidence": min_confidence,
    }
    _raise_if_any(check_type_spellings(workspace, slug=slug, name=name) + check_type(workspace, values))
    row = MemoryType(workspace=workspace, slug=slug, name=name, **values)
    return row_add(principal, row, shown={"slug": slug, "name": name, **values})


@transaction.atomic
def memory_type_change(
    *,
    principal: Principal,
    type_id: int,
    description: str,
    category: Category,
    always_human: bool,
    min_confidence: float,
    is_active: bool,
) -> MemoryType:
    """Raises ``Invalid``, and ``Conflict`` when the last type in use would retire: nothing could be proposed."""
    workspace = _begin(principal)
    row = _locked(MemoryType, workspace, type_id)
    values = {
        "description": description,
        "category": category,
        "always_human": always_human,
        "min_confidence": min_confidence,
        "is_active": is_active,
    }
    _raise_if_any(check_type(workspace, values))
    others = MemoryType.objects.active().filter(workspace=workspace).exclude(pk=row.pk)
    if row.is_active and not is_active and not others.exists():
        raise Conflict(
            f"“{words(row.slug)}” is the only type in use; without one nothing can be proposed. Add or bring back "
            "another one first.",
            code="last_type",
        )
    return row_change(principal, row, values)


def check_type_spellings(workspace: Workspace, *, slug: str, name: str) -> list[FieldError]:
    """Both spellings lead to the type whatever their case, so neither may be one of another type's."""
    errors = _check_slug(slug, max_length=60)
    if not _NAME.fullmatch(name) or len(name) > 60:
        errors.append(FieldError("name", "Use 1 to 60 capital letters, digits and underscores, such as BUSINESS_RULE."))
    taken = {
        spelling.lower(): row.slug
        for row in MemoryType.objects.filter(workspace=workspace)
        for spelling in (row.slug, row.name)
    }
    for field, value in (("slug", slug), ("name", name)):
        if value.lower() in taken:
            errors.append(FieldError(field, f"“{value}” leads to the type {taken[value.lower()]} already."))
    return errors


def check_type(workspace: Workspace, values: dict[str, Any]) -> list[FieldError]:
    errors = check_description(values["description"])
    if values["category"].workspace_id != workspace.pk:
        errors.append(FieldError("category", "There is no such category in this workspace."))
    if not 0 <= values["min_confidence"] <= 1:  # NaN fails both comparisons
        errors.append(FieldError("min_confidence", "Give a number from 0 to 1."))
    return errors


# --- categories -----------------------------------------------------------------------------------------------


@transaction.atomic
def category_add(
    *,
    principal: Principal,
    slug: str,
    half_life_days: int | None = None,
    ttl_days: int | None = None,
    weights: dict[str, float] | None = None,
) -> Category:
    workspace = _begin(principal)
    values = {"half_life_days": half_life_days, "ttl_days": ttl_days, "weights": weights or {}}
    _raise_if_any(_check_slug(slug, max_length=40) + check_category(values))
    return row_add(principal, Category(workspace=workspace, slug=slug, **values), shown={"slug": slug, **values})


@transaction.atomic
def category_change(
    *,
    principal: Principal,
    category_id: int,
    half_life_days: int | None,
    ttl_days: int | None,
    weights: dict[str, float],
) -> Category:
    row = _locked(Category, _begin(principal), category_id)
    values = {"half_life_days": half_life_days, "ttl_days": ttl_days, "weights": weights}
    _raise_if_any(check_category(values))
    return row_change(principal, row, values)


def check_category(values: dict[str, Any]) -> list[FieldError]:
    errors = [
        FieldError(field, f"Give a whole number of days from 1 to {MAX_DAYS:,}, or leave it empty.")
        for field in ("half_life_days", "ttl_days")
        if values.get(field) is not None and not 1 <= values[field] <= MAX_DAYS
    ]
    return errors + check_weights(values["weights"])


def check_weights(weights: object) -> list[FieldError]:
    if not isinstance(weights, dict):
        return [FieldError("weights", 'Write an object of intents and weights, such as {"explain-why": 1.2}.')]
    errors = [
        FieldError("weights", f"“{intent[:60]}” is no intent. Use one or more of: {', '.join(INTENTS)}.")
        for intent in weights
        if intent not in INTENTS
    ]
    if not all(_is_weight(value) for value in weights.values()):
        errors.append(FieldError("weights", f"A weight is a number from 0 to {MAX_WEIGHT}; 1 changes nothing."))
    return errors


def _is_weight(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value <= MAX_WEIGHT  # type: ignore[arg-type, operator]


# --- exclusions -----------------------------------------------------------------------------------------------


@transaction.atomic
def exclusion_add(*, principal: Principal, slug: str, description: str) -> Exclusion:
    workspace = _begin(principal)
    _raise_if_any(_check_slug(slug, max_length=60) + check_description(description))
    row = Exclusion(workspace=workspace, slug=slug, description=description)
    return row_add(principal, row, shown={"slug": slug, "description": description})


@transaction.atomic
def exclusion_change(*, principal: Principal, exclusion_id: int, description: str, is_active: bool) -> Exclusion:
    row = _locked(Exclusion, _begin(principal), exclusion_id)
    _raise_if_any(check_description(description))
    return row_change(principal, row, {"description": description, "is_active": is_active})


# --- what they share ------------------------------------------------------------------------------------------


def _begin(principal: Principal) -> Workspace:
    """One change of a workspace's taxonomy at a time: the rules about spellings span its rows.

    No key of the locked rows changes, so that proposals which refer to them need not wait.
    """
    principal.require_role(Role.CURATOR, to="change the taxonomy")
    return Workspace.objects.select_for_update(no_key=True).get(pk=principal.workspace.pk)


def _locked(model: type[Any], workspace: Workspace, pk: int) -> Any:
    row = model.objects.select_for_update(no_key=True).filter(workspace=workspace, pk=pk).first()
    if row is None:
        raise NotFound(f"There is no such {model._meta.verbose_name} in this workspace.")
    return row


def check_description(description: str) -> list[FieldError]:
    """Descriptions go into prompts, so a secret in one would reach a model."""
    errors = check_text(description, field="description", max_length=MAX_DESCRIPTION)
    return [*errors, *screen({"description": description}, exclusions=()).refusals]


def _check_slug(slug: str, *, max_length: int) -> list[FieldError]:
    if _SLUG.fullmatch(slug) and len(slug) <= max_length:
        return []
    message = f"Use 1 to {max_length} small letters, digits, hyphens and underscores, beginning with a letter."
    return [FieldError("slug", message)]


def _raise_if_any(errors: Sequence[FieldError]) -> None:
    if errors:
        raise Invalid("The values will not do.", errors=errors)
