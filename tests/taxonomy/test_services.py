"""What the admin page cannot send, the services refuse as well."""

from __future__ import annotations

import pytest

from apps.accounts.models import AuditEvent
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.taxonomy.models import Category, Exclusion, MemoryType
from apps.taxonomy.services import (
    category_change,
    exclusion_add,
    exclusion_change,
    memory_type_add,
    memory_type_change,
)


def change_type(principal, row: MemoryType, **changes) -> MemoryType:
    values = {
        "description": row.description,
        "category": row.category,
        "always_human": row.always_human,
        "min_confidence": row.min_confidence,
        "is_active": row.is_active,
    }
    return memory_type_change(principal=principal, type_id=row.pk, **(values | changes))


@pytest.fixture
def row(workspace) -> MemoryType:
    return MemoryType.objects.select_related("category").get(workspace=workspace, slug="bug_fixes")


@pytest.mark.parametrize("who", ["bob", "alice", "robo", "botty", "alice_token"])
def test_only_curators_change_the_taxonomy(request, principal, row, who) -> None:
    asking = principal(request.getfixturevalue(who))
    with pytest.raises(Forbidden):
        change_type(asking, row, description="Mine.")
    with pytest.raises(Forbidden):
        exclusion_add(principal=asking, slug="mine", description="Mine.")
    assert not AuditEvent.objects.filter(subject_kind__in=("memorytype", "exclusion")).exists()


def test_rows_of_another_workspace_are_not_there(principal, carol, other_workspace) -> None:
    foreign = MemoryType.objects.select_related("category").get(workspace=other_workspace, slug="bug_fixes")
    with pytest.raises(NotFound):
        change_type(principal(carol), foreign)
    exclusion = Exclusion.objects.filter(workspace=other_workspace)[0]
    with pytest.raises(NotFound):
        exclusion_change(principal=principal(carol), exclusion_id=exclusion.pk, description="Mine.", is_active=False)
    category = Category.objects.filter(workspace=other_workspace)[0]
    with pytest.raises(NotFound):
        category_change(principal=principal(carol), category_id=category.pk, half_life_days=1, ttl_days=1, weights={})


def test_a_category_of_another_workspace_is_refused(principal, carol, row, other_workspace) -> None:
    foreign = Category.objects.get(workspace=other_workspace, slug="reference")
    with pytest.raises(Invalid) as refused:
        change_type(principal(carol), row, category=foreign)
    assert [error.field for error in refused.value.errors] == ["category"]


def test_every_value_that_will_not_do_is_named(principal, carol, row) -> None:
    with pytest.raises(Invalid) as refused:
        memory_type_add(
            principal=principal(carol),
            slug="Bug Fixes",
            name="bug fixes",
            description="\x00",
            category=row.category,
            min_confidence=float("nan"),
        )
    assert {error.field for error in refused.value.errors} == {"slug", "name", "description", "min_confidence"}


@pytest.mark.parametrize(("slug", "name"), [("bug_fix", "FRESH"), ("fresh", "BUG_FIXES"), ("bug_fixes", "BUG_FIX")])
def test_no_spelling_leads_to_two_types(principal, carol, row, slug, name) -> None:
    with pytest.raises(Invalid, match="values will not do"):
        memory_type_add(principal=principal(carol), slug=slug, name=name, description="Fresh.", category=row.category)


def test_the_last_type_in_use_stays(principal, carol, row) -> None:
    MemoryType.objects.filter(workspace=row.workspace).exclude(pk=row.pk).update(is_active=False)
    with pytest.raises(Conflict, match="the only type in use"):
        change_type(principal(carol), row, is_active=False)
    MemoryType.objects.filter(workspace=row.workspace, slug="ownership").update(is_active=True)
    assert not change_type(principal(carol), row, is_active=False).is_active
