"""Reading from PostgreSQL with an end to the waiting.

The limits are set for the transaction alone, never as an option of the connection, which poolers refuse or drop.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection, transaction

# What PostgreSQL answers when a statement took too long, and when it waited too long for somebody's lock.
_QUERY_CANCELED = "57014"
_LOCK_NOT_AVAILABLE = "55P03"


def is_timeout(error: Exception) -> bool:
    """Whether PostgreSQL gave up because of a time limit, rather than because something is wrong."""
    cause = error.__cause__ if isinstance(error, Error) else error
    return getattr(cause, "sqlstate", None) in (_QUERY_CANCELED, _LOCK_NOT_AVAILABLE)


class TimeLimit:
    """How much longer the statements of one block may take together."""

    def __init__(self, seconds: float, **settings: str) -> None:
        self._seconds = self._given = seconds
        self._deadline = time.monotonic() + seconds
        self._set(seconds, **settings)

    def renew(self) -> None:
        """Call it before a further statement: PostgreSQL counts for each anew.

        It costs a statement of its own only once a tenth of the time is used up.
        """
        left = self._deadline - time.monotonic()
        if self._given - left > self._seconds / 10:
            self._set(left)

    def _set(self, seconds: float, **settings: str) -> None:
        self._given = seconds
        # A timeout of 0 would mean none.
        values = {"statement_timeout": str(max(1, int(seconds * 1000))), **settings}
        calls = ", ".join(["set_config(%s, %s, true)"] * len(values))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {calls}", [part for setting in values.items() for part in setting])


@contextmanager
def reading_within(seconds: float, **settings: str) -> Iterator[TimeLimit]:
    """A transaction, or a savepoint in the caller's, for reading alone: it is always rolled back.

    A statement in it that takes longer than ``seconds`` fails with an ``OperationalError`` that ``is_timeout`` knows.
    ``settings`` of PostgreSQL hold in it too, such as ``jit="off"``. With the rollback they go, as the limit does, and
    after a failure the connection is as usable as before.
    """
    with transaction.atomic():
        yield TimeLimit(seconds, **settings)
        transaction.set_rollback(True)


@contextmanager
def waiting_for_locks_within(seconds: float) -> Iterator[None]:
    """Inside a transaction that writes: wait for others' locks at most so long, instead of for ever."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('lock_timeout'), set_config('lock_timeout', %s, true)", [str(int(seconds * 1000))]
        )
        before = cursor.fetchone()[0]
    yield
    # Only after success: an error rolls the transaction back, and the setting with it.
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [before])
