"""Agents for tests: one that speaks JSON-RPC through Django's own client, and the SDK's real one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from django.conf import settings
from django.db import connection
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from apps.agents.results import output_schema
from apps.agents.tools import TOOLS
from tests.conftest import ApiClient, Issued

ROOT = Path(settings.BASE_DIR)
ACCEPT = "application/json, text/event-stream"
REVISIONS = {"2025-11-25": "legacy", "2026-07-28": "2026-07-28"}


@dataclass
class Reply:
    """What a tool answered."""

    text: str
    results: list[dict[str, Any]]
    note: str
    structured: dict[str, Any]
    is_error: bool

    @property
    def fields(self) -> list[str]:
        return [each["field"] for each in self.structured["error"].get("errors", [])]

    @property
    def code(self) -> str:
        return self.structured["error"]["code"]


class Agent:
    def __init__(self, secret: str | None) -> None:
        self.client = ApiClient(headers={"Authorization": f"Bearer {secret}"} if secret else {})

    def ask(self, method: str, params: Any = None, **headers: str) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return self.client.post("/mcp", body, headers={"Accept": ACCEPT} | headers)

    def call(self, tool: str, **arguments: Any) -> Reply:
        response = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert response.status_code == 200, response.content
        return reply_of(tool, response.json()["result"])


def reply_of(tool: str, result: dict[str, Any]) -> Reply:
    structured = result["structuredContent"]
    if tool in TOOLS:
        schema = output_schema(TOOLS[tool].gives, TOOLS[tool].beside)
        Draft202012Validator(schema).validate(structured)
    text = "\n".join(part["text"] for part in result["content"])
    return Reply(text, structured["results"], structured["note"], structured, result.get("isError", False))


def over_http(url: str, who: Issued, revision: str, work: Callable[[Client], Awaitable[Any]]) -> Any:
    """The SDK's client, at ``url``, with ``who``'s token."""

    async def run() -> Any:
        headers = {"Authorization": f"Bearer {who.secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=REVISIONS[revision]) as client,
        ):
            return await work(client)

    return asyncio.run(run())


def environment(secret: str) -> dict[str, str]:
    """For a process of its own on the database of this test."""
    at = connection.settings_dict
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FIRM_MEMORY_")}
    user = f"{quote(at['USER'])}:{quote(at['PASSWORD'])}" if at["PASSWORD"] else quote(at["USER"])
    return kept | {
        "DATABASE_URL": f"postgresql://{user}@{at['HOST']}:{at['PORT']}/{quote(at['NAME'])}",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.dev",
        "FIRM_MEMORY_ENV_FILE": "",
        "FIRM_MEMORY_DATA_DIR": str(settings.DATA_DIR),
        "FIRM_MEMORY_TOKEN": secret,
    }


def over_stdio(
    who: Issued, revision: str, folder: Path, work: Callable[[Client], Awaitable[Any]], *, log: Path | None = None
) -> Any:
    """The SDK's client, with ``manage.py mcp`` in ``folder`` as its child."""
    server = StdioServerParameters(
        command=sys.executable, args=[str(ROOT / "manage.py"), "mcp"], env=environment(who.secret), cwd=folder
    )

    async def run() -> Any:
        with Path(log or os.devnull).open("w") as errors:
            async with Client(stdio_client(server, errlog=errors), mode=REVISIONS[revision]) as client:
                return await work(client)

    return asyncio.run(run())
