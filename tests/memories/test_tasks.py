"""What the worker keeps true as time passes, and how it comes to do so again and again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection

from apps.core.clock import now
from apps.core.schedules import registered, schedules_ensure
from apps.memories import tasks
from apps.memories.tasks import refresh_ended
from tests.ledger import fresh, of_person, of_token, remember

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def ending(robo, alice):
    """Three memories whose successors take effect tomorrow."""
    proposer, reviewer = of_token(robo.token), of_person(alice)
    olds = [remember(proposer, reviewer) for _ in range(3)]
    for old in olds:
        remember(proposer, reviewer, valid_from=now() + timedelta(days=1), supersedes=[old])
    return olds


def test_one_that_the_pool_refuses_does_not_hold_up_the_others(ending, monkeypatch, caplog):
    monkeypatch.setattr(tasks, "now", lambda: now() + timedelta(days=2))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM fm_pool_g1 WHERE memory_id = %s", [ending[1].pk])

    assert refresh_ended() == "2 memories have ended."

    assert [fresh(row).status for row in ending] == ["superseded", "active", "superseded"]
    assert str(ending[1].pk) in caplog.text


def test_running_it_twice_at_once_does_no_harm(ending, monkeypatch):
    monkeypatch.setattr(tasks, "now", lambda: now() + timedelta(days=2))
    refresh_ended()
    before = [fresh(row).closed_at for row in ending]

    assert refresh_ended() == "0 memories have ended."

    assert [fresh(row).closed_at for row in ending] == before


def test_a_memory_without_an_end_is_left_alone(robo, alice, monkeypatch):
    memory = remember(of_token(robo.token), of_person(alice))
    monkeypatch.setattr(tasks, "now", lambda: now() + timedelta(days=10_000))

    assert refresh_ended() == "0 memories have ended."
    assert fresh(memory).status == "active"


# --- the schedule -------------------------------------------------------------------------------------------
def test_what_repeats_is_in_the_schedule_after_migrating():
    from django_q.models import Schedule

    rows = {row.name: (row.func, row.schedule_type, row.minutes, row.repeats) for row in Schedule.objects.all()}

    assert rows["memories: refresh ended"] == ("apps.memories.tasks.refresh_ended", "I", 1, -1)
    assert rows["retrieval: count words"] == ("apps.retrieval.tasks.count_lexemes", "I", 5, -1)


def test_every_scheduled_function_is_there_and_takes_nothing():
    from inspect import signature

    from django.utils.module_loading import import_string

    for repeated in registered().values():
        assert not signature(import_string(repeated.task)).parameters


def test_migrating_again_changes_what_was_registered_and_nothing_else():
    from django_q.models import Schedule

    later = now() + timedelta(hours=5)
    Schedule.objects.filter(name="memories: refresh ended").update(minutes=99, next_run=later)
    Schedule.objects.create(name="somebody else's", func="print", schedule_type="O")
    count = Schedule.objects.count()

    schedules_ensure()

    row = Schedule.objects.get(name="memories: refresh ended")
    assert (row.minutes, row.next_run) == (1, later)
    assert Schedule.objects.count() == count
