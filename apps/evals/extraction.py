"""How good extraction is, read from what became of it in the queue.

Looked at is what this reader may see of the newest material; what was imported says nothing about an extractor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, F, FloatField, IntegerField, Q
from django.db.models.functions import Cast, Floor, Least

from apps.accounts.principal import Principal
from apps.candidates.access import candidates_visible
from apps.candidates.models import OPEN, Candidate, CandidateStatus
from apps.capture.models import EventOutcome, EventState
from apps.capture.selectors import events_visible
from apps.sources.models import SourceKind

DOCUMENTS: Final = 2_000
DECIDED: Final = 5_000
BINS: Final = 10
IMPORTED: Final = "import"
_PROPOSED: Final = (EventOutcome.QUEUED.value, EventOutcome.QUARANTINED.value)


@dataclass(slots=True)
class Extracted:
    """Of one extractor and kind of source: how many documents it read, and what became of what it proposed.

    ``corrected`` counts approved ones about which a report was approved since.
    """

    extractor: str
    kind: str
    documents: int = 0
    proposed: int = 0
    unchanged: int = 0
    amended: int = 0
    rejected: int = 0
    waiting: int = 0
    corrected: int = 0

    @property
    def kind_name(self) -> str:
        return SourceKind(self.kind).label

    @property
    def decided(self) -> int:
        return self.unchanged + self.amended + self.rejected

    @property
    def per_document(self) -> float:
        return self.proposed / self.documents if self.documents else 0.0

    def share(self, count: int) -> float | None:
        return count / self.decided if self.decided else None

    @property
    def approved_share(self) -> float | None:
        return self.share(self.unchanged)

    @property
    def amended_share(self) -> float | None:
        return self.share(self.amended)

    @property
    def rejected_share(self) -> float | None:
        return self.share(self.rejected)

    @property
    def corrected_share(self) -> float | None:
        approved = self.unchanged + self.amended
        return self.corrected / approved if approved else None


def extraction_quality(principal: Principal) -> list[Extracted]:
    """One row for each extractor and kind of source, those first that read most. Three queries."""
    rows: dict[tuple[str, str], Extracted] = {}
    proposed: dict[UUID, Extracted] = {}
    for extractor, kind, facts in _read(principal):
        row = rows.setdefault((extractor, kind), Extracted(extractor, kind))
        row.documents += 1
        # Two documents may have led to the same candidate, which counts for the first that did.
        for pk in _candidates(facts):
            proposed.setdefault(pk, row)
    _judge(principal, proposed)
    return sorted(rows.values(), key=lambda row: (-row.documents, row.extractor, row.kind))


def _read(principal: Principal) -> Iterable[tuple[str, str, list[dict[str, Any]]]]:
    events = events_visible(principal).filter(state=EventState.DONE).exclude(extractor="")
    found: Iterable[tuple[str, str, list[dict[str, Any]]]] = events.order_by("-received_at", "-id").values_list(
        "extractor", "kind", "facts"
    )[:DOCUMENTS]
    return reversed(list(found))


def _candidates(facts: list[dict[str, Any]]) -> list[UUID]:
    return [UUID(fact["candidate"]) for fact in facts if fact.get("candidate") and fact.get("outcome") in _PROPOSED]


def _judge(principal: Principal, proposed: Mapping[UUID, Extracted]) -> None:
    rows = candidates_visible(principal).filter(pk__in=list(proposed)).order_by()
    for pk, status, changed in rows.values_list("pk", "status", "decision__after"):
        row = proposed[pk]
        row.proposed += 1
        row.waiting += status in OPEN
        row.rejected += status == CandidateStatus.REJECTED
        row.amended += status == CandidateStatus.APPROVED and bool(changed)
        row.unchanged += status == CandidateStatus.APPROVED and not changed
    for pk in _corrected(principal, proposed):
        proposed[pk].corrected += 1


def _corrected(principal: Principal, proposed: Iterable[UUID]) -> set[UUID]:
    reports = Candidate.objects.filter(
        workspace=principal.workspace,
        status=CandidateStatus.APPROVED,
        corrects__verdict__subject_id__in=list(proposed),
    )
    return set(reports.order_by().values_list("corrects__verdict__subject_id", flat=True))


@dataclass(frozen=True, slots=True)
class Bin:
    """Candidates that were reported with a confidence from ``low`` to ``high``, and how many of them were approved."""

    low: float
    high: float
    decided: int
    approved: int

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2

    @property
    def share(self) -> float:
        return self.approved / self.decided


@dataclass(frozen=True, slots=True)
class Reliability:
    """Confidence against verdicts. ``error`` is the mean distance, weighed by how many candidates each bin has."""

    bins: list[Bin]

    @property
    def decided(self) -> int:
        return sum(one.decided for one in self.bins)

    @property
    def error(self) -> float:
        return sum(one.decided * abs(one.share - one.middle) for one in self.bins) / self.decided


def reliability(principal: Principal) -> Reliability | None:
    """Of the newest candidates that a reviewer decided here; ``None`` where there is none. One query."""
    newest = (
        candidates_visible(principal)
        .filter(decision__isnull=False, confidence__isnull=False, corrects__isnull=True)
        .filter(status__in=(CandidateStatus.APPROVED, CandidateStatus.REJECTED))
        .exclude(decision__via=IMPORTED)
        .order_by("-created_at", "-id")
        .values("pk")[:DECIDED]
    )
    # Binary fractions: 0.7 times ten is a little less than seven.
    place = Floor(Cast(F("confidence") * float(BINS) + 1e-9, FloatField()))
    counted = (
        Candidate.objects.filter(pk__in=newest)
        .order_by()
        .annotate(bin=Least(Cast(place, IntegerField()), BINS - 1))
        .values("bin")
        .annotate(decided=Count("pk"), approved=Count("pk", filter=Q(status=CandidateStatus.APPROVED)))
    )
    bins = [
        Bin(row["bin"] / BINS, (row["bin"] + 1) / BINS, row["decided"], row["approved"])
        for row in sorted(counted, key=lambda row: row["bin"])
    ]
    return Reliability(bins) if bins else None
