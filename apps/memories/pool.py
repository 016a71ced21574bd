"""The pool's tables, one for each generation of embeddings, and beside each one for working notes.

The shape is mem0's (``id, vector, payload``) with stored columns computed from the payload beside it,
because a search that filters inside JSON text reads the whole table. Rows are passages: the first row of a
memory has the memory's own id. The migration and a rebuild of the pool both make the table here, so that
they cannot differ.

How a search reads it, on 60,000 rows (``EXPLAIN``, abridged; a test holds both shapes). A small scope, exactly,
2,000 rows in 9 ms::

    Limit
      ->  Sort  (distance, memory_id)
            ->  Unique
                  ->  Sort  (memory_id, distance, passage)
                        ->  Bitmap Heap Scan on fm_pool_g1
                              ->  BitmapOr
                                    ->  Bitmap Index Scan on fm_pool_g1_firm
                                    ->  Bitmap Index Scan on fm_pool_g1_domains
                                    ->  Bitmap Index Scan on fm_pool_g1_repos

A large scope, approximately, 42,000 rows in 2 ms where the exact way takes 69::

    CTE near
      ->  Limit
            ->  Index Scan using fm_pool_g1_hnsw on fm_pool_g1
                  Order By: (vector <=> '[...]')
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from psycopg import sql

FIRST_GENERATION: Final = 1

# pgvector's own limits: a column, an HNSW index over vector, an HNSW index over halfvec.
MAX_DIMENSIONS: Final = 16_000
MAX_HNSW_DIMENSIONS: Final = 2_000
MAX_HALFVEC_HNSW_DIMENSIONS: Final = 4_000

# A vector that fits into its row is read without a detour through TOAST, which halves an exact search.
MAX_PLAIN_DIMENSIONS: Final = 1_900

_LOCK = 827_341

_FUNCTION = """
CREATE OR REPLACE FUNCTION fm_bigint_array(value jsonb) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT CASE WHEN jsonb_typeof(value) = 'array' THEN ARRAY(
        SELECT element::bigint FROM jsonb_array_elements_text(value) AS element
    ) END
$$
"""

# NOT NULL on the computed columns refuses a row that a search could not filter, whoever writes it.
_TABLE = """
CREATE TABLE IF NOT EXISTS {table} (
    id uuid PRIMARY KEY,
    vector vector({dimensions}) NOT NULL,
    payload jsonb NOT NULL,
    memory_id uuid NOT NULL GENERATED ALWAYS AS ((payload ->> 'memory_id')::uuid) STORED,
    passage integer NOT NULL GENERATED ALWAYS AS ((payload ->> 'passage')::integer) STORED,
    workspace bigint NOT NULL GENERATED ALWAYS AS ((payload ->> 'workspace')::bigint) STORED,
    tier text NOT NULL GENERATED ALWAYS AS (payload ->> 'tier') STORED,
    status text NOT NULL GENERATED ALWAYS AS (payload ->> 'status') STORED,
    type text NOT NULL GENERATED ALWAYS AS (payload ->> 'type') STORED,
    firm boolean NOT NULL GENERATED ALWAYS AS ((payload ->> 'firm')::boolean) STORED,
    domain_ids bigint[] NOT NULL GENERATED ALWAYS AS (fm_bigint_array(payload -> 'domain_ids')) STORED,
    repo_ids bigint[] NOT NULL GENERATED ALWAYS AS (fm_bigint_array(payload -> 'repo_ids')) STORED,
    audience_ids bigint[] NOT NULL GENERATED ALWAYS AS (fm_bigint_array(payload -> 'audience_ids')) STORED,
    valid_from double precision GENERATED ALWAYS AS ((payload ->> 'valid_from')::double precision) STORED,
    valid_to double precision GENERATED ALWAYS AS ((payload ->> 'valid_to')::double precision) STORED,
    closed_at double precision GENERATED ALWAYS AS ((payload ->> 'closed_at')::double precision) STORED,
    recorded_at double precision NOT NULL
        GENERATED ALWAYS AS ((payload ->> 'recorded_at')::double precision) STORED,
    retired_at double precision GENERATED ALWAYS AS ((payload ->> 'retired_at')::double precision) STORED,
    CONSTRAINT {tier_known} CHECK (tier IN ('durable', 'index')),
    CONSTRAINT {passage_once} UNIQUE (memory_id, passage)
)
"""

_PLAIN_STORAGE = "ALTER TABLE {table} ALTER COLUMN vector SET STORAGE PLAIN"

# Working notes, in a table of their own that no search of memories reads. It holds no text: that stands in the table of
# notes alone, and is gone with its row.
_NOTES = """
CREATE TABLE IF NOT EXISTS {table} (
    id uuid PRIMARY KEY,
    vector vector({dimensions}) NOT NULL,
    payload jsonb NOT NULL,
    note_id uuid NOT NULL GENERATED ALWAYS AS ((payload ->> 'note_id')::uuid) STORED,
    passage integer NOT NULL GENERATED ALWAYS AS ((payload ->> 'passage')::integer) STORED,
    workspace bigint NOT NULL GENERATED ALWAYS AS ((payload ->> 'workspace')::bigint) STORED,
    task text NOT NULL GENERATED ALWAYS AS (payload ->> 'task') STORED,
    CONSTRAINT {passage_once} UNIQUE (note_id, passage)
)
"""

# A task has so few notes that they are all read: no approximate index, and nothing to tune.
_NOTES_OF_TASK = "CREATE INDEX IF NOT EXISTS {index} ON {table} (workspace, task)"

# Without a list of what is still to be put in order, which every search would have to read through.
_INDEXES: Final = (
    ("domains", "CREATE INDEX IF NOT EXISTS {index} ON {table} USING gin (domain_ids) WITH (fastupdate = off)"),
    ("repos", "CREATE INDEX IF NOT EXISTS {index} ON {table} USING gin (repo_ids) WITH (fastupdate = off)"),
    ("workspace", "CREATE INDEX IF NOT EXISTS {index} ON {table} (workspace)"),
    ("type", "CREATE INDEX IF NOT EXISTS {index} ON {table} (workspace, type)"),
    # With it PostgreSQL can answer "firm or domains or repositories" from three indexes instead of the whole
    # table.
    ("firm", "CREATE INDEX IF NOT EXISTS {index} ON {table} (workspace) WHERE firm"),
)

# The predicate names the tier only: one on the status would leave questions about the past without an index.
# What firms write gathers around subjects and comes in subject by subject, which makes for a poor graph where little
# is spent on each row. Of the nearest ten of 100,000 such rows an index with 16 links a row found 0.985 with an
# ef_search of 400; with 24 and 800 it finds 0.998 (docs/benchmarks.md), at seven milliseconds instead of four.
_HNSW = """
CREATE INDEX IF NOT EXISTS {index} ON {table} USING hnsw ({expression} {operators})
WITH (m = 24, ef_construction = 128) WHERE tier IN ('durable', 'index')
"""


class Cursor(Protocol):
    def execute(self, query: Any, params: Any = None) -> Any: ...

    def fetchone(self) -> Any: ...


def pool_table(number: int) -> str:
    """The table of generation ``number``; also the name of mem0's collection."""
    if number < 1:
        raise ValueError("Generations are counted from 1.")
    return f"fm_pool_g{number}"


