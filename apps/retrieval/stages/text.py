"""The text arm: BM25 over the stored documents, in two bounded steps inside PostgreSQL.

Okapi BM25 with k1 = 1.2, b = 0.75 and idf = ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Zaragoza, 2009). A
first step takes the documents with the highest sum of idf over the words they hold, a second ranks those by BM25.
Cost is bounded by how many documents the chosen words match, not by the size of the ledger.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from apps.core.logs import without_words
from apps.core.time_limits import is_timeout, reading_within
from apps.memories.models import Corpus
from apps.retrieval.filters import Admission
from apps.retrieval.pipeline import Hit, Search, Shortfall, Stage
from apps.retrieval.terms import Term, any_of, rarest_terms

MAX_TERMS: Final = 64
PRESELECTED: Final = 200
SECONDS: Final = 1.0
SMALL_CORPUS: Final = 25_000  # up to here every word of the question may match
MATCH_BUDGET: Final = 5_000
MATCH_SHARE: Final = 0.2
K1: Final = 1.2
B: Final = 0.75

logger = logging.getLogger(__name__)


def run(search: Search) -> None:
    if not search.recipe.text_weight:
        search.skip("text", f"The recipe {search.recipe.name} does not use it.")
        return
    with search.stage("text") as stage:
        try:
            found, detail = bm25(search.admission, search.question, limit=search.recipe.depth)
        except (DatabaseError, InterfaceError) as error:
            _could_not_look(search, stage, error)
            return
        search.arms["text"] = [Hit(memory_id, {"text": score}) for memory_id, score in found]
        stage.detail = detail


def _could_not_look(search: Search, stage: Stage, error: Exception) -> None:
    if is_timeout(error):
        logger.warning("The text arm was stopped after %s s.", SECONDS)
        stage.detail = f"It was stopped after {SECONDS:g} s."
        search.degrade(Shortfall.WORDS_LATE, "Matching words were not looked for, because that took too long.")
        return
    logger.error("The text arm could not look: %s", without_words(error))
    stage.detail = "It could not look."
    search.degrade(
        Shortfall.WORDS_FAILED, "Matching words were not looked for, because the database could not do it."
    )


def bm25(admission: Admission, question: str, *, limit: int) -> tuple[list[tuple[UUID, float]], str]:
    """The best documents with their BM25 scores, best first, and a sentence on how they were found."""
    with reading_within(SECONDS) as time_limit:
        terms = rarest_terms(admission.workspace_id, question, limit=MAX_TERMS)
        if not terms:
            return [], "The question holds no word to look for."
        corpus = Corpus.objects.filter(workspace=admission.workspace_id).first() or Corpus()
        matched = _worth_matching(terms, corpus.documents)
        time_limit.renew()
        rows = _rank(admission, terms, matched, corpus, limit=limit)
    return rows, f"{len(rows)} found by {len(matched)} of {len(terms)} words."


def _worth_matching(terms: Sequence[Term], documents: int) -> list[Term]:
    """The rarest words, until together they match as many documents as may be looked at."""
    if documents <= SMALL_CORPUS:
        return list(terms)
    budget = max(MATCH_BUDGET, MATCH_SHARE * documents)
    chosen: list[Term] = []
    total = 0
    for term in terms:
        if chosen and total + term.ndoc > budget:
            break
        chosen.append(term)
        total += term.ndoc
    return chosen


_RANK = """
WITH asked(word, idf) AS (SELECT * FROM unnest(%(words)s::text[], %(idfs)s::float[])),
preselected AS MATERIALIZED (
    SELECT memory.id, memory.search_vector, memory.doclen, ({score}) AS worth
    FROM memories_memory AS memory
    WHERE memory.search_vector @@ %(match)s::tsquery AND {admitted}
    ORDER BY worth DESC, memory.id LIMIT %(preselected)s
)
SELECT preselected.id, sum(
    asked.idf * (%(k1)s + 1) * held.frequency
    / (held.frequency + %(k1)s * (1 - %(b)s + %(b)s * preselected.doclen / %(mean)s))
) AS bm25
FROM preselected
CROSS JOIN LATERAL (
    SELECT lexeme, coalesce(cardinality(positions), 1)::float AS frequency FROM unnest(preselected.search_vector)
) AS held
JOIN asked ON asked.word = held.lexeme
GROUP BY preselected.id
ORDER BY bm25 DESC, preselected.id LIMIT %(limit)s
"""


def _rank(
    admission: Admission, terms: Sequence[Term], matched: Sequence[Term], corpus: Corpus, *, limit: int
) -> list[tuple[UUID, float]]:
    admitted, values = admission.sql()
    weights = [_idf(term, corpus.documents) for term in terms]
    score, score_values = _worth(terms, weights)
    values |= score_values
    values |= {
        "words": [term.word for term in terms],
        "idfs": weights,
        "match": any_of(list(matched)),
        "preselected": PRESELECTED,
        "k1": K1,
        "b": B,
        "mean": max(corpus.mean_length, 1.0),
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RANK.format(score=score, admitted=admitted), values)
        return list(cursor.fetchall())


def _idf(term: Term, documents: int) -> float:
    total = max(documents, term.ndoc)
    return math.log(1 + (total - term.ndoc + 0.5) / (term.ndoc + 0.5))


def _worth(terms: Sequence[Term], weights: Sequence[float]) -> tuple[str, dict[str, Any]]:
    """Sum of idf over the words a document holds, as SQL with named placeholders."""
    parts = [f"%(w{at})s * (memory.search_vector @@ %(t{at})s::tsquery)::int" for at in range(len(terms))]
    values: dict[str, Any] = {f"w{at}": weight for at, weight in enumerate(weights)}
    values |= {f"t{at}": term.quoted for at, term in enumerate(terms)}
    return " + ".join(parts), values
