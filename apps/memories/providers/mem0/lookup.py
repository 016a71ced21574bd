"""How the pool's table is searched: one statement that filters and ranks, exact or approximate.

Exact reads every row in scope and is right by construction. Approximate walks the HNSW index, which is fast
over many rows but blind to the filter: over few matching rows it finds only some of the nearest, and nothing
says so. Therefore a search is exact as long as its scope is small enough to be read.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

from psycopg import sql

from apps.memories.pool import MAX_HALFVEC_HNSW_DIMENSIONS, is_half_precision
from apps.memories.providers.base import REPLACED, NoteQuery, PoolQuery
from apps.memories.providers.mem0.payload import epoch_seconds

# The key under which a search brings its filter: mem0's own filter language reads JSON text, and wrongly.
POOL_QUERY: Final = "pool_query"

# The key under which a search of working notes says which task it is about.
NOTE_QUERY: Final = "note_query"

# The key under which it brings the time that its statements share.
SEARCH_TIME: Final = "search_time"

# As many rows of 384 dimensions are read and ranked in some 60 ms.
EXACT_ROWS: Final = 15_000
OVERFETCH: Final = 4

Statement = tuple[str, list[Any]]

# By set_config, not by options of the connection, which poolers of transactions refuse or drop. All of it
# ends with the transaction or savepoint of the search.
_SETTINGS: Final = """
set_config('statement_timeout', %s, true),
set_config('jit', 'off', true),
set_config('hnsw.ef_search', '800', true),
set_config('hnsw.iterative_scan', 'relaxed_order', true),
set_config('hnsw.max_scan_tuples', '100000', true)
"""

_COUNT: Final = "SELECT count(*) FROM (SELECT FROM {table} WHERE {scope} LIMIT %s) AS admitted"

# Adding zero keeps the planner from answering a small scope by the HNSW index. Only the nearest rows are sorted by
# memory: sorting all of them by it would take a third of the time.
_EXACT: Final = """
WITH near AS MATERIALIZED (
    SELECT memory_id, passage, (vector <=> %s::vector) + 0 AS distance
    FROM {table} WHERE {filter}
    ORDER BY distance, memory_id, passage LIMIT %s
)
SELECT memory_id, passage, distance, (SELECT count(*) FROM near) FROM (
    SELECT DISTINCT ON (memory_id) memory_id, passage, distance FROM near
    ORDER BY memory_id, distance, passage
) AS best
ORDER BY distance, memory_id LIMIT %s
"""

# The index hands rows out in about the right order. Materialised, the planner cannot take that for sorted.
_APPROXIMATE: Final = """
WITH near AS MATERIALIZED (
    SELECT memory_id, passage, vector <=> %s::vector AS distance
    FROM {table} WHERE {filter}
    ORDER BY {indexed} <=> %s::{indexed_type} LIMIT %s
)
SELECT memory_id, passage, distance FROM (
    SELECT DISTINCT ON (memory_id) memory_id, passage, distance FROM near
    ORDER BY memory_id, distance, passage
) AS best
ORDER BY distance, memory_id LIMIT %s
"""


# Every note of the task is read: there are a thousand at most.
_NOTES: Final = """
SELECT note_id, distance FROM (
    SELECT DISTINCT ON (note_id) note_id, vector <=> %s::vector AS distance
    FROM {table} WHERE workspace = %s::bigint AND task = %s::text
    ORDER BY note_id, distance
) AS best
ORDER BY distance, note_id LIMIT %s
"""


def settings_calls(seconds: float) -> Statement:
    """Calls that make the settings for a look-up that may take as long as this; a timeout of 0 would mean none."""
    return _SETTINGS, [str(max(1, int(seconds * 1000)))]


def settings_statement(seconds: float) -> Statement:
    calls, parameters = settings_calls(seconds)
    return f"SELECT {calls}", parameters


def count_statement(table: str, query: PoolQuery) -> Statement:
    """Counts the rows that workspace, scope and types admit, one past the limit at most."""
    conditions, parameters = _joined(_scope_conditions(query))
    return _compose(_COUNT, table, scope=conditions), [*parameters, EXACT_ROWS + 1]


def exact_statement(table: str, query: PoolQuery, rows: int | None = None) -> Statement:
    """The nearest memories among the nearest ``rows`` (``None``: among all), and how many of those there were."""
    conditions, parameters = _joined(_conditions(query))
    statement = _compose(_EXACT, table, filter=conditions)
    return statement, [vector_literal(query.vector), *parameters, rows, query.limit]


def approximate_statement(table: str, query: PoolQuery) -> Statement:
    conditions, parameters = _joined(_conditions(query))
    dimensions = len(query.vector)
    half = is_half_precision(dimensions)
    statement = _compose(
        _APPROXIMATE,
        table,
        filter=conditions,
        indexed=sql.SQL(f"vector::halfvec({dimensions})" if half else "vector"),
        indexed_type=sql.SQL(f"halfvec({dimensions})" if half else "vector"),
    )
    vector = vector_literal(query.vector)
    return statement, [vector, *parameters, vector, query.limit * OVERFETCH, query.limit]


def notes_statement(table: str, query: NoteQuery) -> Statement:
    """The nearest working notes of one task."""
    return _compose(_NOTES, table), [vector_literal(query.vector), query.workspace, query.task, query.limit]


def has_index(dimensions: int) -> bool:
    """Whether vectors of this length can be searched approximately at all."""
    return dimensions <= MAX_HALFVEC_HNSW_DIMENSIONS


def vector_literal(vector: Sequence[float]) -> str:
    """pgvector's text form. Nine digits are enough to give back every single-precision number."""
    return f"[{','.join(f'{number:.9g}' for number in vector)}]"


