"""Candidates and memories for tests, made the way they are made in life: proposed by a token, decided by a person."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, ProgrammingError, connection, transaction

from apps.accounts.models import ApiToken, Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import memberships_of, principal_for_user
from apps.approvals.amendments import Amendment
from apps.approvals.services import Approved, candidate_approve, candidate_reject, candidate_reopen
from apps.candidates.corrections import Report, memory_correct
from apps.candidates.models import Candidate
from apps.candidates.notes import Note, note_add, note_prepare
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.services import Proposed, candidate_propose
from apps.memories.models import Memory, TaskNote
from apps.sources.services import SourceInput

_numbers = itertools.count(1)

# Statements that share no word with one another beyond the grammar, so that none is near another by accident.
_SUBJECTS = (
    *("Invoices", "Webhooks", "Ledgers", "Backups", "Dashboards", "Parsers", "Queues", "Sessions", "Uploads"),
    *("Mailers", "Shards", "Caches", "Payouts", "Refunds", "Coupons", "Exports", "Schedulers", "Gateways"),
)
_RULES = (
    *("are numbered without gaps", "retry with jitter", "close at midnight", "are encrypted at rest"),
    *("never block writers", "keep ninety days", "reject duplicates", "expire quietly"),
)


def a_statement() -> str:
    """A sentence that no other call returns."""
    number = next(_numbers)
    return f"{_SUBJECTS[number % len(_SUBJECTS)]} {_RULES[number % len(_RULES)]} since revision {number}."


def a_source(reference: str | None = None, **values: Any) -> SourceInput:
    reference = reference or f"acme/pay!{next(_numbers)}"
    return SourceInput(**({"kind": "merge_request", "reference": reference} | values))


def a_proposal(content: str | None = None, **changes: Any) -> Proposal:
    values: dict[str, Any] = {
        "content": a_statement() if content is None else content,
        "type": "tooling_setup",
        "scope": ScopeInput(repos=("acme/pay",)),
        "sources": (a_source(),),
    }
    return Proposal(**(values | changes))


def a_body(*content: Any, **changes: Any) -> dict[str, Any]:
    """What ``POST candidates/`` takes."""
    values: dict[str, Any] = {
        "content": content[0] if content else a_statement(),
        "type": "tooling_setup",
        "scope": {"repos": ["acme/pay"]},
        "sources": [{"kind": "merge_request", "reference": f"acme/pay!{next(_numbers)}"}],
    }
    return values | changes


def of_token(token: ApiToken, *, via: str = "rest") -> Principal:
    """What ``principal_for_token`` makes of an agent's or a bot's secret."""
    audiences = frozenset(token.audiences.values_list("pk", flat=True))
    return Principal(workspace=token.workspace, user=None, token=token, role=None, audience_ids=audiences, via=via)


def of_person(user: User, workspace: Workspace | None = None, *, via: str = "ui") -> Principal:
    return principal_for_user(user, workspace or memberships_of(user)[0].workspace, via)


def propose(principal: Principal, content: str | None = None, **changes: Any) -> Candidate:
    return proposed(principal, content, **changes).candidate


def propose_many(principal: Principal, count: int, **changes: Any) -> list[Candidate]:
    """Many at once, as copies of one: in a second instead of half a minute."""
    first = propose(principal, **changes)
    columns = [field for field in Candidate._meta.concrete_fields if not field.generated and not field.primary_key]
    kept = {field.attname: getattr(fresh(first), field.attname) for field in columns}
    rows = []
    for number in range(1, count):
        own = {"content": a_statement(), "fingerprint": f"{number:064x}", "near": [], "created_at": first.created_at}
        rows.append(Candidate(**kept | own))
    with transaction.atomic():  # no candidate without its source
        Candidate.objects.bulk_create(rows)
        for related in (first.evidence.get(), first.proposers.get()):
            copied = {
                field.attname: getattr(related, field.attname)
                for field in related._meta.concrete_fields
                if not field.primary_key
            }
            type(related).objects.bulk_create(type(related)(**copied | {"candidate_id": row.pk}) for row in rows)
    return [first, *rows]


def proposed(principal: Principal, content: str | None = None, **changes: Any) -> Proposed:
    return candidate_propose(principal=principal, proposal=a_proposal(content, **changes))


def approve(principal: Principal, candidate: Candidate, note: str = "", **amendment: Any) -> Approved:
    """At its current version."""
    version = Candidate.objects.get(pk=candidate.pk).version
    return candidate_approve(
        principal=principal,
        candidate_id=candidate.pk,
        version=version,
        amendment=Amendment(amendment),
        note=note,
    )


def reject(principal: Principal, candidate: Candidate, reason: str = "Not so.") -> Candidate:
    version = Candidate.objects.get(pk=candidate.pk).version
    return candidate_reject(principal=principal, candidate_id=candidate.pk, version=version, reason=reason)


def reopen(principal: Principal, candidate: Candidate, reason: str = "It was decided too soon.") -> Candidate:
    version = Candidate.objects.get(pk=candidate.pk).version
    return candidate_reopen(principal=principal, candidate_id=candidate.pk, version=version, reason=reason)


def remember(proposer: Principal, reviewer: Principal, content: str | None = None, **changes: Any) -> Memory:
    """A memory, by way of the gate. ``supersedes`` names memories or their labels."""
    if "supersedes" in changes:
        changes["supersedes"] = tuple(_reference(memory) for memory in changes["supersedes"])
    return approve(reviewer, propose(proposer, content, **changes)).memory


def _reference(memory: Memory | UUID | str) -> str:
    return str(memory.pk if isinstance(memory, Memory) else memory)


def report(principal: Principal, memory: Memory, **changes: Any) -> Candidate:
    """Report a memory as stale or wrong; the candidate that the report became."""
    values: dict[str, Any] = {"kind": "stale", "reason": "The gateway was switched off.", "sources": (a_source(),)}
    return memory_correct(principal=principal, reference=memory.pk, report=Report(**(values | changes))).candidate


def noted(principal: Principal, content: str | None = None, *, task: str = "mr:4821", **changes: Any) -> TaskNote:
    """A working note of a task."""
    proposal = a_proposal(content)
    values: dict[str, Any] = {
        "content": proposal.content,
        "type": proposal.type,
        "scope": proposal.scope,
        "sources": proposal.sources,
    }
    note = Note(task=task, **(values | changes))
    prepared = note_prepare(principal=principal, note=note)
    return note_add(principal=principal, note=note, prepared=prepared).note


def fresh(row: Any) -> Any:
    """The row as it stands in the database now."""
    return type(row).objects.get(pk=row.pk)


@contextmanager
def refused_by(constraint: str) -> Iterator[None]:
    """PostgreSQL refuses it, at once or when the transaction would commit, under this name."""
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        yield
        connection.check_constraints()
    assert constraint_of(refusal.value) == constraint


@contextmanager
def refused_as_immutable() -> Iterator[None]:
    """PostgreSQL refuses to change or remove what is on record."""
    with pytest.raises(ProgrammingError) as refusal, transaction.atomic():
        yield
    assert refusal.value.__cause__.sqlstate == "P0001"


def constraint_of(error: Exception) -> str:
    return error.__cause__.diag.constraint_name


def sql(statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """Run SQL as somebody who goes round the services."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []
