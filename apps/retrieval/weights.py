"""What another weighting of a category would do to a question: the answer as it is, and as it would be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from apps.accounts.principal import Principal
from apps.retrieval.ledger import Weighting
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search

COMPARED: Final = 10
_LOOKED_AT: Final = 50


@dataclass(frozen=True, slots=True)
class Moved:
    """``before`` is its place today, from 1; ``None`` where it is not among those that were looked at."""

    place: int
    before: int | None
    row: dict[str, Any]

    @property
    def by(self) -> int:
        """Places upwards."""
        return self.before - self.place if self.before is not None else 0

    @property
    def down(self) -> int:
        return -self.by


@dataclass(frozen=True, slots=True)
class Compared:
    intent: str
    degraded: bool
    today: list[Moved]
    tried: list[Moved]

    @property
    def changes(self) -> bool:
        return any(row.by or row.before is None for row in self.tried)


def compared(principal: Principal, *, question: str, repo: str | None, category: str, weighting: Weighting) -> Compared:
    """The best answers under the taxonomy's weighting and under another one of ``category``. Nothing is kept."""
    request = SearchRequest(q=question, repos=(repo,) if repo else None, limit=_LOOKED_AT)
    today = search(principal=principal, request=request)
    tried = search(principal=principal, request=request, tried={category: weighting})
    places = {row["id"]: place for place, row in enumerate(today.results, start=1)}
    return Compared(
        intent=today.intent,
        degraded=today.degraded or tried.degraded,
        today=_moved(today.results, places),
        tried=_moved(tried.results, places),
    )


def _moved(results: list[dict[str, Any]], places: dict[str, int]) -> list[Moved]:
    return [Moved(place, places.get(row["id"]), row) for place, row in enumerate(results[:COMPARED], start=1)]
