"""mem0 as it comes, on a table of its own with the rows of our pool: its store, its search, its default settings.

Only the embedding is not mem0's: both sides are given the same recorded vectors, because what is compared is the
search. Its filter is one equality on a field of the payload, which is what it does best; the field says whether our
search of that scope would admit the row.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import psycopg.conninfo
from django.db import connection
from psycopg import sql

from apps.memories.pool import FIRST_GENERATION, pool_table
from apps.memories.providers.embedders.base import Embedder

TABLE: Final = "stock_mem0"
USER: Final = "bench"

_FILL: Final = """
INSERT INTO {stock} (id, vector, payload)
SELECT pool.id, pool.vector, jsonb_build_object(
    'data', pool.payload -> 'data', 'hash', md5(pool.payload ->> 'data'), 'created_at', now(), 'user_id', {user}::text,
    'text_lemmatized', lower(pool.payload ->> 'data')
) || {scopes}
FROM {pool} AS pool
"""


class StockMem0:
    """Opens a pool of connections of its own; close it."""

    def __init__(self, embedder: Embedder) -> None:
        from apps.memories.providers.mem0.quiet import Memory

        with _quiet():
            self.memory: Any = Memory.from_config(_configuration(embedder.dimensions))
        self.memory.embedding_model = _Slot(embedder)
        self.store: Any = self.memory.vector_store

    def close(self) -> None:
        """Leaves nothing behind: the table would take as much room as the pool."""
        self.store.connection_pool.close()
        self.memory.db.close()
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")

    def fill(self, admitted: Mapping[str, list[UUID]]) -> None:
        """Make mem0's table anew from our pool, with mem0's own statements; its index comes after the rows.

        ``admitted`` holds the ids that a scope admits; its name becomes the field to filter by.
        """
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        self.store.create_col()
        fields = sql.SQL(" || ").join(
            sql.SQL("jsonb_build_object({}::text, CASE WHEN pool.id = ANY(%s) THEN 'yes' ELSE 'no' END)").format(
                sql.Literal(name)
            )
            for name in admitted
        )
        statement = sql.SQL(_FILL).format(
            stock=sql.Identifier(TABLE),
            user=sql.Literal(USER),
            scopes=fields,
            pool=sql.Identifier(pool_table(FIRST_GENERATION)),
        )
        with connection.cursor() as cursor:
            cursor.execute(f"DROP INDEX {TABLE}_hnsw_idx")
            cursor.execute(statement.as_string(), list(admitted.values()))
        self.store.create_col()
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM (ANALYZE) {TABLE}")

    def fill_with(self, rows: Sequence[tuple[UUID, list[float], dict[str, Any]]]) -> None:
        """Make mem0's table anew from ids, vectors and payloads; ``data`` of a payload is the text."""
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
        self.store.create_col()
        at = datetime.now(UTC).isoformat()
        payloads = [
            payload
            | {
                "hash": hashlib.md5(payload["data"].encode(), usedforsecurity=False).hexdigest(),
                "created_at": at,
                "user_id": USER,
                "text_lemmatized": payload["data"].lower(),
            }
            for _, _, payload in rows
        ]
        with _quiet():
            self.store.insert([vector for _, vector, _ in rows], payloads, [str(pk) for pk, _, _ in rows])
        with connection.cursor() as cursor:
            cursor.execute(f"VACUUM (ANALYZE) {TABLE}")

    def search(self, question: str, scope: str, *, limit: int) -> list[str]:
        """The ids that mem0 finds, best first."""
        with _quiet():
            found = self.memory.search(question, top_k=limit, filters={"user_id": USER, scope: "yes"})
        return [row["id"] for row in found["results"]]


class _Slot:
    """mem0's embedder, answered from recorded vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector


def _configuration(dimensions: int) -> dict[str, Any]:
    store = {
        "collection_name": TABLE,
        "embedding_model_dims": dimensions,
        "connection_string": _url(),
        "dbname": connection.settings_dict["NAME"],
    }
    # Neither model is ever asked; mem0 wants a key before it makes their clients.
    model = {"provider": "openai", "config": {"api_key": "unused"}}
    return {
        "vector_store": {"provider": "pgvector", "config": store},
        "llm": model,
        "embedder": model,
        "history_db_path": ":memory:",
    }


def _url() -> str:
    parts = connection.get_connection_params()
    return psycopg.conninfo.make_conninfo(
        **{name: parts[name] for name in ("host", "port", "user", "password", "dbname") if parts.get(name)}
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """mem0 prints advertisements of its hosted service and warns of what it has not installed."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
