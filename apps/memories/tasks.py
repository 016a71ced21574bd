"""What the worker keeps true in the ledger as time passes."""

from __future__ import annotations

import logging

from django.db import transaction

from apps.core.clock import now
from apps.memories.lifecycle import memories_refresh
from apps.memories.models import IN_FORCE, Memory
from apps.memories.providers.base import ProviderError

AT_ONCE = 1_000

logger = logging.getLogger(__name__)


def refresh_ended() -> str:
    """Give memories whose known end has come the status that follows from it. Idempotent.

    A search does not wait for this: it goes by the moments, and the status only repeats what they say.
    """
    ended = Memory.objects.filter(status__in=IN_FORCE, valid_to__lte=now()).order_by("valid_to")
    refreshed = [pk for pk in ended.values_list("pk", flat=True)[:AT_ONCE] if _refresh(pk)]
    return f"{len(refreshed)} memories have ended."


def _refresh(pk: object) -> bool:
    """Each in a transaction of its own, so that one that the pool refuses does not hold up the others."""
    try:
        with transaction.atomic():
            rows = Memory.objects.filter(pk=pk, status__in=IN_FORCE, valid_to__lte=now()).select_related("type")
            memories = list(rows.select_for_update(of=("self",)))
            memories_refresh(memories, at=now())
    except ProviderError as error:
        logger.warning("Memory %s has ended and the pool could not be told: %s", pk, error.message)
        return False
    return bool(memories)
