"""mem0 as it comes: its store, its index, its search, one row for each record, by the same embedding model.

A model reads the beginning of a text that is longer than it can take, and so does mem0. Its filter knows equality, so
that every scope is a field of the payload that holds for exactly the rows which our search of it would admit.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from apps.evals.benchmarks.stock_mem0 import StockMem0
from apps.evals.quality.arms.base import Found, Question
from apps.evals.quality.corpora import Corpus, Document

EVERYTHING: Final = "everywhere"
_EMBEDDED_AT_ONCE: Final = 256


class Mem0:
    name = "mem0"
    knows_time = False

    def __init__(self, corpus: Corpus) -> None:
        self._references = {str(document.id): document.reference for document in corpus.documents}
        self._stock = StockMem0(corpus.embedder)
        self._fill(corpus)

    def search(self, question: Question, *, limit: int) -> Found:
        (scope,) = _fields(question.repos, question.domains) or (EVERYTHING,)
        return Found([self._references[pk] for pk in self._stock.search(question.text, scope, limit=limit)])

    def close(self) -> None:
        self._stock.close()

    def _fill(self, corpus: Corpus) -> None:
        every = sorted({field for one in corpus.documents for field in _fields(one.repos, one.domains)})
        rows: list[tuple[Any, Any, dict[str, Any]]] = []
        for start in range(0, len(corpus.documents), _EMBEDDED_AT_ONCE):
            some = corpus.documents[start : start + _EMBEDDED_AT_ONCE]
            vectors = corpus.embedder.embed_documents([document.content for document in some])
            rows += [
                (document.id, vector.tolist(), {"data": document.content} | _scopes(document, every))
                for document, vector in zip(some, vectors, strict=True)
            ]
        self._stock.fill_with(rows)


def _scopes(document: Document, every: list[str]) -> dict[str, str]:
    fields = every if document.firm else _fields(document.repos, document.domains)
    return dict.fromkeys((EVERYTHING, *fields), "yes")


def _fields(repos: tuple[str, ...], domains: tuple[str, ...]) -> tuple[str, ...]:
    named = (*(f"repo {name}" for name in repos), *(f"domain {name}" for name in domains))
    return tuple(f"in_{hashlib.sha256(name.encode()).hexdigest()[:16]}" for name in named)
