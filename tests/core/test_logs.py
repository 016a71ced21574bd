from __future__ import annotations

import logging
import sys

import pytest
from django.db import OperationalError, connection

from apps.core.logs import DatabaseDownFilter


def record_of(error: BaseException) -> logging.LogRecord:
    try:
        raise error
    except type(error):
        return logging.LogRecord("q", logging.ERROR, "file", 1, "Pulling %s", ("failed",), sys.exc_info())


def formatted(record: logging.LogRecord) -> str:
    assert DatabaseDownFilter().filter(record) is True
    return logging.Formatter("%(message)s").format(record)


def test_a_database_that_is_down_takes_one_line():
    error = OperationalError("connection failed: refused\n\tIs the server running?")

    assert formatted(record_of(error)) == ("Pulling failed: the database does not answer: connection failed: refused")


@pytest.mark.django_db
def test_a_failed_statement_keeps_its_traceback():
    with pytest.raises(OperationalError) as failed, connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(5)")

    assert "Traceback" in formatted(record_of(failed.value))


def test_any_other_error_keeps_its_traceback():
    assert "Traceback" in formatted(record_of(ValueError("x")))


def test_a_record_without_an_error_stays_as_it_is():
    record = logging.LogRecord("q", logging.INFO, "file", 1, "All %s", ("well",), None)

    assert formatted(record) == "All well"