def notes_table(number: int) -> str:
    """The table of working notes of the same generation; the name of another collection of mem0's."""
    pool_table(number)
    return f"fm_notes_g{number}"


def create_pool(cursor: Cursor, *, number: int, dimensions: int) -> None:
    """Create the table, functions and indexes of a generation, or complete what is already there.

    Raises ``ValueError`` when the table exists for vectors of another length: that is another generation.
    """
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise ValueError(f"An embedding has between 1 and {MAX_DIMENSIONS:,} dimensions, not {dimensions}.")
    name = pool_table(number)
    # Two processes that start at once would otherwise race between "is it there?" and "create it".
    cursor.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
    cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
    cursor.execute(_FUNCTION)
    cursor.execute(_compose(_TABLE, name, dimensions=sql.Literal(dimensions)))
    _require_dimensions(cursor, name, dimensions)
    if dimensions <= MAX_PLAIN_DIMENSIONS:
        cursor.execute(_compose(_PLAIN_STORAGE, name))
    for suffix, statement in _INDEXES:
        cursor.execute(_compose(statement, name, index=sql.Identifier(f"{name}_{suffix}")))
    if dimensions <= MAX_HALFVEC_HNSW_DIMENSIONS:
        cursor.execute(_hnsw_statement(name, dimensions))
    create_notes(cursor, number=number, dimensions=dimensions)


def create_notes(cursor: Cursor, *, number: int, dimensions: int) -> None:
    """The generation's table of working notes, where it is not there yet."""
    name = notes_table(number)
    cursor.execute(f"SELECT pg_advisory_xact_lock({_LOCK})")
    cursor.execute(_compose(_NOTES, name, dimensions=sql.Literal(dimensions)))
    _require_dimensions(cursor, name, dimensions)
    if dimensions <= MAX_PLAIN_DIMENSIONS:
        cursor.execute(_compose(_PLAIN_STORAGE, name))
    cursor.execute(_compose(_NOTES_OF_TASK, name, index=sql.Identifier(f"{name}_of_task")))


def drop_pool(cursor: Cursor, *, number: int) -> None:
    """Remove the tables of a generation; the ledger keeps everything needed to build them again."""
    for name in (pool_table(number), notes_table(number)):
        cursor.execute(_compose("DROP TABLE IF EXISTS {table}", name))


def is_half_precision(dimensions: int) -> bool:
    """Whether the vectors are too long for an index at full precision, so that it holds half floats."""
    return MAX_HNSW_DIMENSIONS < dimensions <= MAX_HALFVEC_HNSW_DIMENSIONS


def _hnsw_statement(name: str, dimensions: int) -> str:
    half = is_half_precision(dimensions)
    expression = f"(vector::halfvec({dimensions}))" if half else "vector"
    return _compose(
        _HNSW,
        name,
        index=sql.Identifier(f"{name}_hnsw"),
        expression=sql.SQL(expression),
        operators=sql.SQL("halfvec_cosine_ops" if half else "vector_cosine_ops"),
    )


def _compose(statement: str, name: str, **parts: sql.Composable) -> str:
    names = {
        "table": sql.Identifier(name),
        "tier_known": sql.Identifier(f"{name}_tier_known"),
        "passage_once": sql.Identifier(f"{name}_passage_once"),
    }
    return sql.SQL(statement).format(**names, **parts).as_string()


def _require_dimensions(cursor: Cursor, name: str, dimensions: int) -> None:
    cursor.execute("SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'vector'", [name])
    (found,) = cursor.fetchone()
    if found != dimensions:
        raise ValueError(
            f"The table {name} holds vectors of {found} dimensions, not {dimensions}. "
            "Another embedder needs another generation, which `manage.py pool rebuild` makes."
        )
