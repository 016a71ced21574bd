"""Many decisions at once, each by the same function and in a transaction of its own as one by one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from django.db.models import Exists, OuterRef

from apps.accounts.principal import Principal
from apps.approvals import policy
from apps.approvals.services import STILL_OPEN, candidate_approve, candidate_reject, checked_reason
from apps.candidates.access import candidates_visible
from apps.candidates.models import OPEN, Candidate, CandidateStatus, Opened
from apps.candidates.selectors import QueueFilter, queue
from apps.core.errors import Conflict, DomainError, FieldError, Forbidden, Invalid, NotFound, Unavailable
from apps.core.problems import as_domain_error
from apps.memories.models import Action, Memory
from apps.memories.providers.base import Prepared, ProviderError
from apps.memories.providers.registry import get_provider

MAX_ITEMS = 500
AT_ONCE = 50

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Item:
    id: UUID
    version: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """``outcome`` is one of done, conflict, forbidden, invalid, error; ``detail`` is a sentence."""

    id: UUID
    outcome: str
    detail: str

    def as_dict(self) -> dict[str, Any]:
        return {"id": str(self.id), "outcome": self.outcome, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Matching:
    """Every open candidate that a filter admits, at the version it has now. ``more`` says whether it went on.

    ``unopened`` are those that an approval will leave, since their type asks for a look that this reviewer owes.
    """

    rows: Sequence[Candidate]
    unopened: int
    more: bool

    @property
    def items(self) -> list[Item]:
        return [Item(row.pk, row.version) for row in self.rows]


def matching(principal: Principal, asked: QueueFilter) -> Matching:
    """The oldest first, as the queue lists them. Answers nothing for a status that nobody decides about."""
    if (asked.status or CandidateStatus.PENDING) not in OPEN:
        return Matching([], 0, more=False)
    opened = Opened.objects.filter(candidate=OuterRef("pk"), user=principal.user, version=OuterRef("version"))
    found = queue(principal, asked).select_related("type").annotate(was_opened=Exists(opened))
    rows = list(found.order_by("created_at", "id")[: MAX_ITEMS + 1])
    more, rows = len(rows) > MAX_ITEMS, rows[:MAX_ITEMS]
    return Matching(rows, sum(row.type.always_human and not row.was_opened for row in rows), more=more)


# What an approval needs from the embedder, by candidate: the version it was made of, and why there is none.
Embedded = dict[UUID, tuple[int, Prepared | ProviderError]]


def candidates_decide(
    *,
    principal: Principal,
    action: Action,
    items: Sequence[Item],
    reason: str = "",
    embedded: Embedded | None = None,
) -> tuple[UUID, list[Outcome]]:
    """Approve or reject each item; one that fails leaves the others alone. Answers the batch's id and each outcome.

    ``embedded`` is what ``decisions_prepare`` answered, for callers that have a transaction open around this.
    """
    if embedded is None:
        embedded = decisions_prepare(principal=principal, action=action, items=items, reason=reason)
    batch = uuid4()
    return batch, [
        outcome
        for start in range(0, len(items), AT_ONCE)
        for outcome in _decide_some(principal, action, items[start : start + AT_ONCE], reason, batch, embedded)
    ]


def decisions_prepare(*, principal: Principal, action: Action, items: Sequence[Item], reason: str = "") -> Embedded:
    """Everything that may be refused for all, and everything that may be slow. Belongs outside any transaction."""
    policy.require_reviewer(principal, to=f"{action.value} candidates", subject_kind="candidate", subject_id="bulk")
    _check(action, items)
    checked_reason(principal, reason, required=action is Action.REJECT)
    return _embed(principal, items) if action is Action.APPROVE else {}


def decisions_hold(*, principal: Principal, items: Sequence[Item]) -> None:
    """For one transaction around many decisions, which keeps every lock to its end: take all locks first.

    Each decision by itself locks its candidate, then the memories it is about, then the counter of numbers. Taken for
    all items kind by kind and in one order, nobody else waits for the second half of what we hold the first half of.
    """
    ids = [item.id for item in items]
    rows = candidates_visible(principal).filter(pk__in=ids).select_for_update(of=("self",)).order_by("pk")
    about = {pk for row in rows for pk in (*row.supersedes, row.corrects_id) if pk is not None}
    list(Memory.objects.filter(pk__in=about).select_for_update(of=("self",)).order_by("pk").values_list("pk"))


def _check(action: Action, items: Sequence[Item]) -> None:
    errors = []
    if action not in (Action.APPROVE, Action.REJECT):
        errors.append(FieldError("action", "Use approve or reject."))
    if not 1 <= len(items) <= MAX_ITEMS:
        errors.append(FieldError("items", f"Name between 1 and {MAX_ITEMS} candidates; there are {len(items)}."))
    if len({item.id for item in items}) != len(items):
        errors.append(FieldError("items", "Name each candidate once."))
    if errors:
        raise Invalid("These decisions cannot be made.", errors=errors)


def _embed(principal: Principal, items: Sequence[Item]) -> Embedded:
    """Embed together what is to be approved. An embedder that does not answer is asked once, not for every item."""
    embedded: Embedded = {}
    down: ProviderError | None = None
    for start in range(0, len(items), AT_ONCE):
        wanted = [item.id for item in items[start : start + AT_ONCE]]
        rows = [row for row in candidates_visible(principal).filter(pk__in=wanted) if _needs_embedding(row)]
        made: Sequence[Prepared | ProviderError]
        if down is None:
            made, down = _embed_some(rows)
        else:
            made = [down] * len(rows)
        embedded |= {row.pk: (row.version, each) for row, each in zip(rows, made, strict=True)}
    return embedded


def _needs_embedding(candidate: Candidate) -> bool:
    return candidate.is_open and candidate.brings_memory


def _embed_some(rows: Sequence[Candidate]) -> tuple[Sequence[Prepared | ProviderError], ProviderError | None]:
    """One result for each row; and the failure, if it is one that the next rows would meet too."""
    try:
        return get_provider().prepare_many([row.content for row in rows]), None
    except ProviderError as error:
        if not error.permanent or len(rows) == 1:
            return [error] * len(rows), None if error.permanent else error
    # One text that the embedder refuses must not take the others with it.
    made: list[Prepared | ProviderError] = []
    for row in rows:
        each, down = _embed_some([row])
        made += each
        if down is not None:
            return [*made, *[down] * (len(rows) - len(made))], down
    return made, None


def _decide_some(
    principal: Principal, action: Action, items: Sequence[Item], reason: str, batch: UUID, embedded: Embedded
) -> Iterator[Outcome]:
    rows = candidates_visible(principal).filter(pk__in=[item.id for item in items]).select_related("type")
    candidates = {row.pk: row for row in rows}
    for item in items:
        yield _outcome(principal, action, item, candidates.get(item.id), reason, batch, embedded.get(item.id))


def _outcome(
    principal: Principal,
    action: Action,
    item: Item,
    candidate: Candidate | None,
    reason: str,
    batch: UUID,
    embedded: tuple[int, Prepared | ProviderError] | None,
) -> Outcome:
    try:
        if candidate is None:
            raise NotFound("There is no such candidate.")
        return Outcome(item.id, "done", _decide(principal, action, item, candidate, reason, batch, embedded))
    except Conflict as error:
        return Outcome(item.id, "conflict", error.detail)
    except Forbidden as error:
        if error.code == "not_opened":  # the others were recorded where they were refused
            policy.record_refusal(
                principal,
                error,
                to=f"{action.value} a candidate in bulk",
                subject_kind="candidate",
                subject_id=item.id,
            )
        return Outcome(item.id, "forbidden", error.detail)
    except (Invalid, NotFound) as error:
        return Outcome(item.id, "invalid", error.detail)
    except DomainError as error:
        return Outcome(item.id, "error", error.detail)
    except Exception as error:
        # One row's fault must not hide what became of the others; the traceback of a fault goes to the log.
        known = as_domain_error(error)
        if known is None:
            logger.exception("A bulk decision failed.")
            return Outcome(item.id, "error", "It failed for a reason that is in the log; it is still open.")
        return Outcome(item.id, "conflict" if isinstance(known, Conflict) else "error", known.detail)


def _decide(
    principal: Principal,
    action: Action,
    item: Item,
    candidate: Candidate,
    reason: str,
    batch: UUID,
    embedded: tuple[int, Prepared | ProviderError] | None,
) -> str:
    """Decide, and say in a sentence what was done."""
    if action is Action.REJECT:
        candidate_reject(principal=principal, candidate_id=item.id, version=item.version, reason=reason, batch_id=batch)
        return "Rejected."
    policy.require_opened(principal, candidate, item.version)
    prepared = _usable(embedded, item)
    approved = candidate_approve(
        principal=principal,
        candidate_id=item.id,
        version=item.version,
        note=reason,
        batch_id=batch,
        prepared=prepared,
    )
    return f"Approved as {approved.memory.label}." if candidate.brings_memory else f"Retired {approved.memory.label}."


def _usable(embedded: tuple[int, Prepared | ProviderError] | None, item: Item) -> Prepared | None:
    """What was embedded belongs to the version that was read; an approval of another one is stale anyway."""
    if embedded is None or embedded[0] != item.version:
        return None
    if isinstance(embedded[1], ProviderError):
        raise Unavailable(f"{STILL_OPEN} {embedded[1].message}", code="provider_unavailable")
    return embedded[1]
