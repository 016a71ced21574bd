from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, connections

from apps.core import throttle
from apps.core.models import Throttle


def test_a_minutes_worth_may_come_at_once_and_then_evenly(db) -> None:
    assert [throttle.spend("k", per_minute=60) for _ in range(60)] == [None] * 60
    wait = throttle.spend("k", per_minute=60)
    assert wait == 1
    assert throttle.spend("other", per_minute=60) is None


def test_the_wait_is_long_where_the_rate_is_low(db) -> None:
    assert throttle.spend("k", per_minute=2) is None
    assert throttle.spend("k", per_minute=2) is None
    wait = throttle.spend("k", per_minute=2)
    assert wait is not None and 28 <= wait <= 30


def test_being_refused_costs_nothing(db) -> None:
    for _ in range(3):
        throttle.spend("k", per_minute=3)
    before = Throttle.objects.get(key="k").used_until
    for _ in range(5):
        assert throttle.spend("k", per_minute=3) is not None
    assert Throttle.objects.get(key="k").used_until == before


def test_what_was_used_up_comes_back(db) -> None:
    for _ in range(120):
        throttle.spend("k", per_minute=120)
    while throttle.spend("k", per_minute=120) is None:
        pass
    time.sleep(0.6)
    assert throttle.spend("k", per_minute=120) is None


def test_one_statement_for_a_request_that_may_go_on(db, django_assert_num_queries) -> None:
    with django_assert_num_queries(1):
        throttle.spend("k", per_minute=10)
    with django_assert_num_queries(1):
        throttle.spend("k", per_minute=10)


def test_old_rows_go(db, monkeypatch) -> None:
    throttle.spend("old", per_minute=6_000)
    time.sleep(0.02)
    monkeypatch.setattr(throttle, "_cleaned_at", time.monotonic() - throttle.CLEAN_EVERY_SECONDS - 1)
    throttle.spend("new", per_minute=1)
    assert set(Throttle.objects.values_list("key", flat=True)) == {"new"}


def test_the_table_waits_for_no_disk(db) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relpersistence FROM pg_class WHERE relname = 'core_throttle'")
        assert cursor.fetchone() == ("u",)


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_no_more_than_the_rate_get_through() -> None:
    outcomes: list[int | None] = []

    def ask() -> None:
        try:
            for _ in range(10):
                outcomes.append(throttle.spend("k", per_minute=25))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 60
    assert outcomes.count(None) in (25, 26)  # one may have come back meanwhile
