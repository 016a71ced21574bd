"""Which words of a question are worth looking for: the rarest, by how many memories of the workspace hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection


def keep_to_indexes() -> None:
    """For the transaction alone, so that it also holds behind a pooler.

    The planner takes matching words for as cheap as comparing numbers, and would rather read the whole table.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)")


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
