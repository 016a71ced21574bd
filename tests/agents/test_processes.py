"""Behind the real server: several processes with threads, and what stays of the calls."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from django.db import connection

from tests.agents.calling import REVISIONS, ROOT, environment, over_http
from tests.agents.conftest import reply
from tests.ledger import sql

WORKERS, THREADS, AT_ONCE, EACH = 2, 4, 8, 15


@contextlib.contextmanager
def gunicorn(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    more = {
        "FIRM_MEMORY_PORT": str(port),
        "FIRM_MEMORY_BIND": "127.0.0.1",
        "FIRM_MEMORY_DATA_DIR": str(folder),
        "FIRM_MEMORY_WEB_WORKERS": str(WORKERS),
        "FIRM_MEMORY_WEB_THREADS": str(THREADS),
        "FIRM_MEMORY_THROTTLE": "off",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "-c", str(ROOT / "gunicorn.conf.py"), "firmmemory.wsgi"],
        env=environment("") | more,
        cwd=ROOT,
    )
    try:
        _wait_for(f"http://127.0.0.1:{port}/healthz")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str) -> None:
    for _ in range(300):
        with contextlib.suppress(httpx2.TransportError):
            if httpx2.get(url, timeout=5).status_code == 200:
                return
        time.sleep(0.2)
    raise AssertionError(f"{url} does not answer.")


def connections() -> list[tuple[str, int]]:
    """Of the server, by state; those of this process are called otherwise."""
    return sql(
        "SELECT state, count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND application_name = 'firm-memory' GROUP BY state ORDER BY state"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("pool", "transactional_db")
def test_eight_at_once_leave_no_connection_behind(robo, known, tmp_path):
    before = dict(connections()).get("idle", 0)

    def ask(url: str, revision: str) -> int:
        async def work(client):
            found = 0
            for number in range(EACH):
                answer = await client.call_tool("memory_search", {"query": f"retries of payments {number}"})
                found += len(reply("memory_search", answer).results)
                assert (await client.call_tool("memory_get", {"id": "M-404"})).is_error
            return found

        return over_http(url, robo, revision, work)

    with gunicorn(tmp_path / "data") as url, ThreadPoolExecutor(AT_ONCE) as agents:
        revisions = itertools.islice(itertools.cycle(REVISIONS), AT_ONCE)
        found = list(agents.map(lambda revision: ask(url, revision), revisions))
        left = dict(connections())

    assert found == [EACH] * AT_ONCE
    # A thread keeps its one for the next request; there is none beyond, and none in the middle of something.
    assert set(left) <= {"idle"}
    assert left.get("idle", 0) - before <= WORKERS * THREADS
    connection.close()
