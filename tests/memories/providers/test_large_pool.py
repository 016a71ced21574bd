"""When the provider on PostgreSQL reads a large pool exactly, when by the vectors' index, and how well that finds."""

from __future__ import annotations

import pytest
from django.db import connection

from apps.memories.pool import create_pool
from apps.memories.providers.mem0 import lookup, slots
from apps.memories.providers.mem0.provider import Mem0Provider

from .conftest import make_live
from .doubles import HashingEmbedder, a_query, a_record, store, ways

pytestmark = pytest.mark.django_db

# Pseudo-random and the same on every run, which random() in SQL is not for all versions of PostgreSQL.
FILL = """
INSERT INTO fm_pool_g905 (id, vector, payload)
SELECT memory_id, vector, jsonb_build_object(
    'data', 'filled', 'memory_id', memory_id, 'passage', 0, 'workspace', 1, 'tier', 'durable',
    'status', 'active', 'type', CASE WHEN number %% 1250 = 0 THEN 'ownership' ELSE 'bug_fixes' END,
    'firm', number %% 50 = 0, 'domain_ids', jsonb_build_array(number %% 40),
    'repo_ids', jsonb_build_array(number %% 60), 'audience_ids', '[]'::jsonb, 'recorded_at', 0)
FROM (
    SELECT number, md5('memory ' || number)::uuid AS memory_id,
        (SELECT array_agg(hashfloat8(number * 1000.0 + each) / 2147483648.0)::vector
         FROM generate_series(1, 16) AS each) AS vector
    FROM generate_series(1, 15000) AS number
) AS made
"""
NAME, DIMENSIONS = "hashing in 16", 16


@pytest.fixture(scope="module")
def filled_once(module_transaction) -> None:
    with module_transaction(), connection.cursor() as cursor:
        make_live(number=905, embedder=NAME, dimensions=DIMENSIONS)
        # An index is built faster than it is grown.
        cursor.execute("DROP INDEX fm_pool_g905_hnsw")
        cursor.execute(FILL, [])
        create_pool(cursor, number=905, dimensions=DIMENSIONS)
        cursor.execute("ANALYZE fm_pool_g905")


@pytest.fixture
def filled(filled_once, db) -> Mem0Provider:
    return Mem0Provider(HashingEmbedder(name=NAME, dimensions=DIMENSIONS))


def plan(statement: lookup.Statement) -> str:
    with connection.cursor() as cursor:
        cursor.execute(*lookup.settings_statement(2))
        cursor.execute(f"EXPLAIN {statement[0]}", statement[1])
        return "\n".join(line for (line,) in cursor.fetchall())


def test_a_small_scope_is_read_from_its_indexes_not_from_the_vectors_index(filled):
    query = a_query(filled, domain_ids=frozenset({3}), repo_ids=frozenset({7}))
    lines = plan(lookup.exact_statement("fm_pool_g905", query))
    assert "BitmapOr" in lines
    for index in ("fm_pool_g905_firm", "fm_pool_g905_domains", "fm_pool_g905_repos"):
        assert f"Bitmap Index Scan on {index}" in lines
    assert "hnsw" not in lines
    assert "Seq Scan" not in lines


@pytest.mark.parametrize("changes", [{}, {"audiences": frozenset({1, 2})}, {"tiers": frozenset({"durable"})}])
def test_a_large_scope_is_read_from_the_vectors_index(filled, changes):
    query = a_query(filled, everything=True, **changes)
    lines = plan(lookup.approximate_statement("fm_pool_g905", query))
    assert "Index Scan using fm_pool_g905_hnsw" in lines


def test_a_question_about_the_past_uses_the_vectors_index_too(filled):
    past = a_record().recorded_at
    query = a_query(filled, everything=True, as_of=past, known_at=past)
    assert "fm_pool_g905_hnsw" in plan(lookup.approximate_statement("fm_pool_g905", query))


def test_the_exact_way_never_uses_the_vectors_index(filled):
    query = a_query(filled, everything=True)
    assert "hnsw" not in plan(lookup.exact_statement("fm_pool_g905", query))


def test_the_size_of_the_scope_chooses_the_way_and_is_remembered(filled, monkeypatch):
    monkeypatch.setattr(slots, "EXACT_ROWS", 1_000)
    taken = ways(monkeypatch)
    filled.search(a_query(filled, everything=True))
    filled.search(a_query(filled, everything=True))
    filled.search(a_query(filled, repo_ids=frozenset({7})))
    filled.search(a_query(filled, everything=True, workspace=2))
    assert taken == ["count", "approximate", "approximate", "count", "exact", "count", "exact"]


def test_a_narrow_type_in_a_large_workspace_is_searched_exactly(filled, monkeypatch):
    monkeypatch.setattr(slots, "EXACT_ROWS", 1_000)
    taken = ways(monkeypatch)
    hits = filled.search(a_query(filled, everything=True, types=frozenset({"ownership"}), limit=50))
    assert taken == ["count", "exact"]
    assert len(hits) == 12


def test_when_the_index_finds_too_few_everything_is_read(filled, monkeypatch):
    hidden = a_record("the only one of its status", firm=False, repo_ids=(7,), status="superseded")
    store(filled, hidden)
    monkeypatch.setattr(slots, "EXACT_ROWS", 1_000)
    taken = ways(monkeypatch)
    query = a_query(filled, "unrelated", everything=True, statuses=frozenset({"superseded"}))
    assert [hit.memory_id for hit in filled.search(query)] == [hidden.id]
    assert taken == ["count", "approximate", "exact"]


def test_when_a_few_long_memories_hold_the_nearest_rows_all_are_read(filled, monkeypatch):
    crowd = [a_record(f"{'retries ' * 600}{number}", workspace=7) for number in range(4)]
    other = a_record("something else entirely", workspace=7)
    store(filled, *crowd, other)
    taken = ways(monkeypatch)
    hits = filled.search(a_query(filled, "retries", workspace=7, everything=True, limit=5))
    assert {hit.memory_id for hit in hits} == {record.id for record in (*crowd, other)}
    assert taken == ["count", "exact", "exact"]


def test_the_approximate_way_finds_nearly_all_of_the_nearest(filled, monkeypatch):
    queries = [a_query(filled, f"question {number}", everything=True, limit=10) for number in range(20)]
    exact = [{hit.memory_id for hit in filled.search(query)} for query in queries]
    monkeypatch.setattr(slots, "EXACT_ROWS", 1_000)
    filled._memories.clear()
    approximate = [filled.search(query) for query in queries]
    shared = sum(len(ids & {hit.memory_id for hit in hits}) for ids, hits in zip(exact, approximate, strict=True))
    assert shared >= 190
    for hits in approximate:
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
