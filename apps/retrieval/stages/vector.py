"""The vector arm: what the pool's embeddings find."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from apps.memories.providers.base import MemoryProvider, ProviderError, ProviderTimeout, Vector
from apps.memories.providers.registry import get_provider
from apps.retrieval.pipeline import Hit, Search, Shortfall, Stage

T = TypeVar("T")

logger = logging.getLogger(__name__)


def run(search: Search) -> None:
    if not search.recipe.vector:
        search.skip("vector", f"The recipe {search.recipe.name} does not use it.")
        return
    provider = get_provider()
    if not provider.reads(search.question):
        search.skip("vector", "The embedding model does not know the script of the question.")
        search.notes.append("Meanings were not compared, because the embedding model does not know this script.")
        return
    with search.stage("vector") as stage:
        vector = embedded(search, stage, provider)
        if vector is None:
            return
        query = search.admission.pool_query(vector, limit=search.recipe.depth)
        found = looked_up(search, stage, lambda: provider.search(query))
        if found is None:
            return
        search.unrelated_below = provider.unrelated_below
        search.arms["vector"] = [Hit(hit.memory_id, {"vector": hit.score}) for hit in found]
        stage.detail = f"{len(found)} found."


def embedded(search: Search, stage: Stage, provider: MemoryProvider) -> Vector | None:
    """The question's vector; ``None`` where there is none, which is said."""
    try:
        return provider.embed_query(search.question)
    except ProviderError as error:
        logger.warning("The vector arm could not embed the question: %s", error.message)
        stage.detail = f"The embedding model {'did not answer in time' if is_late(error) else 'could not be used'}."
        search.degrade(
            Shortfall.EMBEDDER_LATE if is_late(error) else Shortfall.EMBEDDER_FAILED,
            "Similar wording was not looked for, because the embedding model does not answer.",
        )
        return None


def looked_up(search: Search, stage: Stage, look: Callable[[], list[T]]) -> list[T] | None:
    """What the pool answers; ``None`` where it does not, which is said."""
    try:
        return look()
    except ProviderError as error:
        logger.warning("The vector arm could not look: %s", error.message)
        search.pool_answers = False
        stage.detail = f"The pool {'did not answer in time' if is_late(error) else 'could not be searched'}."
        search.degrade(
            Shortfall.POOL_LATE if is_late(error) else Shortfall.POOL_FAILED,
            "Similar wording was not looked for, because the pool of embeddings does not answer.",
        )
        return None


def is_late(error: ProviderError) -> bool:
    return isinstance(error, ProviderTimeout)
