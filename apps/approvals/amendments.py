"""What a reviewer changes while approving, and the statement that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.candidates.proposal import (
    ScopeInput,
    check_values,
    max_content,
    require_within_limits,
    resolve_targets,
)
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Forbidden, Invalid, Refusals, UnknownKeys
from apps.core.wording import words
from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import Statement
from apps.memories.models import Memory, MemoryStatus, Supersession
from apps.scopes.scope import Scope
from apps.scopes.services import scope_register
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import resolve_type

PREFIX = "amendment."


@dataclass(frozen=True, slots=True)
class Amendment:
    """New values by name of field; what is absent stays as proposed. Tier and origin are nobody's to change."""

    values: dict[str, Any] = field(default_factory=dict)

    ALLOWED: ClassVar = frozenset({"content", "type", "scope", "confidence", "valid_from", "supersedes"})


def check_amendment(principal: Principal, candidate: Candidate, amendment: Amendment) -> None:
    """Raise ``Invalid`` or ``Excluded`` naming ``amendment.<field>``; no query for a plain approval.

    Before anything slow is begun: what only the transaction can know is looked at again there.
    """
    values = amendment.values
    if unknown := values.keys() - amendment.ALLOWED:
        raise UnknownKeys(unknown, allowed=amendment.ALLOWED)
    refusals = Refusals()
    if candidate.brings_memory and "type" not in values:
        with refusals.collecting():
            _type(principal, candidate, values)
    if values and not candidate.brings_memory:
        about = "This report brings no new wording, so there is nothing to amend."
        refusals.add([FieldError("amendment", about)])
    if values:
        limit = max_content(candidate.tier)
        check_values(principal, values, limit=limit, refusals=refusals, prefix=PREFIX)
    refusals.raise_all("The amendment will not do.")


def amended_content(candidate: Candidate, amendment: Amendment) -> str:
    return str(amendment.values.get("content", candidate.content))


def build_statement(principal: Principal, candidate: Candidate, amendment: Amendment) -> Statement:
    """What will be remembered, from a locked candidate. Raises ``Invalid`` for a retired type."""
    values = amendment.values
    type_ = _type(principal, candidate, values)
    scope = _scope(principal, candidate, values)
    content = amended_content(candidate, amendment)
    return Statement(
        content=content,
        type=type_,
        scope=scope,
        audience_ids=tuple(candidate.audience_ids),
        tier=candidate.tier,
        confidence=values.get("confidence", _reported(candidate)),
        valid_from=values.get("valid_from", candidate.valid_from),
        fingerprint=fingerprint(content, type_id=type_.pk, scope=scope),
        evidence=tuple(candidate.evidence.values_list("source_id", "quote")),
    )


def _type(principal: Principal, candidate: Candidate, values: dict[str, Any]) -> MemoryType:
    if "type" in values:
        return resolve_type(principal.workspace, values["type"], field=f"{PREFIX}type")
    if not candidate.type.is_active:
        raise Invalid.field(
            f"{PREFIX}type",
            f"The type {words(candidate.type.slug)} was retired after this was proposed. Amend it to a live type, or "
            "reject.",
            code="retired_type",
        )
    return candidate.type


def _scope(principal: Principal, candidate: Candidate, values: dict[str, Any]) -> Scope:
    if "scope" not in values:
        return candidate.scope
    asked: ScopeInput = values["scope"]
    registered = scope_register(
        principal.workspace, firm=asked.firm, domains=asked.domains, repos=asked.repos, field=f"{PREFIX}scope"
    )
    require_within_limits(principal, registered.scope)
    return registered.scope


def _reported(candidate: Candidate) -> float | None:
    """As reported, under the ceiling of the token that reported it."""
    if candidate.confidence is None or candidate.origin_token is None:
        return candidate.confidence
    return min(candidate.confidence, candidate.origin_token.confidence_ceiling)


def lock_targets(principal: Principal, candidate: Candidate, amendment: Amendment) -> list[Memory]:
    """The memories to be replaced, locked in one order for everybody, each still in force.

    One that is only reported may have been retired by hand, which is what the report asks for, and may have a successor
    that begins later.

    Raises ``Conflict`` naming a target that something else replaced or retired meanwhile, and its successor.
    """
    if "supersedes" in amendment.values:
        references = amendment.values["supersedes"]
        ids = [memory.pk for memory in resolve_targets(principal, references, field=f"{PREFIX}supersedes")]
    else:
        ids = list(candidate.supersedes)
    if candidate.corrects_id is not None and candidate.corrects_id not in ids:
        ids.append(candidate.corrects_id)
    if not ids:
        return []
    rows = Memory.objects.filter(workspace=principal.workspace, pk__in=ids).select_related("type")
    targets = list(rows.select_for_update(of=("self",)).order_by("pk"))
    if not all(set(target.audience_ids) <= principal.audience_ids for target in targets):
        raise Forbidden("This would replace a memory that you may not see.")
    _require_in_force(principal, targets, only_reported=not candidate.brings_memory)
    return targets


def _require_in_force(principal: Principal, targets: Sequence[Memory], *, only_reported: bool) -> None:
    edges = Supersession.objects.live().full().filter(old__in=targets).select_related("new")
    if only_reported:
        edges = edges.filter(holds_from__lte=now())
    replaced: dict[UUID, Memory] = {edge.old_id: edge.new for edge in edges}
    for target in targets:
        if target.pk not in replaced and (only_reported or target.status != MemoryStatus.RETIRED):
            continue
        successor = replaced.get(target.pk)
        what = "was replaced" if successor else "was retired"
        if successor is not None and set(successor.audience_ids) <= principal.audience_ids:
            what += f" by {successor.label}"
        else:
            successor = None  # there is none, or it is not this reviewer's to know
        raise Conflict(
            f"{target.label} {what} meanwhile. {_ADVICE[only_reported]}",
            code="target_not_in_force",
            extra={
                "target": {"id": str(target.pk), "number": target.label, "status": target.status},
                "successor": {"id": str(successor.pk), "number": successor.label} if successor else None,
            },
        )


_ADVICE = {
    False: "Amend what this supersedes, or reject it.",
    True: "There is nothing left to end; reject the report.",
}


def changes(
    candidate: Candidate, statement: Statement, targets: Sequence[Memory]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the amendment changed, before and after, for the verdict."""
    before = _shown(
        content=candidate.content,
        type_=candidate.type.slug,
        scope=candidate.scope,
        confidence=_reported(candidate),
        valid_from=candidate.valid_from,
        supersedes=[str(pk) for pk in sorted(candidate.supersedes)],
    )
    after = _shown(
        content=statement.content,
        type_=statement.type.slug,
        scope=statement.scope,
        confidence=statement.confidence,
        valid_from=statement.valid_from,
        supersedes=[str(target.pk) for target in sorted(targets, key=lambda row: row.pk)],
    )
    changed = [name for name, value in after.items() if before[name] != value]
    return {name: before[name] for name in changed}, {name: after[name] for name in changed}


def _shown(
    *,
    content: str,
    type_: str,
    scope: Scope,
    confidence: float | None,
    valid_from: datetime | None,
    supersedes: list[str],
) -> dict[str, Any]:
    return {
        "content": content,
        "type": type_,
        "firm": scope.firm,
        "domain_ids": list(scope.domain_ids),
        "repo_ids": list(scope.repo_ids),
        "confidence": confidence,
        "valid_from": valid_from.isoformat() if valid_from else None,
        "supersedes": supersedes,
    }
