"""Two rankings into one: a weighted sum of normalised scores.

Cosine similarity and the share of identifiers keep their own scale; BM25 has none, so it is divided by the best of
this question. A memory that
one arm did not bring counts there as its last hit did, which is the most it can have had. (Convex combination, after
Bruch, Gai and Ingber, 2023, "An Analysis of Fusion Functions for Hybrid Retrieval".)
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from apps.retrieval.pipeline import Hit, Search, best_first

LEAST_NAMED: Final = 0.5


def run(search: Search) -> None:
    with search.stage("fuse") as stage:
        recipe = search.recipe
        weights = {
            "vector": recipe.vector_weight,
            "text": recipe.text_weight,
            "identifier": recipe.identifier_weight,
        }
        arms = {name: _normalised(name, hits) for name, hits in search.arms.items()}
        total = sum(weights[name] for name in arms) or 1.0
        search.hits = _merged(search)
        for hit in search.hits:
            parts = {
                name: scores.get(hit.memory_id, _floor(scores, recipe.depth)) * weights[name] / total
                for name, scores in arms.items()
            }
            hit.score = hit.scores["fused"] = sum(parts.values())
        found = len(search.hits)
        search.hits = sorted((hit for hit in search.hits if _answers(search, hit)), key=best_first)
        stage.detail = f"{found} from {', '.join(arms) or 'no arm'}."
        if len(search.hits) < found:
            stage.detail += f" {found - len(search.hits)} of them have too little in common with the question."


def _answers(search: Search, hit: Hit) -> bool:
    """Near enough in meaning, or by its words. There is always a nearest memory; that alone makes it no answer.

    Without the vector arm nothing is known about meaning, and whatever shares a word is shown.
    """
    if "vector" not in search.arms:
        return True
    is_near = hit.scores.get("vector", 0.0) >= search.unrelated_below
    is_named = hit.scores.get("identifier", 0.0) >= LEAST_NAMED
    return is_near or is_named or hit.scores.get("coverage", 0.0) >= search.recipe.least_coverage


def _normalised(name: str, hits: list[Hit]) -> dict[UUID, float]:
    scores = {hit.memory_id: hit.scores[name] for hit in hits}
    best = max(scores.values(), default=0.0)
    if name != "text" or best <= 0:
        return scores
    return {memory_id: score / best for memory_id, score in scores.items()}


def _floor(scores: dict[UUID, float], depth: int) -> float:
    """A full arm may have left a memory out; one that is not full has looked at everything."""
    return min(scores.values()) if len(scores) >= depth else 0.0


def _merged(search: Search) -> list[Hit]:
    merged: dict[UUID, Hit] = {}
    for hits in search.arms.values():
        for hit in hits:
            merged.setdefault(hit.memory_id, Hit(hit.memory_id)).scores.update(hit.scores)
    return list(merged.values())
