"""Heads of chains only: what an approved edge replaced gives way to what holds instead.

The arms find replaced memories as well, since a question may be worded as the old decision was; what replaced them
takes their place, with the relevance that led there. Neither date nor status of a record decides this, only edges
that a reviewer approved. Of several successors each is served, for a fork is one decision that became two.
"""

from __future__ import annotations

from uuid import UUID

from apps.retrieval.ledger import Facts, successors_of
from apps.retrieval.pipeline import Hit, Search, best_first
from apps.retrieval.stages.weight import weigh


def run(search: Search) -> None:
    with search.stage("collapse") as stage:
        replaced = [hit for hit in search.hits if _is_replaced(search, hit.memory_id)]
        successors = successors_of(search.admission, [hit.memory_id for hit in replaced])
        gone = {hit.memory_id for hit in replaced}
        hits = {hit.memory_id: hit for hit in search.hits if hit.memory_id not in gone}
        for old in replaced:
            for facts in successors.get(old.memory_id, ()):
                _follow(search, hits, old, facts)
        search.hits = sorted(hits.values(), key=best_first)
        stage.detail = _told(len(replaced), sum(1 for hit in replaced if hit.memory_id not in successors))


def _is_replaced(search: Search, memory_id: UUID) -> bool:
    facts = search.facts.get(memory_id)
    return facts is not None and not facts.admitted and facts.status == "superseded"


def _follow(search: Search, hits: dict[UUID, Hit], old: Hit, facts: Facts) -> None:
    """The successor takes over the relevance of what it replaced, where that is higher than its own."""
    search.facts[facts.memory_id] = facts
    hit = hits.setdefault(facts.memory_id, Hit(facts.memory_id))
    hit.instead_of.append(old.memory_id)
    if not search.recipe.follows:
        return
    relevance = old.scores["fused"]
    if relevance > max(hit.scores.get(name, float("-inf")) for name in ("fused", "replaced")):
        hit.scores["replaced"] = relevance
        hit.score = relevance
        weigh(search, hit, facts)


def _told(replaced: int, without: int) -> str:
    if not replaced:
        return "Nothing that was found has been replaced."
    told = f"{replaced} replaced ones gave way to what holds instead."
    return f"{told} For {without} of them nothing within the scope does." if without else told
