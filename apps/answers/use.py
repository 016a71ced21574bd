"""What answers cost. It counts towards the tokens that models may cost in a day."""

from __future__ import annotations

from datetime import UTC, date

from django.db import connection
from django.db.models import F, Sum

from apps.answers.models import ModelUse
from apps.capture.extractors.base import Usage
from apps.core.clock import now

_ADD = """
INSERT INTO answers_modeluse AS known (workspace_id, day, calls, prompt_tokens, completion_tokens)
VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (day, workspace_id) DO UPDATE SET
    calls = known.calls + excluded.calls,
    prompt_tokens = known.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = known.completion_tokens + excluded.completion_tokens
"""


def use_record(workspace_id: int, usage: Usage) -> None:
    if not usage.calls:
        return
    with connection.cursor() as cursor:
        day = now().astimezone(UTC).date()
        cursor.execute(_ADD, [workspace_id, day, usage.calls, usage.prompt_tokens, usage.completion_tokens])


def tokens_of(day: date) -> int:
    """Of all workspaces."""
    rows = ModelUse.objects.filter(day=day)
    return rows.aggregate(used=Sum(F("prompt_tokens") + F("completion_tokens")))["used"] or 0
