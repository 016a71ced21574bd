from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from apps.accounts.models import Workspace
from apps.core.triggers import keeps_workspace, no_delete, same_workspace


class Domain(models.Model):
    """A subject area of the firm, such as `payments`. Its slug is kept verbatim and matched exactly."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="domains")
    slug = models.CharField(max_length=200)
    confirmed = models.BooleanField(default=False, help_text="A curator has looked at it.")

    class Meta:
        ordering = ["slug"]
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="domain_slug_once")]
        triggers = [no_delete("domain_no_delete"), keeps_workspace("domain_keeps_workspace")]

    def __str__(self) -> str:
        return self.slug


class Repository(models.Model):
    """A code repository. Its slug is kept verbatim; remotes and aliases lead to it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="repositories")
    slug = models.CharField(max_length=200)
    remote = models.CharField(max_length=500, blank=True)
    aliases = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    domain_ids = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        help_text="Domains that a search in it brings along.",
    )
    confirmed = models.BooleanField(default=False, help_text="A curator has looked at it.")

    class Meta:
        ordering = ["slug"]
        verbose_name_plural = "repositories"
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="repository_slug_once")]
        indexes = [GinIndex(fields=["aliases"], name="repository_aliases")]
        triggers = [
            no_delete("repository_no_delete"),
            keeps_workspace("repository_keeps_workspace"),
            same_workspace("repository_same_workspace", arrays=(("domain_ids", "scopes_domain"),)),
        ]

    def __str__(self) -> str:
        return self.slug
