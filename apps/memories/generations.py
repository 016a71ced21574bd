"""The pool's generations: which table is live and which embedder made it."""

from __future__ import annotations

from django.db import connection, transaction

from apps.memories.models import GenerationState, PoolGeneration
from apps.memories.pool import FIRST_DIMENSIONS, FIRST_EMBEDDER, FIRST_GENERATION, create_pool


@transaction.atomic
def ensure_live_generation() -> PoolGeneration:
    """The live generation; on a new installation the first one, made for the configured embedder. Idempotent."""
    live = PoolGeneration.objects.filter(state=GenerationState.LIVE).first()
    if live is not None:
        return live
    embedder, dimensions = FIRST_EMBEDDER, FIRST_DIMENSIONS
    number = FIRST_GENERATION + PoolGeneration.objects.count()
    with connection.cursor() as cursor:
        create_pool(cursor, number=number, dimensions=dimensions)
    return PoolGeneration.objects.create(
        number=number, embedder=embedder, dimensions=dimensions, state=GenerationState.LIVE
    )
