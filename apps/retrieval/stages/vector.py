"""The vector arm: what the pool's embeddings find."""

from __future__ import annotations

import logging

from apps.memories.providers.base import ProviderError
from apps.memories.providers.registry import get_provider
from apps.retrieval.pipeline import Hit, Search

logger = logging.getLogger(__name__)


def run(search: Search) -> None:
    if not search.recipe.vector_weight:
        search.skip("vector", f"The recipe {search.recipe.name} does not use it.")
        return
    with search.stage("vector") as stage:
        try:
            provider = get_provider()
            vector = provider.embed_query(search.question)
            found = provider.search(search.admission.pool_query(vector, limit=search.recipe.depth))
        except ProviderError as error:
            logger.warning("The vector arm could not look: %s", error.message)
            stage.detail = f"It could not look: {error.message}"
            search.degrade("Similar wording was not looked for, because the embedder or the pool does not answer.")
            return
        search.arms["vector"] = [Hit(hit.memory_id, {"vector": hit.score}) for hit in found]
        stage.detail = f"{len(found)} found."
