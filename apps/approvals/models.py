"""What reviewers keep for themselves: the filters of the queue that they come back to."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.accounts.models import Workspace
from apps.core.triggers import keeps_workspace

MAX_NAME = 60
MAX_QUERY = 2_000


class SavedFilter(models.Model):
    """A filter of the review queue under a name. It belongs to one person and says nothing of what it finds."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="saved_filters")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_filters")
    name = models.CharField(max_length=MAX_NAME)
    query = models.CharField(max_length=MAX_QUERY, help_text="As it stands in the address, without a position.")
    is_default = models.BooleanField(default=False, help_text="The queue opens with it.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user", "name"], name="saved_filter_name_once"),
            models.UniqueConstraint(
                fields=["workspace", "user"], condition=Q(is_default=True), name="saved_filter_one_default"
            ),
        ]
        triggers = [keeps_workspace("saved_filter_keeps_workspace")]

    def __str__(self) -> str:
        return self.name
