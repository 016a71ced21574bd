"""Names of repositories and domains are data: any of them is stored, matched exactly and found again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from apps.accounts.models import Role, TokenKind, Workspace
from apps.memories.providers import registry
from apps.memories.providers.mem0.provider import Mem0Provider
from tests.conftest import ApiClient, add_person, issue
from tests.ledger import a_body
from tests.memories.providers.doubles import HashingEmbedder

pytestmark = pytest.mark.django_db

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


@dataclass
class World:
    agent: ApiClient
    reviewer: ApiClient
    statements: dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def made(module_transaction) -> World:
    """A memory for each name as a repository and as a domain."""
    embedder = HashingEmbedder(name="local", dimensions=384)
    with module_transaction(), registry.override(Mem0Provider(embedder)):
        workspace = Workspace.objects.get(slug="firm")
        alice = add_person(workspace, "alice", Role.REVIEWER)
        robo = issue(workspace, "robo", TokenKind.AGENT)
        token = issue(workspace, "alice-token", TokenKind.REVIEWER, owner=alice)
        agent, reviewer = (ApiClient(headers={"Authorization": f"Bearer {who.secret}"}) for who in (robo, token))
        return World(agent, reviewer, remembered(agent, reviewer))


@pytest.fixture
def world(made: World, pool: Mem0Provider) -> World:
    return made


def remembered(agent: ApiClient, reviewer: ApiClient) -> dict[tuple[str, str], dict[str, Any]]:
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


def test_each_name_finds_its_own_and_no_other(world):
    for (place, name), memory in world.statements.items():
        assert memory["scope"][place] == [name]
        if name == "null":
            continue  # as a parameter it could mean "nothing", so it is refused there
        assert search(world.agent, **{place: name}) == {memory["number"]}, (place, name)
        queue = world.reviewer.get(
            "/api/v1/candidates/", {{"repos": "repo", "domains": "domain"}[place]: name, "status": "approved"}
        )
        assert len(queue.json()["results"]) == 1, (place, name)


def test_several_at_once_find_all_of_theirs(world):
    names = ["a_b", "axb", "支払いサービス"]

    assert search(world.agent, repos=names) == {world.statements["repos", name]["number"] for name in names}


def test_no_name_is_a_pattern(world):
    for pattern in ("%", "_", "a_", "a%", "_xb", ".*", "a*", "acme/%", "ACME/BILLING-SVC"):
        assert search(world.agent, repos=pattern) == set(), pattern
        assert search(world.agent, domains=pattern) == set(), pattern
