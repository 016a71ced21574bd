"""The default provider: mem0's parts over PostgreSQL with pgvector."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, OperationalError, transaction

from apps.core.time_limits import is_timeout, waiting_for_locks_within
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
    ProviderTimeout,
    Vector,
)
from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.embedding import EmbeddingProvider
from apps.memories.providers.mem0.generation import Generation, held_generation, live_generation
from apps.memories.providers.mem0.lookup import NOTE_QUERY, POOL_QUERY, SEARCH_TIME
from apps.memories.providers.mem0.payload import (
    Payload,
    note_payloads,
    passage_id,
    passage_payloads,
    patch_payload,
    record_from,
)

if TYPE_CHECKING:
    from apps.memories.providers.mem0.slots import Collection, NoteStore, PoolStore, Row, SearchTime

NAME = "mem0"

# How long a write waits for others' locks. A switch to a rebuilt pool holds its own for a second or two.
LOCK_SECONDS = 5.0

_BEFORE_ALL = UUID(int=0)


class Mem0Provider(EmbeddingProvider):
    """Runs on Django's own connection: what it writes is committed or rolled back with the caller's ledger."""

    def __init__(self, embedder: Embedder, *, generation: Generation | None = None, **seconds: float) -> None:
        """``generation`` pins it to one that is not live, which is how a new one is built."""
        super().__init__(embedder, **seconds)
        self._pinned = generation
        self._memories: dict[str, Any] = {}
        self._building = threading.Lock()

    def warm_up(self) -> None:
        _load_mem0()
        super().warm_up()

    def prepare_many(self, texts: Sequence[str]) -> list[Prepared]:
        # The caller inserts next, inside a transaction, which should not wait for an import.
        _load_mem0()
        return super().prepare_many(texts)

    def insert_many(self, records: Sequence[tuple[MemoryRecord, Prepared]]) -> None:
        ids: list[str] = []
        vectors: list[Vector] = []
        payloads: list[Payload] = []
        for record, prepared in records:
            self.require_own(prepared)
            ids += [str(passage_id(record.id, number)) for number in range(len(prepared.passages))]
            vectors += [passage.vector for passage in prepared.passages]
            payloads += passage_payloads(record, prepared)
        with _writing():
            self._store(self._pinned or held_generation()).insert(vectors, payloads, ids)

    def search(self, query: PoolQuery) -> list[PoolHit]:
        self.require_length(query)
        with _reading("searched"):
            search_time = _search_time()
            store = self._store(self._pinned or live_generation(search_time.settings()))
            rows = store.search("", query.vector, query.limit, {POOL_QUERY: query, SEARCH_TIME: search_time})
        return [PoolHit(UUID(row.id), row.score, row.payload["passage"]) for row in rows]

    def get(self, memory_id: UUID) -> MemoryRecord | None:
        with _reading("read"):
            row = self._store(self._pinned or live_generation()).get(str(memory_id))
        return None if row is None else record_from(memory_id, row.payload)

    def statuses(self, memory_ids: Sequence[UUID]) -> dict[UUID, str]:
        with _reading("read"):
            search_time = _search_time()
            store = self._store(self._pinned or live_generation(search_time.settings()))
            return store.statuses(memory_ids, search_time)

    def update(self, memory_id: UUID, patch: PayloadPatch) -> None:
        changes = patch_payload(patch)
        with _writing():
            if not self._store(self._pinned or held_generation()).patch(str(memory_id), changes):
                raise ProviderError(f"The pool holds no memory {memory_id}.", permanent=True)

    def iterate(self, batch: int = 500) -> Iterator[MemoryRecord]:
        with _reading("read"):
            store = self._store(self._pinned or live_generation())
        after = _BEFORE_ALL
        while rows := self._page(store, after, batch):
            after = UUID(rows[-1].id)
            for row in rows:
                yield record_from(UUID(row.id), row.payload)

    def describe(self) -> PoolDescription:
        with _reading("read"):
            generation = self._pinned or live_generation()
            rows, memories = self._store(generation).counts()
        return PoolDescription(
            provider=NAME,
            embedder=generation.embedder,
            dimensions=generation.dimensions,
            generation=generation.number,
            rows=rows,
            memories=memories,
        )

    def insert_notes(self, notes: Sequence[tuple[NoteRecord, Prepared]]) -> None:
        ids: list[str] = []
        vectors: list[Vector] = []
        payloads: list[Payload] = []
        for record, prepared in notes:
            self.require_own(prepared)
            ids += [str(passage_id(record.id, number)) for number in range(len(prepared.passages))]
            vectors += [passage.vector for passage in prepared.passages]
            payloads += note_payloads(record, prepared)
        with _writing():
            self._notes(self._pinned or held_generation()).insert(vectors, payloads, ids)

    def search_notes(self, query: NoteQuery) -> list[NoteHit]:
        self.require_length(query)
        with _reading("searched"):
            search_time = _search_time()
            store = self._notes(self._pinned or live_generation(search_time.settings()))
            rows = store.search("", query.vector, query.limit, {NOTE_QUERY: query, SEARCH_TIME: search_time})
        return [NoteHit(UUID(row.id), row.score) for row in rows]

    def delete_notes(self, note_ids: Sequence[UUID]) -> None:
        with _writing():
            self._notes(self._pinned or held_generation()).forget(note_ids)

    def _page(self, store: PoolStore, after: UUID, batch: int) -> Sequence[Row]:
        with _reading("read"):
            return store.page(after, batch)

    def _store(self, generation: Generation) -> PoolStore:
        store: PoolStore = self._collection(generation, generation.table, "PoolStore")
        return store

    def _notes(self, generation: Generation) -> NoteStore:
        store: NoteStore = self._collection(generation, generation.notes, "NoteStore")
        return store

    def _collection(self, generation: Generation, table: str, kind: str) -> Any:
        """The store over a table of a generation, as long as this process embeds the way it was embedded."""
        if not generation.made_by(self.embedder):
            raise ProviderError(
                f"The pool moved to the embedder {generation.embedder} ({generation.dimensions} dimensions), while "
                f"this process uses {self.embedder.name} ({self.embedder.dimensions}). Set FIRM_MEMORY_EMBEDDER to "
                "match and restart it.",
                permanent=False,
            )
        with self._building:
            if table not in self._memories:
                built = _load_mem0().build_memory(collection=table, embedder=self.embedder, store=kind)
                self._memories[table] = built
            store: Collection = self._memories[table].vector_store
        return store


def _load_mem0() -> ModuleType:
    """Import mem0, which takes seconds the first time; therefore before a transaction, not inside."""
    from apps.memories.providers.mem0 import parts

    return parts


def _search_time() -> SearchTime:
    from apps.memories.providers.mem0.slots import SearchTime

    return SearchTime()


@contextmanager
def _writing() -> Iterator[None]:
    """The caller's transaction, or one of its own; after a failure the caller's is still usable."""
    _load_mem0()
    with _pool_errors("written"), transaction.atomic(), waiting_for_locks_within(LOCK_SECONDS):
        yield


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """A transaction, or a savepoint in the caller's, that is always rolled back.

    With it go the settings that a search makes, which would otherwise hold for the rest of the caller's
    transaction; and after a failure the caller's transaction is still usable.
    """
    _load_mem0()
    with _pool_errors(what), transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def _pool_errors(what: str) -> Iterator[None]:
    """Say that the pool failed, and whether to try again, without quoting what was written or asked."""
    try:
        yield
    except (DatabaseError, InterfaceError) as error:
        raise _pool_error(what, error) from error


def _pool_error(what: str, error: Exception) -> ProviderError:
    if is_timeout(error):
        return ProviderTimeout(f"The pool could not be {what} in time ({type(error.__cause__ or error).__name__}).")
    transient = isinstance(error, OperationalError | InterfaceError)
    reason = type(error.__cause__ or error).__name__
    return ProviderError(f"The pool could not be {what} ({reason}).", permanent=not transient)
