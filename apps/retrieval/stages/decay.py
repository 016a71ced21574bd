"""What fades with age: freshness halves with each half-life of the category, 2^(−age / half-life).

It decides between answers that are about as relevant, and moves no score below ``least_decay`` of itself: the only
answer to a question is the answer, however old (docs/adr/0029-age-decides-between-equals.md).

Age runs from the moment a memory began to hold to the moment that is asked about. Somebody who asks for the history
wants the old as much as the new.
"""

from __future__ import annotations

from datetime import timedelta

from apps.retrieval.pipeline import Search, best_first
from apps.retrieval.stages.weight import weighting_of

_AGELESS = frozenset({"history"})


def run(search: Search) -> None:
    if not search.recipe.fades:
        search.skip("decay", f"The recipe {search.recipe.name} lets nothing fade.")
        return
    if search.intent in _AGELESS:
        search.skip("decay", f"Nothing fades for {search.intent}.")
        return
    with search.stage("decay") as stage:
        faded = 0
        for hit in search.hits:
            facts = search.facts.get(hit.memory_id)
            half_life = weighting_of(search, facts).half_life_days if facts else None
            if facts is None or half_life is None:
                continue
            age = max((search.admission.valid_instant - facts.since) / timedelta(days=1), 0.0)
            hit.scores["decay"] = fresh = 2.0 ** (-age / half_life)
            hit.score *= search.recipe.least_decay + (1.0 - search.recipe.least_decay) * fresh
            faded += 1
        search.hits.sort(key=best_first)
        stage.detail = f"{faded} of {len(search.hits)} are of a category that fades."
