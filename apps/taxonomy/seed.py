"""The taxonomy a workspace starts with. Curators change it afterwards; seeding again never overwrites them."""

from __future__ import annotations

from typing import NamedTuple

from django.db import transaction

from apps.accounts.models import Workspace
from apps.taxonomy.models import Category, Exclusion, MemoryType


class CategorySeed(NamedTuple):
    slug: str
    half_life_days: int | None
    ttl_days: int | None
    weights: dict[str, float]


class TypeSeed(NamedTuple):
    name: str
    slug: str
    category: str
    always_human: bool
    description: str


CATEGORIES = (
    CategorySeed("identity", None, None, {"ownership": 1.25}),
    CategorySeed("project", 365, 90, {"incident": 1.1}),
    CategorySeed("convention", None, None, {"implement": 1.15}),
    CategorySeed("decision", None, None, {"explain-why": 1.1, "history": 1.1}),
    CategorySeed("reference", None, None, {"terminology": 1.25}),
    CategorySeed("session", 14, 30, {}),
)

TYPES = (
    TypeSeed(
        *("ARCHITECTURE_DECISION", "architecture_decisions", "decision", True),
        "A choice about the structure of a system, with the reason for it and what was given up. State what was "
        "decided, why, and since when. Not a description of how the code happens to look.",
    ),
    TypeSeed(
        *("REJECTED_APPROACH", "anti_patterns", "decision", False),
        "Something that was tried or considered and turned down, with the reason, so that nobody walks into it "
        "again. Name the approach, what went wrong or would, and what is done instead.",
    ),
    TypeSeed(
        *("CONVENTION", "coding_conventions", "convention", True),
        "A rule that code or process in its scope is expected to follow, and why. One rule to a statement, worded "
        "so that somebody can tell whether a change follows it.",
    ),
    TypeSeed(
        *("REVIEW_PATTERN", "review_feedback", "convention", False),
        "What reviewers ask for again and again, with the reason. Not a remark about one change or one person.",
    ),
    TypeSeed(
        *("BUG_FIX", "bug_fixes", "project", False),
        "The cause of a fault that is not obvious from the code and how it was mended, worth knowing when the "
        "symptom returns. Name symptom, cause and cure.",
    ),
    TypeSeed(
        *("TASK_LEARNING", "task_learnings", "project", False),
        "Something learned while doing a task that the next person doing a similar one would want to know first.",
    ),
    TypeSeed(
        *("TOOLING_SETUP", "tooling_setup", "project", False),
        "How a tool, pipeline or environment has to be set up to work here, and what happens otherwise.",
    ),
    TypeSeed(
        *("DEPENDENCY_DECISION", "dependency_decisions", "decision", False),
        "Why a library, service or version is used, pinned, avoided or replaced.",
    ),
    TypeSeed(
        *("PERFORMANCE_FINDING", "performance_findings", "project", False),
        "A measured fact about speed, memory or cost, with the conditions it was measured under and the figure.",
    ),
    TypeSeed(
        *("BUSINESS_RULE", "business_rules", "project", True),
        "A rule of the business that the software must honour, with its origin: law, contract, policy, product.",
    ),
    TypeSeed(
        *("PRODUCTION_ISSUE", "production_issues", "project", True),
        "What happened in production, its cause and what prevents it now. No names of people.",
    ),
    TypeSeed(
        *("OWNERSHIP", "ownership", "identity", False),
        "Which team owns which component, service or data. Teams, never individuals.",
    ),
    TypeSeed(
        *("TERMINOLOGY", "terminology", "reference", False),
        "What a word, acronym or name means in this firm, where it differs from what outsiders would think.",
    ),
)

EXCLUSIONS = (
    (
        "source-code",
        "Source code, diffs and stack traces: the repository holds them, and a copy goes stale. Say in words what "
        "the code should do and why.",
    ),
    (
        "secrets-personal-data",
        "Passwords, keys, tokens and personal data such as e-mail addresses, phone or card numbers.",
    ),
    ("individuals", "Facts about individual engineers: their performance, habits, availability or opinions."),
    (
        "transient-state",
        "What will not be true next week: a build that is red, somebody's current task, a branch being merged.",
    ),
    ("restatement", "The request or the change said again in other words, without a reason behind it."),
)


@transaction.atomic
def taxonomy_seed(workspace: Workspace) -> None:
    """Add whatever of the starting taxonomy is missing. Idempotent; rows that exist stay as curators left them."""
    Category.objects.bulk_create(
        (Category(workspace=workspace, **row._asdict()) for row in CATEGORIES),
        ignore_conflicts=True,
    )
    categories = {category.slug: category for category in Category.objects.filter(workspace=workspace)}
    MemoryType.objects.bulk_create(
        (
            MemoryType(
                workspace=workspace,
                slug=row.slug,
                name=row.name,
                description=row.description,
                category=categories[row.category],
                always_human=row.always_human,
            )
            for row in TYPES
        ),
        ignore_conflicts=True,
    )
    Exclusion.objects.bulk_create(
        (Exclusion(workspace=workspace, slug=slug, description=text) for slug, text in EXCLUSIONS),
        ignore_conflicts=True,
    )
