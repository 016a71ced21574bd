"""What goes into mem0's slots: our store, our embedder, and refusals where mem0 would act on its own.

Import this module late: it imports mem0.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn
from uuid import UUID

from django.db import connection
from psycopg import sql

from apps.memories.providers.base import NoteQuery, PoolQuery, ProviderError
from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.mem0.lookup import (
    EXACT_ROWS,
    NOTE_QUERY,
    OVERFETCH,
    POOL_QUERY,
    SEARCH_TIME,
    ScopeSizes,
    Statement,
    approximate_statement,
    count_statement,
    exact_statement,
    has_index,
    notes_statement,
    settings_calls,
    settings_statement,
    vector_literal,
)
from apps.memories.providers.mem0.quiet import EmbeddingBase, LLMBase, VectorStoreBase

POOL_SECONDS: Final = 2.0

_ROWS_AT_ONCE = 200

_INSERT = """
INSERT INTO {table} (id, vector, payload)
SELECT id, vector::vector, payload::jsonb FROM unnest(%s::uuid[], %s::text[], %s::text[])
    AS new (id, vector, payload)
ON CONFLICT (id) DO NOTHING
"""
_PATCH = "UPDATE {table} SET payload = payload || %s::jsonb WHERE memory_id = %s"
_GET = "SELECT id, payload::text FROM {table} WHERE id = %s"
_STATUSES = "SELECT memory_id, status FROM {table} WHERE memory_id = ANY(%s) AND passage = 0"
_PAGE = """
SELECT id, payload::text FROM {table} WHERE passage = 0 AND memory_id > %s ORDER BY memory_id LIMIT %s
"""
_COUNT = "SELECT count(*), count(*) FILTER (WHERE passage = 0) FROM {table}"
_FORGET = "DELETE FROM {table} WHERE note_id = ANY(%s)"


@dataclass(frozen=True, slots=True)
class Row:
    """A row as mem0 expects a store to return it."""

    id: str
    score: float
    payload: dict[str, Any]


class Collection(VectorStoreBase):
    """mem0's vector store on Django's own connection, so that it takes part in the caller's transaction.

    The table is made by ``apps.memories.pool``. What would change the table, list it, or replace what is in it is
    refused.
    """

    def __init__(self, collection_name: str, embedding_model_dims: int, **_unused: Any) -> None:
        self.collection_name = collection_name
        self.embedding_model_dims = embedding_model_dims

    def insert(
        self,
        vectors: Sequence[Sequence[float]],
        payloads: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Store rows; those whose id is there already are left as they are."""
        rows = list(zip(ids or (), map(vector_literal, vectors), map(json.dumps, payloads or ()), strict=True))
        with connection.cursor() as cursor:
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                columns = zip(*rows[start : start + _ROWS_AT_ONCE], strict=True)
                cursor.execute(self._sql(_INSERT), [list(column) for column in columns])

    def counts(self) -> tuple[int, int]:
        """How many passages there are, and of how many texts."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql(_COUNT))
            passages, texts = cursor.fetchone()
        return passages, texts

    def keyword_search(self, query: str, top_k: int = 5, filters: Mapping[str, Any] | None = None) -> None:
        """Nothing: words are looked up in the ledger, where the ranking is better."""

    def list_cols(self) -> list[str]:
        return [self.collection_name]

    def col_info(self) -> dict[str, Any]:
        return {"name": self.collection_name, "count": self.counts()[0]}

    def create_col(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("The pool's table is made by the migrations")

    def update(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("An update would replace what is there")

    def delete_col(self) -> NoReturn:
        _refuse("A collection is not deleted")

    def reset(self) -> NoReturn:
        _refuse("A collection is not deleted")

    def _sql(self, statement: str) -> str:
        return sql.SQL(statement).format(table=sql.Identifier(self.collection_name)).as_string()

    # Last, because the name hides the built-in one from everything below it.
    def list(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("A listing without a scope would cross workspaces")


class PoolStore(Collection):
    """The memories. They are searched within a scope, and not one of them is deleted."""

    def __init__(self, collection_name: str, embedding_model_dims: int, **unused: Any) -> None:
        super().__init__(collection_name, embedding_model_dims, **unused)
        self.sizes = ScopeSizes()

    def search(
        self,
        query: str,
        vectors: Sequence[float],
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
    ) -> Sequence[Row]:
        """The best passage of each of the nearest memories. Belongs inside a transaction that is rolled back."""
        asked = (filters or {}).get(POOL_QUERY)
        if not isinstance(asked, PoolQuery):
            _refuse("A search without a scope would cross workspaces")
        narrowed = replace(asked, vector=tuple(vectors), limit=top_k)
        lookup = _Lookup(self.collection_name, narrowed, self.sizes, (filters or {}).get(SEARCH_TIME) or SearchTime())
        return [
            Row(str(memory_id), max(0.0, 1.0 - distance), {"passage": passage})
            for memory_id, passage, distance in lookup.nearest()
        ]

    def get(self, vector_id: str) -> Row | None:
        return next(self._rows(_GET, [vector_id]), None)

    def statuses(self, memory_ids: Sequence[UUID], search_time: SearchTime) -> dict[UUID, str]:
        """By the memory's id; those that are not there are left out."""
        search_time.renew()
        with connection.cursor() as cursor:
            cursor.execute(self._sql(_STATUSES), [[*memory_ids]])
            return dict(cursor.fetchall())

    def patch(self, memory_id: str, changes: Mapping[str, Any]) -> int:
        """Change the payload of all passages of a memory, and nothing else; the number of rows changed."""
        with connection.cursor() as cursor:
            cursor.execute(self._sql(_PATCH), [json.dumps(changes), memory_id])
            changed: int = cursor.rowcount
        return changed

    def page(self, after: UUID, limit: int) -> Sequence[Row]:
        """The first passages of the next memories, in the order of their ids."""
        return tuple(self._rows(_PAGE, [after, limit]))

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("Memories are not deleted")

    def _rows(self, statement: str, parameters: Sequence[Any]) -> Iterator[Row]:
        with connection.cursor() as cursor:
            cursor.execute(self._sql(statement), parameters)
            found = cursor.fetchall()
        return (Row(str(row_id), 0.0, json.loads(payload)) for row_id, payload in found)


