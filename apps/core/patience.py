"""An end to waiting for a PostgreSQL that holds its connections open and says nothing: stopped, swapped out, cut off.

Time limits of statements are kept by the server, and nothing that the network tells (keepalive, user timeout) differs
while its kernel answers for it. So a request sets how long this process waits for each answer; after that the
connection is given up, and the request is answered as by a database that is down. Commands and workers wait as long as
it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Connection, OperationalError
from psycopg.abc import RV, PQGen

# Longer than any limit of a statement that reads, and with the three seconds of a new try below ten.
READ_SECONDS: Final = 6.0
# Longer than a writer waits for others' locks (FIRM_MEMORY_IDEMPOTENCY_WAIT_MS), and below the web's own time-out.
WRITE_SECONDS: Final = 45.0

_seconds: ContextVar[float | None] = ContextVar("patience", default=None)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)


def bound_waiting(*, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Receives ``connection_created``. psycopg waits without end unless it is told; Django has no way to tell it."""
    raw: Connection[Any] = connection.connection
    wait = raw.wait

    def bounded(gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        seconds = _seconds.get() if timeout is None else timeout
        try:
            return wait(gen, interval=interval, timeout=seconds)
        except OperationalError as error:
            if type(error).__name__ != "_WaitTimeout":
                raise
            # What would come later belongs to this statement and must not be read as the answer to another.
            raw.pgconn.finish()
            raise OperationalError(f"the server did not answer within {seconds:g} seconds") from None

    raw.wait = bounded  # type: ignore[method-assign]
