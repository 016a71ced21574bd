"""The pool's table: made once by one function, and refusing rows that a search could not filter."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction

from apps.memories.pool import create_pool, drop_pool, is_half_precision, pool_table

pytestmark = pytest.mark.django_db

PAYLOAD = {
    "data": "text",
    "passage": 0,
    "workspace": 1,
    "tier": "durable",
    "status": "active",
    "type": "bug_fixes",
    "firm": False,
    "domain_ids": [1],
    "repo_ids": [],
    "audience_ids": [],
    "recorded_at": 1.5,
}


def make(number: int, dimensions: int) -> None:
    with connection.cursor() as cursor:
        create_pool(cursor, number=number, dimensions=dimensions)


def definitions(number: int) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s", [pool_table(number)])
        return dict(cursor.fetchall())


def put(number: int, **changes) -> None:
    memory_id = uuid4()
    payload = {"memory_id": str(memory_id)} | PAYLOAD | changes
    payload = {name: value for name, value in payload.items() if value is not ...}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {pool_table(number)} (id, vector, payload) VALUES (%s, '[1,0,0]', %s)",
            [memory_id, json.dumps(payload)],
        )


def test_making_a_pool_twice_changes_nothing():
    make(901, 3)
    before = definitions(901)
    put(901)
    make(901, 3)
    assert definitions(901) == before
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM fm_pool_g901")
        assert cursor.fetchone() == (1,)


def test_the_indexes_that_searches_rely_on():
    make(901, 384)
    found = definitions(901)
    hnsw = found["fm_pool_g901_hnsw"]
    assert "USING hnsw (vector vector_cosine_ops)" in hnsw
    # A predicate on the status would leave questions about the past without an index.
    assert "status" not in hnsw
    assert hnsw.endswith("WHERE (tier = ANY (ARRAY['durable'::text, 'index'::text]))")
    assert found["fm_pool_g901_domains"].endswith("USING gin (domain_ids) WITH (fastupdate=off)")
    assert found["fm_pool_g901_repos"].endswith("USING gin (repo_ids) WITH (fastupdate=off)")
    assert found["fm_pool_g901_workspace"].endswith("USING btree (workspace)")
    assert found["fm_pool_g901_firm"].endswith("USING btree (workspace) WHERE firm")
    assert "UNIQUE" in found["fm_pool_g901_passage_once"]


def test_long_vectors_are_indexed_at_half_precision_and_very_long_ones_not_at_all():
    make(902, 3_072)
    make(903, 4_001)
    assert "halfvec(3072)) halfvec_cosine_ops" in definitions(902)["fm_pool_g902_hnsw"]
    assert "fm_pool_g903_hnsw" not in definitions(903)
    assert [is_half_precision(length) for length in (2_000, 2_001, 4_000, 4_001)] == [False, True, True, False]


@pytest.mark.parametrize(("dimensions", "storage"), [(384, "p"), (1_900, "p"), (1_901, "e")])
def test_vectors_that_fit_into_a_row_are_kept_in_it(dimensions, storage):
    make(901, dimensions)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage::text FROM pg_attribute WHERE attrelid = 'fm_pool_g901'::regclass AND attname = 'vector'"
        )
        assert cursor.fetchone() == (storage,)


def test_another_length_is_another_generation():
    make(901, 3)
    with pytest.raises(ValueError, match=r"fm_pool_g901 holds vectors of 3 dimensions, not 4.*pool rebuild"):
        make(901, 4)
    with pytest.raises(ValueError, match="between 1 and 16,000"):
        make(901, 0)
    with pytest.raises(ValueError, match="counted from 1"):
        pool_table(0)


def test_dropping_a_pool_leaves_the_others():
    make(901, 3)
    make(902, 3)
    with connection.cursor() as cursor:
        drop_pool(cursor, number=901)
        drop_pool(cursor, number=901)
    put(902)
    with pytest.raises(ProgrammingError):
        put(901)


@pytest.mark.parametrize(
    "missing",
    [
        *("memory_id", "passage", "workspace", "tier", "status", "type", "firm"),
        *("domain_ids", "repo_ids", "audience_ids", "recorded_at"),
    ],
)
def test_a_row_that_could_not_be_filtered_is_refused(missing):
    make(901, 3)
    with pytest.raises(IntegrityError, match=missing):
        put(901, **{missing: ...})


def test_working_notes_never_enter_the_pool():
    make(901, 3)
    with pytest.raises(IntegrityError, match="fm_pool_g901_tier_known"):
        put(901, tier="episodic")


@pytest.mark.parametrize("value", [5, "1,2", {"1": 2}, None])
def test_a_list_that_is_no_list_is_refused(value):
    make(901, 3)
    with pytest.raises(IntegrityError, match="repo_ids"):
        put(901, repo_ids=value)
