"""What somebody asks, and whether its values will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from apps.core.errors import FieldError, Invalid
from apps.core.screening import check_text
from apps.memories.models import EPISODIC, MAX_TASK, Tier
from apps.taxonomy.intents import INTENTS

MAX_QUESTION: Final = 20_000
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 10
# What may be asked for. Without a word about it, memories of every tier, and no note.
TIERS: Final = (*Tier.values, EPISODIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """``None`` means "not asked for"; an empty list is refused, because it never means "everything".

    ``as_of`` asks what held then, ``known_at`` what was known then; both are moments with a time zone.

    The working notes of one task are asked for by two words, the tier ``episodic`` and the ``task``: neither brings
    them by itself, and a slip in one brings none of another task.
    """

    q: str
    repos: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    tiers: tuple[str, ...] | None = None
    limit: int = DEFAULT_LIMIT
    as_of: datetime | None = None
    known_at: datetime | None = None
    intent: str | None = None
    recipe: str | None = None
    task: str | None = None
    notes: tuple[str, ...] = field(default=())

    def check(self) -> None:
        """Raise ``Invalid`` naming every parameter whose value will not do, with the limit where there is one."""
        errors = check_text(self.q, field="q", max_length=MAX_QUESTION)
        if not 1 <= self.limit <= MAX_LIMIT:
            errors.append(FieldError("limit", f"Ask for 1 to {MAX_LIMIT} results."))
        for name in ("repos", "domains", "types", "tiers"):
            errors += _check_list(name, getattr(self, name))
        for tier in self.tiers or ():
            if tier not in TIERS:
                errors.append(FieldError("tiers", f"Use one or more of: {', '.join(TIERS)}."))
        if self.intent is not None and self.intent not in INTENTS:
            errors.append(FieldError("intent", f"Use one of: {', '.join(INTENTS)}."))
        if errors:
            raise Invalid("The question will not do.", errors=errors)
        check_task(self.task, self.tiers, as_of=self.as_of, known_at=self.known_at)

    @property
    def memory_tiers(self) -> frozenset[str]:
        """Of memories, those that are looked for; empty where nothing but notes was asked for."""
        return frozenset(self.tiers or Tier.values) - {EPISODIC}


def check_task(
    task: str | None, tiers: Sequence[str] | None, *, as_of: datetime | None = None, known_at: datetime | None = None
) -> None:
    """Raise ``Invalid`` where a task was named without the tier or the other way round, or notes of the past asked for.

    Notes are of now: they expire and are deleted, so nothing tells what a task knew before.
    """
    errors: list[FieldError] = []
    asked = EPISODIC in (tiers or ())
    if task is not None:
        errors += check_text(task, field="task", max_length=MAX_TASK, multiline=False)
    if task is None and asked:
        errors.append(FieldError("task", "Notes are of one task: name it, such as task=mr:4821."))
        errors.append(FieldError("tiers", f"Without a task, leave out {EPISODIC}."))
    if task is not None and not asked:
        errors.append(FieldError("task", f"Without tiers={EPISODIC} no note is looked for; leave it out then."))
        errors.append(FieldError("tiers", f"With a task, name {EPISODIC} among them."))
    if asked:
        past = {"as_of": as_of, "known_at": known_at}
        errors += [
            FieldError(name, f"Notes are of now. Leave this out, or {EPISODIC} among the tiers.")
            for name, moment in past.items()
            if moment is not None
        ]
    if errors:
        raise Invalid("The question will not do.", errors=errors)


def _check_list(name: str, values: tuple[str, ...] | None) -> list[FieldError]:
    if values is None:
        return []
    if not values:
        return [FieldError(name, "Name at least one, or leave the parameter out.")]
    return [error for value in values for error in check_text(value, field=name, max_length=500, multiline=False)]
