from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from mcp_types import CallToolResult

from apps.memories.models import Memory
from tests import ledger
from tests.agents.calling import Agent, Reply, reply_of
from tests.conftest import Issued


@pytest.fixture
def agent() -> Callable[[Issued | None], Agent]:
    def make(who: Issued | None = None) -> Agent:
        return Agent(who.secret if who else None)

    return make


@dataclass(frozen=True)
class Known:
    old: Memory
    new: Memory


@pytest.fixture
def known(remember) -> Known:
    """A decision that replaced another, in acme/pay."""
    old = remember(
        "Retries of payments wait a fixed second, because the first gateway asked for it.",
        type="architecture_decisions",
    )
    new = remember(
        "Retries of payments back off exponentially, because fixed waits overran the gateway.",
        type="architecture_decisions",
        supersedes=[old],
        sources=(ledger.a_source("acme/pay!128", title="Back off", quote="Fixed waits overran it twice in May."),),
    )
    return Known(old, new)


def reply(tool: str, result: CallToolResult) -> Reply:
    """Of the SDK's client."""
    return reply_of(tool, json.loads(result.model_dump_json(by_alias=True, exclude_none=True)))
