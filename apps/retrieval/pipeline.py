"""What runs through a search: hits with their scores, and a record of every stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.retrieval.filters import Admission
from apps.retrieval.recipes import Recipe

STAGES = (
    *("intent", "scope", "vector", "text", "identifier", "fuse"),
    *("weight", "collapse", "decay", "visibility", "rerank"),
)


@dataclass(slots=True)
class Hit:
    """One memory on its way to the answer. ``scores`` holds what each arm and stage gave it."""

    memory_id: UUID
    scores: dict[str, float] = field(default_factory=dict)
    score: float = 0.0


@dataclass(slots=True)
class Stage:
    """What a stage did, or why it did not run; ``ms`` is wall time."""

    name: str
    detail: str = ""
    ms: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        return {"name": self.name, "ms": round(self.ms, 2), "detail": self.detail}


@dataclass(slots=True)
class Search:
    """One search as it goes through its stages. ``degraded`` once an arm could not look."""

    question: str
    admission: Admission
    recipe: Recipe
    limit: int
    intent: str
    hits: list[Hit] = field(default_factory=list)
    arms: dict[str, list[Hit]] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    degraded: bool = False

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time a stage and list it, whatever becomes of it."""
        stage = Stage(name)
        started = time.perf_counter()
        self.stages.append(stage)
        try:
            yield stage
        finally:
            stage.ms = (time.perf_counter() - started) * 1000

    def skip(self, name: str, why: str) -> None:
        self.stages.append(Stage(name, why))

    def degrade(self, note: str) -> None:
        """Something could not look. That is said, and never shown as "nothing there"."""
        self.degraded = True
        self.notes.append(note)
