"""What the worker keeps true in the ledger and among the notes as time passes."""

from __future__ import annotations

import logging
from uuid import UUID

from django.db import transaction

from apps.core.clock import now
from apps.memories.lifecycle import memories_refresh
from apps.memories.models import IN_FORCE, Memory, TaskNote
from apps.memories.notes import notes_delete, notes_embed
from apps.memories.providers.base import ProviderError

AT_ONCE = 1_000
NOTES_AT_ONCE = 100

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


def notes_expire() -> str:
    """Delete notes that have expired, and their embeddings. Idempotent.

    Nobody waits for this: what has expired is not served, whether or not it is still there.
    """
    gone = 0
    while ids := _expired():
        try:
            gone += notes_delete(ids)
        except ProviderError as error:
            logger.warning("Expired notes could not be deleted from the pool yet: %s", error.message)
            break
        if len(ids) < AT_ONCE:
            break
    return f"{gone} notes have expired."


def _expired() -> list[UUID]:
    return list(
        TaskNote.objects.filter(expires_at__lte=now()).order_by("expires_at").values_list("pk", flat=True)[:AT_ONCE]
    )


def notes_embed_late() -> str:
    """Embed notes that came in while the embedder or the pool did not answer. Idempotent."""
    waiting = TaskNote.objects.live(now()).filter(embedded_at__isnull=True).order_by("created_at")
    ids = list(waiting.values_list("pk", flat=True)[:NOTES_AT_ONCE])
    try:
        done = notes_embed(ids)
    except ProviderError as error:
        logger.warning("%d notes could not be embedded yet: %s", len(ids), error.message)
        done = 0
    return f"{done} of {len(ids)} notes that were late are embedded."
