"""A server on this machine that speaks the chat interface as hosted models do, and says what it is told to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "sk-a-key-that-must-not-be-shown"


@dataclass(frozen=True)
class Canned:
    """One answer. ``text`` is what the model says, ``body`` replaces the whole body; times are in seconds."""

    text: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    finish: str = "stop"
    delay: float = 0.0
    trickle: float = 0.0  # between any two bytes
    usage: tuple[int, int] | None = (100, 20)

    def content(self) -> bytes:
        if self.body is not None:
            return self.body.encode()
        message = {"role": "assistant", "content": self.text}
        answer: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "test",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
        }
        if self.usage is not None:
            prompt, completion = self.usage
            answer["usage"] = {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            }
        return json.dumps(answer).encode()


Reply = str | Canned | Callable[[str], "str | Canned"]


def failing(status: int, *, repeats: str = "", **headers: str) -> Canned:
    """An error as OpenAI words it; ``repeats`` is something of the request, as some servers do."""
    error = {"error": {"message": f"Something is wrong with {repeats} {SECRET}", "type": "error", "code": None}}
    return Canned(status=status, body=json.dumps(error), headers={k.replace("_", "-"): v for k, v in headers.items()})


class ModelServer(ThreadingHTTPServer):
    """Gives the ``replies`` in turn, and the last of them from then on. ``asked`` holds the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.replies: list[Reply] = [Canned('{"facts":[]}')]
        self._taking_turns = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def says(self, *replies: Reply) -> None:
        self.replies = list(replies)

    def told(self, number: int = -1) -> str:
        """The user's message of one request."""
        return str(self.asked[number]["messages"][-1]["content"])

    def answer(self, body: dict[str, Any]) -> Canned:
        with self._taking_turns:
            self.asked.append(body)
            reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        said = reply(body["messages"][-1]["content"]) if callable(reply) else reply
        return Canned(said) if isinstance(said, str) else said


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.append(self.headers.get("Authorization", ""))
        canned = self.server.answer(body)
        time.sleep(canned.delay)
        content = canned.content()
        try:
            self.send_response(canned.status)
            for name, value in canned.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self._send(content, canned.trickle)
        except OSError:
            pass  # whoever asked has gone away

    def _send(self, content: bytes, trickle: float) -> None:
        if not trickle:
            self.wfile.write(content)
            return
        for byte in content:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(trickle)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
