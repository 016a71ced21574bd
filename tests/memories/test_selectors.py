"""One memory in full: by id or number, with its chain, its sources and the verdicts on it."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.candidates.models import Candidate
from apps.scopes.models import Repository
from tests.conftest import issue
from tests.ledger import a_body, approve, fresh, of_person, of_token, propose, reject, remember, reopen

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

URL = "/api/v1/memories"


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def memory(proposer, reviewer):
    return remember(proposer, reviewer)


def test_a_memory_is_read_by_id_and_by_number_by_everybody_in_the_workspace(api, memory, robo, bob, alice):
    for who in (robo, bob, alice):
        for reference in (memory.pk, memory.label, str(memory.pk).upper()):
            response = api(who).get(f"{URL}/{reference}/")
            assert response.status_code == 200
            assert response.json()["id"] == str(memory.pk)


@pytest.mark.parametrize(
    "written",
    [
        *("M-\u0661", "M-\uff11", "M-01", "M-0001", "m-1", "M-+1", "M- 1", "M-1_", "M-1.0", "M\u22121", "M\u20101"),
        *("%20M-1", "M-1%20", "M-1%0A", "%E3%80%80M-1", "{{{}}}", "urn:uuid:{}", "{}%20", "%20{}", "{}-", "-{}"),
    ],
)
def test_a_reference_is_written_in_one_way(api, robo, browser, alice, memory, written):
    assert memory.label == "M-1"
    address = written.format(memory.pk)
    assert api(robo).get(f"{URL}/{address}/").status_code == 404
    assert browser(alice).get(f"/memories/{address}/").status_code == 404


@pytest.mark.parametrize("written", ["{0.hex}", "{{{0}}}", "urn:uuid:{0}", "M-01", " M-1", "m-1"])
def test_what_would_be_replaced_is_written_in_one_way(api, robo, memory, written):
    response = api(robo).post("/api/v1/candidates/", a_body(supersedes=[written.format(memory.pk)]))
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == ["supersedes[0]"]


@pytest.mark.parametrize(
    "reference", ["M-0", "M-2", "M-", "M-99999999999999999999", "nonsense", "0", "M-1'", "%00", "x" * 1_000]
)
def test_what_is_not_there_is_not_there(api, robo, memory, reference):
    assert api(robo).get(f"{URL}/{reference}/").status_code == 404


def test_it_takes_no_parameters_and_nobody_reads_nothing(api, robo, memory):
    assert api(robo).get(f"{URL}/{memory.pk}/?full=1").status_code == 400
    assert api().get(f"{URL}/{memory.pk}/").status_code == 401


def test_in_any_status_it_can_be_read(api, robo, proposer, reviewer, memory):
    from apps.approvals.services import memory_retire

    successor = remember(proposer, reviewer, supersedes=[memory])
    memory_retire(principal=reviewer, reference=successor.pk, reason="Moot.")

    assert api(robo).get(f"{URL}/{memory.pk}/").json()["status"] == "superseded"
    assert api(robo).get(f"{URL}/{successor.pk}/").json()["status"] == "retired"


def test_a_token_limited_to_repositories_reads_those_and_what_holds_for_all(workspace, api, proposer, reviewer):
    from apps.candidates.proposal import ScopeInput
    from apps.scopes.models import Domain

    in_repo = remember(proposer, reviewer, scope=ScopeInput(repos=("acme/pay",)))
    in_domain = remember(proposer, reviewer, scope=ScopeInput(domains=("payments",)))
    for_all = remember(proposer, reviewer, scope=ScopeInput(firm=True))
    elsewhere = remember(proposer, reviewer, scope=ScopeInput(repos=("acme/shop",)))
    pay = Repository.objects.get(slug="acme/pay")
    Repository.objects.filter(pk=pay.pk).update(domain_ids=[Domain.objects.get(slug="payments").pk])
    limited = api(issue(workspace, "limited", "agent", repository_ids=[pay.pk]))

    statuses = [limited.get(f"{URL}/{row.pk}/").status_code for row in (in_repo, in_domain, for_all, elsewhere)]

    assert statuses == [200, 200, 200, 404]
    found = limited.get(f"{URL}/search/?q=since+revision").json()["results"]
    assert {row["id"] for row in found} == {str(row.pk) for row in (in_repo, in_domain, for_all)}
    assert limited.get(f"{URL}/search/?q=revision&repos=acme/shop").status_code == 403


# --- verdicts -----------------------------------------------------------------------------------------------
def test_the_verdicts_on_it_and_its_candidate_are_told_in_order(api, robo, proposer, reviewer):
    candidate = propose(proposer)
    reject(reviewer, candidate, "Not yet.")
    reopen(reviewer, candidate, "Now it is so.")
    memory = approve(reviewer, candidate).memory

    shown = api(robo).get(f"{URL}/{memory.pk}/").json()["verdicts"]

    assert [(row["action"], row["reason"]) for row in shown] == [
        ("reject", "Not yet."),
        ("reopen", "Now it is so."),
        ("approve", ""),
    ]


def test_wordings_that_nobody_approved_are_for_reviewers_alone(api, robo, bob, carol, proposer, reviewer):
    candidate = propose(proposer, "Deploys are pending on Tuesdays, says Bill.")
    memory = approve(reviewer, candidate, content="Deploys happen on Tuesdays.").memory

    for reader in (robo, bob):
        assert "says Bill" not in api(reader).get(f"{URL}/{memory.pk}/").content.decode()
    assert "says Bill" in api(carol).get(f"{URL}/{memory.pk}/").content.decode()


def test_what_is_open_again_is_not_read_through_the_memory_it_once_made(api, robo, botty, proposer, reviewer):
    memory = remember(proposer, reviewer, "Deploys happen on Tuesdays.")
    candidate = Candidate.objects.get(pk=memory.verdict.subject_id)
    version = reopen(reviewer, candidate).version
    revised = api(robo).post(
        f"/api/v1/candidates/{candidate.pk}/revise/", {"version": version, "content": "A secret plan for Thursday."}
    )
    assert revised.status_code == 200

    for reader in (robo, botty):
        assert "Thursday" not in api(reader).get(f"{URL}/{memory.pk}/").content.decode()


def test_a_memory_costs_the_same_however_long_its_chain(api, alice, proposer, reviewer):
    client = api(alice)
    last = remember(proposer, reviewer)
    last = remember(proposer, reviewer, supersedes=[last])
    client.get(f"{URL}/{last.pk}/")

    def cost(memory) -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(f"{URL}/{memory.pk}/")
        return len(captured)

    few = cost(last)
    for _ in range(6):
        last = remember(proposer, reviewer, supersedes=[last])

    assert len(client.get(f"{URL}/{last.pk}/").json()["chain"]) == 8
    assert cost(last) == few <= 13


def test_fork_and_merge_make_one_chain(api, robo, proposer, reviewer):
    from apps.core.clock import now
    from apps.memories.lifecycle import edges_write

    left, right = remember(proposer, reviewer), remember(proposer, reviewer)
    merged = remember(proposer, reviewer, supersedes=[left, right])
    aside = remember(proposer, reviewer)
    edges_write(aside, [left], verdict=aside.verdict, kind="amends", at=now())

    for member in (left, right, merged, aside):
        chain = api(robo).get(f"{URL}/{member.pk}/").json()["chain"]
        assert {entry["id"] for entry in chain} == {str(row.pk) for row in (left, right, merged, aside)}
    assert fresh(left).status == "superseded"
