"""What past verdicts say about a confidence such as this one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from apps.accounts.models import TokenKind
from apps.accounts.principal import Principal
from apps.candidates.access import candidates_visible
from apps.candidates.models import Candidate, CandidateStatus

# So many of the newest decided ones of a type are looked at.
LOOKED_AT: Final = 1_000
# Fewer say nothing.
ENOUGH: Final = 20
NEARNESS: Final = 0.05
# What was decided elsewhere and brought along says nothing about how sure anybody here was.
IMPORTED: Final = "import"
PERSON: Final = "person"
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Calibration:
    """Of ``decided`` candidates like one, ``approved`` were."""

    decided: int
    approved: int

    @property
    def share(self) -> float:
        return self.approved / self.decided

    def __str__(self) -> str:
        approved = "none was" if not self.approved else "1 was" if self.approved == 1 else f"{self.approved:,} were"
        return f"Of {self.decided:,} like this, {approved} approved."


def calibration(principal: Principal, candidate: Candidate) -> Calibration | None:
    """What became of the others of its type, reported with about the same confidence by the same kind of origin.

    Looked at are the newest ``LOOKED_AT`` that a verdict decided, as far as this reader may see them, in one query;
    ``None`` where fewer than ``ENOUGH`` of them are alike. Reports are alike only among themselves.
    """
    token = candidate.origin_token
    kind = _kind(token.kind if token is not None else None)
    is_report = candidate.corrects_id is not None
    alike = [
        status
        for status, confidence, origin, corrects, via in _newest(principal, candidate)
        if via != IMPORTED
        and _kind(origin) == kind
        and (corrects is not None) == is_report
        and _is_near(confidence, candidate.confidence)
    ]
    if len(alike) < ENOUGH:
        return None
    return Calibration(decided=len(alike), approved=alike.count(CandidateStatus.APPROVED))


def _newest(principal: Principal, candidate: Candidate) -> Iterable[tuple[Any, ...]]:
    """Status, confidence, kind of token, what it corrects and the door of the verdict.

    Either status is read by an index from its newest on, and no further than what may be needed of it.
    """
    rows = candidates_visible(principal).filter(type=candidate.type_id, decision__isnull=False).exclude(pk=candidate.pk)
    columns = ("status", "confidence", "origin_token__kind", "corrects", "decision__via")
    approved, rejected = (
        rows.filter(status=status).order_by("-created_at", "-id").values_list(*columns, "created_at", "id")[:LOOKED_AT]
        for status in (CandidateStatus.APPROVED, CandidateStatus.REJECTED)
    )
    newest = approved.union(rejected, all=True).order_by("-created_at", "-id")[:LOOKED_AT]
    return (row[: len(columns)] for row in newest)


def _kind(kind: str | None) -> str:
    """An agent, a bot, or a person, who may use a token of their own."""
    return kind if kind in (TokenKind.AGENT, TokenKind.BOT) else PERSON


def _is_near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= NEARNESS + _ROUNDING
