"""The whole of `up`: PostgreSQL, web and worker, as a person starts them."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from apps.core.embedded_postgres import EmbeddedPostgres
from apps.core.processes import program

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


class Up:
    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / ".data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.server = EmbeddedPostgres(self.data)
        self.start()

    def start(self) -> None:
        with (self.folder / "output").open("w") as output:
            self.process = self.manage("up", stdout=output, stderr=output)

    def manage(self, *arguments: str, **options: object) -> subprocess.Popen[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("FIRM_MEMORY_", "DATABASE_", "DJANGO_"))}
        ours = {
            "FIRM_MEMORY_ENV_FILE": "",
            "FIRM_MEMORY_DATA_DIR": str(self.data),
            "FIRM_MEMORY_PORT": str(self.port),
        }
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=clean | ours, text=True, **options)

    def said(self) -> str:
        return (self.folder / "output").read_text()

    def status(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def descendants(self) -> set[int]:
        """Web, worker, and all that they started."""
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
        found, grown = set(), {self.process.pid}
        while grown:
            found |= grown
            grown = {pid for pid, parent in parents.items() if parent in found} - found
        return found - {self.process.pid}


@pytest.fixture
def up():
    folder = Path(tempfile.mkdtemp(prefix="firm-memory-up-"))
    folder.chmod(0o711)
    running = Up(folder)
    yield running
    running.process.kill()
    running.process.wait()
    eventually(lambda: running.status("/healthz") == 0)
    running.server.stop()
    shutil.rmtree(folder)


def eventually(condition, seconds: float = 100.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.1)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_up_starts_everything_heals_and_leaves_nothing_behind(up):
    eventually(lambda: "is ready at" in up.said() or up.process.poll() is not None)
    assert f"Firm Memory is ready at http://127.0.0.1:{up.port}/ - Ctrl-C stops it." in up.said()
    assert up.status("/readyz") == 200

    # What a new installation shows once.
    for what in (r"reviewer +reviewer", r"password +\S{12,}", r"bot token +fm_bot_\S+", r"agent token +fm_agent_\S+"):
        assert re.search(what, up.said()), what

    second = up.manage("up", stderr=subprocess.PIPE)
    assert f"`up` already runs on {up.data} (process {up.process.pid})." in second.communicate()[1]
    assert second.returncode == 1

    # Somebody stops the database, and starts it again.
    assert up.manage("postgres", "stop").wait() == 0
    assert (up.status("/healthz"), up.status("/readyz")) == (200, 503)
    assert up.manage("postgres", "start").wait() == 0
    assert up.status("/readyz") == 200
    eventually(lambda: up.said().count("PostgreSQL is back.") == 1)

    # It crashes.
    port = up.server.last_known().port
    os.kill(up.server.postmaster_pid(), signal.SIGKILL)
    eventually(lambda: up.said().count("PostgreSQL is back.") == 2)
    assert up.status("/readyz") == 200
    assert up.server.last_known().port == port

    # All of it is killed at once, and started again.
    family = up.descendants()
    up.process.kill()
    up.process.wait()
    up.start()
    eventually(lambda: "is ready at" in up.said() or up.process.poll() is not None)
    assert not [pid for pid in family if program(pid)]
    assert "First start" not in up.said()

    family = up.descendants()
    began = time.monotonic()
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(30) == 0
    assert time.monotonic() - began < 20
    assert not [pid for pid in family if program(pid)]
    assert up.server.postmaster_pid() is None
    assert up.status("/healthz") == 0
