"""What only the provider on PostgreSQL can promise: transactions, time limits, indexes, no side effects."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.memories.models import GenerationState, PoolGeneration
from apps.memories.pool import drop_pool
from apps.memories.providers.base import PayloadPatch, ProviderError
from apps.memories.providers.mem0 import lookup, slots
from apps.memories.providers.mem0.generation import held_generation, live_generation
from apps.memories.providers.mem0.provider import Mem0Provider
from tests.in_time import in_time, until

from .conftest import make_live
from .doubles import HashingEmbedder, a_query, a_record, found, store, ways


class Rollback(Exception):
    """Ends a transaction of a test."""


def setting(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting(%s)", [name])
        (value,) = cursor.fetchone()
    return value


# --- transactions ----------------------------------------------------------------------------------------


def test_what_is_written_is_gone_when_the_callers_transaction_is(mem0):
    kept = a_record("kept")
    store(mem0, kept)
    gone = a_record("gone")
    with contextlib.suppress(Rollback), transaction.atomic():
        store(mem0, gone)
        mem0.update(kept.id, PayloadPatch(status="retired"))
        assert found(mem0) == {gone.id}
        raise Rollback
    assert found(mem0) == {kept.id}
    assert mem0.get(gone.id) is None


def test_a_failing_search_leaves_the_callers_transaction_usable(mem0, monkeypatch):
    record = a_record()
    with transaction.atomic():
        store(mem0, record)
        with monkeypatch.context() as broken:
            broken.setattr(slots, "exact_statement", lambda *_: ("SELECT nonsense FROM nowhere", []))
            with pytest.raises(ProviderError, match=r"could not be searched \(UndefinedTable\)") as caught:
                mem0.search(a_query(mem0))
        assert caught.value.permanent
        assert mem0.get(record.id) == record
        assert setting("statement_timeout") == "0"


def test_a_failing_insert_leaves_the_callers_transaction_usable(mem0, monkeypatch):
    record = a_record()
    with transaction.atomic():
        store(mem0, record)
        with monkeypatch.context() as broken:
            broken.setattr(slots, "_INSERT", "INSERT INTO {table} (id) SELECT unnest(%s::uuid[]), %s, %s")
            with pytest.raises(ProviderError, match="could not be written"):
                store(mem0, a_record("another"))
        assert mem0.get(record.id) == record


@pytest.mark.parametrize("outer", [False, True])
def test_a_search_leaves_no_setting_behind(mem0, outer):
    store(mem0, a_record())
    names = ("statement_timeout", "jit", "hnsw.ef_search", "hnsw.iterative_scan", "hnsw.max_scan_tuples")
    with transaction.atomic() if outer else contextlib.nullcontext():
        before = [setting(name) for name in names]
        assert len(mem0.search(a_query(mem0))) == 1
        assert [setting(name) for name in names] == before


@pytest.mark.parametrize("part", ["count_statement", "exact_statement"])
def test_a_slow_pool_fails_in_time(mem0, monkeypatch, part):
    monkeypatch.setattr(slots, "POOL_SECONDS", 0.1)
    monkeypatch.setattr(slots, part, lambda *_: ("SELECT pg_sleep(20)", []))

    def fails():
        with pytest.raises(ProviderError, match="QueryCanceled") as caught:
            mem0.search(a_query(mem0))
        return caught.value

    assert not in_time(fails, below=2).permanent


def test_the_parts_of_a_search_share_the_time_allowed(mem0, monkeypatch):
    store(mem0, a_record())
    monkeypatch.setattr(slots, "POOL_SECONDS", 0.6)
    monkeypatch.setattr(slots, "count_statement", lambda *_: ("SELECT 1 FROM pg_sleep(0.4)", []))
    monkeypatch.setattr(slots, "exact_statement", lambda *_: ("SELECT 1 FROM pg_sleep(0.4)", []))
    with pytest.raises(ProviderError, match="QueryCanceled"):
        mem0.search(a_query(mem0))


# --- generations -----------------------------------------------------------------------------------------


def test_a_pool_that_moved_to_another_embedder_asks_for_a_restart(mem0, embedder):
    record = a_record()
    store(mem0, record)
    prepared = mem0.prepare("written after the move")
    make_live(number=901, embedder="litellm:voyage/voyage-3.5", dimensions=64)
    for act in (
        lambda: mem0.insert(a_record("written after the move"), prepared),
        lambda: mem0.update(record.id, PayloadPatch(status="retired")),
        lambda: mem0.search(a_query(mem0)),
        lambda: mem0.get(record.id),
        lambda: list(mem0.iterate()),
        lambda: mem0.describe(),
    ):
        with pytest.raises(ProviderError, match=r"moved to the embedder litellm:voyage.*restart") as caught:
            act()
        assert not caught.value.permanent
    with connection.cursor() as cursor:
        cursor.execute("SELECT (SELECT count(*) FROM fm_pool_g900), (SELECT count(*) FROM fm_pool_g901)")
        assert cursor.fetchone() == (1, 0)


def test_a_pool_rebuilt_by_the_same_embedder_is_used_at_once(mem0, embedder):
    store(mem0, a_record("before"))
    make_live(number=901, embedder=embedder.name, dimensions=embedder.dimensions)
    assert mem0.describe().generation == 901
    assert found(mem0) == set()
    after = a_record("after")
    store(mem0, after)
    assert found(mem0) == {after.id}


def test_without_a_live_pool_the_message_says_what_to_do(mem0):
    PoolGeneration.objects.update(state=GenerationState.RETIRED)
    with pytest.raises(ProviderError, match=r"no live pool.*manage\.py migrate") as caught:
        mem0.search(a_query(mem0))
    assert caught.value.permanent


@pytest.fixture
def committed(transactional_db, embedder):
    """A pool that other connections see, too."""
    before = PoolGeneration.objects.get(state=GenerationState.LIVE)
    generation = make_live(number=900, embedder=embedder.name, dimensions=embedder.dimensions)
    yield generation
    generation.delete()
    PoolGeneration.objects.filter(pk=before.pk).update(state=GenerationState.LIVE)
    with connection.cursor() as cursor:
        drop_pool(cursor, number=900)


def test_writers_share_the_generation_and_a_switch_waits_for_them(committed, embedder):
    mem0 = Mem0Provider(embedder)
    other = connection.copy()
    lock = f"SELECT 1 FROM {PoolGeneration._meta.db_table} WHERE number = 900"
    try:
        with other.cursor() as cursor:
            cursor.execute("SET lock_timeout = '300ms'")
            with transaction.atomic():
                store(mem0, a_record())
                cursor.execute(f"{lock} FOR SHARE")
                with pytest.raises(OperationalError, match="lock timeout"):
                    cursor.execute(f"{lock} FOR UPDATE")
            cursor.execute(f"{lock} FOR UPDATE")
            assert cursor.fetchone() == (1,)
    finally:
        other.close()


def test_a_writer_that_waited_for_a_switch_writes_to_the_new_pool(committed):
    seen = []

    def write():
        try:
            with transaction.atomic():
                seen.append(held_generation().number)
        finally:
            connection.close()

    writer = threading.Thread(target=write)
    with transaction.atomic():
        PoolGeneration.objects.select_for_update().get(number=900)
        writer.start()
        until(_waits_for_a_lock, seconds=10)
        PoolGeneration.objects.filter(number=900).update(state=GenerationState.RETIRED)
        new = PoolGeneration.objects.create(number=902, embedder="hashing", dimensions=64, state=GenerationState.LIVE)
        assert seen == []
    writer.join(timeout=10)
    assert seen == [902]
    assert live_generation().number == 902
    new.delete()


def _waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND pid <> pg_backend_pid()"
        )
        (waiting,) = cursor.fetchone()
    return waiting > 0


# --- exact and approximate: see also test_large_pool.py ---------------------------------------------------


def test_a_search_costs_few_statements(mem0):
    store(mem0, a_record())
    query = a_query(mem0)
    mem0.search(query)
    with CaptureQueriesContext(connection) as captured:
        mem0.search(query)
    # Savepoint, generation, settings, look-up, and the way back.
    assert len(captured) <= 6


def test_long_vectors_are_searched_at_half_precision(db, monkeypatch):
    embedder = HashingEmbedder(name="long", dimensions=2_100)
    make_live(number=903, embedder="long", dimensions=2_100)
    mem0 = Mem0Provider(embedder)
    near, far = a_record("billing retries"), a_record("coffee machine")
    store(mem0, near, far)
    monkeypatch.setattr(slots, "EXACT_ROWS", 0)
    taken = ways(monkeypatch)
    hits = mem0.search(a_query(mem0, "billing retries", limit=2))
    assert [hit.memory_id for hit in hits] == [near.id, far.id]
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert taken == ["count", "approximate"]


def test_vectors_too_long_for_an_index_are_read_exactly(db, monkeypatch):
    embedder = HashingEmbedder(name="very long", dimensions=4_100)
    make_live(number=904, embedder="very long", dimensions=4_100)
    mem0 = Mem0Provider(embedder)
    record = a_record()
    store(mem0, record)
    monkeypatch.setattr(slots, "EXACT_ROWS", 0)
    taken = ways(monkeypatch)
    assert found(mem0) == {record.id}
    assert taken == ["count", "exact"]


def test_a_scopes_size_is_forgotten_after_its_time_and_when_there_are_many(mem0):
    sizes = lookup.ScopeSizes(seconds=0.0)
    query = a_query(mem0)
    sizes.put("t", query, 5)
    assert sizes.get("t", query) is None
    sizes = lookup.ScopeSizes(entries=2)
    queries = [a_query(mem0, workspace=number) for number in range(3)]
    for number, each in enumerate(queries):
        sizes.put("t", each, number)
    assert [sizes.get("t", each) for each in queries] == [None, 1, 2]
    assert sizes.get("another table", queries[2]) is None


# --- nothing but what was asked for ----------------------------------------------------------------------

WATCHED = """
import logging, os, sys
seen = []
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        seen.append((event, str(arguments[-1] if event == "socket.connect" else arguments[:1])))
sys.addaudithook(watch)
import django
django.setup()
from django.conf import settings
level = logging.getLogger("urllib3").level
from apps.memories.providers.embedders.local import LocalEmbedder
embedder = LocalEmbedder(threads=1)
assert "mem0" not in sys.modules
from apps.memories.providers.mem0 import parts
memory = parts.build_memory(collection="fm_pool_g1", embedder=embedder)
vector = memory.embedding_model.embed("hello", "search")
assert len(vector) == 384
from mem0.memory import telemetry
assert telemetry.MEM0_TELEMETRY is False
assert telemetry.client_telemetry.posthog is None
assert logging.getLogger("urllib3").level == level, "mem0 muted another library's log"
assert os.environ["MEM0_DIR"] == str(settings.DATA_DIR / "mem0"), os.environ["MEM0_DIR"]
assert "litellm" not in sys.modules and "openai" not in sys.modules and "spacy" not in sys.modules
print("SEEN", seen)
print("HOME", sorted(os.listdir(os.environ["HOME"])))
"""


@pytest.mark.slow
def test_mem0_calls_nobody_and_writes_nothing_into_the_home_folder(tmp_path):
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEM0")},
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test",
        "DATABASE_URL": os.environ.get("DATABASE_URL") or "postgresql://nobody@127.0.0.1:1/none",
        "FIRM_MEMORY_DATA_DIR": str(data),
        "HOME": str(home),
        # Even somebody who asks for telemetry elsewhere gets none here.
        "MEM0_TELEMETRY": "true",
    }
    done = subprocess.run(
        [sys.executable, "-c", WATCHED],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "SEEN []" in done.stdout
    assert "HOME []" in done.stdout


def test_the_modules_that_a_request_imports_leave_mem0_and_litellm_alone():
    program = (
        "import django, sys; django.setup(); from apps.memories.providers import registry; "
        "import apps.memories.providers.mem0.provider; "
        "print(sorted(name for name in ('mem0', 'litellm', 'onnxruntime', 'tokenizers') if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test"},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_a_data_folder_that_cannot_be_written_is_stepped_around(settings, tmp_path):
    from apps.memories.providers.mem0.quiet import own_directory

    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    settings.DATA_DIR = blocked
    made = own_directory()
    assert made.is_dir()
    assert blocked not in made.parents
    made.rmdir()


def test_unknown_ids_and_empty_pools_are_no_errors(mem0):
    assert mem0.get(uuid4()) is None
    assert mem0.search(a_query(mem0)) == []
    assert mem0.search(a_query(mem0, everything=True)) == []


def test_the_documented_plans_name_the_indexes_that_exist():
    text = (Path(settings.BASE_DIR) / "apps/memories/pool.py").read_text()
    for suffix in ("firm", "domains", "repos", "hnsw"):
        assert f"fm_pool_g1_{suffix}" in text
