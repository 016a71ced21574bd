"""Asking every question of one arm, with what each stage took."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from apps.evals.benchmarks.measuring import quantile
from apps.evals.quality.arms.base import Arm, Found, Question
from apps.evals.quality.measures import DEPTH
from apps.evals.quality.results import TOTAL
from apps.memories.providers.base import ProviderError
from apps.memories.providers.registry import get_provider


@dataclass(slots=True)
class Latencies:
    """Milliseconds by stage."""

    by_stage: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, found: Found, total: float) -> None:
        self.by_stage[TOTAL].append(total)
        for stage, ms in found.stages.items():
            self.by_stage[stage].append(ms)

    def as_dict(self) -> dict[str, Any]:
        """Median and 95th percentile of each stage that took any time."""
        return {
            stage: {"p50": round(quantile(values, 0.5), 2), "p95": round(quantile(values, 0.95), 2)}
            for stage, values in self.by_stage.items()
            if any(values)
        }


class Asker:
    """Asks one arm, and remembers how long it took. A question asked before is answered from memory."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.latencies = Latencies()
        self._known: dict[Question, list[str]] = {}

    def ask(self, question: Question, *, limit: int = DEPTH) -> list[str]:
        if question not in self._known:
            started = time.perf_counter()
            found = self.arm.search(question, limit=limit)
            self.latencies.add(found, 1_000 * (time.perf_counter() - started))
            self._known[question] = found.references
        return self._known[question][:limit]


def embed_before(texts: Iterable[str]) -> dict[str, float]:
    """Embed the questions, so that no arm pays for it and another does not; answers what one of them took, in ms."""
    provider, took = get_provider(), []
    for text in dict.fromkeys(texts):
        started = time.perf_counter()
        try:
            provider.embed_query(text.strip())
        except ProviderError:
            continue  # the search will say what there is to say
        took.append(1_000 * (time.perf_counter() - started))
    return {"p50": round(quantile(took, 0.5), 2), "p95": round(quantile(took, 0.95), 2)} if took else {}
