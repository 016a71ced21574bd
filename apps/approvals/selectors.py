"""What reviewers look at: the rows of the queue, and everything that a decision about one candidate needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import BigIntegerField, BooleanField, Exists, ExpressionWrapper, OuterRef, Q, Value

from apps.accounts.principal import Principal
from apps.approvals import policy
from apps.approvals.calibration import Calibration, calibration
from apps.approvals.claims import claimant, unclaimed
from apps.candidates.access import candidates_visible, is_proposer, own
from apps.candidates.models import OPEN, REFERS, Candidate, CandidateQuerySet, CandidateStatus, Proposer
from apps.candidates.selectors import (
    TARGET_NOT_IN_FORCE,
    QueueFilter,
    candidates_shown,
    counts_by_status,
    own_candidates,
    queue,
)
from apps.candidates.services import effective_confidence
from apps.core.clock import now
from apps.core.errors import Forbidden
from apps.core.pagination import MAX_COUNTED
from apps.memories.facets import MOST, Facets, counts_of, facets_of
from apps.memories.history import Entry, history_of, memories_by_id
from apps.memories.models import IN_FORCE, Action, Memory, MemoryQuerySet, Supersession, Verdict
from apps.memories.selectors import memories_visible, scopes_shown
from apps.memories.verdicts import verdicts_of

RECENT = 8
OLDEST = 3
QUEUE_FACETS = ("type", "repo", "domain", "origin", "flag")
QUEUE_ORDER = ("created_at", "id")


# --- the queue ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    candidate: Candidate
    scope: dict[str, Any]
    near: int
    supersedes: tuple[str, ...]
    corrects: str | None
    moved_on: bool
    claimed_by: str | None
    became: str | None

    @property
    def value(self) -> str:
        """What the box in front of it stands for."""
        return f"{self.candidate.pk}:{self.candidate.version}"

    @property
    def flags(self) -> dict[str, int]:
        """How many there are of each kind. Whether a target holds is looked at now, not when it was proposed."""
        counted = Counter(flag["kind"] for flag in self.candidate.flags)
        counted.pop(TARGET_NOT_IN_FORCE, None)
        return dict(counted) | ({TARGET_NOT_IN_FORCE: 1} if self.moved_on else {})


@dataclass(frozen=True, slots=True)
class _Pointed:
    """What a row points to: a memory by its number, another candidate by nothing."""

    label: str
    moved_on: bool


def queue_rows(principal: Principal, candidates: Sequence[Candidate]) -> list[QueueRow]:
    """Two queries, however many rows there are."""
    scopes = scopes_shown(candidates)
    pointed = _pointed_to(principal, candidates)
    return [_queue_row(principal, row, scopes[row.pk], pointed) for row in candidates]


def _queue_row(principal: Principal, row: Candidate, scope: dict[str, Any], pointed: dict[UUID, _Pointed]) -> QueueRow:
    targets = [pointed[pk] for pk in row.supersedes if pk in pointed]
    corrected = pointed.get(row.corrects_id) if row.corrects_id else None
    return QueueRow(
        candidate=row,
        scope=scope,
        near=sum(UUID(entry["id"]) in pointed for entry in row.near),
        supersedes=tuple(target.label for target in targets),
        corrects=corrected.label if corrected else None,
        moved_on=row.is_open and any(target.moved_on for target in [*targets, *([corrected] if corrected else [])]),
        claimed_by=claimant(principal, row),
        became=_became(principal, row),
    )


def _became(principal: Principal, row: Candidate) -> str | None:
    """The number of the memory that its approval made, if this reader may see it."""
    if row.decision is None or row.status != CandidateStatus.APPROVED:
        return None
    memory: Memory | None = getattr(row.decision, "memory", None)
    return memory.label if memory is not None and set(memory.audience_ids) <= principal.audience_ids else None


def queue_counts(
    principal: Principal, rows: CandidateQuerySet, *, known: Mapping[str, int]
) -> tuple[dict[str, int], int]:
    """How many of ``rows`` are in each status, and how many wait in all, in one query for all that is not known."""
    ordered = rows.order_by(*QUEUE_ORDER)
    by_status = {status: ordered.filter(status=status) for status in CandidateStatus.values if status not in known}
    waits = candidates_visible(principal).pending().order_by(*QUEUE_ORDER)
    counts = counts_of(principal, {**by_status, "waiting": waits})
    waiting = counts.pop("waiting")
    return {**counts, **known}, waiting


def queue_facets(rows: CandidateQuerySet, status: str) -> Facets:
    """What the rows of one status can be narrowed by."""
    return facets_of(rows.filter(status=status), QUEUE_FACETS, order=queue_order(status))


def queue_order(status: str) -> tuple[str, str]:
    """What is open is worked off from the oldest; of what was decided the newest is of interest."""
    return QUEUE_ORDER if status in OPEN else ("-created_at", "-id")


def _pointed_to(principal: Principal, candidates: Iterable[Candidate]) -> dict[UUID, _Pointed]:
    """Everything the rows point to, as far as this reader may see it."""
    memories: set[UUID] = set()
    others: set[UUID] = set()
    for row in candidates:
        memories.update(row.supersedes)
        memories.update({row.corrects_id} if row.corrects_id else ())
        for entry in row.near:
            (memories if entry["what"] == "memory" else others).add(UUID(entry["id"]))
    if not memories and not others:
        return {}
    replaced = Exists(Supersession.objects.live().full().filter(old=OuterRef("pk")))
    moved_on = ExpressionWrapper(~Q(status__in=IN_FORCE) | replaced, output_field=BooleanField())
    numbers = memories_visible(principal).filter(pk__in=memories).order_by()
    found = numbers.values_list("pk", "number", moved_on).union(
        candidates_visible(principal)
        .filter(pk__in=others)
        .order_by()
        .values_list("pk", Value(0, output_field=BigIntegerField()), Value(False)),
        all=True,
    )
    return {pk: _Pointed(f"M-{number}" if number else "", moved) for pk, number, moved in found}


def next_to_review(principal: Principal, asked: QueueFilter, after: Candidate) -> Candidate | None:
    """The one to open after a decision: the next in the queue, else the first, and one nobody looks at if there is."""
    rows = queue(principal, asked).exclude(pk=after.pk).order_by("created_at", "id")
    later = Q(created_at__gt=after.created_at) | Q(created_at=after.created_at, pk__gt=after.pk)
    free = rows.filter(unclaimed(principal))
    found: Candidate | None = free.filter(later).first() or free.first() or rows.first()
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands before and after one in its list, and how many do: it is the ``at``-th of ``of``.

    The place is told of what is worked off, and no further than the queue is counted.
    """

    previous: UUID | None
    next: UUID | None
    at: int | None = None
    of: int = 0


