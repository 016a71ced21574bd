from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.evals.benchmarks.wire import counted


@pytest.mark.django_db(transaction=True)
def test_everything_that_is_sent_counts_also_what_django_does_not_see():
    connection.ensure_connection()
    with counted() as sent, CaptureQueriesContext(connection) as seen, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        with transaction.atomic():
            connection.connection.execute("SELECT 2")  # psycopg's own
    assert sent.statements == 6  # BEGIN, 1, SAVEPOINT, 2, RELEASE, COMMIT
    assert len(seen) < 6


@pytest.mark.django_db
def test_nothing_sent_is_nothing_counted():
    with counted() as sent:
        pass
    assert sent.statements == 0
