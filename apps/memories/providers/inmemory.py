"""A pool in the memory of one process: for tests, and as the plainest reading of the contract.

It knows nothing of transactions: what was inserted stays when the caller's transaction rolls back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.memories.providers.base import (
    MemoryRecord,
    NoteHit,
    NoteQuery,
    NoteRecord,
    PayloadPatch,
    PoolDescription,
    PoolHit,
    PoolQuery,
    Prepared,
    ProviderError,
)
from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.embedding import EmbeddingProvider
from apps.memories.providers.filtering import admits

NAME = "inmemory"


@dataclass(frozen=True, slots=True)
class _Stored:
    record: MemoryRecord
    vectors: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _StoredNote:
    record: NoteRecord
    vectors: NDArray[np.float64]


class InMemoryProvider(EmbeddingProvider):
    """Exact, and read record by record."""

    def __init__(self, embedder: Embedder, **seconds: float) -> None:
        super().__init__(embedder, **seconds)
        self._stored: dict[UUID, _Stored] = {}
        self._notes: dict[UUID, _StoredNote] = {}
        self._writing = threading.Lock()

    def insert_many(self, records: Sequence[tuple[MemoryRecord, Prepared]]) -> None:
        for _, prepared in records:
            self.require_own(prepared)
        with self._writing:
            for record, prepared in records:
                self._stored.setdefault(record.id, _Stored(record, _vectors(prepared)))

    def search(self, query: PoolQuery) -> list[PoolHit]:
        self.require_length(query)
        vector = np.array(query.vector, np.float64)
        found = [_hit(stored, vector) for stored in list(self._stored.values()) if admits(query, stored.record)]
        found.sort(key=lambda each: (each[0], each[1].memory_id))
        return [hit for _, hit in found[: query.limit]]

    def get(self, memory_id: UUID) -> MemoryRecord | None:
        stored = self._stored.get(memory_id)
        return None if stored is None else stored.record

    def statuses(self, memory_ids: Sequence[UUID]) -> dict[UUID, str]:
        return {each: self._stored[each].record.status for each in memory_ids if each in self._stored}

    def update(self, memory_id: UUID, patch: PayloadPatch) -> None:
        with self._writing:
            stored = self._stored.get(memory_id)
            if stored is None:
                raise ProviderError(f"The pool holds no memory {memory_id}.", permanent=True)
            record = replace(stored.record, **patch.changes())  # type: ignore[arg-type]
            self._stored[memory_id] = replace(stored, record=record)

    def iterate(self, batch: int = 500) -> Iterator[MemoryRecord]:
        for memory_id in sorted(self._stored):
            yield self._stored[memory_id].record

    def describe(self) -> PoolDescription:
        stored = list(self._stored.values())
        return PoolDescription(
            provider=NAME,
            embedder=self.embedder.name,
            dimensions=self.embedder.dimensions,
            generation=0,
            rows=sum(len(each.vectors) for each in stored),
            memories=len(stored),
        )

    def insert_notes(self, notes: Sequence[tuple[NoteRecord, Prepared]]) -> None:
        for _, prepared in notes:
            self.require_own(prepared)
        with self._writing:
            for record, prepared in notes:
                self._notes.setdefault(record.id, _StoredNote(record, _vectors(prepared)))

    def search_notes(self, query: NoteQuery) -> list[NoteHit]:
        self.require_length(query)
        vector = np.array(query.vector, np.float64)
        asked = (query.workspace, query.task)
        notes = [each for each in list(self._notes.values()) if (each.record.workspace, each.record.task) == asked]
        nearest = sorted((_nearest(each.vectors, vector)[0], each.record.id) for each in notes)
        return [NoteHit(note_id, max(0.0, 1.0 - distance)) for distance, note_id in nearest[: query.limit]]

    def delete_notes(self, note_ids: Sequence[UUID]) -> None:
        with self._writing:
            for note_id in note_ids:
                self._notes.pop(note_id, None)


def _vectors(prepared: Prepared) -> NDArray[np.float64]:
    return np.array([passage.vector for passage in prepared.passages], np.float64)


def _hit(stored: _Stored, vector: NDArray[np.float64]) -> tuple[float, PoolHit]:
    """The distance of the best passage, and what the search returns for it."""
    distance, best = _nearest(stored.vectors, vector)
    return distance, PoolHit(stored.record.id, max(0.0, 1.0 - distance), best)


def _nearest(vectors: NDArray[np.float64], vector: NDArray[np.float64]) -> tuple[float, int]:
    """The distance of the best passage, and which one it is."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector)
    distances = 1.0 - (vectors @ vector) / lengths
    best = int(distances.argmin())
    return float(distances[best]), best
