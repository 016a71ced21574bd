"""What `/readyz` says of the pool, the worker and its queue."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from django_q.models import OrmQ, Schedule
from django_q.signals import post_spawn

from apps.capture.models import EventState
from apps.core.clock import now
from apps.core.schedules import schedules_ensure
from apps.insights import pulse, readiness
from apps.insights.models import Heartbeat
from apps.insights.services import PROCESS, WORKER
from apps.insights.tasks import beat
from apps.memories.generations import ensure_live_generation
from apps.memories.models import PoolGeneration
from tests import ledger
from tests.capture.finished import in_state
from tests.in_time import in_time, until
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
    assert set(Heartbeat.objects.values_list("name", flat=True)) == {WORKER, PROCESS}
    status, parts = ready()
    assert status == 200
    assert parts["worker"]["ok"] is True
    assert parts["worker"]["detail"].startswith("Heard of 0 s ago")


def test_a_silent_worker_is_seen_and_takes_nothing_away() -> None:
    beat()
    ledger.sql("UPDATE insights_heartbeat SET at = at - interval '12 minutes'")
    status, parts = ready()
    assert status == 200
    assert parts["worker"]["ok"] is False
    assert "12 min" in parts["worker"]["detail"]


def silent_for(**seconds: int) -> None:
    beat()
    for name, age in seconds.items():
        name = {"task": WORKER, "process": PROCESS}[name]
        ledger.sql("UPDATE insights_heartbeat SET at = at - %s * interval '1 second' WHERE name = %s", age, name)


def taken_a_task() -> None:
    OrmQ.objects.create(key="firm-memory", payload="x", lock=timezone.now() + timedelta(minutes=5))


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_stopped_worker_is_seen_within_a_minute(is_busy: bool) -> None:
    """What it had taken when it was stopped does not hide it."""
    if is_busy:
        taken_a_task()
    silent_for(task=40, process=40)
    assert ready()[1]["worker"]["ok"] is True
    silent_for(task=50, process=50)
    assert ready()[1]["worker"] == {
        "ok": False,
        "required": False,
        "detail": "No worker was heard of for 50 s. Start one with `manage.py qcluster`, or look at the log of the one "
        "that runs.",
    }


def test_a_worker_at_a_long_task_is_no_false_alarm() -> None:
    taken_a_task()
    silent_for(task=400, process=10)
    assert ready()[1]["worker"] == {"ok": True, "required": False, "detail": "Heard of 10 s ago."}


def test_a_worker_that_is_there_and_does_nothing_is_seen() -> None:
    silent_for(task=170, process=10)
    assert ready()[1]["worker"]["detail"] == "A worker is there and did no task for 3 min. Look at its log."
    Heartbeat.objects.filter(name=WORKER).delete()
    assert ready()[1]["worker"]["detail"] == "A worker is there and never did a task. Look at its log."


def test_a_process_of_the_worker_shows_that_it_is_there(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As django-q starts them: the sign of life comes without any task."""
    monkeypatch.setattr(pulse, "_beat_on", pulse.beat)
    post_spawn.send(sender="django_q", proc_name="a process")
    until(Heartbeat.objects.filter(name=PROCESS).exists, seconds=10)


def test_a_sign_of_life_that_cannot_be_written_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: str) -> None:
        raise OperationalError("the server is gone")

    monkeypatch.setattr(pulse, "heartbeat_record", refuses)
    monkeypatch.setattr(pulse.connection, "close", lambda: None)
    pulse.beat()


@pytest.mark.parametrize(
    ("waiting", "dead", "overdue", "said"),
    [
        (2, 0, False, "2 pieces of raw material wait."),
        (1, 0, False, "1 piece of raw material waits."),
        (0, 1, False, "1 piece of raw material was given up. {mend} 0 pieces of raw material wait."),
        (3, 2, False, "2 pieces of raw material were given up. {mend} 3 pieces of raw material wait."),
        (
            1,
            2,
            True,
            "Raw material is due and nobody took it up for 20 min. 2 pieces of raw material were given up. {mend} "
            "1 piece of raw material waits.",
        ),
    ],
)
def test_what_was_given_up_hides_nothing_that_waits(
    botty: Any, principal: Any, waiting: int, dead: int, overdue: bool, said: str
) -> None:
    bot = principal(botty)
    due = now() - timedelta(minutes=20 if overdue else 1)
    for _ in range(waiting):
        in_state(bot, EventState.RECEIVED, next_attempt_at=due)
    for _ in range(dead):
        in_state(bot, EventState.DEAD)
    mend = "Look at /captured/, mend the cause, and run `manage.py capture retry`."
    part = ready()[1]["capture"]
    assert part == {"ok": not dead and not overdue, "required": False, "detail": said.format(mend=mend)}


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
        status, parts = in_time(ready, below=3)
    assert status == 503
    assert parts["pool"]["detail"] == "Failed: OperationalError."
    assert ready()[0] == 200
