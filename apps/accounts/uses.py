"""What uses a row that curators keep in order, so that they know what a change touches before they make it.

Memories and candidates belong to rooms above this one, which only knows what they are called. Nobody is told of more
than they may see: not that it is there, and not how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.apps import apps
from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts.models import admitted
from apps.accounts.principal import Principal

MOST: Final = 10_000
OPEN: Final = ("pending", "quarantined")


@dataclass(frozen=True, slots=True)
class Uses:
    """Counted up to ``MOST`` and one."""

    memories: int
    waiting: int

    def sentence(self, what: str, *, memories: str, waiting: str) -> SafeString:
        """“412 memories and 3 open candidates use this type”, each number leading to what it counts."""
        if not self.memories and not self.waiting:
            return format_html("No memory and no open candidate that you may see uses this {}.", what)
        return format_html(
            '<a href="{}">{}</a> and <a href="{}">{}</a> use this {}.',
            memories,
            _counted(self.memories, "memory", "memories"),
            waiting,
            _counted(self.waiting, "open candidate", "open candidates"),
            what,
        )


def uses_of(principal: Principal, **condition: Any) -> Uses:
    """How many memories and open candidates meet a condition on the columns that both have."""
    return Uses(
        memories=_count(_rows("memories", "Memory", principal).filter(**condition)),
        waiting=_count(_rows("candidates", "Candidate", principal).filter(**condition, status__in=OPEN)),
    )


def _rows(room: str, model: str, principal: Principal) -> QuerySet[Any]:
    rows = apps.get_model(room, model)._default_manager.filter(workspace=principal.workspace)
    return rows.filter(admitted(principal.audience_ids))


def _count(rows: QuerySet[Any]) -> int:
    return rows.order_by().values("pk")[: MOST + 1].count()


def _counted(number: int, one: str, many: str) -> str:
    if number > MOST:
        return f"More than {MOST:,} {many}"
    return f"{number:,} {one if number == 1 else many}" if number else f"no {many}"
