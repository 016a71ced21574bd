"""One HTTP request to the MCP server and its answer, without a session and without a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from apps.agents.answering import Caller
from apps.agents.driving import Driver
from apps.agents.server import SERVER, caller, working
from apps.core.chunked import MAX_BYTES

# The view has looked at host and origin.
_SECURITY: Final = TransportSecuritySettings(enable_dns_rebinding_protection=False)


@dataclass(slots=True)
class Exchange:
    """What ASGI calls ``receive`` and ``send``, for a body that is here and an answer that is kept."""

    body: bytes
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    answer: bytes = b""
    _read: bool = False

    async def receive(self) -> dict[str, Any]:
        if self._read:
            # Whether the client has gone nobody can tell here. To say that it had would cancel the call.
            await asyncio.Event().wait()
        self._read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
        else:
            self.answer += message.get("body", b"")


def exchanged(who: Caller, *, path: str, headers: Mapping[str, str], body: bytes) -> Exchange:
    driver = Driver()
    ours, how = caller.set(who), working.set(driver)
    try:
        return driver.run(_exchanged(_scope(path, headers), body))
    finally:
        working.reset(how)
        caller.reset(ours)


async def _exchanged(scope: dict[str, Any], body: bytes) -> Exchange:
    exchange = Exchange(body)
    manager = StreamableHTTPSessionManager(
        app=SERVER, json_response=True, stateless=True, security_settings=_SECURITY, max_request_body_size=MAX_BYTES
    )
    async with manager.run():
        await manager.handle_request(scope, exchange.receive, exchange.send)
    return exchange


def _scope(path: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """The request as ASGI describes it."""
    # Whoever does not say what they accept accepts anything; the SDK would refuse them.
    sent = {"accept": "*/*"} | {name.lower(): value for name, value in headers.items()}
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()],
        "client": None,
        "server": None,
        "state": {},
    }
