from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from apps.accounts.models import Workspace
from apps.core.triggers import keeps_workspace, same_workspace


class Served(models.Model):
    """A receipt: this memory was given to somebody in answer to that question. Kept for 90 days.

    It names a memory without a foreign key: one would make every answer wait for whoever decides about that memory.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    memory = models.UUIDField()
    principal = models.CharField(max_length=40, help_text="`token:7` or `user:3`.")
    kind = models.CharField(max_length=20, help_text="Of the token, or `person`.")
    name = models.CharField(max_length=200)
    via = models.CharField(max_length=20, help_text="The door: `rest` or `mcp`.")
    asked_for = models.CharField(max_length=20, help_text="`search`, `get`, `context`, `ask` or `decisions`.")
    question = models.TextField(blank=True, help_text="Masked, and cut.")
    audience_ids = ArrayField(
        models.BigIntegerField(), default=list, help_text="Of whoever asked: only who is in all of them reads it."
    )
    request_id = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "served"
        indexes = [
            models.Index(fields=["workspace", "memory", "-at"], name="served_memory"),
            models.Index(fields=["at"], name="served_age"),
        ]
        triggers = [
            keeps_workspace("served_keeps_workspace"),
            same_workspace("served_same_workspace", arrays=(("audience_ids", "accounts_audience"),)),
        ]

    def __str__(self) -> str:
        return f"{self.memory} to {self.name}"