def around(principal: Principal, asked: QueueFilter, candidate: Candidate) -> Around:
    rows = queue(principal, asked)
    before = Q(created_at__lt=candidate.created_at) | Q(created_at=candidate.created_at, pk__lt=candidate.pk)
    after = Q(created_at__gt=candidate.created_at) | Q(created_at=candidate.created_at, pk__gt=candidate.pk)
    earlier = rows.filter(before).order_by("-created_at", "-id").values_list("pk", flat=True).first()
    later = rows.filter(after).order_by("created_at", "id").values_list("pk", flat=True).first()
    if (asked.status or CandidateStatus.PENDING) not in OPEN:
        return Around(previous=later, next=earlier)  # what was decided is listed from the newest
    counted = {"before": rows.filter(before), "itself": rows.filter(pk=candidate.pk), "all": rows}
    counts = counts_of(principal, {name: each.order_by(*QUEUE_ORDER) for name, each in counted.items()})
    known = counts["itself"] and counts["before"] < MOST
    return Around(previous=earlier, next=later, at=counts["before"] + 1 if known else None, of=counts["all"])


# --- one candidate ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A memory that an approval would replace, and what has replaced it already, if something has."""

    memory: Memory
    successor: Memory | None

    @property
    def in_force(self) -> bool:
        return self.memory.status in IN_FORCE and self.successor is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """``objection`` says why this reviewer cannot approve it; ``alone`` that nobody else would have to.

    ``calibration`` is what past verdicts say about such a confidence, of one that is open, once there are enough.
    """

    candidate: Candidate
    shown: dict[str, Any]
    proposers: list[Proposer]
    targets: list[Target]
    hidden_targets: int
    corrected: Memory | None
    memory: Memory | None
    history: list[Entry]
    claimed_by: str | None
    objection: str
    alone: bool
    mine: bool
    reader_id: int | None
    calibration: Calibration | None = None
    initial: dict[str, Any] = field(default_factory=dict)

    @property
    def near(self) -> list[dict[str, Any]]:
        """What is near it besides what it is about anyway, which is shown by itself.

        Nothing is suggested about what was decided meanwhile or has ended.
        """
        about = {str(pk) for pk in self.candidate.supersedes} | {str(self.candidate.corrects_id)}
        found = [entry for entry in self.shown["near"] if entry["id"] not in about]
        return [entry if _holds(entry) else {**entry, "suggests": None} for entry in found]

    @property
    def suggested(self) -> list[str]:
        """Numbers of memories that it looks as if it replaces."""
        return [
            entry["number"]
            for entry in self.near
            if entry["what"] == "memory" and (entry.get("suggests") or {}).get("what") == "replaces"
        ]

    @property
    def flags(self) -> list[dict[str, Any]]:
        """Those that no other part of the page says anyway."""
        said_below = self.targets and self.corrected is None
        return [flag for flag in self.shown["flags"] if not (said_below and flag["kind"] == TARGET_NOT_IN_FORCE)]

    @property
    def flags_target(self) -> bool:
        """Whether what it is about has ended already."""
        return any(flag["kind"] == TARGET_NOT_IN_FORCE for flag in self.shown["flags"])

    @property
    def replaced(self) -> list[str]:
        return [target.memory.label for target in self.targets]

    @property
    def is_bare_report(self) -> bool:
        """A report that brings no wording of its own: approving it retires the memory."""
        return self.candidate.corrects_id is not None and not self.candidate.has_replacement

    @property
    def last(self) -> Entry | None:
        return self.history[-1] if self.history else None

    def since(self, version: int | None) -> list[Entry]:
        """What was done to it since somebody looked at this version."""
        return [entry for entry in self.history if version is None or (entry.version or 0) >= version]


