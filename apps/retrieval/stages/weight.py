"""Category × intent: conventions count more for somebody who implements, decisions for somebody who asks why.

The weights stand in the taxonomy; curators change them.
"""

from __future__ import annotations

from apps.retrieval.ledger import Facts, Weighting, facts_of
from apps.retrieval.pipeline import Hit, Search


def run(search: Search) -> None:
    with search.stage("weight") as stage:
        search.facts = facts_of(search.admission, [hit.memory_id for hit in search.hits])
        if not search.recipe.weighs:
            stage.detail = f"The recipe {search.recipe.name} weighs all categories alike."
            return
        weighed = {
            facts.category: weight_of(search, facts)
            for hit in search.hits
            if (facts := search.facts.get(hit.memory_id)) and weigh(search, hit, facts)
        }
        told = ", ".join(f"{category} × {weight:g}" for category, weight in sorted(weighed.items()))
        stage.detail = f"For {search.intent}: {told}." if told else f"For {search.intent} all that was found is alike."


def weigh(search: Search, hit: Hit, facts: Facts) -> bool:
    """Whether the weight changes anything."""
    weight = weight_of(search, facts)
    if not search.recipe.weighs or weight == 1.0:
        return False
    hit.scores["weight"] = weight
    hit.score *= weight
    return True


def weight_of(search: Search, facts: Facts) -> float:
    return float(weighting_of(search, facts).weights.get(search.intent, 1.0))


def weighting_of(search: Search, facts: Facts) -> Weighting:
    """The category's own, or what a curator wants to try instead of it."""
    return search.tried.get(facts.category, facts.weighting)
