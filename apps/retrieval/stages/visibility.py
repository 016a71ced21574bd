"""Nothing is served that the ledger does not let through, whatever the pool says, and the other way round."""

from __future__ import annotations

import logging
from collections.abc import Collection
from uuid import UUID

from django.db import connection

from apps.memories.models import Memory, MemoryStatus, Supersession
from apps.memories.providers.base import ProviderError
from apps.memories.providers.registry import get_provider
from apps.retrieval.filters import Admission
from apps.retrieval.pipeline import Search

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
    """Keep what ledger and pool both admit; answer the memories by id. Two look-ups, however many hits."""
    with search.stage("visibility") as stage:
        ids = [hit.memory_id for hit in search.hits]
        admitted = ledger_admits(search.admission, ids)
        pooled = _in_pool(search, ids)
        kept = admitted if pooled is None else admitted & pooled
        search.hits = [hit for hit in search.hits if hit.memory_id in kept]
        drifted = len(ids) - len(search.hits)
        stage.detail = f"{len(search.hits)} of {len(ids)} are served."
        if drifted:
            logger.warning("%d hits were left out because ledger and pool disagree about them.", drifted)
        found = Memory.objects.select_related("type__category").in_bulk([hit.memory_id for hit in search.hits])
        _demote_disputed(search, found)
        return found


def _demote_disputed(search: Search, found: dict[UUID, Memory]) -> None:
    """A dispute costs a little, and never more than that: reports must not be a way to silence a memory."""
    for hit in search.hits:
        if found[hit.memory_id].status == MemoryStatus.DISPUTED:
            hit.scores["disputed"] = search.recipe.disputed_factor
            hit.score *= search.recipe.disputed_factor
    search.hits.sort(key=lambda hit: (-hit.score, str(hit.memory_id)))


def ledger_admits(admission: Admission, ids: Collection[UUID]) -> set[UUID]:
    condition, values = admission.sql()
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT memory.id FROM memories_memory AS memory WHERE memory.id = ANY(%(ids)s) AND {condition}",
            values | {"ids": list(ids)},
        )
        return {row[0] for row in cursor.fetchall()}


def _in_pool(search: Search, ids: Collection[UUID]) -> set[UUID] | None:
    """Those of ``ids`` that the pool holds with the status the ledger gives them; ``None`` when it cannot say."""
    if "vector" not in search.arms:
        return None  # the pool could not look, and that has been said
    known = {hit.memory_id for hit in search.arms["vector"]}
    others = [memory_id for memory_id in ids if memory_id not in known]
    if not others:
        return known
    try:
        statuses = get_provider().statuses(others)
    except ProviderError as error:
        search.degrade("Whether the pool holds these memories could not be checked.")
        logger.warning("The pool could not be asked: %s", error.message)
        return None
    return known | {memory_id for memory_id, status in statuses.items() if status in search.admission.statuses}
