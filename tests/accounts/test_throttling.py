from __future__ import annotations

import pytest
from django.test import RequestFactory

from apps.accounts.models import TokenKind
from apps.accounts.throttling import client_address, spend
from apps.core.errors import TooMany
from tests.conftest import issue

pytestmark = pytest.mark.urls("tests.probe_urls")
ME = "/api/v1/me/"


@pytest.fixture(autouse=True)
def few(settings) -> None:
    settings.FIRM_MEMORY_THROTTLE = True
    settings.FIRM_MEMORY_RATES = {"read": 3, "write": 2, "search": 1, "anonymous": 2}


def test_over_the_rate_is_429_with_when_to_come_back(api, robo) -> None:
    client = api(robo)
    assert [client.get(ME).status_code for _ in range(3)] == [200] * 3
    answer = client.get(ME)
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["code"] == "throttled"
    assert answer.headers["Retry-After"] == str(body["extra"]["retry_after"])
    assert 1 <= body["extra"]["retry_after"] <= 20
    assert "at most 3 a minute" in body["detail"]


def test_each_kind_and_each_principal_has_a_rate_of_its_own(api, robo, botty) -> None:
    client = api(robo)
    assert client.get("/api/v1/probe/search/").status_code == 200
    assert client.get("/api/v1/probe/search/").status_code == 429
    assert [client.post("/api/v1/probe/effect/", {}).status_code for _ in range(3)] == [201, 201, 429]
    assert client.get(ME).status_code == 200
    assert api(botty).get("/api/v1/probe/search/").status_code == 200


def test_a_person_is_counted_by_person_in_every_browser(browser, alice) -> None:
    first, second = browser(alice), browser(alice)
    assert [client.get(ME).status_code for client in (first, second, first, second)] == [200, 200, 200, 429]


def test_off_is_off(api, robo, settings) -> None:
    settings.FIRM_MEMORY_THROTTLE = False
    client = api(robo)
    assert {client.get(ME).status_code for _ in range(8)} == {200}
    assert {api().get(ME).status_code for _ in range(8)} == {401}


def test_guessing_is_slowed_by_address(api, robo) -> None:
    guess = {"headers": {"Authorization": "Bearer fm_agent_guess"}}
    assert [api().get(ME, **guess).status_code for _ in range(3)] == [401, 401, 429]
    assert api().get(ME).status_code == 429
    assert api().get(ME, REMOTE_ADDR="198.51.100.7").status_code == 401
    # Whoever has a valid token is not slowed by others behind the same address.
    assert api(robo).get(ME).status_code == 200


def test_other_doors_count_alike(principal, robo) -> None:
    by = principal(robo, via="mcp")
    spend(by, "search")
    with pytest.raises(TooMany):
        spend(by, "search")


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "203.0.113.9", "127.0.0.1"),
        (1, "203.0.113.9", "203.0.113.9"),
        (1, "10.9.9.9, 203.0.113.9", "203.0.113.9"),
        (2, "10.9.9.9, 203.0.113.9, 10.0.0.1", "203.0.113.9"),
        (1, "", "127.0.0.1"),
        (2, "203.0.113.9", "127.0.0.1"),
    ],
)
def test_what_a_client_writes_into_forwarded_for_counts_nothing(
    settings, proxies: int, forwarded: str, address: str
) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    request = RequestFactory().get("/", headers={"X-Forwarded-For": forwarded})
    assert client_address(request) == address


def test_a_long_address_still_fits(api, db, settings) -> None:
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    assert api().get(ME, headers={"X-Forwarded-For": "x" * 5_000}).status_code == 401


def test_tokens_of_one_owner_are_counted_apart(api, workspace, alice) -> None:
    one, two = (issue(workspace, name, TokenKind.REVIEWER, owner=alice) for name in ("one", "two"))
    assert [api(one).get(ME).status_code for _ in range(4)][-1] == 429
    assert api(two).get(ME).status_code == 200
