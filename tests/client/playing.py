"""A Firm Memory that plays its part: it answers what it was told to, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


Answering = Callable[[Asked], tuple[int, Any]]


@dataclass
class Playing:
    answers: dict[str, Answering]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""


@contextmanager
def playing(**answers: Answering) -> Iterator[Playing]:
    """``answers`` by the path below ``/api/v1/`` with underscores for slashes: ``files_import``."""
    played = Playing({f"/api/v1/{name.replace('_', '/')}/": answer for name, answer in answers.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._played(None)

        def do_POST(self) -> None:
            self._played(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _played(self, body: Any) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, parse_qs(parts.query), headers, body)
            played.asked.append(asked)
            answer = played.answers.get(parts.path)
            status, said = answer(asked) if answer else (404, {"code": "not_found", "detail": "Nothing is here."})
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Tests are told by what they assert."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    played.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