def _holds(entry: Mapping[str, Any]) -> bool:
    """Whether what is near is a memory in force or a candidate that is open."""
    statuses: Iterable[str] = IN_FORCE if entry["what"] == "memory" else OPEN
    return entry["status"] in statuses


# Of so many verdicts of theirs a reviewer's latest reasons are taken, and so many of these, unless they are long.
_VERDICTS_LOOKED_AT: Final = 300
REASONS: Final = 4
_LONG: Final = 160


def reasons_lately(principal: Principal) -> list[str]:
    """Why this person rejected lately what they may still see, each reason once and the latest first.

    What was said of one candidate often holds of the next, and nobody wants to type it again.
    """
    if principal.user is None:
        return []
    rows = Verdict.objects.filter(
        workspace=principal.workspace, reviewer_name=principal.name, reviewer=principal.user
    ).annotate(seen=Exists(candidates_visible(principal).filter(pk=OuterRef("subject_id"))))
    latest = rows.order_by("-created_at", "-id").values_list("action", "reason", "seen")[:_VERDICTS_LOOKED_AT]
    reasons = (reason for action, reason, seen in latest if action == Action.REJECT and seen)
    return [*dict.fromkeys(reason for reason in reasons if 0 < len(reason) <= _LONG)][:REASONS]


def sheet(principal: Principal, candidate: Candidate) -> Sheet:
    (shown,) = candidates_shown(principal, [candidate], with_verdicts=False)
    shown["near"] = _as_it_became(principal, shown["near"])
    visible = memories_by_id(
        principal, {*candidate.supersedes, *([candidate.corrects_id] if candidate.corrects_id else [])}
    )
    targets = _targets([visible[pk] for pk in candidate.supersedes if pk in visible])
    mine, objection = _objection(principal, candidate)
    return Sheet(
        candidate=candidate,
        shown=shown,
        proposers=list(candidate.proposers.select_related("token")),
        targets=targets,
        hidden_targets=len(candidate.supersedes) - len(targets),
        corrected=visible.get(candidate.corrects_id) if candidate.corrects_id else None,
        memory=_memory_of(principal, candidate),
        history=history_of(principal, verdicts_of(candidate.pk)),
        claimed_by=claimant(principal, candidate),
        objection=objection,
        alone=mine and not objection,
        mine=mine,
        reader_id=principal.user.pk if principal.user else None,
        calibration=calibration(principal, candidate) if candidate.is_open else None,
        initial=_initial(candidate, shown, targets),
    )


