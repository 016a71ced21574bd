"""A forge on a local port: its API answers what it was given, a page at a time, and may fail at first."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGE = 2


@dataclass
class Forge:
    """``lists`` holds what each path answers; ``failures`` are statuses that come before the first good answer."""

    lists: dict[str, list[dict[str, Any]]]
    links: bool = False
    failures: list[int] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(forge: Forge) -> Iterator[Forge]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            forge.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            if forge.failures:
                self._answer(forge.failures.pop(0), {"message": "later"}, {"Retry-After": "0"})
                return
            rows = forge.lists.get(parts.path)
            if rows is None:
                self._answer(404, {"message": f"no {parts.path}"}, {})
                return
            page = int(parse_qs(parts.query).get("page", ["1"])[0])
            here = rows[(page - 1) * PAGE : page * PAGE]
            more = len(rows) > page * PAGE
            following = f"{forge.url}{parts.path}?per_page=100&page={page + 1}"
            headers = {"Link": f'<{following}>; rel="next"'} if forge.links and more else {}
            if not forge.links:
                headers = {"X-Next-Page": str(page + 1) if more else ""}
            self._answer(200, here, headers)

        def _answer(self, status: int, body: Any, headers: dict[str, str]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Type": "application/json"}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Tests are told by what they assert."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
