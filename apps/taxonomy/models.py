from __future__ import annotations

from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from apps.accounts.models import Workspace
from apps.core.triggers import keeps_workspace, no_delete, same_workspace


class Category(models.Model):
    """Lifetime and weighting, shared by the types that belong to it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="categories")
    slug = models.SlugField(max_length=40)
    half_life_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="After this many days a memory is half as fresh. Empty: it does not fade."
    )
    ttl_days = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Working notes of this category expire after this many days, 90 at most. Empty: as the service says.",
    )
    weights: models.JSONField[Any, Any] = models.JSONField(
        default=dict, blank=True, help_text='Weight by intent, such as {"explain-why": 1.2}. Missing: 1.'
    )

    class Meta:
        ordering = ["slug"]
        verbose_name_plural = "categories"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="category_slug_once"),
            models.CheckConstraint(
                condition=Q(half_life_days__isnull=True) | Q(half_life_days__gt=0),
                name="category_half_life_positive",
            ),
        ]
        triggers = [no_delete("category_no_delete"), keeps_workspace("category_keeps_workspace")]

    def __str__(self) -> str:
        return self.slug


class MemoryTypeQuerySet(models.QuerySet["MemoryType"]):
    def active(self) -> MemoryTypeQuerySet:
        return self.filter(is_active=True)


class MemoryType(models.Model):
    """What kind of statement a memory is. Its description drives extraction."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="memory_types")
    slug = models.SlugField(max_length=60, help_text="The wire spelling, such as `business_rules`.")
    name = models.CharField(max_length=60, help_text="The other spelling, such as `BUSINESS_RULE`.")
    description = models.TextField(max_length=2000)
    category = models.ForeignKey(Category, on_delete=models.PROTECT, related_name="types")
    always_human = models.BooleanField(
        default=False, help_text="Must be opened by the reviewer before it can be approved in bulk."
    )
    min_confidence = models.FloatField(
        default=0.6,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Proposals below this confidence are quarantined until a reviewer looks at them.",
    )
    is_active = models.BooleanField(default=True, help_text="A retired type takes no new memories.")

    objects = MemoryTypeQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "slug"], name="memory_type_slug_once"),
            models.UniqueConstraint(fields=["workspace", "name"], name="memory_type_name_once"),
            models.CheckConstraint(
                condition=Q(min_confidence__gte=0, min_confidence__lte=1),
                name="memory_type_confidence_is_share",
            ),
        ]
        triggers = [
            no_delete("memory_type_no_delete"),
            keeps_workspace("memory_type_keeps_workspace"),
            same_workspace("memory_type_same_workspace", ("category_id", "taxonomy_category")),
        ]

    def __str__(self) -> str:
        return self.slug


class Exclusion(models.Model):
    """What must not be remembered. The description is used in extraction prompts."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="exclusions")
    slug = models.SlugField(max_length=60)
    description = models.TextField(max_length=2000)
    is_active = models.BooleanField(default=True)

    class Meta:
        ordering = ["slug"]
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="exclusion_slug_once")]
        triggers = [no_delete("exclusion_no_delete"), keeps_workspace("exclusion_keeps_workspace")]

    def __str__(self) -> str:
        return self.slug
