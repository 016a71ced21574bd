"""Nothing is served that the ledger does not let through, whatever the pool says, and the other way round."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db import connection

from apps.memories.models import Memory, MemoryStatus, Supersession
from apps.memories.providers.base import ProviderError
from apps.memories.providers.registry import get_provider
from apps.retrieval.filters import Admission
from apps.retrieval.pipeline import Search, Shortfall
from apps.retrieval.stages.vector import is_late

logger = logging.getLogger(__name__)


def collapse(search: Search) -> None:
    """Heads of chains only: what an approved full edge replaced by now gives way, whatever its status says."""
    if search.admission.is_about_the_past:
        search.skip("collapse", "About the past the intervals decide.")
        return
    with search.stage("collapse") as stage:
        ids = [hit.memory_id for hit in search.hits]
        edges = Supersession.objects.live().full().filter(old__in=ids, old__valid_to__lte=search.admission.now)
        replaced = set(edges.values_list("old_id", flat=True))
        search.hits = [hit for hit in search.hits if hit.memory_id not in replaced]
        stage.detail = f"{len(replaced)} replaced ones left out."


def check(search: Search) -> dict[UUID, Memory]:
    """Keep what ledger and pool both admit; answer, by id, the memories that will be shown.

    Three look-ups, however many hits; of those that nobody will see no more is fetched than their status.
    """
    with search.stage("visibility") as stage:
        ids = [hit.memory_id for hit in search.hits]
        admitted = ledger_admits(search.admission, ids)
        pooled = _in_pool(search, ids)
        kept = admitted.keys() if pooled is None else admitted.keys() & pooled
        search.hits = [hit for hit in search.hits if hit.memory_id in kept]
        stage.detail = f"{len(search.hits)} of {len(ids)} are served."
        _say_what_was_left_out(search, refused=len(ids) - len(admitted), not_in_pool=len(admitted) - len(kept))
        _demote_disputed(search, admitted)
        shown = [hit.memory_id for hit in search.hits[: search.limit]]
        return Memory.objects.select_related("type__category").in_bulk(shown)


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


def _demote_disputed(search: Search, statuses: Mapping[UUID, str]) -> None:
    """A dispute costs a little, and never more than that: reports must not be a way to silence a memory."""
    for hit in search.hits:
        if statuses[hit.memory_id] == MemoryStatus.DISPUTED:
            hit.scores["disputed"] = search.recipe.disputed_factor
            hit.score *= search.recipe.disputed_factor
    search.hits.sort(key=lambda hit: (-hit.score, str(hit.memory_id)))


def ledger_admits(admission: Admission, ids: Collection[UUID]) -> dict[UUID, str]:
    """Those of ``ids`` that the ledger lets through, with their status."""
    condition, values = admission.sql()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT memory.id, memory.status FROM memories_memory AS memory "
            f"WHERE memory.id = ANY(%(ids)s) AND {condition}",
            values | {"ids": list(ids)},
        )
        return dict(cursor.fetchall())


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
