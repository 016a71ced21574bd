#!/usr/bin/env python3
"""The whole way of a memory, as an agent sees it: hand material over by MCP, wait for a person, find it by MCP.

    FIRM_MEMORY_URL=http://127.0.0.1:8100 FIRM_MEMORY_TOKEN=fm_agent_… .venv/bin/python examples/mcp_round_trip.py

Uses the client of the official MCP SDK, which the service's own environment has. It ends with 0 when the agent has
found what the person approved, with 1 when the person rejected it or nobody decided in time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

MATERIAL = (
    "anna: Can we retry a failed payment at once?\n"
    "ben: No. We decided to never retry a payment at once, because the bank blocks a merchant who does. "
    "Retries back off exponentially and stop after five attempts.\n"
)
QUESTION = "why do payment retries back off?"
FINISHED = ("done", "dead")


def main() -> int:
    reader = argparse.ArgumentParser(description="An agent hands over, a person approves, the agent finds.")
    reader.add_argument("--repo", default="acme/pay")
    reader.add_argument("--wait", type=float, default=600.0, help="Seconds to wait for the worker and the person.")
    given = reader.parse_args()
    url, token = (
        os.environ.get("FIRM_MEMORY_URL", "http://127.0.0.1:8100").rstrip("/"),
        os.environ.get("FIRM_MEMORY_TOKEN"),
    )
    if not token:
        print("FIRM_MEMORY_TOKEN is not set.", file=sys.stderr)
        return 2
    try:
        return asyncio.run(round_trip(url, token, given.repo, time.monotonic() + given.wait))
    except* (httpx2.HTTPError, httpx2.InvalidURL, MCPError) as errors:
        print(f"{url} does not answer as Firm Memory does: {first(errors)}", file=sys.stderr)
        print("Is FIRM_MEMORY_URL right, is it running, and is FIRM_MEMORY_TOKEN one of its tokens?", file=sys.stderr)
    return 1


def first(errors: BaseException) -> BaseException:
    """The SDK waits for several things at once, so that what goes wrong comes in groups of groups."""
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return errors


async def round_trip(url: str, token: str, repo: str, until: float) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as agent,
    ):
        before = await found(agent, repo)
        print(f"1. The agent asks “{QUESTION}” and finds {before or 'nothing'}.")
        event = await handed_over(agent, repo)
        print(f"2. It hands a discussion over: event {event}.")
        read = await become(http, f"{url}/api/v1/ingest/{event}/", "state", FINISHED, until)
        print(f"3. The worker has read it: {read['reason']}")
        if not read["candidates"]:
            print("   Nothing in it waits for a reviewer.")
            return 1
        print("4. A person decides. Open and approve:")
        for candidate in read["candidates"]:
            print(f"   {url}/review/{candidate}/", flush=True)
        first = f"{url}/api/v1/candidates/{read['candidates'][0]}/"
        decided = await become(http, first, "status", ("approved", "rejected", "withdrawn"), until)
        print(f"5. It is {decided['status']}.")
        after = await found(agent, repo)
        print(f"6. The agent asks again and finds {after or 'nothing'}.")
        return 0 if after and after != before else 1


async def found(agent: Client, repo: str) -> str:
    """What answers the question, with numbers to cite."""
    answer = await agent.call_tool("memory_search", {"query": QUESTION, "repo": repo})
    results = told(answer)["results"]
    return "; ".join(f"{each['number']} ({each['sources'][0]['reference']}): {each['content']}" for each in results)


async def handed_over(agent: Client, repo: str) -> str:
    arguments = {
        "content": MATERIAL,
        "kind": "merge_request",
        "repo": repo,
        "sources": [{"kind": "merge_request", "reference": f"{repo}!128"}],
    }
    return str(told(await agent.call_tool("memory_ingest", arguments))["results"][0]["event"])


def told(answer: Any) -> dict[str, Any]:
    structured: dict[str, Any] = answer.structured_content
    if answer.is_error:
        sys.exit(f"The agent was refused: {structured['note']}")
    return structured


async def become(
    http: httpx2.AsyncClient, url: str, field: str, wanted: tuple[str, ...], until: float
) -> dict[str, Any]:
    """What stands at ``url``, once its ``field`` is one of ``wanted``."""
    while True:
        answer = await http.get(url)
        answer.raise_for_status()
        shown: dict[str, Any] = answer.json()
        if shown[field] in wanted:
            return shown
        if time.monotonic() > until:
            sys.exit(f"It is still {shown[field]}; nobody decided in time.")
        await asyncio.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