def _as_it_became(principal: Principal, near: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A near candidate that was approved meanwhile is the memory that it became, where this reader may see that."""
    approved = [
        entry["id"] for entry in near if entry["what"] == "candidate" and entry["status"] == CandidateStatus.APPROVED
    ]
    if not approved:
        return near
    decisions = Candidate.objects.of(principal.workspace).filter(pk__in=approved).values("decision")
    made = memories_visible(principal).filter(verdict__in=decisions).select_related("verdict")
    became = {str(memory.verdict.subject_id): memory for memory in made}
    told: dict[str, dict[str, Any]] = {}
    for entry in near:
        memory = became.get(entry["id"])
        shown = entry if memory is None else {**entry, **_memory_entry(memory)}
        told.setdefault(shown["id"], shown)
    return list(told.values())


def _memory_entry(memory: Memory) -> dict[str, Any]:
    return {
        "what": "memory",
        "id": str(memory.pk),
        "number": memory.label,
        "status": memory.status,
        "content": memory.content,
    }


def _targets(memories: Sequence[Memory]) -> list[Target]:
    if not memories:
        return []
    edges = Supersession.objects.live().full().filter(old__in=memories).select_related("new")
    successors = {edge.old_id: edge.new for edge in edges}
    return [Target(memory=memory, successor=successors.get(memory.pk)) for memory in memories]


def _objection(principal: Principal, candidate: Candidate) -> tuple[bool, str]:
    if not is_proposer(principal, candidate):
        return False, ""
    try:
        policy.second_person(principal, candidate)
    except Forbidden as refusal:
        return True, refusal.detail
    return True, ""


def _memory_of(principal: Principal, candidate: Candidate) -> Memory | None:
    """The memory that its approval made; for a report without a wording, the one it retired."""
    if candidate.status != CandidateStatus.APPROVED:
        return None
    made: Memory | None = memories_visible(principal).filter(verdict=candidate.decision_id).first()
    if made is not None or candidate.corrects_id is None:
        return made
    retired: Memory | None = memories_visible(principal).filter(pk=candidate.corrects_id).first()
    return retired


def _initial(candidate: Candidate, shown: dict[str, Any], targets: Sequence[Target]) -> dict[str, Any]:
    """What an approval would let in as it stands; what differs from it is the amendment."""
    confidence = candidate.confidence
    if confidence is not None and candidate.origin_token is not None:
        confidence = effective_confidence(confidence, candidate.origin_token.confidence_ceiling)
    return {
        "version": candidate.version,
        "content": candidate.content,
        "type": candidate.type.slug if candidate.type.is_active else "",
        "firm": shown["scope"]["firm"],
        "domains": tuple(shown["scope"]["domains"]),
        "repos": tuple(shown["scope"]["repos"]),
        "confidence": confidence,
        "valid_from": candidate.valid_from,
        "supersedes": tuple(target.memory.label for target in targets),
    }


# --- home ---------------------------------------------------------------------------------------------------
def waiting_count(principal: Principal) -> int:
    """How many wait for a decision; counted no further than ``MAX_COUNTED`` + 1."""
    return _bounded(candidates_visible(principal).pending())


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What waits for a reviewer. ``mine`` of ``pending`` somebody else has to decide about.

    ``oldest`` are those that have waited longest of what this reviewer may decide. No number is counted further than
    ``MAX_COUNTED`` + 1.
    """

    pending: int
    mine: int
    quarantined: int
    reports: int
    oldest: list[Candidate]

    @property
    def for_me(self) -> int:
        return self.pending if self.pending > MAX_COUNTED else self.pending - self.mine


def waiting(principal: Principal) -> Waiting:
    rows = candidates_visible(principal)
    pending: CandidateQuerySet = rows.pending()
    counts = counts_by_status(principal, rows)
    theirs = own(principal) if principal.workspace.second_person else Q(pk__in=[])
    return Waiting(
        pending=counts[CandidateStatus.PENDING],
        mine=_bounded(pending.filter(theirs)),
        quarantined=counts[CandidateStatus.QUARANTINED],
        reports=_bounded(pending.filter(REFERS, corrects__isnull=False)),
        oldest=list(pending.exclude(theirs).select_related("type").order_by("created_at", "id")[:OLDEST]),
    )


def _bounded(rows: CandidateQuerySet) -> int:
    return rows.order_by("created_at", "id").values("pk")[: MAX_COUNTED + 1].count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """The newest memories in force, and what was added within a week, by type and repository."""

    newest: list[Memory]
    this_week: Facets


def learned_lately(principal: Principal) -> Learned:
    rows: MemoryQuerySet = memories_visible(principal)
    in_force = rows.filter(status__in=IN_FORCE).select_related("type")
    lately = rows.filter(recorded_at__gte=now() - timedelta(days=7))
    return Learned(
        newest=list(in_force.order_by("-number")[:RECENT]),
        this_week=facets_of(lately, ("type", "repo"), order=("-recorded_at",)),
    )


def proposed_lately(principal: Principal) -> list[Candidate]:
    return list(own_candidates(principal).select_related("type", "decision")[:RECENT])
