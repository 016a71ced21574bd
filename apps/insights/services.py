from __future__ import annotations

from django.db.models.functions import Now

from apps.insights.models import Heartbeat

WORKER = "worker"


def heartbeat_record(name: str) -> None:
    """By the clock of the database, the one that all machines share."""
    Heartbeat.objects.update_or_create(name=name, defaults={"at": Now()})
