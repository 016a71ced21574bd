"""Rates counted across processes, in one statement of PostgreSQL each.

The generic cell rate algorithm (ITU-T I.371): every request moves ``used_until`` on by one step of
``60 / rate`` seconds, and is refused where that would be more than a minute ahead. So a minute's worth may come
at once, and more comes evenly. The clock is the database's, one for all machines.
"""

from __future__ import annotations

import math
import time

from django.db import connection

WINDOW_SECONDS = 60.0
CLEAN_EVERY_SECONDS = 300.0

_SPEND = """
INSERT INTO core_throttle AS seen (key, used_until)
VALUES (%(key)s, clock_timestamp() + %(step)s * interval '1 second')
ON CONFLICT (key) DO UPDATE
SET used_until = GREATEST(seen.used_until, clock_timestamp()) + %(step)s * interval '1 second'
WHERE seen.used_until <= clock_timestamp() + %(room)s * interval '1 second'
RETURNING 1
"""
_WAIT = """
SELECT EXTRACT(EPOCH FROM used_until - clock_timestamp())::float8 - %(room)s FROM core_throttle WHERE key = %(key)s
"""
_CLEAN = "DELETE FROM core_throttle WHERE used_until < clock_timestamp()"

_cleaned_at = time.monotonic()


def spend(key: str, *, per_minute: int) -> int | None:
    """Count one request of ``key``. None when it may go on, else the whole seconds to wait."""
    _clean_now_and_then()
    step = WINDOW_SECONDS / per_minute
    arguments: dict[str, str | float] = {"key": key, "step": step, "room": WINDOW_SECONDS - step}
    with connection.cursor() as cursor:
        cursor.execute(_SPEND, arguments)
        if cursor.fetchone() is not None:
            return None
        cursor.execute(_WAIT, arguments)
        row = cursor.fetchone()
    return max(1, math.ceil(row[0])) if row else 1


def _clean_now_and_then() -> None:
    global _cleaned_at
    if time.monotonic() - _cleaned_at < CLEAN_EVERY_SECONDS:
        return
    _cleaned_at = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(_CLEAN)
