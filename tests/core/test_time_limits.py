"""Limits hold for their block, end with it, and leave the connection as it was."""

from __future__ import annotations

import time
from types import SimpleNamespace

import psycopg
import pytest
from django.db import OperationalError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.core import time_limits
from apps.core.time_limits import is_timeout, reading_within, waiting_for_locks_within
from tests.in_time import in_time

pytestmark = pytest.mark.django_db


def run(statement: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone() if cursor.description else None
    return row[0] if row else None


def setting(name: str) -> object:
    return run(f"SELECT current_setting('{name}')")


def test_a_statement_that_takes_too_long_is_stopped_and_known_as_such() -> None:
    def stopped() -> Exception:
        with pytest.raises(OperationalError) as error, reading_within(0.2):
            run("SELECT pg_sleep(5)")
        return error.value

    assert is_timeout(in_time(stopped, below=1))
    assert setting("statement_timeout") == "0"


def test_any_other_error_is_no_timeout() -> None:
    with pytest.raises(ProgrammingError) as failed, reading_within(5):
        run("SELECT nonsense FROM nowhere")
    assert not is_timeout(failed.value)
    assert not is_timeout(ValueError("57014"))
    assert is_timeout(psycopg.errors.QueryCanceled())
    assert run("SELECT 1") == 1


def test_settings_hold_inside_and_are_gone_afterwards() -> None:
    before = setting("enable_seqscan"), setting("statement_timeout")
    with reading_within(3, enable_seqscan="off"):
        assert (setting("enable_seqscan"), setting("statement_timeout")) == ("off", "3s")
        with reading_within(1):
            assert (setting("enable_seqscan"), setting("statement_timeout")) == ("off", "1s")
        assert setting("statement_timeout") == "3s"
    assert (setting("enable_seqscan"), setting("statement_timeout")) == before


def test_nothing_is_written() -> None:
    with reading_within(3):
        run("CREATE TABLE never_there (id int)")
    assert run("SELECT to_regclass('never_there')") is None


def test_what_was_used_up_is_no_longer_there(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = SimpleNamespace(moment=0.0, monotonic=lambda: watch.moment)
    monkeypatch.setattr(time_limits, "time", watch)
    with reading_within(1) as limit:
        watch.moment = 0.375
        limit.renew()
        assert setting("statement_timeout") == "625ms"
        run("SELECT pg_sleep(0.3)")
        watch.moment = 0.75
        with pytest.raises(OperationalError) as stopped, transaction.atomic():
            limit.renew()
            assert setting("statement_timeout") == "250ms"
            run("SELECT pg_sleep(0.5)")
    assert is_timeout(stopped.value)


def test_renewing_costs_nothing_while_little_was_used() -> None:
    with reading_within(60) as limit, CaptureQueriesContext(connection) as queries:
        limit.renew()
        limit.renew()
    assert len(queries) <= 1  # the end of the block


def test_used_up_time_is_never_taken_for_no_limit() -> None:
    with pytest.raises(OperationalError), reading_within(0.001) as limit:
        time.sleep(0.01)
        limit.renew()
        run("SELECT pg_sleep(5)")


def test_waiting_for_a_lock_ends(transactional_db: None) -> None:
    place = connection.settings_dict
    with psycopg.connect(
        host=place["HOST"],
        port=place["PORT"],
        user=place["USER"],
        password=place["PASSWORD"],
        dbname=place["NAME"],
    ) as other:
        other.execute("LOCK TABLE core_throttle IN ACCESS EXCLUSIVE MODE")

        def stopped() -> Exception:
            with pytest.raises(OperationalError) as error, transaction.atomic(), waiting_for_locks_within(0.2):
                run("DELETE FROM core_throttle")
            return error.value

        error = in_time(stopped, below=2)
        other.rollback()
    assert is_timeout(error)
    assert setting("lock_timeout") == "0"


def test_after_the_wait_the_callers_own_limit_holds_again() -> None:
    with transaction.atomic():
        run("SELECT set_config('lock_timeout', '7s', true)")
        with waiting_for_locks_within(1):
            assert setting("lock_timeout") == "1s"
        assert setting("lock_timeout") == "7s"
