"""One call of a tool, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.accounts.principal import Principal


@dataclass(frozen=True, slots=True)
class Call:
    """``arguments`` have been read; ``checkout`` is the remote of the repository that the agent works in, if known."""

    principal: Principal
    arguments: Mapping[str, Any]
    checkout: str | None = None

    def listed(self, name: str) -> tuple[str, ...] | None:
        """A list argument as services take it."""
        return tuple(self.arguments[name]) if name in self.arguments else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """``text`` is for the agent to read, ``results`` and ``beside`` are the same for programs."""

    results: list[dict[str, Any]]
    note: str
    text: str
    beside: Mapping[str, Any] = field(default_factory=dict)


def joined(*notes: str) -> str:
    return " ".join(filter(None, notes))