class NoteStore(Collection):
    """The working notes, which are searched within one task and are deleted."""

    def search(
        self,
        query: str,
        vectors: Sequence[float],
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
    ) -> Sequence[Row]:
        """The nearest notes of one task. Belongs inside a transaction that is rolled back."""
        asked = (filters or {}).get(NOTE_QUERY)
        if not isinstance(asked, NoteQuery):
            _refuse("A search of notes without a task would cross tasks")
        ((filters or {}).get(SEARCH_TIME) or SearchTime()).renew()
        narrowed = replace(asked, vector=tuple(vectors), limit=top_k)
        with connection.cursor() as cursor:
            cursor.execute(*notes_statement(self.collection_name, narrowed))
            return [Row(str(note_id), max(0.0, 1.0 - distance), {}) for note_id, distance in cursor.fetchall()]

    def forget(self, note_ids: Sequence[UUID]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(self._sql(_FORGET), [[*note_ids]])

    def get(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("A note is read from its own table")

    def delete(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("A note is deleted together with its row")


class SearchTime:
    """The time that the statements of one search share."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + POOL_SECONDS
        self._given: float | None = None

    def settings(self) -> Statement:
        """The calls that make the settings, for whoever sends a statement first."""
        self._given = max(0.0, self._deadline - time.monotonic())
        return settings_calls(self._given)

    def renew(self) -> None:
        """Before a further statement, for which PostgreSQL counts anew: only once a tenth of the time is used up."""
        left = self._deadline - time.monotonic()
        if self._given is not None and self._given - left <= POOL_SECONDS / 10:
            return
        self._given = left
        with connection.cursor() as cursor:
            cursor.execute(*settings_statement(left))


class _Lookup:
    """One search in one table."""

    def __init__(self, table: str, query: PoolQuery, sizes: ScopeSizes, search_time: SearchTime) -> None:
        self._table = table
        self._query = query
        self._sizes = sizes
        self._time = search_time

    def nearest(self) -> list[tuple[Any, ...]]:
        if self._size() <= EXACT_ROWS or not has_index(len(self._query.vector)):
            return self._exact()
        found = self._run(approximate_statement(self._table, self._query))
        if len(found) == self._query.limit:
            return found
        # The index gave up before it met enough rows that pass the filter, so the filter is narrow.
        return self._exact()

    def _exact(self) -> list[tuple[Any, ...]]:
        rows = self._query.limit * OVERFETCH
        found = self._run(exact_statement(self._table, self._query, rows))
        if 0 < len(found) < self._query.limit and found[0][-1] == rows:
            # So many of the nearest rows belong to the same memories that others were left out.
            found = self._run(exact_statement(self._table, self._query, None))
        return [row[:-1] for row in found]

    def _size(self) -> int:
        """How many rows the scope holds, up to one more than are read."""
        size = self._sizes.get(self._table, self._query)
        if size is None:
            ((size,),) = self._run(count_statement(self._table, self._query))
            self._sizes.put(self._table, self._query, size)
        return size

    def _run(self, statement: Statement) -> list[tuple[Any, ...]]:
        self._time.renew()
        with connection.cursor() as cursor:
            cursor.execute(*statement)
            return cursor.fetchall()


class EmbedderSlot(EmbeddingBase):
    """mem0's embedder, answered by ours. ``embedder`` is put in by ``build_memory``."""

    embedder: Embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        if memory_action == "search":
            return [float(number) for number in self.embedder.embed_query(text)]
        return self.embed_batch([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = "add") -> list[list[float]]:
        rows: list[list[float]] = self.embedder.embed_documents(texts).tolist()
        return rows


class NoLanguageModel(LLMBase):
    """Keeps mem0 from deciding what to remember: that is what the people in the review queue do."""

    def generate_response(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        _refuse("The pool asks no language model")


class NoHistory:
    """Stands in for mem0's SQLite file of changes; the ledger's verdicts are the history."""

    def add_history(self, *_args: Any, **_kwargs: Any) -> None: ...

    def batch_add_history(self, *_args: Any, **_kwargs: Any) -> None: ...

    def get_history(self, *_args: Any, **_kwargs: Any) -> list[Any]:
        return []

    def save_messages(self, *_args: Any, **_kwargs: Any) -> None: ...

    def get_last_messages(self, *_args: Any, **_kwargs: Any) -> list[Any]:
        return []

    def reset(self) -> None: ...

    def close(self) -> None: ...


def _refuse(reason: str) -> NoReturn:
    raise ProviderError(f"{reason}, so the pool refuses it.", permanent=True)
