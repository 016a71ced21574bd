"""The web process as `make up` starts it, and clients that ask it over HTTP."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings

from apps.evals.benchmarks.server import environment

API: Final = "/api/v1/"
WEB_THREADS: Final = 2
_START_SECONDS = 60
_STOP_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Web:
    """A running web process; ``log`` holds what it had to say."""

    port: int
    pid: int
    log: Path

    def client(self, secret: str) -> WebClient:
        return WebClient(self.port, secret)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict[str, Any]


class WebClient:
    """One kept connection, as agents have; made anew when the server closed it between two requests."""

    def __init__(self, port: int, secret: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = {
            "Authorization": f"Bearer {secret}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str, **query: Any) -> Answer:
        return self._ask("GET", f"{API}{path}?{urlencode(query, doseq=True)}")

    def post(self, path: str, body: dict[str, Any]) -> Answer:
        return self._ask("POST", f"{API}{path}", json.dumps(body))

    def call_tool(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """As an agent calls it over MCP."""
        parameters = {"name": tool, "arguments": arguments}
        return self._ask(
            "POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters})
        )

    def _ask(self, method: str, path: str, body: str | None = None) -> Answer:
        try:
            return self._ask_once(method, path, body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()
            return self._ask_once(method, path, body)

    def _ask_once(self, method: str, path: str, body: str | None) -> Answer:
        self._connection.request(method, path, body=body, headers=self._headers)
        response = self._connection.getresponse()
        return Answer(response.status, json.loads(response.read() or b"{}"))


@contextmanager
def web(url: str, *, folder: Path, workers: int = 1, threads: int = WEB_THREADS) -> Iterator[Web]:
    """``workers`` of gunicorn with ``threads`` threads each on the database at ``url``."""
    port = free_port()
    log = folder / f"web-{port}.log"
    configuration = str(settings.BASE_DIR / "gunicorn.conf.py")
    command = [sys.executable, "-m", "gunicorn", "--config", configuration, "--chdir", str(settings.BASE_DIR)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--bind", f"127.0.0.1:{port}", "firmmemory.wsgi"],
            env=environment(
                url,
                data_dir=folder,
                FIRM_MEMORY_WEB_THREADS=str(threads),
                FIRM_MEMORY_WEB_WORKERS=str(workers),
            ),
            stdout=output,
            stderr=output,
        )
    try:
        _await_answer(process, port, log)
        yield Web(port, process.pid, log)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.unlink(missing_ok=True)


def _await_answer(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The web process did not start. It said:\n{log.read_text()[-2000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
