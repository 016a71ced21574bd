from __future__ import annotations

import logging
import sys
from io import StringIO

import pytest
from django.conf import settings
from django.db import OperationalError, connection

from apps.core.logs import AddressFilter, DatabaseDownFilter


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


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("path", ["/api/v1/tasks/{}/notes/", "/api/v1/nothing/{}/", "/nothing/{}"], ids=range(3))
def test_an_address_is_logged_without_the_secret_in_it(client, method, path):
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    written = StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(AddressFilter())
    log = logging.getLogger("django.request")
    log.addHandler(handler)

    try:
        getattr(client, method)(path.format(secret))
    finally:
        log.removeHandler(handler)

    assert path.format("[secret: github token]") in written.getvalue()
    assert secret not in written.getvalue()


def test_every_line_is_written_without_secrets_in_addresses():
    handlers = settings.LOGGING["handlers"]

    assert all("address" in handler["filters"] for handler in handlers.values())
