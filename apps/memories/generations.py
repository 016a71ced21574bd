"""The pool's generations: which table is live and which embedder made it."""

from __future__ import annotations

from django.db import connection, transaction

from apps.memories.models import GenerationState, PoolGeneration
from apps.memories.pool import FIRST_GENERATION, create_notes, create_pool
from apps.memories.providers.registry import get_embedder


@transaction.atomic
def ensure_live_generation() -> PoolGeneration:
    """The live generation; on a new installation the first one, made for the configured embedder. Idempotent.

    One from before there were working notes gets their table, which is as empty as they are.
    """
    live = PoolGeneration.objects.filter(state=GenerationState.LIVE).first()
    if live is not None:
        with connection.cursor() as cursor:
            create_notes(cursor, number=live.number, dimensions=live.dimensions)
        return live
    embedder = get_embedder()
    number = FIRST_GENERATION + PoolGeneration.objects.count()
    with connection.cursor() as cursor:
        create_pool(cursor, number=number, dimensions=embedder.dimensions)
    return PoolGeneration.objects.create(
        number=number, embedder=embedder.name, dimensions=embedder.dimensions, state=GenerationState.LIVE
    )
