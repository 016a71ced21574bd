"""A PostgreSQL that is stopped in the middle holds nobody for ever."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError, connection

from apps.agents import answering, views
from apps.core import middleware
from apps.core.database import is_down
from apps.core.patience import READ_SECONDS, WRITE_SECONDS, patience
from tests.in_time import in_time

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def standing_still() -> Iterator[None]:
    """The server process behind the connection of this test stands still, and its kernel answers for it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        os.kill(pid, signal.SIGSTOP)
    except (PermissionError, ProcessLookupError):
        pytest.skip("The server runs elsewhere, or as somebody else.")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
        connection.close()


@pytest.fixture
def frozen() -> Iterator[None]:
    with standing_still():
        yield


def test_a_statement_is_given_up_and_the_connection_with_it(frozen):
    def given_up():
        with patience(0.5), pytest.raises(OperationalError) as error, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return error.value

    error = in_time(given_up, above=0.4, below=5)
    assert is_down(error)
    assert "within 0.5 seconds" in str(error)
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 2")
        assert cursor.fetchone() == (2,)


@pytest.mark.parametrize("path", ["/api/v1/me/", "/api/v1/memories/search/?q=x", "/readyz", "/review/"])
def test_whoever_looks_is_answered(api, alice, browser, frozen_for, path):
    client = browser(alice) if path == "/review/" else api(alice)
    with frozen_for(0.5):
        started = time.monotonic()
        answer = client.get(path)
        assert time.monotonic() - started < 8
    assert answer.status_code == 503
    assert client.get(path).status_code != 503


@pytest.fixture
def frozen_for(monkeypatch):
    """Only from here on: people and tokens are made before."""

    @contextmanager
    def freeze(seconds: float) -> Iterator[None]:
        for module in (middleware, views, answering):
            monkeypatch.setattr(module, "READ_SECONDS", seconds)
        with standing_still():
            yield

    return freeze


READS_OVER_MCP = [
    ("ping", {}),
    ("tools/list", {}),
    ("resources/read", {"uri": "firm-memory://taxonomy"}),
    ("tools/call", {"name": "memory_search", "arguments": {"query": "x"}}),
    ("tools/call", {"name": "memory_get", "arguments": {"id": "M-1"}}),
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
]


@pytest.mark.parametrize(("method", "params"), READS_OVER_MCP)
def test_an_agent_that_looks_is_answered(api, robo, frozen_for, method, params):
    """Whatever it asks is a POST, and who it is must be looked up before anything else."""
    client = api(robo)
    with frozen_for(0.5):
        started = time.monotonic()
        answer = client.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert time.monotonic() - started < 8
    if method == "tools/call":
        assert answer.json()["result"]["isError"]
        assert answer.json()["result"]["structuredContent"]["error"]["code"] == "database_down"


def test_outside_of_a_request_a_statement_takes_as_long_as_it_takes():
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.3)")
    with patience(0.1), pytest.raises(OperationalError), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(0.3)")
    connection.close()


def test_the_limits_of_statements_come_first():
    from apps.retrieval.ledger import LEDGER_SECONDS
    from apps.retrieval.stages.text import SECONDS

    assert max(LEDGER_SECONDS, SECONDS) < READ_SECONDS < 10 < WRITE_SECONDS < 60
