"""No memory at all, which is where everybody starts."""

from __future__ import annotations

from apps.evals.quality.arms.base import Found, Question
from apps.evals.quality.corpora import Corpus


class Nothing:
    name = "none"
    knows_time = False

    def __init__(self, corpus: Corpus) -> None: ...

    def search(self, question: Question, *, limit: int) -> Found:
        return Found([])

    def close(self) -> None: ...
