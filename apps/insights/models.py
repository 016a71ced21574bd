"""What is kept to be able to say how the service is. It belongs to no workspace."""

from __future__ import annotations

from django.db import models


class Heartbeat(models.Model):
    """When something that works in the background last showed that it does."""

    name = models.CharField(primary_key=True, max_length=40)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.at:%Y-%m-%d %H:%M:%S}"
