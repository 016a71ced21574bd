"""Nothing is served that the ledger does not let through, whatever the pool says, and the other way round."""

from __future__ import annotations

import logging
from collections.abc import Collection
from uuid import UUID

from apps.memories.models import MemoryStatus
from apps.memories.providers.base import ProviderError
from apps.memories.providers.registry import get_provider
from apps.retrieval.pipeline import Search, Shortfall, best_first
from apps.retrieval.stages.vector import is_late

logger = logging.getLogger(__name__)


def check(search: Search) -> None:
    """Keep what ledger and pool both admit."""
    with search.stage("visibility") as stage:
        ids = [hit.memory_id for hit in search.hits]
        admitted = {memory_id for memory_id in ids if _may_be_served(search, memory_id)}
        pooled = _in_pool(search, ids)
        kept = admitted if pooled is None else admitted & pooled
        search.hits = [hit for hit in search.hits if hit.memory_id in kept]
        stage.detail = f"{len(search.hits)} of {len(ids)} are served."
        _say_what_was_left_out(search, refused=len(ids) - len(admitted), not_in_pool=len(admitted) - len(kept))
        _demote_disputed(search)


def _say_what_was_left_out(search: Search, *, refused: int, not_in_pool: int) -> None:
    """Ledger and pool are written in one transaction, so that they disagree is a fault, or a matter of a moment."""
    search.refused, search.not_in_pool = refused, not_in_pool
    if refused:
        logger.warning("%d hits were left out, because the ledger does not let them through (any more).", refused)
    if not_in_pool:
        logger.warning("%d hits were left out, because the pool does not hold them as the ledger does.", not_in_pool)
        search.degrade(
            Shortfall.NOT_IN_POOL,
            f"{'One match was' if not_in_pool == 1 else f'{not_in_pool} matches were'} left out, because ledger and "
            "pool disagree about it. Comparing them is for an operator.",
        )


def _may_be_served(search: Search, memory_id: UUID) -> bool:
    facts = search.facts.get(memory_id)
    return facts is not None and facts.admitted


def _demote_disputed(search: Search) -> None:
    """A dispute costs a little, and never more than that: reports must not be a way to silence a memory."""
    for hit in search.hits:
        if search.facts[hit.memory_id].status == MemoryStatus.DISPUTED:
            hit.scores["disputed"] = search.recipe.disputed_factor
            hit.score *= search.recipe.disputed_factor
    search.hits.sort(key=best_first)


def _in_pool(search: Search, ids: Collection[UUID]) -> set[UUID] | None:
    """Those of ``ids`` that the pool holds with a status that is served; ``None`` when it cannot say.

    Without it the ledger decides alone: it is the record, and the answer says what could not be checked.
    """
    if not search.pool_answers:
        return None  # that has been said, and asking again would only take as long again
    known = {hit.memory_id for hit in search.arms.get("vector", ())}
    others = [memory_id for memory_id in ids if memory_id not in known]
    if not others:
        return known
    try:
        statuses = get_provider().statuses(others)
    except ProviderError as error:
        logger.warning("The pool could not be asked: %s", error.message)
        search.degrade(
            Shortfall.CHECK_LATE if is_late(error) else Shortfall.CHECK_FAILED,
            "Whether the pool of embeddings holds what was found by words could not be checked.",
        )
        return None
    return known | {memory_id for memory_id, status in statuses.items() if status in search.admission.statuses}
