"""Who has an event: never two, never nobody for long, never for ever."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from apps.capture.leasing import (
    MAX_ATTEMPTS,
    LeaseLost,
    event_fail,
    event_postpone,
    extend,
    heartbeat,
    lease_due,
    leased,
    wait_before,
)
from apps.capture.models import CaptureEvent, EventState
from tests.capture.doubles import an_event
from tests.in_time import until

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot(botty, principal):
    return principal(botty)


def expire(*events: CaptureEvent) -> None:
    rows = CaptureEvent.objects.filter(pk__in=[event.pk for event in events])
    rows.filter(state=EventState.PROCESSING).update(leased_until=Now() - timedelta(seconds=1))
    rows.exclude(state=EventState.PROCESSING).update(next_attempt_at=Now() - timedelta(seconds=1))


def test_what_is_leased_is_leased_once(bot):
    events = {an_event(bot).pk for _ in range(3)}
    _, first = lease_due(2)
    _, second = lease_due(10)
    assert len(first) == 2
    assert {*first, *second} == events
    assert lease_due(10)[1] == []
    assert set(CaptureEvent.objects.values_list("state", "attempts")) == {(EventState.PROCESSING, 1)}


@pytest.mark.django_db(transaction=True)
def test_two_workers_never_get_the_same(bot):
    events = [an_event(bot).pk for _ in range(40)]
    taken, start = [], threading.Barrier(4)

    def take() -> None:
        try:
            start.wait()
            while found := lease_due(3)[1]:
                taken.extend(found)
        finally:
            connection.close()

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted(events)


def test_a_worker_that_is_gone_loses_its_lease_and_its_right_to_write(bot):
    event = an_event(bot)
    old, _ = lease_due(1)
    expire(event)
    new, taken = lease_due(1, fresh=False)
    assert taken == [event.pk]
    with pytest.raises(LeaseLost):
        leased(old, event.pk)
    with pytest.raises(LeaseLost):
        event_fail(old, event.pk, error="Too late.")
    assert not extend(old)
    assert leased(new, event.pk).attempts == 2


def test_what_was_tried_before_is_leased_by_itself(bot):
    poison, others = an_event(bot), [an_event(bot) for _ in range(3)]
    lease_due(10)
    expire(poison, *others)
    assert lease_due(10)[1] == []
    assert len(lease_due(1, fresh=False)[1]) == 1


def test_a_failure_is_noted_and_tried_again_later(bot):
    event = an_event(bot)
    lease, _ = lease_due(1)
    assert event_fail(lease, event.pk, error="The model did not answer.") == EventState.FAILED
    event.refresh_from_db()
    assert event.last_error == "The model did not answer."
    assert event.reason.startswith("Attempt 1 of 8 failed; tried again in ")
    assert event.lease is None
    assert lease_due(10, fresh=False)[1] == []  # not yet
    expire(event)
    assert lease_due(10, fresh=False)[1] == [event.pk]


def test_nothing_is_tried_for_ever(bot):
    event = an_event(bot)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        lease, taken = lease_due(1, fresh=attempt == 1)
        assert taken == [event.pk]
        state = event_fail(lease, event.pk, error="No.")
        expire(event)
    assert state == EventState.DEAD
    assert lease_due(10, fresh=False)[1] == []
    event.refresh_from_db()
    assert event.reason == "Given up after 8 of 8 attempts. No."


def test_what_will_never_work_is_given_up_at_once(bot):
    event = an_event(bot)
    lease, _ = lease_due(1)
    assert event_fail(lease, event.pk, error="The key is refused.", permanent=True) == EventState.DEAD


def test_what_has_no_room_now_costs_no_attempt(bot):
    event = an_event(bot)
    lease, _ = lease_due(1)
    event_postpone(lease, event.pk, reason="The queue is full.", wait=timedelta(minutes=5))
    event.refresh_from_db()
    assert (event.state, event.attempts, event.reason) == (EventState.RECEIVED, 0, "The queue is full.")
    expire(event)
    assert lease_due(1)[1] == [event.pk]


def test_waits_grow_and_are_spread():
    for attempt in range(1, 12):
        waits = {wait_before(attempt) for _ in range(200)}
        longest = min(timedelta(seconds=20) * 2 ** (attempt - 1), timedelta(hours=1))
        assert longest / 2 <= min(waits) <= max(waits) <= longest
        assert len(waits) > 100
    assert wait_before(1, at_least=90) == timedelta(seconds=90)


@pytest.mark.django_db(transaction=True)
def test_a_worker_at_long_work_stays_the_one(bot):
    event = an_event(bot)
    lease, _ = lease_due(1)
    with heartbeat(lease, seconds=0.1):
        for _ in range(2):
            expire(event)
            until(lambda: leased_now(event))
        assert lease_due(10, fresh=False)[1] == []
    expire(event)
    assert lease_due(10, fresh=False)[1] == [event.pk]


def leased_now(event: CaptureEvent) -> bool:
    return CaptureEvent.objects.filter(pk=event.pk, leased_until__gt=Now()).exists()
