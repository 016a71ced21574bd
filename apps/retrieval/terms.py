"""Which words of a question are worth looking for: the rarest, by how many memories of the workspace hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from django.db import connection

from apps.memories.models import Corpus

# The planner takes matching words for as cheap as comparing numbers, and would rather read the whole table.
BY_INDEXES: Final = {"enable_seqscan": "off", "jit": "off"}


def corpus_of(workspace_id: int) -> Corpus:
    """As of the last count. Every search asks for it, and the ORM would take as long again to word the question."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT documents, lexemes FROM memories_corpus WHERE workspace_id = %s", [workspace_id])
        documents, lexemes = cursor.fetchone() or (0, 0)
    return Corpus(workspace_id=workspace_id, documents=documents, lexemes=lexemes)


def idf(ndoc: int, documents: int) -> float:
    """ln(1 + (N - n + 0.5) / (n + 0.5)) of a word that n of N documents hold; counts may be a little old."""
    total = max(documents, ndoc)
    return math.log(1 + (total - ndoc + 0.5) / (ndoc + 0.5))


class Term(NamedTuple):
    word: str
    ndoc: int  # memories of the workspace that hold it, as of the last count

    @property
    def quoted(self) -> str:
        """As a tsquery literal."""
        escaped = self.word.replace("\\", "\\\\").replace("'", "''")
        return f"'{escaped}'"


def rarest_terms(workspace_id: int, text: str, *, limit: int) -> list[Term]:
    """At most ``limit`` distinct lexemes of ``text``, rarest first, parsed just as stored documents are."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT asked.lexeme, coalesce(known.ndoc, 0)
            FROM unnest(fm_search_document(%s)) AS asked
            LEFT JOIN memories_lexeme known ON known.workspace_id = %s AND known.word = asked.lexeme
            ORDER BY 2, 1 LIMIT %s
            """,
            [text, workspace_id, limit],
        )
        return [Term(*row) for row in cursor.fetchall()]


def within(terms: Sequence[Term], *, matches: float) -> list[Term]:
    """The first of ``terms``, at least one, that match no more documents than ``matches`` together."""
    chosen: list[Term] = []
    total = 0
    for term in terms:
        total += term.ndoc
        if chosen and total > matches:
            break
        chosen.append(term)
    return chosen


def any_of(terms: Sequence[Term]) -> str:
    """A tsquery that matches what holds at least one of them."""
    return " | ".join(term.quoted for term in terms)
