"""What a proposer may still do with a proposal that nobody has decided: word it anew, or take it back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction

from apps.accounts.principal import Principal
from apps.candidates.access import candidate_for, is_proposer
from apps.candidates.corrections import MAX_REASON, report_settled
from apps.candidates.models import Candidate
from apps.candidates.proposal import (
    Checked,
    ScopeInput,
    check_values,
    max_content,
    memory_ids,
    require_within_limits,
    scope_flags,
    source_flags,
)
from apps.candidates.services import MAX_EVIDENCE, evidence_add, gate, look_for_near, new_sources, said_before
from apps.candidates.transitions import candidate_apply, require_transition, require_version
from apps.core.clock import now
from apps.core.errors import Conflict, FieldError, Forbidden, Invalid, Refusals, UnknownKeys
from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import pool_needed
from apps.memories.models import Action
from apps.scopes.services import scope_register
from apps.sources.services import SourceInput, sources_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """New values by name of field; what is absent stays. ``sources`` are added to those it has."""

    values: dict[str, Any]

    ALLOWED: ClassVar = frozenset({"content", "type", "scope", "confidence", "valid_from", "supersedes", "sources"})


def candidate_withdraw(*, principal: Principal, candidate_id: UUID, version: int) -> Candidate:
    """Take an open proposal back. Raises ``Forbidden`` for others' and for those that others proposed too."""
    with pool_needed("The candidate is still open."), transaction.atomic():
        candidate = _own_open_candidate(principal, candidate_id, version, Action.WITHDRAW)
        candidate_apply(candidate, Action.WITHDRAW, principal=principal, at=now())
        report_settled(candidate)
    return candidate


def candidate_revise(*, principal: Principal, candidate_id: UUID, version: int, revision: Revision) -> Candidate:
    """Word an open proposal anew. It goes through screening and the gate again, as any proposal."""
    principal.require_write()
    values = revision.values
    if unknown := values.keys() - revision.ALLOWED:
        raise UnknownKeys(unknown, allowed=revision.ALLOWED)
    if not values:
        raise Invalid("Name at least one field to revise.", errors=[FieldError("content", "Nothing is revised.")])
    candidate = candidate_for(principal, candidate_id)
    checked = _check(principal, values, candidate)
    with transaction.atomic():
        candidate = _own_open_candidate(principal, candidate_id, version, Action.REVISE)
        before = _revisable(candidate)
        _change(principal, candidate, values, checked)
        status, why = gate(candidate.type, candidate.confidence, principal.confidence_ceiling)
        candidate_apply(
            candidate,
            Action.REVISE,
            principal=principal,
            at=now(),
            to=status,
            status_reason=why,
            before=before,
            after=_revisable(candidate),
        )
        look_for_near(candidate)
    return candidate


def _own_open_candidate(principal: Principal, candidate_id: UUID, version: int, action: Action) -> Candidate:
    principal.require_write()
    candidate = candidate_for(principal, candidate_id, lock=True)
    if not is_proposer(principal, candidate):
        raise Forbidden(f"Only its proposer may have a proposal {action.label.lower()}.")
    require_version(candidate, version)
    require_transition(candidate, action)
    if candidate.proposers.count() > 1:
        raise Forbidden("Others have proposed the same statement since; only a reviewer decides about it now.")
    return candidate


def _check(principal: Principal, values: dict[str, Any], candidate: Candidate) -> Checked:
    refusals = Refusals()
    if candidate.corrects_id and {"type", "scope", "supersedes"} & set(values):
        about = "A report keeps the type, scope and target of the memory it is about."
        refusals.add([FieldError("type", about)])
    limit = max_content(candidate.tier) if candidate.brings_memory else MAX_REASON
    checked = check_values(principal, values, limit=limit, refusals=refusals)
    refusals.raise_all("The revision will not do.")
    return checked


def _change(principal: Principal, candidate: Candidate, values: dict[str, Any], checked: Checked) -> None:
    """Apply checked values to a locked candidate and save them; status and version follow separately."""
    kept = [flag for flag in candidate.flags if not _replaced(flag["field"], values)]
    flags = list(checked.flags)
    if "content" in values:
        candidate.content = values["content"]
        if not candidate.brings_memory:
            candidate.correction_reason = values["content"]  # such a report says nothing but its reason
    if checked.type is not None:
        candidate.type = checked.type
    if "scope" in values:
        flags = flags + _change_scope(principal, candidate, values["scope"])
    if "supersedes" in values:
        candidate.supersedes = memory_ids(checked.targets)
    if "sources" in values:
        flags += _add_sources(principal, candidate, values["sources"])
    candidate.confidence = values.get("confidence", candidate.confidence)
    candidate.valid_from = values.get("valid_from", candidate.valid_from)
    candidate.flags = kept + flags
    candidate.vector = None
    _move_fingerprint(principal, candidate)
    candidate.save()


def _replaced(field: str, values: dict[str, Any]) -> bool:
    return field.split(".")[0].split("[")[0] in values.keys() - {"sources"}


def _change_scope(principal: Principal, candidate: Candidate, scope: ScopeInput) -> list[dict[str, Any]]:
    registered = scope_register(principal.workspace, firm=scope.firm, domains=scope.domains, repos=scope.repos)
    require_within_limits(principal, registered.scope)
    candidate.firm = registered.scope.firm
    candidate.domain_ids = list(registered.scope.domain_ids)
    candidate.repo_ids = list(registered.scope.repo_ids)
    return scope_flags(registered)


def _add_sources(principal: Principal, candidate: Candidate, sources: tuple[SourceInput, ...]) -> list[dict[str, Any]]:
    recorded = sources_record(principal.workspace, sources)
    added = new_sources(candidate, recorded)
    if candidate.evidence.count() + len(added) > MAX_EVIDENCE:
        raise Invalid.field("sources", f"A candidate has at most {MAX_EVIDENCE} sources.")
    evidence_add(candidate, added)
    restricted = {source.audience_id for source, _ in added if source.audience_id is not None}
    candidate.audience_ids = sorted({*candidate.audience_ids, *restricted})
    return source_flags(recorded)


def _move_fingerprint(principal: Principal, candidate: Candidate) -> None:
    """A revision cannot become what is already waiting, nor slip past a rejection by a detour."""
    if candidate.corrects_id is not None:
        return
    candidate.fingerprint = fingerprint(candidate.content, type_id=candidate.type_id, scope=candidate.scope)
    twins = [row for row in said_before(principal, candidate.fingerprint) if row.pk != candidate.pk]
    if twins:
        twin = twins[0]
        state = "waiting for review" if twin.is_open else "decided"
        raise Conflict(
            f"This is now the same statement as one that is already {state}.",
            code="duplicate",
            extra={"duplicate_of": {"what": "candidate", "id": str(twin.pk)}, "status": twin.status},
        )


def _revisable(candidate: Candidate) -> dict[str, Any]:
    moment: datetime | None = candidate.valid_from
    return {
        "content": candidate.content,
        "type": candidate.type.slug,
        "firm": candidate.firm,
        "domain_ids": candidate.domain_ids,
        "repo_ids": candidate.repo_ids,
        "confidence": candidate.confidence,
        "valid_from": moment.isoformat() if moment else None,
        "supersedes": [str(pk) for pk in candidate.supersedes],
    }
