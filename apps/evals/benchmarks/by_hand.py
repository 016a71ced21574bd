"""The search of the pool as somebody would write it by hand, with psycopg alone: what ours is measured against.

A search that may be put behind a pooler, and may not hang, takes a transaction: a statement that sets its bounds, and
the statement that looks. ``nearest`` is the second one alone.

Written apart from the provider on purpose. One row is one hit here: memories of several passages, which the provider
puts together, are not in the data that this is measured on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from django.db import connection

from apps.memories.pool import FIRST_GENERATION, pool_table
from apps.memories.providers.base import REPLACED, PoolQuery

Cursor = psycopg.Cursor[tuple[Any, ...]]
Statement = tuple[str, Any]  # as it was sent, and its parameters

_ADMITTED: Final = """
workspace = %(workspace)s AND tier = ANY(%(tiers)s) AND status = ANY(%(statuses)s) AND audience_ids = '{{}}'
  AND {scope}
  AND (valid_from IS NULL OR valid_from <= %(valid)s)
  AND (valid_to IS NULL OR valid_to > %(valid)s OR closed_at > %(known)s{replaced})
  AND recorded_at <= %(known)s AND (retired_at IS NULL OR retired_at > %(known)s)
"""
_NEAREST: Final = f"""
SELECT memory_id, {{distance}} AS distance FROM {{table}}
WHERE {_ADMITTED}
ORDER BY distance LIMIT %(limit)s
"""
_IDS: Final = f"SELECT id FROM {{table}} WHERE {_ADMITTED}"
_COUNT: Final = f"SELECT count(*) FROM {{table}} WHERE {_ADMITTED}"


_SETTINGS: Final = "SELECT set_config('statement_timeout', '2000', true), set_config('jit', 'off', true)"


class ByHand:
    """A connection of its own."""

    def __init__(self, *, cursor_factory: type[Cursor] | None = None) -> None:
        """To where Django is connected; ``cursor_factory`` for statements that were made for another kind."""
        given = connection.get_connection_params()
        places = {name: given[name] for name in ("host", "port", "user", "password", "dbname") if given.get(name)}
        self._connection = psycopg.connect(**places, autocommit=True, cursor_factory=cursor_factory)

    def close(self) -> None:
        self._connection.close()

    def nearest(self, query: PoolQuery) -> list[tuple[UUID, float]]:
        """Exact: the sum keeps PostgreSQL from walking the HNSW index."""
        return self._run(_sql(_NEAREST, query, distance="(vector <=> %(vector)s::vector) + 0"), query)

    def bounded(self, query: PoolQuery) -> list[tuple[UUID, float]]:
        """``nearest`` within bounds that end with it."""
        with self._connection.transaction():
            self._connection.execute(_SETTINGS).fetchall()
            return self.nearest(query)

    def brute_force(self, query: PoolQuery) -> list[tuple[UUID, float]]:
        """Exact beyond doubt: every row of the table is read, no index is used."""
        with self._connection.transaction():
            for kind in ("enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"):
                self._connection.execute(f"SET LOCAL {kind} = off")
            return self._run(_sql(_NEAREST, query, distance="vector <=> %(vector)s::vector"), query)

    def admitted(self, query: PoolQuery) -> int:
        """How many rows the filter lets through."""
        ((count,),) = self.run(_sql(_COUNT, query), _values(query))
        return int(count)

    def admitted_ids(self, query: PoolQuery) -> list[UUID]:
        return [row[0] for row in self.run(_sql(_IDS, query), _values(query))]

    def run(self, statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement.encode(), parameters).fetchall()

    def replay(self, statements: Sequence[Statement]) -> None:
        """Send what was recorded once more, in a transaction, and fetch the rows."""
        with self._connection.transaction():
            for statement, parameters in statements:
                cursor = self._connection.execute(statement.encode(), parameters)
                if cursor.description is not None:
                    cursor.fetchall()

    def _run(self, statement: str, query: PoolQuery) -> list[tuple[UUID, float]]:
        return self._connection.execute(statement.encode(), _values(query)).fetchall()


def _sql(template: str, query: PoolQuery, **parts: str) -> str:
    alternatives = ["firm"]
    if query.domain_ids:
        alternatives.append("domain_ids && %(domains)s::bigint[]")
    if query.repo_ids:
        alternatives.append("repo_ids && %(repos)s::bigint[]")
    scope = "true" if query.everything else f"({' OR '.join(alternatives)})"
    replaced = f" OR status = '{REPLACED}'" if query.with_replaced else ""
    return template.format(table=pool_table(FIRST_GENERATION), scope=scope, replaced=replaced, **parts)


def _values(query: PoolQuery) -> dict[str, Any]:
    return {
        "vector": str(list(query.vector)),
        "workspace": query.workspace,
        "tiers": sorted(query.tiers),
        "statuses": sorted(query.effective_statuses),
        "domains": sorted(query.domain_ids),
        "repos": sorted(query.repo_ids),
        "valid": _epoch(query.valid_instant),
        "known": _epoch(query.known_instant),
        "limit": query.limit,
    }


def _epoch(moment: datetime) -> float:
    return moment.timestamp()
