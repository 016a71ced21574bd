"""Three rankings into one: a weighted sum of scores that were brought to one scale.

Cosine similarities keep their own scale. BM25 has none, so its scores are given the mean and the spread that the
cosines of this question have; identifiers count in such spreads as well. A memory that a full arm did not bring counts
there as its last hit did, which is the most it can have had; an arm that is not full has looked at everything, and the
rest holds none of the words. (A convex combination of standardised scores; after Bruch, Gai and Ingber, 2023, "An
Analysis of Fusion Functions for Hybrid Retrieval".)

The longer the question, the more its words tell: somebody who pastes a paragraph uses the terms of the decision, and
who asks in one line often uses others. The shares therefore move with the number of distinct words
(docs/adr/0028-words-count-more-in-long-questions.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Final
from uuid import UUID

from apps.retrieval.pipeline import Hit, Search, best_first
from apps.retrieval.recipes import Recipe

LEAST_NAMED: Final = 0.5
# Of the cosines of a question; those of a few memories may be the same, and then words and names decide.
LEAST_SPREAD: Final = 0.05

_WORD: Final = re.compile(r"\w+")


def run(search: Search) -> None:
    with search.stage("fuse") as stage:
        search.hits = _merged(search)
        found = len(search.hits)
        _score(search)
        search.hits = sorted((hit for hit in search.hits if _answers(search, hit)), key=best_first)
        stage.detail = f"{found} from {', '.join(search.arms) or 'no arm'}."
        if len(search.hits) < found:
            stage.detail += f" {found - len(search.hits)} of them have too little in common with the question."


def _merged(search: Search) -> list[Hit]:
    merged: dict[UUID, Hit] = {}
    for hits in search.arms.values():
        for hit in hits:
            merged.setdefault(hit.memory_id, Hit(hit.memory_id)).scores.update(hit.scores)
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class Shares:
    """Of the fused score: ``text`` is the share of the words, and the rest that of meaning."""

    text: float
    identifier: float


def shares(recipe: Recipe, question: str) -> Shares:
    """Between those of a short question and those of a long one, by the number of distinct words."""
    words = len({word.lower() for word in _WORD.findall(question)})
    length = min(max((words - recipe.short) / (recipe.long - recipe.short), 0.0), 1.0)
    return Shares(
        text=recipe.text_weight + length * (recipe.text_weight_of_long - recipe.text_weight),
        identifier=recipe.identifier_weight + length * (recipe.identifier_weight_of_long - recipe.identifier_weight),
    )


def _score(search: Search) -> None:
    """``fused`` of every hit: about a cosine where the vector arm has looked, else a share of the best."""
    depth, share = search.recipe.depth, shares(search.recipe, search.question)
    ids = [hit.memory_id for hit in search.hits]
    cosines = _scores(search.arms.get("vector", ()), "vector", ids, depth)
    words = _scores(search.arms.get("text", ()), "text", ids, depth)
    if cosines:
        mean, spread = fmean(cosines.values()), max(pstdev(cosines.values()), LEAST_SPREAD)
        words = _on_the_scale_of(words, mean, spread)
    else:
        mean, spread = 0.0, 1.0
        best = max(words.values(), default=0.0)
        words = {memory_id: score / best if best > 0 else 0.0 for memory_id, score in words.items()}
    text = share.text if cosines and words else 1.0 if words else 0.0
    for hit in search.hits:
        meaning = cosines.get(hit.memory_id, mean)
        told = (1 - text) * meaning + text * words.get(hit.memory_id, mean)
        told += share.identifier * spread * hit.scores.get("identifier", 0.0)
        told += search.recipe.called_weight * spread * hit.scores.get("called", 0.0)
        hit.score = hit.scores["fused"] = max(told, 0.0)


def _scores(hits: Sequence[Hit], name: str, ids: Collection[UUID], depth: int) -> dict[UUID, float]:
    """Of every id; nothing at all from an arm that brought nothing."""
    if not hits:
        return {}
    scores = {hit.memory_id: hit.scores[name] for hit in hits}
    # The pool holds everything, and what a search of it did not bring is at least as far as the last.
    floor = 0.0 if name == "text" and len(hits) < depth else min(scores.values())
    return {memory_id: scores.get(memory_id, floor) for memory_id in ids}


def _on_the_scale_of(words: Mapping[UUID, float], mean: float, spread: float) -> dict[UUID, float]:
    if not words:
        return {}
    own_mean, own_spread = fmean(words.values()), pstdev(words.values())
    if not own_spread:
        return dict.fromkeys(words, mean)
    return {memory_id: mean + spread * (score - own_mean) / own_spread for memory_id, score in words.items()}


def _answers(search: Search, hit: Hit) -> bool:
    """Near enough in meaning, or by its words or names. There is always a nearest memory; that alone is no answer.

    Without the vector arm nothing is known about meaning, and whatever shares a word is shown.
    """
    if "vector" not in search.arms:
        return True
    is_near = hit.scores.get("vector", 0.0) >= search.unrelated_below
    is_named = hit.scores.get("identifier", 0.0) >= LEAST_NAMED
    return is_near or is_named or hit.scores.get("coverage", 0.0) >= search.recipe.least_coverage
