"""How many tokens models may cost in a day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from django.conf import settings
from django.db.models import F, Sum

from apps.capture.models import CaptureEvent
from apps.core.clock import now

# What models cost on a day in the rooms above, which add a function each.
spent_elsewhere: Final[list[Callable[[date], int]]] = []


def tokens_of_the_day() -> int:
    """Of all workspaces, since midnight UTC. An event that was read over several days counts for the last of them."""
    today = CaptureEvent.objects.filter(used_at__gte=_midnight())
    read: int = today.aggregate(used=Sum(F("prompt_tokens") + F("completion_tokens")))["used"] or 0
    return read + sum(spent(_midnight().date()) for spent in spent_elsewhere)


def seconds_until_affordable() -> float:
    """Zero where there is room; else how long until the next day begins."""
    limit: int = settings.FIRM_MEMORY_LLM_DAILY_TOKENS
    if not limit or tokens_of_the_day() < limit:
        return 0.0
    return (_midnight() + timedelta(days=1) - now()).total_seconds()


def _midnight() -> datetime:
    return datetime.combine(now().astimezone(UTC).date(), time(), tzinfo=UTC)
