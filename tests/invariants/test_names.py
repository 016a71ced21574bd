"""Names of repositories and domains are data: any of them is stored, matched exactly and found again."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.ledger import a_body

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

NAMES = [
    *("acme/billing-svc", "org/repo.name", "8b1c2f0e-3a55-4b6e-9a51-7d0c8d1f0a11", "a&b", "50%_off", "50%_Off"),
    *(
        "支払いサービス",
        "決済サービス",
        "a_b",
        "axb",
        "100%",
        "100",
        "it's",
        '"quoted"',
        "back\\slash",
        "{curly}",
        "a,b",
    ),
    *("<b>", "null", "true", "x' OR '1'='1", "$1", "emoji 🚀", "ünïcödé", "a b", "..", "*"),
]


@pytest.fixture
def statements(api, robo, alice):
    """A memory for each name as a repository and as a domain."""
    agent, reviewer = api(robo), api(alice)
    found = {}
    for at, name in enumerate(NAMES):
        for place in ("repos", "domains"):
            body = a_body(f"Statement {at} holds in these {place}.", scope={place: [name]})
            made = agent.post("/api/v1/candidates/", body)
            assert made.status_code == 201, (name, made.json())
            answer = reviewer.post(f"/api/v1/candidates/{made.json()['id']}/approve/", {"version": 1})
            found[place, name] = answer.json()["memory"]
    return found


def search(client, **parameters) -> set[str]:
    query = urlencode({"q": "statement holds", "limit": 100} | parameters, doseq=True)
    return {row["number"] for row in client.get(f"/api/v1/memories/search/?{query}").json()["results"]}


def test_each_name_finds_its_own_and_no_other(api, robo, alice, statements):
    agent, reviewer = api(robo), api(alice)
    for (place, name), memory in statements.items():
        assert memory["scope"][place] == [name]
        if name == "null":
            continue  # as a parameter it could mean "nothing", so it is refused there
        assert search(agent, **{place: name}) == {memory["number"]}, (place, name)
        queue = reviewer.get(
            "/api/v1/candidates/", {{"repos": "repo", "domains": "domain"}[place]: name, "status": "approved"}
        )
        assert len(queue.json()["results"]) == 1, (place, name)


def test_several_at_once_find_all_of_theirs(api, robo, statements):
    names = ["a_b", "axb", "支払いサービス"]

    assert search(api(robo), repos=names) == {statements["repos", name]["number"] for name in names}


def test_no_name_is_a_pattern(api, robo, statements):
    client = api(robo)

    for pattern in ("%", "_", "a_", "a%", "_xb", ".*", "a*", "acme/%", "ACME/BILLING-SVC"):
        assert search(client, repos=pattern) == set(), pattern
        assert search(client, domains=pattern) == set(), pattern
