"""Moments without an offset are UTC, and the answer says so; another zone means the same moment."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.ledger import of_person, of_token, remember

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def old_and_new(robo, alice):
    proposer, reviewer = of_token(robo.token), of_person(alice)
    old = remember(proposer, reviewer, "Payments go through Initech.", valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    new = remember(
        proposer,
        reviewer,
        "Payments go through Hooli.",
        valid_from=datetime(2025, 6, 1, 12, tzinfo=UTC),
        supersedes=[old],
    )
    return old.label, new.label


@pytest.mark.parametrize(
    ("as_of", "expected", "noted"),
    [
        ("2025-06-01T11:59:59Z", "old", False),
        ("2025-06-01T12:00:00Z", "new", False),
        ("2025-06-01T11:59:59", "old", True),
        ("2025-06-01T12:00:00", "new", True),
        ("2025-06-01", "old", True),
        ("2025-06-02", "new", True),
        ("2025-06-01T14:00:00+02:00", "new", False),
        ("2025-06-01T13:59:59+02:00", "old", False),
        ("2025-06-01T07:00:00-05:00", "new", False),
        ("2024-12-31T23:59:59Z", None, False),
    ],
)
def test_a_moment_is_read_in_its_zone_or_in_utc_and_that_is_said(api, robo, old_and_new, as_of, expected, noted):
    old, new = old_and_new

    answer = api(robo).get("/api/v1/memories/search/", {"q": "payments go through", "as_of": as_of}).json()

    assert [row["number"] for row in answer["results"]] == {"old": [old], "new": [new], None: []}[expected]
    assert ("as_of" in answer["note"] and "UTC" in answer["note"]) is noted


def test_a_plus_sign_that_became_a_space_on_its_way_is_understood(api, robo, old_and_new):
    response = api(robo).get("/api/v1/memories/search/?q=payments+go+through&as_of=2025-06-01T14:00:00+02:00")

    assert [row["number"] for row in response.json()["results"]] == [old_and_new[1]]
    assert "UTC" not in response.json()["note"]


@pytest.mark.parametrize(
    "as_of", ["yesterday", "2025-13-01", "2025-06-01T25:00", "", "null", "1748779200", "2025-06-01T"]
)
def test_what_is_no_moment_is_refused_by_name(api, robo, as_of):
    response = api(robo).get("/api/v1/memories/search/", {"q": "payments", "as_of": as_of})

    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == ["as_of"]


@pytest.mark.parametrize(
    "as_of", ["0001-01-01", "9999-12-31", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"]
)
def test_the_ends_of_time_are_no_fault_of_ours(api, robo, old_and_new, as_of):
    response = api(robo).get("/api/v1/memories/search/", {"q": "payments", "as_of": as_of})

    assert response.status_code in (200, 422)
