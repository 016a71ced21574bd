"""The text arm: BM25 over the stored documents, in two bounded steps inside PostgreSQL.

Okapi BM25 with k1 = 1.2, b = 0.75 and idf = ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Zaragoza, 2009). A
first step takes the documents with the highest sum of idf over the words they hold, a second ranks those by BM25.

The first step looks at no more documents than it must (docs/benchmarks.md has what it costs). Either the words lead
to them, through the index over words: all words of the question while those match few documents together, else the
rarest. Or the scope does, through the indexes over scopes, where it holds fewer documents than the words match.

``EXPLAIN`` of both, on 100,000 memories, abridged; a test holds their shapes. By the words::

    Limit
      ->  Sort (top-N heapsort)
            ->  Bitmap Heap Scan on memories_memory
                  ->  Bitmap Index Scan on memory_text  (search_vector @@ 'rare' | 'rarer')

By the scope::

    Limit
      ->  Sort (top-N heapsort)
            ->  Bitmap Heap Scan on memories_memory
                  ->  BitmapOr
                        ->  Bitmap Index Scan on memory_firm  (workspace_id = 1)
                        ->  Bitmap Index Scan on memory_domains  (domain_ids && '{3}')
                        ->  Bitmap Index Scan on memory_repos  (repo_ids && '{7}')
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from apps.core.logs import without_words
from apps.core.time_limits import is_timeout, reading_within
from apps.memories.models import Corpus
from apps.retrieval.filters import Admission
from apps.retrieval.pipeline import Hit, Search, Shortfall, Stage
from apps.retrieval.scope_sizes import scope_size
from apps.retrieval.terms import BY_INDEXES, Term, any_of, corpus_of, idf, rarest_terms, within

MAX_TERMS: Final = 64
PRESELECTED: Final = 200
SECONDS: Final = 1.0
LEAST_MATCHES: Final = 5_000
MATCH_SHARE: Final = 0.2
MAX_MATCHES: Final = 20_000
MAX_READ: Final = 20_000  # a scope of more documents is not read whole
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
        search.arms["text"] = [Hit(row.memory_id, {"text": row.bm25, "coverage": row.coverage}) for row in found]
        stage.detail = detail


def _could_not_look(search: Search, stage: Stage, error: Exception) -> None:
    if is_timeout(error):
        logger.warning("The text arm was stopped after %s s.", SECONDS)
        stage.detail = f"It was stopped after {SECONDS:g} s."
        search.degrade(Shortfall.WORDS_LATE, "Matching words were not looked for, because that took too long.")
        return
    logger.error("The text arm could not look: %s", without_words(error))
    stage.detail = "It could not look."
    search.degrade(Shortfall.WORDS_FAILED, "Matching words were not looked for, because the database could not do it.")


class Ranked(NamedTuple):
    """``coverage`` is the share of the question's words that it holds, weighed by their idf."""

    memory_id: UUID
    bm25: float
    coverage: float


def bm25(admission: Admission, question: str, *, limit: int) -> tuple[list[Ranked], str]:
    """The best documents with their BM25 scores, best first, and a sentence on how they were found."""
    with reading_within(SECONDS, **BY_INDEXES) as time_limit:
        terms = rarest_terms(admission.workspace_id, question, limit=MAX_TERMS)
        if not terms:
            return [], "The question holds no word to look for."
        corpus = corpus_of(admission.workspace_id)
        way = _way(admission, terms, corpus)
        time_limit.renew()
        rows = _rank(admission, terms, way, corpus, limit=limit)
    return rows, f"{len(rows)} found {way.told(len(terms))}."


@dataclass(frozen=True, slots=True)
class Way:
    """How the documents to be ranked are come by: through these words, or, without any, through the scope."""

    words: tuple[Term, ...] = ()

    def told(self, asked: int) -> str:
        return f"by {len(self.words)} of {asked} words" if self.words else "by reading the scope"


def _way(admission: Admission, terms: Sequence[Term], corpus: Corpus) -> Way:
    """The way that looks at fewer documents; by the words without bound as long as that is cheap anyway."""
    matches = sum(term.ndoc for term in terms)
    if matches <= LEAST_MATCHES:
        return Way(tuple(terms))
    size = scope_size(admission, limit=MAX_READ)
    if size <= min(matches, MAX_READ):
        return Way()
    bound = min(max(LEAST_MATCHES, MATCH_SHARE * corpus.documents), MAX_MATCHES)
    return Way(tuple(within(terms, matches=bound)))


_RANK = """
WITH asked(word, idf) AS (SELECT * FROM unnest(%(words)s::text[], %(idfs)s::float8[])),
preselected AS MATERIALIZED (
    SELECT * FROM (
        SELECT memory.id, memory.search_vector, memory.doclen, {worth} AS worth
        FROM memories_memory AS memory
        WHERE {found} AND {admitted}
    ) AS looked_at
    WHERE worth > 0
    ORDER BY worth DESC, id LIMIT %(preselected)s
)
SELECT preselected.id, sum(
    asked.idf * (%(k1)s + 1) * held.frequency
    / (held.frequency + %(k1)s * (1 - %(b)s + %(b)s * preselected.doclen / %(mean)s))
) AS bm25, preselected.worth / %(total)s
FROM preselected
CROSS JOIN LATERAL (
    SELECT lexeme, coalesce(cardinality(positions), 1)::float8 AS frequency FROM unnest(preselected.search_vector)
) AS held
JOIN asked ON asked.word = held.lexeme
GROUP BY preselected.id, preselected.worth
ORDER BY bm25 DESC, preselected.id LIMIT %(limit)s
"""


def _rank(admission: Admission, terms: Sequence[Term], way: Way, corpus: Corpus, *, limit: int) -> list[Ranked]:
    statement, values = rank_statement(admission, terms, way, corpus, limit=limit)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [Ranked(*row) for row in cursor.fetchall()]


def rank_statement(
    admission: Admission, terms: Sequence[Term], way: Way, corpus: Corpus, *, limit: int
) -> tuple[str, dict[str, Any]]:
    admitted, values = admission.sql(with_replaced=True)
    weights = [idf(term.ndoc, corpus.documents) for term in terms]
    worth, worth_values = _worth(terms, weights)
    values |= worth_values
    values |= {
        "words": [term.word for term in terms],
        "idfs": weights,
        "total": sum(weights),
        "match": any_of(way.words),
        "preselected": PRESELECTED,
        "k1": K1,
        "b": B,
        "mean": max(corpus.mean_length, 1.0),
        "limit": limit,
    }
    found = "memory.search_vector @@ %(match)s::tsquery" if way.words else "true"
    return _RANK.format(worth=worth, found=found, admitted=admitted), values


def _worth(terms: Sequence[Term], weights: Sequence[float]) -> tuple[str, dict[str, Any]]:
    """Sum of idf over the words a document holds, as SQL with named placeholders."""
    parts = [
        f"CASE WHEN memory.search_vector @@ %(t{at})s::tsquery THEN %(w{at})s::float8 ELSE 0 END"
        for at in range(len(terms))
    ]
    values: dict[str, Any] = {f"w{at}": weight for at, weight in enumerate(weights)}
    values |= {f"t{at}": term.quoted for at, term in enumerate(terms)}
    return f"({' + '.join(parts)})", values
