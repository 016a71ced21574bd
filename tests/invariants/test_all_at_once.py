"""Whoever sends several faults reads of all of them, each by its full name, and nothing is stored."""

from __future__ import annotations

from typing import Any

import pytest

from apps.candidates.models import Candidate
from apps.scopes.models import Domain, Repository
from tests.ledger import a_body, fresh, of_person, of_token, propose, remember

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

CANDIDATES = "/api/v1/candidates/"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


def fields_of(response: Any) -> list[str]:
    assert response.status_code == 422, response.json()
    return sorted(error["field"] for error in response.json()["errors"])


BAD_URL = {"kind": "chat", "reference": "#pay/1", "url": "javascript:alert(1)"}
BAD_KIND = {"kind": "rumour", "reference": "#pay/2"}

# What is wrong with a proposal, by what it changes in one that would do, and the fields it names.
FAULTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "content": ({"content": 5}, ["content"]),
    "blank": ({"content": "  "}, ["content"]),
    "long": ({"content": "x" * 8_001}, ["content"]),
    "secret": ({"content": f"It works with {SECRET}."}, ["content"]),
    "type": ({"type": "foo"}, ["type"]),
    "scope": ({"scope": {}}, ["scope"]),
    "name": ({"scope": {"domains": ["ok", "x" * 201]}}, ["scope.domains[1]"]),
    "flag": ({"scope": {"firm": "yes"}}, ["scope.firm"]),
    "sources": ({"sources": []}, ["sources"]),
    "url": ({"sources": [BAD_URL]}, ["sources[0].url"]),
    "both": ({"sources": [BAD_KIND, BAD_URL]}, ["sources[0].kind", "sources[1].url"]),
    "confidence": ({"confidence": 7}, ["confidence"]),
    "unknown": ({"supersedes": ["M-999"]}, ["supersedes[0]"]),
    "early": ({"valid_from": "1066-10-14"}, ["valid_from"]),
    "tier": ({"tier": "gold"}, ["tier"]),
}


PAIRS = [
    (one, other)
    for one in ("content", "secret", "type", "scope", "url", "confidence", "unknown", "early")
    for other in FAULTS
    if not FAULTS[one][0].keys() & FAULTS[other][0].keys()
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_any_two_faults_of_a_proposal_are_said_together(api, robo, one, other):
    (first, named), (second, also_named) = FAULTS[one], FAULTS[other]
    response = api(robo).post(CANDIDATES, a_body(**(first | second)))
    assert fields_of(response) == sorted(named + also_named)
    assert (response.json()["code"] == "excluded") == ("secret" in (one, other))
    assert SECRET not in response.content.decode()


def test_all_faults_of_a_proposal_are_said_together_and_nothing_is_stored(api, robo):
    changes = {"content": SECRET, "type": "foo", "scope": {"repos": ["new/one"], "domains": ["x" * 201]}}
    changes |= {"sources": [BAD_URL], "supersedes": ["M-999"], "valid_from": "1066-10-14"}
    response = api(robo).post(CANDIDATES, a_body(**changes))
    expected = ["content", "scope.domains[0]", "sources[0].url", "supersedes[0]", "type", "valid_from"]
    assert fields_of(response) == expected
    assert not Candidate.objects.exists() and not Repository.objects.exists() and not Domain.objects.exists()


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


AMENDED = ["content", "secret", "type", "scope", "name", "flag", "confidence", "unknown", "early"]


@pytest.mark.parametrize("name", AMENDED)
def test_every_fault_of_an_amendment_is_named_in_full(api, alice, proposer, name):
    candidate = propose(proposer)
    changes, named = FAULTS[name]
    response = api(alice).post(f"{CANDIDATES}{candidate.pk}/approve/", {"version": 1, "amendment": changes})
    assert fields_of(response) == [f"amendment.{field}" for field in named]
    assert fresh(candidate).status == "pending"


def test_all_faults_of_an_approval_are_said_together(api, alice, proposer):
    candidate = propose(proposer)
    amendment = {"content": f"With {SECRET}.", "type": "foo", "scope": {}, "supersedes": ["M-9"], "confidence": 7}
    body = {"version": "one", "amendment": amendment, "note": f"See {SECRET}."}
    response = api(alice).post(f"{CANDIDATES}{candidate.pk}/approve/", body)
    amended = [f"amendment.{field}" for field in ("confidence", "content", "scope", "supersedes[0]", "type")]
    assert fields_of(response) == [*amended, "note", "version"]

    response = api(alice).post(f"{CANDIDATES}{candidate.pk}/approve/", {"version": 1, "amendment": amendment})
    assert fields_of(response) == amended
    amendment["confidence"] = 0.7
    response = api(alice).post(f"{CANDIDATES}{candidate.pk}/approve/", {"version": 1, "amendment": amendment})
    assert fields_of(response) == amended[1:]


def test_all_faults_of_a_revision_are_said_together(api, robo, proposer):
    candidate = propose(proposer)
    body = {"content": SECRET, "type": "foo", "scope": {}, "sources": [BAD_URL], "supersedes": ["M-9"]}
    for version in (1, "one"):
        response = api(robo).post(f"{CANDIDATES}{candidate.pk}/revise/", {"version": version, **body})
        expected = ["content", "scope", "sources[0].url", "supersedes[0]", "type"]
        assert fields_of(response) == expected + (["version"] if version == "one" else [])


def test_all_faults_of_a_report_are_said_together(api, robo, proposer, alice):
    memory = remember(proposer, of_person(alice))
    body = {"kind": "boring", "reason": f"See {SECRET}.", "replacement": "  ", "sources": [BAD_URL]}
    response = api(robo).post(f"/api/v1/memories/{memory.pk}/corrections/", body)
    assert fields_of(response) == ["kind", "reason", "replacement", "sources[0].url"]


def test_all_faults_of_a_decision_are_said_together(api, alice, proposer):
    candidate = propose(proposer)
    response = api(alice).post(f"{CANDIDATES}{candidate.pk}/reject/", {"version": 0, "reason": SECRET})
    assert fields_of(response) == ["reason", "version"]
    response = api(alice).post(f"{CANDIDATES}bulk/", {"action": "burn", "items": [], "reason": SECRET})
    assert fields_of(response) == ["action", "items", "reason"]


def test_all_faults_of_a_question_are_said_together(api, robo, alice):
    response = api(robo).get("/api/v1/memories/search/?types=foo&limit=0&repos=&as_of=soon&intent=guess")
    assert fields_of(response) == ["as_of", "intent", "limit", "q", "repos", "types"]
    response = api(alice).get(f"{CANDIDATES}?type=foo&age=-1&q=&status=lost")
    assert fields_of(response) == ["age", "q", "status", "type"]


POSTS = ["{c}", "{c}{id}/approve/", "{c}{id}/reject/", "{c}{id}/reopen/", "{c}{id}/revise/", "{c}{id}/withdraw/"]
POSTS += ["{c}bulk/", *(f"/api/v1/memories/M-1/{action}/" for action in ("corrections", "retire", "restore"))]


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_no_body_at_all_is_not_json(api, alice, proposer, path, content_type):
    address = path.format(c=CANDIDATES, id=propose(proposer).pk)
    client = api(alice)
    response = client.post(address, "", content_type=content_type, headers={"Idempotency-Key": "once"})
    assert response.status_code == 400
    assert response.json()["detail"] == "The body is empty. Send one JSON object."
    assert client.post(address, " ", content_type="application/json").status_code == 400
    assert client.post(address, {}).status_code == 422
