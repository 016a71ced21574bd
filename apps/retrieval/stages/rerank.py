"""The plug point for a reranker, which sees question and texts of the best hits and scores them anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from apps.memories.models import Memory
from apps.retrieval.pipeline import Search, best_first

RERANKED: Final = 50

# Gives a score for each text, in their order, higher for the better answer; any scale.
Reranker = Callable[[str, Sequence[str]], Sequence[float]]

# By the name that a recipe calls it by.
RERANKERS: Final[dict[str, Reranker]] = {}


def run(search: Search) -> None:
    """Only hits that may be served are shown to a reranker. Their order changes; what is served does not."""
    name = search.recipe.reranker
    if name is None:
        search.skip("rerank", f"The recipe {search.recipe.name} has no reranker.")
        return
    with search.stage("rerank") as stage:
        best = search.hits[: max(search.limit, RERANKED)]
        found = dict(Memory.objects.filter(pk__in=[hit.memory_id for hit in best]).values_list("pk", "content"))
        scores = RERANKERS[name](search.question, [found[hit.memory_id] for hit in best])
        for hit, score in zip(best, scores, strict=True):
            hit.scores["rerank"] = hit.score = float(score)
        search.hits = sorted(best, key=best_first)
        stage.detail = f"{name} put {len(best)} in order."
