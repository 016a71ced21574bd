from __future__ import annotations

from django.db import models

from apps.accounts.models import Workspace


class ModelUse(models.Model):
    """What answers by a language model cost a workspace on a day (UTC), as the model's server reports it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    day = models.DateField()
    calls = models.BigIntegerField(default=0)
    prompt_tokens = models.BigIntegerField(default=0)
    completion_tokens = models.BigIntegerField(default=0)

    class Meta:
        ordering = ["day", "workspace"]
        constraints = [models.UniqueConstraint(fields=["day", "workspace"], name="model_use_once_a_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.workspace}"
