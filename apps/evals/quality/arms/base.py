"""What is asked, what is found, and what every way to search has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from apps.evals.quality.corpora import Document


@dataclass(frozen=True, slots=True)
class Question:
    """Nothing named means everywhere; ``as_of`` is for arms that know about time."""

    text: str
    repos: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """References, best first; and, where the arm has stages, the milliseconds of each that ran."""

    references: list[str]
    stages: Mapping[str, float] = field(default_factory=dict)


class Arm(Protocol):
    """One way to search. ``knows_time`` says whether it can be asked about a moment in the past."""

    name: str
    knows_time: bool

    def search(self, question: Question, *, limit: int) -> Found: ...

    def close(self) -> None: ...


def admits(question: Question, document: Document) -> bool:
    """The rule of our own searches: what is named brings the firm with it."""
    if not question.repos and not question.domains:
        return True
    return (
        document.firm or bool({*document.repos} & {*question.repos}) or bool({*document.domains} & {*question.domains})
    )
