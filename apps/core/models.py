from __future__ import annotations

from django.db import models


class Throttle(models.Model):
    """How much of its rate a caller has used up. Not logged by PostgreSQL: after a crash everybody starts anew."""

    key = models.CharField(max_length=100, primary_key=True)
    used_until = models.DateTimeField(
        help_text="When the requests made so far will have been spread out to the allowed rate."
    )

    def __str__(self) -> str:
        return self.key
