"""`/metrics`: what is counted, what is read from the tables, who may look, and what is said when one cannot."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection
from django.db.backends.postgresql.base import DatabaseWrapper
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ, Task

from apps.accounts.principal import Principal
from apps.approvals.services import memory_retire
from apps.candidates.models import Candidate
from apps.insights import selectors
from apps.insights.collector import PARTS
from apps.insights.services import PROCESS, WORKER, heartbeat_record
from apps.memories.generations import ensure_live_generation
from apps.memories.models import PoolGeneration
from apps.memories.providers import registry
from apps.memories.providers.base import ProviderError
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.retrieval import pipeline
from apps.retrieval.pipeline import STAGES, Search, Shortfall
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from tests import ledger
from tests.conftest import Issued
from tests.in_time import in_time
from tests.memories.providers.doubles import HashingEmbedder

TOKEN = "a-token-of-more-than-twenty-characters"
SAMPLE = re.compile(r"^(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$")

Samples = dict[str, float]


@pytest.fixture(autouse=True)
def _counted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "_remembered", {})


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


def scrape(client: Client | None = None, **headers: str) -> Samples:
    response = (client or Client()).get("/metrics", headers=headers)
    assert response.status_code == 200
    return samples(response.content.decode())


def samples(text: str) -> Samples:
    """By ``name{label="value"}`` as they stand in the answer."""
    matches = (SAMPLE.match(line) for line in text.splitlines() if not line.startswith("#"))
    return {
        match["name"] + (f"{{{match['labels']}}}" if match["labels"] else ""): float(match["value"])
        for match in matches
        if match
    }


def increase(before: Samples, after: Samples) -> Samples:
    return {
        name: value - before.get(name, 0.0)
        for name, value in after.items()
        if value != before.get(name) and not name.split("{")[0].endswith(("_bucket", "_sum", "_created"))
    }


def success(found: Samples) -> dict[str, bool]:
    pattern = re.compile(r'firm_memory_collector_success\{part="(\w+)"\}')
    return {match[1]: bool(value) for name, value in found.items() if (match := pattern.fullmatch(name))}


class FailingEmbedder(HashingEmbedder):
    def embed_query(self, text):
        raise ProviderError("Down.", permanent=False)


# --- what a process counts ----------------------------------------------------------------------------------


def test_a_search_is_counted_and_timed_by_stage(pool: Mem0Provider, bot: Principal, reviewer: Principal) -> None:
    ledger.remember(bot, reviewer, "Refunds are paid out in the currency of the invoice.")
    seen: list[Search] = []
    pipeline.observers.add(seen.append)
    before = scrape()
    try:
        search(principal=bot, request=SearchRequest(q="in which currency are refunds paid"))
    finally:
        pipeline.observers._observers.remove(seen.append)
    found = increase(before, scrape())
    assert found['firm_memory_searches_total{outcome="complete"}'] == 1
    assert found["firm_memory_search_seconds_count"] == 1
    ran = {stage.name for stage in seen[0].stages if stage.ran}
    assert ran >= {"scope", "vector", "text", "fuse", "collapse", "visibility"}
    for name in STAGES:
        assert found.get(f'firm_memory_search_stage_seconds_count{{stage="{name}"}}', 0) == (name in ran)
    assert found['firm_memory_embedding_seconds_count{outcome="done",what="question"}'] == 1


def test_a_question_that_is_remembered_asks_no_model(pool: Mem0Provider, bot: Principal) -> None:
    search(principal=bot, request=SearchRequest(q="asked before"))
    before = scrape()
    search(principal=bot, request=SearchRequest(q="asked before"))
    found = increase(before, scrape())
    assert found['firm_memory_searches_total{outcome="complete"}'] == 1
    assert not any("embedding_seconds" in name for name in found)


def test_a_degraded_answer_is_counted_by_stage_and_reason(pool: Mem0Provider, bot: Principal) -> None:
    before = scrape()
    with registry.override(Mem0Provider(FailingEmbedder(name="local", dimensions=384))):
        search(principal=bot, request=SearchRequest(q="anything"))
    after = scrape()
    found = increase(before, after)
    assert found['firm_memory_searches_total{outcome="degraded"}'] == 1
    assert found['firm_memory_search_degraded_total{reason="embedder_error",stage="vector"}'] == 1
    assert found['firm_memory_embedding_seconds_count{outcome="error",what="question"}'] == 1
    assert after['firm_memory_embedder_up{embedder="local"}'] == 0
    search(principal=bot, request=SearchRequest(q="something else"))
    assert scrape()['firm_memory_embedder_up{embedder="local"}'] == 1


def test_every_shortfall_is_there_before_it_happens(db: None) -> None:
    """A rate over a counter that appears with its first event misses that event."""
    found = scrape()
    for shortfall in Shortfall:
        labels = f'reason="{shortfall.reason}",stage="{shortfall.stage}"'
        assert f"firm_memory_search_degraded_total{{{labels}}}" in found
    for outcome in ("complete", "degraded", "failed"):
        assert f'firm_memory_searches_total{{outcome="{outcome}"}}' in found


def test_what_is_left_out_is_counted_by_who_does_not_let_it_through(
    pool: Mem0Provider, bot: Principal, reviewer: Principal
) -> None:
    lost = ledger.remember(bot, reviewer, "Refunds are paid out in euros.")
    retired = ledger.remember(bot, reviewer, "Refunds are paid out in pounds.")
    memory_retire(principal=reviewer, reference=retired.pk, reason="It was never so.")
    ledger.sql("DELETE FROM fm_pool_g1 WHERE memory_id = %s", lost.pk)
    ledger.sql('UPDATE fm_pool_g1 SET payload = payload || \'{"status": "active", "retired_at": null}\'')
    before = scrape()
    search(principal=bot, request=SearchRequest(q="refunds are paid out"))
    found = increase(before, scrape())
    assert found['firm_memory_search_left_out_total{by="ledger"}'] == 1
    assert found['firm_memory_search_left_out_total{by="pool"}'] == 1
    assert found['firm_memory_search_degraded_total{reason="not_in_pool",stage="visibility"}'] == 1


# --- what the tables say ------------------------------------------------------------------------------------


def test_a_fresh_installation(pool: Mem0Provider, db: None) -> None:
    ensure_live_generation()
    found = scrape()
    assert success(found) == dict.fromkeys(PARTS, True)
    assert found["firm_memory_database_up"] == 1
    for name in (
        'firm_memory_candidates_open{status="pending"}',
        'firm_memory_candidates_open{status="quarantined"}',
        'firm_memory_candidates_oldest_seconds{status="pending"}',
        "firm_memory_tasks_waiting",
        "firm_memory_tasks_oldest_seconds",
        "firm_memory_tasks_failed",
        "firm_memory_ledger_memories",
        "firm_memory_pool_memories",
        "firm_memory_pool_drift",
    ):
        assert found[name] == 0
    assert found["firm_memory_pool_up"] == 1
    assert found['firm_memory_pool_info{dimensions="384",embedder="local",generation="1"}'] == 1


def test_the_queue_and_its_oldest(pool: Mem0Provider, bot: Principal, reviewer: Principal) -> None:
    ledger.approve(reviewer, ledger.propose(bot))
    oldest = ledger.propose(bot)
    ledger.propose(bot)
    ledger.propose(bot, confidence=0.1)
    # When something was proposed is not changed by anybody, so the triggers step aside for once.
    ledger.sql("SET LOCAL session_replication_role = replica")
    Candidate.objects.filter(pk=oldest.pk).update(created_at=timezone.now() - timedelta(hours=2))
    ledger.sql("SET LOCAL session_replication_role = origin")
    found = scrape()
    assert found['firm_memory_candidates_open{status="pending"}'] == 2
    assert found['firm_memory_candidates_open{status="quarantined"}'] == 1
    assert found['firm_memory_candidates_oldest_seconds{status="pending"}'] == pytest.approx(7_200, abs=60)
    assert found['firm_memory_candidates_oldest_seconds{status="quarantined"}'] < 60


def test_verdicts_are_counted_from_the_ledger_at_once(pool: Mem0Provider, bot: Principal, reviewer: Principal) -> None:
    before = scrape()
    ledger.approve(reviewer, ledger.propose(bot))
    ledger.reject(reviewer, ledger.propose(bot))
    ledger.reject(reviewer, ledger.propose(bot))
    found = increase(before, scrape())
    assert found['firm_memory_verdicts_total{action="approve",via="ui"}'] == 1
    assert found['firm_memory_verdicts_total{action="reject",via="ui"}'] == 2


def test_tasks_that_wait_are_taken_or_failed(db: None) -> None:
    now = timezone.now()
    OrmQ.objects.create(key="firm-memory", payload="x", lock=now - timedelta(minutes=7))
    OrmQ.objects.create(key="firm-memory", payload="x", lock=now - timedelta(minutes=1))
    OrmQ.objects.create(key="firm-memory", payload="x", lock=now + timedelta(minutes=5))
    OrmQ.objects.create(key="another cluster's", payload="x", lock=now - timedelta(days=1))
    Task.objects.create(id="1", name="one", func="f", started=now, stopped=now, success=False)
    found = scrape()
    assert found["firm_memory_tasks_waiting"] == 2
    assert found["firm_memory_tasks_oldest_seconds"] == pytest.approx(420, abs=30)
    assert found["firm_memory_tasks_taken"] == 1
    assert found["firm_memory_tasks_failed"] == 1


def test_a_worker_that_was_never_heard_of_is_down(db: None) -> None:
    found = scrape()
    assert found["firm_memory_worker_up"] == 0
    assert "firm_memory_worker_heartbeat_seconds" not in found


@pytest.mark.parametrize(
    ("silent_for", "gone_for", "is_busy", "up"),
    [
        *((0, 0, False, 1), (140, 30, False, 1), (160, 30, False, 0), (160, 30, True, 1), (430, 30, True, 0)),
        *((60, 60, False, 0), (60, 60, True, 0)),
    ],
)
def test_a_worker_that_fell_silent_is_down(db: None, silent_for: int, gone_for: int, is_busy: bool, up: int) -> None:
    for name, age in ((WORKER, silent_for), (PROCESS, gone_for)):
        heartbeat_record(name)
        ledger.sql("UPDATE insights_heartbeat SET at = at - %s * interval '1 second' WHERE name = %s", age, name)
    if is_busy:
        OrmQ.objects.create(key="firm-memory", payload="x", lock=timezone.now() + timedelta(minutes=5))
    found = scrape()
    assert found["firm_memory_worker_up"] == up
    assert found["firm_memory_worker_heartbeat_seconds"] == pytest.approx(silent_for, abs=20)


def test_drift_is_the_difference_of_one_snapshot_and_remembered_for_a_minute(
    pool: Mem0Provider, bot: Principal, reviewer: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = [ledger.remember(bot, reviewer) for _ in range(3)]
    found = scrape()
    assert (found["firm_memory_ledger_memories"], found["firm_memory_pool_memories"]) == (3, 3)
    assert found["firm_memory_pool_drift"] == 0
    ledger.sql("DELETE FROM fm_pool_g1 WHERE memory_id = %s", memories[0].pk)
    assert scrape()["firm_memory_pool_drift"] == 0
    clock = time.monotonic() + 61
    monkeypatch.setattr(selectors.time, "monotonic", lambda: clock)
    found = scrape()
    assert (found["firm_memory_ledger_memories"], found["firm_memory_pool_memories"]) == (3, 2)
    assert found["firm_memory_pool_drift"] == 1


def test_long_texts_are_one_memory_whatever_their_passages(
    pool: Mem0Provider, bot: Principal, reviewer: Principal
) -> None:
    ledger.remember(bot, reviewer, " ".join(f"word{number} stays" for number in range(300)))
    assert ledger.sql("SELECT count(*) > 1 FROM fm_pool_g1") == [(True,)]
    assert scrape()["firm_memory_pool_drift"] == 0


@pytest.mark.parametrize("change", [{"embedder": "another"}, {"dimensions": 768}, {"state": "retired"}])
def test_a_pool_that_this_process_cannot_use_is_down(pool: Mem0Provider, db: None, change: dict[str, Any]) -> None:
    ensure_live_generation()
    PoolGeneration.objects.update(**change)
    found = scrape()
    assert found["firm_memory_pool_up"] == 0
    assert success(found)["pool"] is True


def test_a_pool_whose_table_is_gone_is_down(pool: Mem0Provider, db: None) -> None:
    ensure_live_generation()
    ledger.sql("ALTER TABLE fm_pool_g1 RENAME TO fm_pool_g1_gone")
    found = scrape()
    assert found["firm_memory_pool_up"] == 0
    assert "firm_memory_pool_drift" not in found


# --- what cannot be looked up is missing, and that is said ---------------------------------------------------


def test_one_part_that_cannot_be_read_costs_only_itself(pool: Mem0Provider, bot: Principal) -> None:
    ledger.propose(bot)
    ledger.sql("ALTER TABLE insights_heartbeat RENAME TO insights_heartbeat_gone")
    found = scrape()
    assert success(found) == dict.fromkeys(PARTS, True) | {"worker": False}
    assert "firm_memory_worker_up" not in found
    assert found['firm_memory_candidates_open{status="pending"}'] == 1
    assert found["firm_memory_database_up"] == 1


def test_a_database_that_is_down_is_said_in_place_of_numbers(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: DatabaseWrapper, *args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused: password=hunter2")

    with monkeypatch.context() as patched:
        patched.setattr(DatabaseWrapper, "cursor", refuse)
        response = Client().get("/metrics")
    found = samples(response.content.decode())
    assert response.status_code == 200
    assert found["firm_memory_database_up"] == 0
    assert success(found) == dict.fromkeys(PARTS, False)
    assert not any(name.startswith(("firm_memory_candidates", "firm_memory_tasks")) for name in found)
    assert 'firm_memory_searches_total{outcome="complete"}' in found
    assert b"hunter2" not in response.content


@contextmanager
def locked(*tables: str) -> Iterator[None]:
    place = connection.settings_dict
    with psycopg.connect(
        host=place["HOST"],
        port=place["PORT"],
        user=place["USER"],
        password=place["PASSWORD"],
        dbname=place["NAME"],
    ) as other:
        other.execute(f"LOCK TABLE {', '.join(tables)} IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


def test_locked_tables_cost_five_seconds_at_most(transactional_db: None, pool: Mem0Provider) -> None:
    ensure_live_generation()
    with locked("candidates_candidate", "memories_verdict", "django_q_ormq", "insights_heartbeat", "memories_memory"):
        found = in_time(scrape, above=4, below=6.5)
    assert found["firm_memory_database_up"] == 1
    assert success(found)["queue"] is False
    assert not any(name.startswith("firm_memory_candidates") for name in found)
    assert success(scrape()) == dict.fromkeys(PARTS, True)


# --- who may look -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_this_machine_may_look(db: None, peer: str, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    response = Client(REMOTE_ADDR=peer).get("/metrics", headers={"Host": "10.0.0.7:8100"})
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/plain; version=")
    assert response.headers["Cache-Control"] == "no-store"
    assert "Set-Cookie" not in response.headers
    assert "Vary" not in response.headers


@pytest.mark.parametrize("peer", ["10.0.0.9", "192.168.1.4", "2001:db8::1", "::ffff:10.0.0.9", "", "unknown"])
def test_nobody_else_may_without_a_token(peer: str) -> None:
    # No `db` fixture: whoever is refused costs no query.
    response = Client(REMOTE_ADDR=peer).get("/metrics")
    assert response.status_code == 403
    assert response.json()["code"] == "metrics_local_only"
    assert "FIRM_MEMORY_METRICS_TOKEN" in response.json()["detail"]


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Proto", "X-Forwarded-Host"]
)
def test_what_a_proxy_on_this_machine_hands_on_is_not_from_this_machine(header: str) -> None:
    response = Client(REMOTE_ADDR="127.0.0.1").get("/metrics", headers={header: "127.0.0.1"})
    assert response.status_code == 403


def test_with_the_token_from_anywhere(db: None, settings: Any) -> None:
    settings.FIRM_MEMORY_METRICS_TOKEN = TOKEN
    far = Client(REMOTE_ADDR="10.0.0.9")
    assert scrape(far, Authorization=f"Bearer {TOKEN}")["firm_memory_database_up"] == 1
    assert scrape(far, Authorization=f"bearer  {TOKEN} ", X_Forwarded_For="10.1.1.1")["firm_memory_database_up"] == 1


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN],
)
def test_with_another_token_not_at_all(settings: Any, authorization: str | None) -> None:
    settings.FIRM_MEMORY_METRICS_TOKEN = TOKEN
    headers = {} if authorization is None else {"Authorization": authorization}
    response = Client(REMOTE_ADDR="10.0.0.9").get("/metrics", headers=headers)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert TOKEN not in response.content.decode()


def test_a_token_of_ours_is_no_token_for_metrics(settings: Any, alice_token: Issued) -> None:
    settings.FIRM_MEMORY_METRICS_TOKEN = TOKEN
    headers = {"Authorization": f"Bearer {alice_token.secret}"}
    assert Client(REMOTE_ADDR="10.0.0.9").get("/metrics", headers=headers).status_code == 401


def test_the_token_opens_nothing_else(api: Callable[..., Any], settings: Any, db: None) -> None:
    settings.FIRM_MEMORY_METRICS_TOKEN = TOKEN
    response = Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 401


def test_a_short_token_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    from firmmemory.settings import base

    monkeypatch.setenv("FIRM_MEMORY_METRICS_TOKEN", "short")
    with pytest.raises(ImproperlyConfigured, match="FIRM_MEMORY_METRICS_TOKEN"):
        importlib.reload(base)
    monkeypatch.undo()
    importlib.reload(base)


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_one_can_only_look(method: str) -> None:
    response = getattr(Client(), method)("/metrics")
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET, HEAD"


def test_open_metrics_is_spoken_too(db: None) -> None:
    response = Client().get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert response.headers["Content-Type"].startswith("application/openmetrics-text")
    assert response.content.endswith(b"# EOF\n")


def test_no_name_of_a_workspace_a_repository_or_a_person_is_told(
    pool: Mem0Provider, bot: Principal, reviewer: Principal
) -> None:
    ledger.remember(bot, reviewer, "Refunds are paid out in the currency of the invoice.")
    search(principal=bot, request=SearchRequest(q="refunds", repos=("acme/pay",)))
    text = Client().get("/metrics").content.decode()
    for word in ("acme", "alice", "botty", "refunds", "Refunds"):
        assert word not in text
