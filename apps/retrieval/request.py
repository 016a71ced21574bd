"""What somebody asks, and whether its values will do."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from apps.core.errors import FieldError, Invalid
from apps.core.screening import check_text
from apps.memories.models import Tier
from apps.taxonomy.intents import INTENTS

MAX_QUESTION: Final = 20_000
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """``None`` means "not asked for"; an empty list is refused, because it never means "everything".

    ``as_of`` asks what held then, ``known_at`` what was known then; both are moments with a time zone.
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
    notes: tuple[str, ...] = field(default=())

    def check(self) -> None:
        """Raise ``Invalid`` naming every parameter whose value will not do, with the limit where there is one."""
        errors = check_text(self.q, field="q", max_length=MAX_QUESTION)
        if not 1 <= self.limit <= MAX_LIMIT:
            errors.append(FieldError("limit", f"Ask for 1 to {MAX_LIMIT} results."))
        for name in ("repos", "domains", "types", "tiers"):
            errors += _check_list(name, getattr(self, name))
        for tier in self.tiers or ():
            if tier not in Tier.values:
                errors.append(FieldError("tiers", f"Use one or more of: {', '.join(Tier.values)}."))
        if self.intent is not None and self.intent not in INTENTS:
            errors.append(FieldError("intent", f"Use one of: {', '.join(INTENTS)}."))
        if errors:
            raise Invalid("The question will not do.", errors=errors)


def _check_list(name: str, values: tuple[str, ...] | None) -> list[FieldError]:
    if values is None:
        return []
    if not values:
        return [FieldError(name, "Name at least one, or leave the parameter out.")]
    return [error for value in values for error in check_text(value, field=name, max_length=500, multiline=False)]
