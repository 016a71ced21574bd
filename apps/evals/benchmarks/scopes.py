"""The scopes that are measured, and questions as they are asked within them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.core.clock import now
from apps.evals.benchmarks import dataset
from apps.evals.benchmarks.dataset import Dataset
from apps.memories.providers.base import PoolQuery, Vector
from apps.retrieval.filters import Admission
from apps.scopes.selectors import SearchScope


@dataclass(frozen=True, slots=True)
class Scope:
    """``near`` names the stretch that questions within this scope are mostly about."""

    name: str
    search: SearchScope
    near: str

    def admission(self, data: Dataset, *, as_of: datetime | None = None) -> Admission:
        return Admission(
            workspace_id=data.workspace.pk, scope=self.search, audiences=frozenset(), now=now(), as_of=as_of
        )

    def pool_query(self, data: Dataset, question: int, *, limit: int, as_of: datetime | None = None) -> PoolQuery:
        return self.admission(data, as_of=as_of).pool_query(vector_of(data, question), limit=limit)

    def questions(self, data: Dataset, count: int) -> list[int]:
        """Half of them about what the scope holds, half about anything."""
        near = data.questions_near(self.near)
        anything = near[count // 2 :]
        step = max(1, len(anything) // (count - count // 2))
        return near[: count // 2] + anything[::step][: count - count // 2]


def vector_of(data: Dataset, question: int) -> Vector:
    return tuple(data.corpus.question_vectors[question].tolist())


def measured_scopes(data: Dataset) -> dict[str, Scope]:
    """By a short name, the widest first. What holds for the whole firm is in each of them, as in every search."""
    one, few = data.repository_id(dataset.ONE), data.repository_id(dataset.FEW)
    nine, small = data.repository_id(dataset.NINE), data.repository_id(dataset.SMALL)
    payments = data.domain_id(dataset.PAYMENTS)
    return {
        "all": Scope("the whole workspace", SearchScope(everything=True), dataset.NINE),
        "nine": Scope("one large repository (9 %)", _within([nine]), dataset.NINE),
        "six": Scope("firm, domain and repository (6 %)", _within([one], [payments]), dataset.ONE),
        "one": Scope("one repository (2.5 %)", _within([one]), dataset.ONE),
        "few": Scope("one repository (0.7 %)", _within([few]), dataset.FEW),
        "small": Scope(f"a repository of {dataset.SMALL_ROWS} rows", _within([small]), dataset.SMALL),
    }


def _within(repos: Sequence[int], domains: Sequence[int] = ()) -> SearchScope:
    return SearchScope(everything=False, repo_ids=tuple(repos), domain_ids=tuple(domains))


def as_asked(data: Dataset, question: int, *, words: int = 14) -> str:
    """A question of so many words: the beginning of a statement that was held back, and of the ones after it."""
    texts = data.corpus.questions
    found: list[str] = []
    for at in range(len(texts)):
        found += texts[(question + at) % len(texts)].split()
        if len(found) >= words:
            break
    return " ".join(found[:words])
