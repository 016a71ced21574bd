"""Many decisions at once, each by the same function and in a transaction of its own as one by one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from apps.accounts.principal import Principal
from apps.approvals import policy
from apps.approvals.services import brings_memory, candidate_approve, candidate_reject
from apps.candidates.access import candidates_visible
from apps.candidates.models import Candidate
from apps.core.errors import Conflict, DomainError, FieldError, Forbidden, Invalid, NotFound
from apps.memories.models import Action
from apps.memories.providers.base import Prepared, ProviderError
from apps.memories.providers.registry import get_provider

MAX_ITEMS = 500
EMBEDDED_AT_ONCE = 50

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


def candidates_decide(
    *, principal: Principal, action: Action, items: Sequence[Item], reason: str = ""
) -> tuple[UUID, list[Outcome]]:
    """Approve or reject each item; one that fails leaves the others alone. Answers the batch's id and each outcome."""
    policy.require_reviewer(principal, to=f"{action.value} candidates", subject_kind="candidate", subject_id="bulk")
    _check(action, items, reason)
    batch = uuid4()
    return batch, [
        outcome
        for start in range(0, len(items), EMBEDDED_AT_ONCE)
        for outcome in _decide_some(principal, action, items[start : start + EMBEDDED_AT_ONCE], reason, batch)
    ]


def _check(action: Action, items: Sequence[Item], reason: str) -> None:
    errors = []
    if action not in (Action.APPROVE, Action.REJECT):
        errors.append(FieldError("action", "Use approve or reject."))
    if not 1 <= len(items) <= MAX_ITEMS:
        errors.append(FieldError("items", f"Name between 1 and {MAX_ITEMS} candidates; there are {len(items)}."))
    if len({item.id for item in items}) != len(items):
        errors.append(FieldError("items", "Name each candidate once."))
    if action is Action.REJECT and not reason.strip():
        errors.append(FieldError("reason", "Give the reason; its proposers get to read it."))
    if errors:
        raise Invalid("These decisions cannot be made.", errors=errors)


def _decide_some(
    principal: Principal, action: Action, items: Sequence[Item], reason: str, batch: UUID
) -> Iterator[Outcome]:
    rows = candidates_visible(principal).filter(pk__in=[item.id for item in items]).select_related("type")
    candidates = {row.pk: row for row in rows}
    prepared = _embed(candidates) if action is Action.APPROVE else {}
    for item in items:
        yield _decide(principal, action, item, candidates.get(item.id), reason, batch, prepared.get(item.id))


def _embed(candidates: dict[UUID, Candidate]) -> dict[UUID, Prepared]:
    """Embed together what is embedded anyway. When that fails, each approval tries by itself and says why it cannot."""
    rows = [row for row in candidates.values() if row.is_open and brings_memory(row)]
    try:
        made = get_provider().prepare_many([row.content for row in rows])
    except ProviderError:
        return {}
    return {row.pk: prepared for row, prepared in zip(rows, made, strict=True)}


def _decide(
    principal: Principal,
    action: Action,
    item: Item,
    candidate: Candidate | None,
    reason: str,
    batch: UUID,
    prepared: Prepared | None,
) -> Outcome:
    try:
        if candidate is None:
            raise NotFound("There is no such candidate.")
        if action is Action.REJECT:
            candidate_reject(
                principal=principal, candidate_id=item.id, version=item.version, reason=reason, batch_id=batch
            )
            return Outcome(item.id, "done", "Rejected.")
        policy.require_opened(principal, candidate)
        # The embedding belongs to the version that was read here; another version makes its own or is stale.
        usable = prepared if candidate.version == item.version else None
        approved = candidate_approve(
            principal=principal,
            candidate_id=item.id,
            version=item.version,
            note=reason,
            batch_id=batch,
            prepared=usable,
        )
        return Outcome(item.id, "done", f"Approved as {approved.memory.label}.")
    except Conflict as error:
        return Outcome(item.id, "conflict", error.detail)
    except Forbidden as error:
        return Outcome(item.id, "forbidden", error.detail)
    except (Invalid, NotFound) as error:
        return Outcome(item.id, "invalid", error.detail)
    except DomainError as error:
        return Outcome(item.id, "error", error.detail)
    except Exception:
        # One row's fault must not hide what became of the others; the traceback goes to the log.
        logger.exception("A bulk decision failed.")
        return Outcome(item.id, "error", "It failed for a reason that is in the log; it is still open.")
