"""An embedder that is quick and means nothing, and records and queries with sensible defaults."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import numpy as np

from apps.memories.providers.base import MemoryRecord, PoolQuery
from apps.memories.providers.mem0 import slots

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RECORDED = datetime(2026, 1, 1, 12, tzinfo=UTC)


class HashingEmbedder:
    """Each word points into a direction of its own; texts that share words are near. Counts its calls."""

    max_tokens = 34
    unrelated_below = 0.0
    readable = True

    def __init__(self, *, name: str = "hashing", dimensions: int = 64) -> None:
        self.name = name
        self.dimensions = dimensions
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.warm = False

    def reads(self, text):
        return self.readable

    def embed_documents(self, texts):
        self.documents += texts
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text):
        self.queries.append(text)
        return self._vector(text)

    def warm_up(self):
        self.warm = True

    def token_spans(self, text):
        return [match.span() for match in re.finditer(r"\S+", text)]

    def _vector(self, text):
        total = np.full(self.dimensions, 1e-3)
        for word in re.findall(r"\w+", text.lower()):
            seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
            total += np.random.default_rng(seed).normal(size=self.dimensions)
        return (total / np.linalg.norm(total)).astype(np.float32)


def a_record(content: str = "Retries back off exponentially.", **changes) -> MemoryRecord:
    record = MemoryRecord(
        id=uuid4(),
        workspace=1,
        content=content,
        tier="durable",
        status="active",
        type="coding_conventions",
        firm=True,
        recorded_at=RECORDED,
    )
    return replace(record, **changes)


def a_query(provider, text: str = "Retries back off exponentially.", **changes) -> PoolQuery:
    return PoolQuery(**({"vector": provider.embed_query(text), "workspace": 1, "now": NOW} | changes))


def store(provider, *records: MemoryRecord) -> list[UUID]:
    prepared = provider.prepare_many([record.content for record in records])
    provider.insert_many(list(zip(records, prepared, strict=True)))
    return [record.id for record in records]


def found(provider, text: str = "Retries back off exponentially.", **changes) -> set[UUID]:
    return {hit.memory_id for hit in provider.search(a_query(provider, text, limit=1_000, **changes))}


def ways(monkeypatch) -> list[str]:
    """Records which statements a search ran."""
    taken = []
    for name in ("count_statement", "exact_statement", "approximate_statement"):
        real = getattr(slots, name)

        def spy(*args, name=name, real=real):
            taken.append(name.removesuffix("_statement"))
            return real(*args)

        monkeypatch.setattr(slots, name, spy)
    return taken
