"""Our own search, by one of its recipes, through the service that every door uses."""

from __future__ import annotations

from apps.evals.quality.arms.base import Found, Question
from apps.evals.quality.corpora import Corpus
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search


class SearchFellShort(RuntimeError):
    """A search was degraded: its figures would say nothing about the recipe."""


class Ours:
    knows_time = True

    def __init__(self, corpus: Corpus, *, recipe: str) -> None:
        self.name = recipe
        self._principal = corpus.principal
        self._references = {str(pk): reference for pk, reference in corpus.references.items()}

    def search(self, question: Question, *, limit: int) -> Found:
        answer = search(
            principal=self._principal,
            request=SearchRequest(
                q=question.text,
                repos=question.repos or None,
                domains=question.domains or None,
                as_of=question.as_of,
                limit=limit,
                recipe=self.name,
            ),
        )
        if answer.degraded:
            raise SearchFellShort(f"The recipe {self.name} could not look everywhere: {answer.note}")
        return Found(
            [self._references[result["id"]] for result in answer.results],
            {stage["name"]: stage["ms"] for stage in answer.pipeline_stages},
        )

    def close(self) -> None: ...
