"""What runs through a search: hits with their scores, and a record of every stage."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from uuid import UUID

from apps.core.observers import Observers
from apps.retrieval.filters import Admission
from apps.retrieval.ledger import Facts, Weighting
from apps.retrieval.recipes import Recipe

STAGES = (
    *("intent", "scope", "vector", "text", "identifier", "fuse"),
    *("weight", "collapse", "decay", "visibility", "rerank"),
)


class Shortfall(Enum):
    """Everything by which an answer may fall short: which stage, and why."""

    EMBEDDER_LATE = ("vector", "embedder_timeout")
    EMBEDDER_FAILED = ("vector", "embedder_error")
    POOL_LATE = ("vector", "pool_timeout")
    POOL_FAILED = ("vector", "pool_error")
    WORDS_LATE = ("text", "timeout")
    WORDS_FAILED = ("text", "error")
    IDENTIFIERS_LATE = ("identifier", "timeout")
    IDENTIFIERS_FAILED = ("identifier", "error")
    CHECK_LATE = ("visibility", "pool_timeout")
    CHECK_FAILED = ("visibility", "pool_error")
    NOT_IN_POOL = ("visibility", "not_in_pool")

    @property
    def stage(self) -> str:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]


@dataclass(slots=True)
class Hit:
    """One memory on its way to the answer. ``scores`` holds what each arm and stage gave it.

    ``instead_of`` are replaced memories that led to it.
    """

    memory_id: UUID
    scores: dict[str, float] = field(default_factory=dict)
    score: float = 0.0
    instead_of: list[UUID] = field(default_factory=list)


def best_first(hit: Hit) -> tuple[float, str]:
    """The order of hits; that of the ids where scores are equal, so that it is the same every time."""
    return -hit.score, str(hit.memory_id)


@dataclass(slots=True)
class Stage:
    """What a stage did, or why it did not run; ``ms`` is wall time."""

    name: str
    detail: str = ""
    ms: float = 0.0
    ran: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "ms": round(self.ms, 2), "detail": self.detail}


@dataclass(slots=True)
class Search:
    """One search as it goes through its stages.

    ``facts`` is what the ledger says about the hits, once it was asked. ``tried`` are weightings by category that a
    curator wants to see the effect of. ``refused`` counts what the arms brought and the ledger did not let through.
    That is no shortfall: nothing that holds is missing from the answer.
    """

    question: str
    admission: Admission
    recipe: Recipe
    limit: int
    intent: str
    hits: list[Hit] = field(default_factory=list)
    arms: dict[str, list[Hit]] = field(default_factory=dict)
    facts: dict[UUID, Facts] = field(default_factory=dict)
    tried: Mapping[str, Weighting] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shortfalls: list[Shortfall] = field(default_factory=list)
    pool_answers: bool = True
    unrelated_below: float = 0.0
    refused: int = 0
    not_in_pool: int = 0
    failed: bool = False
    seconds: float = 0.0

    @property
    def degraded(self) -> bool:
        return bool(self.shortfalls)

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time a stage and list it, whatever becomes of it."""
        stage = Stage(name, ran=True)
        started = time.perf_counter()
        self.stages.append(stage)
        try:
            yield stage
        finally:
            stage.ms = (time.perf_counter() - started) * 1000

    def skip(self, name: str, why: str) -> None:
        self.stages.append(Stage(name, why))

    def degrade(self, shortfall: Shortfall, note: str) -> None:
        """Something could not be looked at. That is said, and never shown as "nothing there".

        ``note`` is for whoever asked, and names nothing of the machinery; what exactly failed is for the log.
        """
        self.shortfalls.append(shortfall)
        self.notes.append(note)


# Told of each search when it is over, answered or failed.
observers: Final[Observers[Search]] = Observers()


@contextmanager
def observed(search: Search) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    except BaseException:
        search.failed = True
        raise
    finally:
        search.seconds = time.perf_counter() - started
        observers.tell(search)
