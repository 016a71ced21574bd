"""Verdicts as a person follows them: who did what when and why, and what changed, in names instead of ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.accounts.principal import Principal
from apps.core.wording import words
from apps.memories.models import Action, Memory, Verdict
from apps.memories.selectors import memories_visible
from apps.scopes.selectors import scope_slugs

# What is compared, in the order in which it is shown, and what people call it.
FIELDS = {
    "content": "Content",
    "type": "Type",
    "firm": "Whole firm",
    "domain_ids": "Domains",
    "repo_ids": "Repositories",
    "confidence": "Confidence",
    "valid_from": "Valid from",
    "supersedes": "Replaces",
}
_DID: dict[str, str] = {Action.WITHDRAW: "withdrew"}
State = Mapping[str, Any]
NOTHING = "—"
HIDDEN = "a memory that you may not see"


@dataclass(frozen=True, slots=True)
class Change:
    """One field before and after, as text. ``long`` ones are worth two columns."""

    field: str
    name: str
    before: str
    after: str

    @property
    def long(self) -> bool:
        return self.field == "content"


@dataclass(frozen=True, slots=True)
class Entry:
    verdict: Verdict
    changes: tuple[Change, ...]

    @property
    def did(self) -> str:
        """What they did, for a sentence: "alice *did* this"."""
        if self.verdict.action == Action.APPROVE and self.changes:
            return "amended and approved"
        return _DID.get(self.verdict.action) or self.verdict.get_action_display().lower()

    @property
    def version(self) -> int | None:
        """The candidate's version that the verdict was given on."""
        value = self.verdict.before.get("version")
        return value if isinstance(value, int) else None

    @property
    def report(self) -> UUID | None:
        """The candidate that a report about a memory became."""
        value = self.verdict.after.get("candidate")
        return UUID(value) if self.verdict.action == Action.CORRECT and value else None


@dataclass(frozen=True, slots=True)
class Names:
    domains: dict[int, str]
    repos: dict[int, str]
    memories: dict[str, str]


def history_of(principal: Principal, verdicts: Sequence[Verdict]) -> list[Entry]:
    """In the order given. At most two queries, whatever changed.

    What a candidate said in its other versions, perhaps in one that is open again, is for reviewers alone.
    """
    if not principal.can_review:
        return [Entry(verdict, ()) for verdict in verdicts]
    names = names_in(principal, [state for verdict in verdicts for state in (verdict.before, verdict.after)])
    return [Entry(verdict, tuple(_changes(verdict, names))) for verdict in verdicts]


def _changes(verdict: Verdict, names: Names) -> Iterable[Change]:
    for field in FIELDS:
        if field in verdict.before and field in verdict.after and verdict.before[field] != verdict.after[field]:
            yield change_of(field, verdict.before, verdict.after, names)


def change_of(field: str, before: State, after: State, names: Names) -> Change:
    """One field of two states in words; a field that is in one of them alone has nothing on the other side."""
    name = FIELDS.get(field) or words(field).capitalize()
    return Change(field, name, _text(field, before.get(field), names), _text(field, after.get(field), names))


def _text(field: str, value: Any, names: Names) -> str:
    if value is None or value == []:
        return NOTHING
    if field == "firm":
        return "yes" if value else "no"
    if field == "type":
        return words(str(value))
    if field == "valid_from":
        return str(value)[:10]
    if field == "domain_ids":
        return ", ".join(sorted(names.domains.get(pk, "?") for pk in value))
    if field == "repo_ids":
        return ", ".join(sorted(names.repos.get(pk, "?") for pk in value))
    if field == "supersedes":
        return ", ".join(sorted(names.memories.get(pk, HIDDEN) for pk in value))
    return str(value)


def names_in(principal: Principal, states: Sequence[State]) -> Names:
    """What the ids in some states are called, as far as this reader may know. At most two queries."""
    memory_ids = set(_listed(states, "supersedes"))
    memories = memories_visible(principal).filter(pk__in=memory_ids).only("pk", "number") if memory_ids else ()
    domains, repos = scope_slugs(_listed(states, "domain_ids"), _listed(states, "repo_ids"))
    return Names(domains, repos, {str(memory.pk): memory.label for memory in memories})


def _listed(states: Sequence[State], field: str) -> list[Any]:
    return [pk for state in states for pk in state.get(field) or ()]


def memories_by_id(principal: Principal, memory_ids: Iterable[UUID]) -> dict[UUID, Memory]:
    """Memories by id, as far as this reader may see them."""
    wanted = set(memory_ids)
    return {memory.pk: memory for memory in memories_visible(principal).filter(pk__in=wanted)} if wanted else {}