class ScopeSizes:
    """How many rows a scope holds, remembered for a minute; counting costs as much as searching.

    A stale size is harmless: it chooses between two ways to the answer, not the answer.
    """

    def __init__(self, *, seconds: float = 60.0, entries: int = 1_024) -> None:
        self._seconds = seconds
        self._entries = entries
        self._known: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, table: str, query: PoolQuery) -> int | None:
        with self._lock:
            counted_at, size = self._known.get(_scope_key(table, query), (float("-inf"), 0))
        return size if time.monotonic() - counted_at < self._seconds else None

    def put(self, table: str, query: PoolQuery, size: int) -> None:
        with self._lock:
            self._known[_scope_key(table, query)] = (time.monotonic(), size)
            while len(self._known) > self._entries:
                self._known.popitem(last=False)


def _scope_key(table: str, query: PoolQuery) -> Hashable:
    return table, query.workspace, query.everything, query.domain_ids, query.repo_ids, query.types


Condition = tuple[str, list[Any]]


def _conditions(query: PoolQuery) -> list[Condition]:
    """The filter that ``PoolQuery`` promises."""
    valid, known = epoch_seconds(query.valid_instant), epoch_seconds(query.known_instant)
    return [
        *_scope_conditions(query),
        ("tier = ANY(%s::text[])", [sorted(query.tiers)]),
        ("status = ANY(%s::text[])", [sorted(query.effective_statuses)]),
        # "Unrestricted" is said apart, because the planner takes "contained in" for one row in two hundred
        # and would leave the HNSW index alone.
        ("(audience_ids = '{}' OR audience_ids <@ %s::bigint[])", [sorted(query.audiences)]),
        ("(valid_from IS NULL OR valid_from <= %s::float8)", [valid]),
        _not_ended(query, valid, known),
        ("recorded_at <= %s::float8", [known]),
        ("(retired_at IS NULL OR retired_at > %s::float8)", [known]),
    ]


def _not_ended(query: PoolQuery, valid: float, known: float) -> Condition:
    ways = "valid_to IS NULL OR valid_to > %s::float8 OR closed_at > %s::float8"
    if query.with_replaced:
        return f"({ways} OR status = %s::text)", [valid, known, REPLACED]
    return f"({ways})", [valid, known]


def _scope_conditions(query: PoolQuery) -> list[Condition]:
    conditions: list[Condition] = [("workspace = %s::bigint", [query.workspace])]
    if query.types is not None:
        conditions.append(("type = ANY(%s::text[])", [sorted(query.types)]))
    if not query.everything:
        conditions.append(_scope(query))
    return conditions


def _scope(query: PoolQuery) -> Condition:
    """Firm-wide, or sharing a domain or repository. What is not named is left out, so no index is read for it."""
    alternatives: list[Condition] = [("firm", [])]
    if query.domain_ids:
        alternatives.append(("domain_ids && %s::bigint[]", [sorted(query.domain_ids)]))
    if query.repo_ids:
        alternatives.append(("repo_ids && %s::bigint[]", [sorted(query.repo_ids)]))
    text, parameters = _joined(alternatives, " OR ")
    return f"({text})", parameters


def _joined(conditions: Iterable[Condition], word: str = " AND ") -> Condition:
    texts, parameters = zip(*conditions, strict=True)
    return word.join(texts), [each for some in parameters for each in some]


def _compose(statement: str, table: str, **parts: str | sql.Composable) -> str:
    """Fill in names and the fixed texts of this module; values always travel as parameters."""
    composed = {name: sql.SQL(part) if isinstance(part, str) else part for name, part in parts.items()}
    return sql.SQL(statement).format(table=sql.Identifier(table), **composed).as_string()
