"""What the facade returns: plain objects that need no Django. ``raw`` is the whole answer, as REST gives it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Memory:
    """One approved statement. ``score`` is 0 to 1 in a search, else none; moments are ISO 8601."""

    id: str
    number: str
    content: str
    type: str
    category: str
    status: str
    repos: tuple[str, ...]
    domains: tuple[str, ...]
    firm: bool
    sources: tuple[Raw, ...]
    confidence: float | None
    valid_from: str | None
    score: float | None
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Raw) -> Memory:
        scope = raw["scope"]
        return cls(
            id=str(raw["id"]),
            number=raw["number"],
            content=raw["content"],
            type=raw["type"],
            category=raw["category"],
            status=raw["status"],
            repos=tuple(scope["repos"]),
            domains=tuple(scope["domains"]),
            firm=scope["firm"],
            sources=tuple(raw["sources"]),
            confidence=raw["confidence"],
            valid_from=raw["valid_from"],
            score=raw.get("score"),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """``degraded``: not everything could be looked at, or nothing; ``note`` says what."""

    results: tuple[Memory, ...]
    intent: str
    degraded: bool
    note: str
    raw: Raw = field(repr=False, compare=False)

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class Context:
    """``text`` is for an agent: every statement in it is data."""

    text: str
    items: tuple[Memory, ...]
    used_tokens: int
    degraded: bool
    note: str
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """``citations`` are ids of memories; ``results`` are the memories that were looked at."""

    answer: str
    citations: tuple[str, ...]
    results: tuple[Memory, ...]
    degraded: bool
    note: str
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Proposed:
    """A candidate that waits for a person. ``created`` is false where it was there before, as ``reason`` says."""

    id: str
    status: str
    reason: str
    created: bool


@dataclass(frozen=True, slots=True)
class Handed:
    """Raw material that a worker reads. ``created`` is false where the same was handed over before."""

    event: str
    created: bool
    notes: tuple[str, ...]
