"""Statements counted where nothing is missed: on the wire between psycopg and PostgreSQL."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

# What libpq's trace calls the messages that make the server do something, sent by us (F: front end).
_STATEMENT = re.compile(r"^F\t\d+\t(?:Query|Execute)\b", re.MULTILINE)


@dataclass(slots=True)
class Counted:
    """``statements`` is what was sent in the block, transactions and savepoints included."""

    statements: int = 0


@contextmanager
def counted() -> Iterator[Counted]:
    """Count what Django's connection sends, whoever uses it and however: a query log sees only some of it."""
    connection.ensure_connection()
    found = Counted()
    pgconn = connection.connection.pgconn
    with tempfile.NamedTemporaryFile("w+") as trace:
        pgconn.trace(trace.fileno())
        pgconn.set_trace_flags(1)  # no times: a line for each message is enough
        try:
            yield found
        finally:
            pgconn.untrace()
        found.statements = len(_STATEMENT.findall(Path(trace.name).read_text()))
