"""What words find: by counting those that occur, and by BM25."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from apps.evals.quality.arms.base import Found, Question, admits
from apps.evals.quality.corpora import Corpus, Document
from apps.evals.quality.missing import require

_WORD: Final = re.compile(r"\w+")


class Grep:
    """How many distinct words of the question a document holds, as somebody with a shell would look for them.

    Nobody looks for "the" or "how"; and of two files with as many matches the shorter one is read first.
    """

    name = "grep"
    knows_time = False

    def __init__(self, corpus: Corpus) -> None:
        self._passed_over = frozenset(require("bm25s.stopwords", package="bm25s").STOPWORDS_EN_PLUS)
        self._documents = tuple(sorted(corpus.documents, key=lambda document: len(document.content)))
        self._places: dict[str, list[int]] = defaultdict(list)
        for at, document in enumerate(self._documents):
            for word in _words(document.content):
                self._places[word].append(at)

    def search(self, question: Question, *, limit: int) -> Found:
        scores = np.zeros(len(self._documents))
        for word in _words(question.text) - self._passed_over:
            scores[self._places.get(word, [])] += 1
        return Found(_best(scores, self._documents, question, limit))

    def close(self) -> None: ...


class Bm25:
    """bm25s with its usual settings, English stop words and stems."""

    name = "bm25"
    knows_time = False

    def __init__(self, corpus: Corpus) -> None:
        self._library: Any = require("bm25s")
        # It tells of every index that it builds.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self._stemmer: Any = require("Stemmer", package="PyStemmer").Stemmer("english")
        self._documents = corpus.documents
        self._index = self._library.BM25()
        self._index.index(self._tokens([document.content for document in corpus.documents]), show_progress=False)

    def search(self, question: Question, *, limit: int) -> Found:
        (tokens,) = self._library.tokenize(
            question.text, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        return Found(_best(self._index.get_scores(tokens), self._documents, question, limit) if tokens else [])

    def close(self) -> None: ...

    def _tokens(self, texts: list[str]) -> Any:
        return self._library.tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _best(scores: NDArray[np.float64], documents: tuple[Document, ...], question: Question, limit: int) -> list[str]:
    """The highest scores in scope; of equal ones the document that came first."""
    found: list[str] = []
    for at in np.argsort(-scores, kind="stable"):
        if len(found) == limit or scores[at] <= 0:
            break
        if admits(question, documents[at]):
            found.append(documents[at].reference)
    return found
