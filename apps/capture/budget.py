"""How many tokens models may cost in a day."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

from django.conf import settings
from django.db.models import F, Sum

from apps.capture.models import CaptureEvent
from apps.core.clock import now


def tokens_of_the_day() -> int:
    """Of all workspaces, since midnight UTC. An event that was read over several days counts for the last of them."""
    today = CaptureEvent.objects.filter(used_at__gte=_midnight())
    return today.aggregate(used=Sum(F("prompt_tokens") + F("completion_tokens")))["used"] or 0


def seconds_until_affordable() -> float:
    """Zero where there is room; else how long until the next day begins."""
    limit: int = settings.FIRM_MEMORY_LLM_DAILY_TOKENS
    if not limit or tokens_of_the_day() < limit:
        return 0.0
    return (_midnight() + timedelta(days=1) - now()).total_seconds()


def _midnight() -> datetime:
    return datetime.combine(now().astimezone(UTC).date(), time(), tzinfo=UTC)
