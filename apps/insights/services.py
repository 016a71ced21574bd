from __future__ import annotations

from django.db.models.functions import Now

from apps.insights.models import Heartbeat

# Tasks are scheduled, taken and done; and a process that does them is there.
WORKER, PROCESS = "worker", "worker process"


def heartbeat_record(name: str) -> None:
    """By the clock of the database, the one that all machines share."""
    Heartbeat.objects.update_or_create(name=name, defaults={"at": Now()})
