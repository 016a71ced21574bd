"""What holds in a scope, whatever is asked: the best by category, confidence and age.

A question has a score for each memory; here the confidence that its reviewer left it with stands in for that, on a
scale that ends below what the question has found.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import OperationalError, connection

from apps.core.errors import Unavailable
from apps.core.time_limits import is_timeout, reading_within
from apps.retrieval.pipeline import Hit, Search, best_first

NAME: Final = "list"
SECONDS: Final = 2.0
# The relevance of a memory that is certain: below the least that was found, and above nothing.
BELOW: Final = 0.9
LEAST: Final = 0.001
# Where nobody said how sure it is. A reviewer has approved it all the same.
UNSAID: Final = 0.7

# As weight, decay and visibility put them in order afterwards; index cards are there to be found by a question.
_LIST: Final = """
SELECT memory.id, coalesce(memory.confidence, %(unsaid)s)
FROM memories_memory AS memory
JOIN taxonomy_memorytype AS type ON type.id = memory.type_id
JOIN taxonomy_category AS category ON category.id = type.category_id
WHERE {admitted} AND memory.tier = 'durable'
ORDER BY coalesce(memory.confidence, %(unsaid)s) * coalesce((category.weights ->> %(intent)s)::float8, 1)
    * CASE WHEN category.half_life_days IS NULL THEN 1 ELSE power(2, greatest(-1000,
        -greatest(extract(epoch FROM %(now)s - coalesce(memory.valid_from, memory.recorded_at)) / 86400, 0)
        / category.half_life_days)) END
    * CASE WHEN memory.status = 'disputed' THEN %(disputed)s ELSE 1 END DESC, memory.number DESC
LIMIT %(limit)s
"""


def run(search: Search) -> None:
    """Add to the hits what the question has not found."""
    with search.stage(NAME) as stage:
        found = {hit.memory_id for hit in search.hits}
        scale = max(BELOW * min((hit.score for hit in search.hits), default=1.0), LEAST)
        listed = [
            Hit(memory_id, {"fused": scale * confidence}, scale * confidence)
            for memory_id, confidence in _rows(search)
            if memory_id not in found
        ]
        search.hits = sorted([*search.hits, *listed], key=best_first)
        stage.detail = f"{len(listed)} more that hold in the scope, by category, confidence and age."


def _rows(search: Search) -> list[tuple[UUID, float]]:
    admitted, values = search.admission.sql()
    values |= {
        "intent": search.intent,
        "now": search.admission.valid_instant,
        "unsaid": UNSAID,
        "disputed": search.recipe.disputed_factor,
        "limit": search.limit,
    }
    try:
        with reading_within(SECONDS), connection.cursor() as cursor:
            cursor.execute(_LIST.format(admitted=admitted), values)
            return list(cursor.fetchall())
    except OperationalError as error:
        if not is_timeout(error):
            raise
        raise Unavailable("The ledger did not answer in time. Try again in a moment.", code="ledger_timeout") from error
