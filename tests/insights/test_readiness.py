"""What `/readyz` says of the pool, the worker and its queue."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from apps.core.clock import now
from apps.core.schedules import schedules_ensure
from apps.insights import readiness
from apps.insights.models import Heartbeat
from apps.insights.services import WORKER, heartbeat_record
from apps.insights.tasks import beat
from apps.memories.generations import ensure_live_generation
from apps.memories.models import PoolGeneration
from tests import ledger
from tests.insights.test_metrics import locked


@pytest.fixture(autouse=True)
def _installed(db: None) -> None:
    ensure_live_generation()


def ready() -> tuple[int, dict[str, Any]]:
    response = Client().get("/readyz")
    return response.status_code, response.json()["parts"]


@pytest.fixture(autouse=True)
def _started_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_STARTED", float("-inf"))


@pytest.mark.parametrize("heard", [False, True])
def test_right_after_the_start_a_worker_is_starting(monkeypatch: pytest.MonkeyPatch, heard: bool) -> None:
    monkeypatch.setattr(readiness, "_STARTED", time.monotonic())
    if heard:  # by an earlier start, long ago
        beat()
        Heartbeat.objects.update(at=now() - timedelta(days=2))
    status, parts = ready()
    assert (status, parts["worker"]["ok"]) == (200, False)
    assert parts["worker"]["detail"] == "The worker is starting: it is heard of within two minutes."
    beat()
    assert ready()[1]["worker"]["ok"] is True


def test_a_fresh_installation_is_ready_and_says_that_no_worker_was_heard_of() -> None:
    status, parts = ready()
    assert status == 200
    assert parts["pool"]["ok"] is True
    assert parts["tasks"] == {"ok": True, "required": False, "detail": "0 tasks wait."}
    assert parts["worker"]["ok"] is False
    assert parts["worker"]["required"] is False
    assert "qcluster" in parts["worker"]["detail"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "retired"}, "manage.py migrate"),
        ({"embedder": "litellm:openai/secret-model"}, "FIRM_MEMORY_EMBEDDER"),
        ({"dimensions": 768}, "pool rebuild"),
    ],
)
def test_without_a_pool_that_can_be_searched_the_process_is_not_ready(change: dict[str, Any], said: str) -> None:
    PoolGeneration.objects.update(**change)
    status, parts = ready()
    assert status == 503
    assert parts["pool"]["ok"] is False
    assert said in parts["pool"]["detail"]
    assert "secret-model" not in parts["pool"]["detail"]


def test_without_the_pools_table_the_process_is_not_ready() -> None:
    ledger.sql("ALTER TABLE fm_pool_g1 RENAME TO fm_pool_g1_gone")
    status, parts = ready()
    assert status == 503
    assert "pool rebuild" in parts["pool"]["detail"]
    assert "fm_pool" not in parts["pool"]["detail"]


def test_another_provider_keeps_its_pool_elsewhere(settings: Any) -> None:
    settings.FIRM_MEMORY_PROVIDER = "inmemory"
    PoolGeneration.objects.update(state="retired")
    assert ready()[0] == 200


def test_the_workers_own_task_is_what_is_heard() -> None:
    beat()
    beat()
    assert Heartbeat.objects.get().name == WORKER
    status, parts = ready()
    assert status == 200
    assert parts["worker"]["ok"] is True
    assert parts["worker"]["detail"].startswith("Heard of 0 s ago")


def test_a_silent_worker_is_seen_and_takes_nothing_away() -> None:
    heartbeat_record(WORKER)
    ledger.sql("UPDATE insights_heartbeat SET at = at - interval '12 minutes'")
    status, parts = ready()
    assert status == 200
    assert parts["worker"]["ok"] is False
    assert "12 min" in parts["worker"]["detail"]


def test_tasks_that_nobody_takes_are_seen() -> None:
    OrmQ.objects.create(key="firm-memory", payload="x", lock=timezone.now() - timedelta(minutes=11))
    status, parts = ready()
    assert status == 200
    assert parts["tasks"]["ok"] is False
    assert parts["tasks"]["detail"] == "1 tasks wait, the oldest for 11 min."


def test_the_heartbeat_is_in_the_schedule_once() -> None:
    schedules_ensure()
    schedules_ensure()
    schedule = Schedule.objects.get(func="apps.insights.tasks.beat")
    assert schedule.minutes == 1


def test_a_probe_waits_for_no_lock(transactional_db: None) -> None:
    with locked("memories_poolgeneration"):
        started = time.monotonic()
        status, parts = ready()
        assert time.monotonic() - started < 3
    assert status == 503
    assert parts["pool"]["detail"] == "Failed: OperationalError."
    assert ready()[0] == 200
