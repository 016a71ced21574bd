"""Types by name or slug, and the taxonomy that every workspace starts with."""

from __future__ import annotations

import pytest

from apps.core.errors import Invalid
from apps.taxonomy.models import Category, Exclusion, MemoryType
from apps.taxonomy.seed import TYPES, taxonomy_seed
from apps.taxonomy.selectors import find_types, resolve_type

pytestmark = pytest.mark.django_db

THIRTEEN = {
    "ARCHITECTURE_DECISION": ("architecture_decisions", "decision", True),
    "REJECTED_APPROACH": ("anti_patterns", "decision", False),
    "CONVENTION": ("coding_conventions", "convention", True),
    "REVIEW_PATTERN": ("review_feedback", "convention", False),
    "BUG_FIX": ("bug_fixes", "project", False),
    "TASK_LEARNING": ("task_learnings", "project", False),
    "TOOLING_SETUP": ("tooling_setup", "project", False),
    "DEPENDENCY_DECISION": ("dependency_decisions", "decision", False),
    "PERFORMANCE_FINDING": ("performance_findings", "project", False),
    "BUSINESS_RULE": ("business_rules", "project", True),
    "PRODUCTION_ISSUE": ("production_issues", "project", True),
    "OWNERSHIP": ("ownership", "identity", False),
    "TERMINOLOGY": ("terminology", "reference", False),
}


def test_every_workspace_starts_with_the_thirteen_types(workspace, other_workspace):
    for each in (workspace, other_workspace):
        rows = MemoryType.objects.filter(workspace=each).select_related("category")
        assert {row.name: (row.slug, row.category.slug, row.always_human) for row in rows} == THIRTEEN
        assert {row.min_confidence for row in rows} == {0.6}
        assert all(row.is_active and len(row.description) > 40 for row in rows)
        assert set(Category.objects.filter(workspace=each).values_list("slug", flat=True)) == {
            *("identity", "project", "convention", "decision", "reference", "session")
        }
        assert Exclusion.objects.filter(workspace=each, is_active=True).count() == 5


def test_seeding_again_changes_nothing_that_a_curator_did(workspace):
    MemoryType.objects.filter(workspace=workspace, slug="ownership").update(
        is_active=False, min_confidence=0.9, description="Ours."
    )

    taxonomy_seed(workspace)

    row = MemoryType.objects.get(workspace=workspace, slug="ownership")
    assert (row.is_active, row.min_confidence, row.description) == (False, 0.9, "Ours.")
    assert MemoryType.objects.filter(workspace=workspace).count() == len(TYPES) == 13


@pytest.mark.parametrize("name", list(THIRTEEN))
def test_both_spellings_of_every_type_resolve_in_any_case(workspace, name):
    slug = THIRTEEN[name][0]

    for spelling in (name, slug, name.lower(), slug.upper(), f"  {name} ", f"{slug}\n"):
        assert resolve_type(workspace, spelling).name == name


@pytest.mark.parametrize(
    "spelling", ["", " ", "foo", "business rules", "business-rules", "BUSINESS_RULES_", "decision"]
)
def test_anything_else_is_refused_with_what_may_be_used(workspace, spelling):
    with pytest.raises(Invalid) as refusal:
        resolve_type(workspace, spelling, field="amendment.type")

    (error,) = refusal.value.errors
    assert error.field == "amendment.type"
    assert all(slug in error.message for slug, _, _ in THIRTEEN.values())


def test_a_retired_type_takes_nothing_new_and_is_still_searched_for(workspace):
    MemoryType.objects.filter(workspace=workspace, slug="ownership").update(is_active=False)

    with pytest.raises(Invalid, match="is retired"):
        resolve_type(workspace, "OWNERSHIP")
    assert [row.slug for row in find_types(workspace, ["ownership"], field="types", active_only=False)] == ["ownership"]


def test_one_type_is_one_type_and_not_its_letters(workspace):
    assert [row.slug for row in find_types(workspace, ["ownership"], field="types", active_only=True)] == ["ownership"]


def test_types_of_another_workspace_are_not_ours(workspace, other_workspace):
    MemoryType.objects.create(
        workspace=other_workspace,
        slug="rituals",
        name="RITUAL",
        description="Theirs.",
        category=Category.objects.get(workspace=other_workspace, slug="project"),
    )

    with pytest.raises(Invalid):
        resolve_type(workspace, "rituals")
    assert resolve_type(other_workspace, "rituals").workspace == other_workspace


def test_a_refusal_does_not_repeat_a_secret(workspace):
    with pytest.raises(Invalid) as refusal:
        resolve_type(workspace, "ghp_16C7e42F292c6912E7710c838347Ae178B4a")

    assert "16C7e42F" not in refusal.value.detail
    assert "[secret: github token]" in refusal.value.detail
