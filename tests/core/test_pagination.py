from __future__ import annotations

import base64
import json
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from apps.accounts.models import AuditEvent, Workspace
from apps.core.clock import now

pytestmark = pytest.mark.urls("tests.probe_urls")
LIST = "/api/v1/probe/list/"


@pytest.fixture
def verbs(workspace: Workspace, robo) -> list[str]:
    """Newest first; every moment is shared by three rows, so that the id must decide."""
    start = now()
    with_moment = [
        AuditEvent(workspace=workspace, actor="x", verb=f"v{n}", created_at=start + timedelta(seconds=n // 3))
        for n in range(10)
    ]
    AuditEvent.objects.bulk_create(with_moment)
    return list(
        AuditEvent.objects.filter(workspace=workspace).order_by("-created_at", "-id").values_list("verb", flat=True)
    )


def walk(client, url: str, link: str) -> list[list[str]]:
    pages = []
    while url:
        page = client.get(url).json()
        pages.append(page["results"])
        url = page[link]
    return pages


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 7, 50])
def test_every_row_once_and_in_order_there_and_back(api, robo, verbs, limit: int) -> None:
    client = api(robo)
    pages = walk(client, f"{LIST}?limit={limit}", "next")
    assert [verb for page in pages for verb in page] == verbs
    assert all(len(page) == limit for page in pages[:-1])
    last = client.get(f"{LIST}?limit={limit}").json()
    while last["next"]:
        last = client.get(last["next"]).json()
    backwards = [last["results"]]
    while last["previous"]:
        last = client.get(last["previous"]).json()
        backwards.insert(0, last["results"])
    assert [verb for page in backwards for verb in page] == verbs
    assert last["previous"] is None


def test_a_row_that_comes_meanwhile_is_not_shown_twice(api, robo, verbs, workspace) -> None:
    client = api(robo)
    first = client.get(f"{LIST}?limit=4").json()
    AuditEvent.objects.create(workspace=workspace, actor="x", verb="new", created_at=now() + timedelta(days=1))
    second = client.get(first["next"]).json()
    assert first["results"] + second["results"] == verbs[:8]
    assert client.get(second["previous"]).json()["results"] == verbs[:4]


def test_the_links_keep_the_other_parameters(api, robo, verbs) -> None:
    link = api(robo).get(f"{LIST}?limit=2").json()["next"]
    assert urlsplit(link).netloc == "testserver"
    assert parse_qs(urlsplit(link).query)["limit"] == ["2"]


def test_an_empty_list(api, charlie) -> None:
    client = api(charlie)
    everything = client.get(LIST).json()
    assert everything["next"] is None and everything["previous"] is None
    epoch = packed(["n", "1970-01-01T00:00:00Z", "1"])
    assert client.get(f"{LIST}?cursor={epoch}").json() == {"results": [], "next": None, "previous": None}


def test_one_query_for_a_page(api, robo, verbs, django_assert_num_queries) -> None:
    client = api(robo)
    client.get("/api/v1/me/")
    with django_assert_num_queries(3):  # who is asking, the throttle, the page
        client.get(f"{LIST}?limit=3")


def packed(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "%00",
        "====",
        "a",
        "é",
        packed([]),
        packed({"n": 1}),
        packed("n"),
        packed(["n"]),
        packed(["n", "2025-03-01T00:00:00Z"]),
        packed(["n", "2025-03-01T00:00:00Z", "1", "2"]),
        packed(["x", "2025-03-01T00:00:00Z", "1"]),
        packed(["n", "2025-03-01T00:00:00", "1"]),
        packed(["n", "yesterday", "1"]),
        packed(["n", "2025-03-01T00:00:00Z", "one"]),
        packed(["n", "2025-03-01T00:00:00Z", 1]),
        packed(["n", None, None]),
        packed(["n", "2025-03-01T00:00:00Z", "\x00"]),
        "W" * 501,
    ],
)
def test_a_cursor_that_was_not_given_out(api, robo, verbs, cursor: str) -> None:
    answer = api(robo).get(f"{LIST}?cursor={cursor}")
    assert answer.status_code == 422, answer.content
    assert answer.json()["errors"][0]["field"] == "cursor"


def test_a_cursor_does_not_lead_into_another_workspace(api, robo, charlie, verbs) -> None:
    link = api(robo).get(f"{LIST}?limit=2").json()["next"]
    assert not {verb for verb in api(charlie).get(link).json()["results"] if verb.startswith("v")}


@pytest.mark.parametrize("limit", ["0", "201", "x", ""])
def test_limits(api, robo, limit: str) -> None:
    assert api(robo).get(f"{LIST}?limit={limit}").status_code == 422


def test_unknown_parameter(api, robo) -> None:
    assert api(robo).get(f"{LIST}?page=2").status_code == 400
