"""Evaluations that were kept. They are about this software and not about a firm, and belong to no workspace."""

from __future__ import annotations

from typing import Any

from django.db import models


class EvaluationRun(models.Model):
    """What one arm reached on one suite; rows of one run share their ``batch``."""

    batch = models.UUIDField()
    suite = models.CharField(max_length=200)
    title = models.CharField(max_length=300)
    half = models.CharField(max_length=4)
    corpus = models.CharField(max_length=64, help_text="Names the content that was loaded, and how.")
    records = models.PositiveIntegerField()
    queries = models.PositiveIntegerField()
    arm = models.CharField(max_length=100)
    position = models.PositiveSmallIntegerField(help_text="Where the arm stands in its table.")
    found: models.JSONField[Any, Any] = models.JSONField(help_text="{figures, stages, compared, growth}")
    version = models.CharField(max_length=50)
    commit = models.CharField(max_length=60, blank=True)
    measured_at = models.DateTimeField()

    class Meta:
        ordering = ["-measured_at", "suite", "position"]
        constraints = [
            models.UniqueConstraint(fields=["batch", "suite", "arm"], name="evaluation_arm_once"),
        ]
        indexes = [models.Index(fields=["suite", "-measured_at"], name="evaluation_newest")]

    def __str__(self) -> str:
        return f"{self.suite}, {self.arm}, {self.measured_at:%Y-%m-%d %H:%M}"
