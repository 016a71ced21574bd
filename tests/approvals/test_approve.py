"""Approving and rejecting: what becomes of a candidate, what is recorded, what is refused and how."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import AuditEvent
from apps.approvals.amendments import Amendment
from apps.approvals.services import candidate_approve
from apps.candidates.models import Candidate
from apps.core.clock import now
from apps.core.errors import UnknownKeys
from apps.memories.models import Memory, Verdict
from apps.memories.providers.registry import get_provider
from apps.scopes.models import Repository
from apps.taxonomy.models import MemoryType
from tests.conftest import issue
from tests.ledger import a_body, a_source, approve, fresh, of_person, of_token, propose, reject, remember

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

URL = "/api/v1/candidates"


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def client(api, alice):
    return api(alice)


@pytest.fixture
def candidate(proposer):
    return propose(proposer, "Deploys happen on Tuesdays.")


def fields(response) -> set[str]:
    return {error["field"] for error in response.json()["errors"]}


# --- approve ------------------------------------------------------------------------------------------------
def test_an_approval_makes_a_memory_of_what_was_proposed(client, proposer, alice):
    candidate = propose(
        proposer,
        "Deploys happen on Tuesdays.",
        sources=(a_source("acme/pay!7", quote="Tuesdays only."), a_source("#deploy/1", kind="chat")),
        confidence=0.8,
        valid_from=datetime(2025, 3, 1, tzinfo=UTC),
    )

    response = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1, "note": "Agreed in the guild."})

    assert response.status_code == 200
    shown = response.json()["memory"]
    memory = Memory.objects.get()
    assert shown["id"] == str(memory.pk)
    assert shown["number"] == "M-1"
    assert shown["content"] == "Deploys happen on Tuesdays."
    assert shown["type"] == "tooling_setup"
    assert shown["category"] == "project"
    assert shown["scope"] == {"firm": False, "domains": [], "repos": ["acme/pay"]}
    assert (shown["tier"], shown["status"], shown["confidence"]) == ("durable", "active", 0.8)
    assert shown["valid_from"] == "2025-03-01T00:00:00+00:00"
    assert shown["valid_to"] is shown["retired_at"] is None
    assert {(source["reference"], source["quote"]) for source in shown["sources"]} == {
        ("acme/pay!7", "Tuesdays only."),
        ("#deploy/1", ""),
    }
    assert [entry["id"] for entry in shown["chain"]] == [str(memory.pk)]
    (verdict,) = shown["verdicts"]
    assert (verdict["action"], verdict["reviewer"], verdict["reason"]) == ("approve", "alice", "Agreed in the guild.")
    assert (verdict["before"], verdict["after"]) == ({"status": "pending", "version": 1}, {})
    assert memory.recorded_at == memory.verdict.created_at
    candidate = fresh(candidate)
    assert (candidate.status, candidate.version, candidate.decision) == ("approved", 2, memory.verdict)
    assert candidate.vector is None
    event = AuditEvent.objects.get(verb="approve")
    assert (event.user, event.after["memory"], event.after["number"]) == (alice, str(memory.pk), "M-1")


def test_ledger_and_pool_say_the_same(candidate, reviewer, pool):
    memory = approve(reviewer, candidate).memory

    record = pool.get(memory.pk)
    assert record.content == memory.content
    assert (record.workspace, record.tier, record.status) == (memory.workspace_id, "durable", "active")
    assert (record.type, record.firm, record.repo_ids) == ("tooling_setup", False, tuple(memory.repo_ids))
    assert record.number == memory.number
    assert record.fingerprint == memory.fingerprint
    assert abs(record.recorded_at - memory.recorded_at) < timedelta(milliseconds=1)


def test_numbers_follow_each_other_in_each_workspace(proposer, reviewer, other_workspace, charlie):
    theirs = of_token(issue(other_workspace, "their robot", "agent").token)

    labels = [remember(proposer, reviewer).label for _ in range(3)]

    assert labels == ["M-1", "M-2", "M-3"]
    assert remember(theirs, of_person(charlie)).label == "M-1"


def test_a_number_is_not_lost_by_an_approval_that_failed(proposer, reviewer, pool, monkeypatch):
    from apps.core.errors import Unavailable
    from apps.memories.providers.base import ProviderError

    candidate = propose(proposer)

    def refuses(records):
        raise ProviderError("The pool is down.", permanent=False)

    with monkeypatch.context() as patched:
        patched.setattr(pool, "insert_many", refuses)
        with pytest.raises(Unavailable):
            approve(reviewer, candidate)

    assert approve(reviewer, candidate).memory.label == "M-1"


def test_a_quarantined_one_is_promoted_by_approving_it(client, proposer):
    candidate = propose(proposer, confidence=0.1)

    response = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1})

    assert response.status_code == 200
    assert response.json()["memory"]["verdicts"][0]["before"]["status"] == "quarantined"


def test_an_index_card_stays_one(client, proposer):
    candidate = propose(proposer, "x" * 15_000, tier="index")

    assert client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1}).json()["memory"]["tier"] == "index"


def test_a_session_approves_as_a_token_does(browser, alice, candidate):
    response = browser(alice).post(f"{URL}/{candidate.pk}/approve/", {"version": 1}, content_type="application/json")

    assert response.status_code == 200
    assert Verdict.objects.get(action="approve").token is None


# --- amend --------------------------------------------------------------------------------------------------
def test_a_reviewer_amends_while_approving(client, candidate, proposer, reviewer):
    old = remember(proposer, reviewer)
    amendment = {
        "content": "Deploys happen on Tuesdays and Thursdays.",
        "type": "CONVENTION",
        "scope": {"firm": True, "domains": ["delivery"]},
        "confidence": 0.99,
        "valid_from": "2025-06-01T00:00:00Z",
        "supersedes": [old.label],
    }

    shown = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1, "amendment": amendment}).json()["memory"]

    assert shown["content"] == "Deploys happen on Tuesdays and Thursdays."
    assert shown["type"] == "coding_conventions"
    assert shown["scope"] == {"firm": True, "domains": ["delivery"], "repos": []}
    assert shown["confidence"] == 0.99
    assert shown["valid_from"] == "2025-06-01T00:00:00+00:00"
    assert fresh(old).status == "superseded"
    verdict = shown["verdicts"][0]
    assert verdict["before"]["content"] == "Deploys happen on Tuesdays."
    assert verdict["after"]["content"] == "Deploys happen on Tuesdays and Thursdays."
    assert verdict["after"]["type"] == "coding_conventions"
    assert verdict["after"]["supersedes"] == [str(old.pk)]
    assert fresh(candidate).content == "Deploys happen on Tuesdays."


def test_an_amendment_of_one_thing_leaves_the_rest(client, candidate):
    shown = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1, "amendment": {"confidence": None}}).json()[
        "memory"
    ]

    assert shown["content"] == "Deploys happen on Tuesdays."
    assert shown["confidence"] is None


def test_an_amendment_may_take_the_supersession_away(client, proposer, reviewer):
    old = remember(proposer, reviewer)
    candidate = propose(proposer, supersedes=(old.label,))

    client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1, "amendment": {"supersedes": []}})

    assert fresh(old).status == "active"
    assert not old.replaced_by.exists()


@pytest.mark.parametrize(
    ("amendment", "status", "field"),
    [
        ({"content": ""}, 422, "amendment.content"),
        ({"content": "x" * 8_001}, 422, "amendment.content"),
        ({"content": "a\x00"}, 422, "amendment.content"),
        ({"type": "foo"}, 422, "amendment.type"),
        ({"scope": {}}, 422, "amendment.scope"),
        ({"confidence": 7}, 422, "amendment.confidence"),
        ({"valid_from": "soon"}, 422, "amendment.valid_from"),
        ({"supersedes": ["M-404"]}, 422, "amendment.supersedes[0]"),
        ({"content": "The key is AKIAIOSFODNN7EXAMPLQ."}, 422, "amendment.content"),
        ({"content": "```python\ndef f(x):\n    return x + 1\n```"}, 422, "amendment.content"),
        ({"tier": "index"}, 400, "amendment.tier"),
        ({"origin": "alice"}, 400, "amendment.origin"),
        ({"status": "active"}, 400, "amendment.status"),
        ({"scope": {"team": "x"}}, 400, "amendment.scope.team"),
        (None, 422, "amendment"),
        ([], 422, "amendment"),
    ],
)
def test_an_amendment_that_will_not_do_leaves_the_candidate_open(client, candidate, amendment, status, field):
    response = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1, "amendment": amendment})

    assert response.status_code == status, response.json()
    assert field in fields(response)
    assert (fresh(candidate).status, fresh(candidate).version) == ("pending", 1)
    assert not Memory.objects.exists()
    assert not Repository.objects.exclude(slug="acme/pay").exists()


def test_python_callers_amend_nothing_else_either(candidate, reviewer):
    with pytest.raises(UnknownKeys):
        candidate_approve(
            principal=reviewer, candidate_id=candidate.pk, version=1, amendment=Amendment({"tier": "index"})
        )


def test_an_amendment_of_a_limited_token_stays_within_its_repositories(workspace, api, alice, candidate):
    pay = Repository.objects.get(slug="acme/pay")
    limited = api(issue(workspace, "limited", "reviewer", owner=alice, repository_ids=[pay.pk]))

    for scope in ({"firm": True}, {"repos": ["acme/shop"]}):
        response = limited.post(f"{URL}/{candidate.pk}/approve/", {"version": 1, "amendment": {"scope": scope}})
        assert response.status_code == 403
    assert fresh(candidate).status == "pending"


def test_a_limited_token_decides_nothing_that_holds_beyond_its_repositories(workspace, api, alice, proposer, reviewer):
    from apps.candidates.proposal import ScopeInput

    pay = Repository.objects.create(workspace=workspace, slug="acme/pay")
    limited = api(issue(workspace, "limited", "reviewer", owner=alice, repository_ids=[pay.pk]))
    everywhere = propose(proposer, scope=ScopeInput(firm=True))
    memory = remember(proposer, reviewer, scope=ScopeInput(firm=True))

    assert limited.get(f"{URL}/{everywhere.pk}/").status_code == 200
    for action, extra in (("approve", {}), ("reject", {"reason": "r"})):
        assert limited.post(f"{URL}/{everywhere.pk}/{action}/", {"version": 1} | extra).status_code == 403
    assert limited.post(f"/api/v1/memories/{memory.pk}/retire/", {"reason": "r"}).status_code == 403


# --- a type that was retired --------------------------------------------------------------------------------
def test_a_candidate_of_a_retired_type_is_amended_or_rejected_and_never_stuck(client, proposer):
    first, second = propose(proposer), propose(proposer)
    MemoryType.objects.filter(slug="tooling_setup").update(is_active=False)

    refused = client.post(f"{URL}/{first.pk}/approve/", {"version": 1})
    assert refused.status_code == 422
    assert fields(refused) == {"amendment.type"}
    amended = client.post(f"{URL}/{first.pk}/approve/", {"version": 1, "amendment": {"type": "task_learnings"}})
    assert amended.status_code == 200
    assert amended.json()["memory"]["type"] == "task_learnings"
    assert client.post(f"{URL}/{second.pk}/reject/", {"version": 1, "reason": "r"}).status_code == 200


# --- reject -------------------------------------------------------------------------------------------------
def test_a_rejection_says_why_and_leaves_nothing(client, candidate, pool):
    response = client.post(f"{URL}/{candidate.pk}/reject/", {"version": 1, "reason": " We stopped that. "})

    assert response.status_code == 200
    shown = response.json()
    assert (shown["status"], shown["version"]) == ("rejected", 2)
    assert shown["verdicts"][0]["reason"] == "We stopped that."
    assert not Memory.objects.exists()
    assert pool.describe().memories == 0
    assert AuditEvent.objects.filter(verb="reject").count() == 1


@pytest.mark.parametrize("action", ["reject", "reopen"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"version": 1}, 422),
        ({"version": 1, "reason": ""}, 422),
        ({"version": 1, "reason": "  "}, 422),
        ({"version": 1, "reason": "x" * 2_001}, 422),
        ({"version": 1, "reason": "a\x00"}, 422),
        ({"version": 1, "reason": None}, 422),
        ({"reason": "r"}, 422),
        ({"version": "1", "reason": "r"}, 422),
        ({"version": 0, "reason": "r"}, 422),
        ({"version": 2**31, "reason": "r"}, 422),
        ({"version": 1.5, "reason": "r"}, 422),
        ({"version": 1, "reason": "r", "note": "n"}, 400),
        ({"version": 1, "reason": "my password: Xk93jfkQ-hunter2"}, 422),
    ],
)
def test_a_decision_that_will_not_do_changes_nothing(client, candidate, reviewer, action, body, status):
    if action == "reopen":
        reject(reviewer, candidate)
        body = {**body, "version": 2} if body.get("version") == 1 else body
    before = fresh(candidate).version

    assert client.post(f"{URL}/{candidate.pk}/{action}/", body).status_code == status
    assert fresh(candidate).version == before


# --- too late -----------------------------------------------------------------------------------------------
_ACTIONS = {"approve": {}, "reject": {"reason": "r"}}


@pytest.mark.parametrize("action", list(_ACTIONS))
@pytest.mark.parametrize("decided", ["approve", "reject"])
def test_whoever_comes_second_is_told_who_decided_what_and_when(api, carol, candidate, reviewer, action, decided):
    {"approve": approve, "reject": reject}[decided](reviewer, candidate)
    verdict = Verdict.objects.get(subject_id=candidate.pk)

    for version in (1, 2, 3):
        response = api(carol).post(f"{URL}/{candidate.pk}/{action}/", {"version": version} | _ACTIONS[action])
        assert response.status_code == 409
        body = response.json()
        assert body["code"] == "already_decided"
        assert body["extra"]["decided_by"] == "alice"
        assert body["extra"]["action"] == decided
        assert body["extra"]["decided_at"] == verdict.created_at.isoformat()
        assert body["extra"]["version"] == 2
        assert "alice" in body["detail"]
    assert Verdict.objects.filter(subject_id=candidate.pk).count() == 1


@pytest.mark.parametrize("action", [*_ACTIONS])
def test_a_decision_on_an_old_version_is_refused(api, client, robo, candidate, action):
    api(robo).post(f"{URL}/{candidate.pk}/revise/", {"version": 1, "content": "Deploys happen on Mondays."})

    response = client.post(f"{URL}/{candidate.pk}/{action}/", {"version": 1} | _ACTIONS[action])

    assert response.status_code == 409
    body = response.json()
    assert body["code"] == "stale"
    assert body["extra"]["version"] == 2
    assert (body["extra"]["decided_by"], body["extra"]["action"]) == ("robo", "revise")
    assert client.post(f"{URL}/{candidate.pk}/{action}/", {"version": 2} | _ACTIONS[action]).status_code == 200


def test_a_version_raised_by_a_join_is_stale_too(api, client, botty, candidate):
    api(botty).post(f"{URL}/", a_body("Deploys happen on Tuesdays."))

    response = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1})

    assert response.status_code == 409
    extra = response.json()["extra"]
    assert extra["version"] == 2
    assert extra["decided_by"] is extra["action"] is extra["decided_at"] is None


def test_a_version_from_the_future_is_stale_as_well(client, candidate):
    assert client.post(f"{URL}/{candidate.pk}/approve/", {"version": 5}).json()["code"] == "stale"


def test_an_open_candidate_has_nothing_to_reopen(client, candidate):
    response = client.post(f"{URL}/{candidate.pk}/reopen/", {"version": 1, "reason": "r"})

    assert response.status_code == 409
    assert "nothing has been decided" in response.json()["detail"]


# --- the same again -----------------------------------------------------------------------------------------
def test_what_is_in_force_is_not_approved_a_second_time(client, proposer, reviewer):
    known = remember(proposer, reviewer, "Deploys happen on Tuesdays.")
    candidate = propose(proposer, "Deploys happen on Mondays.")

    response = client.post(
        f"{URL}/{candidate.pk}/approve/", {"version": 1, "amendment": {"content": "deploys happen on TUESDAYS"}}
    )

    assert response.status_code == 409
    assert response.json()["code"] == "already_known"
    assert response.json()["extra"]["memory"]["number"] == known.label
    assert fresh(candidate).status == "pending"


def test_a_repeated_approval_with_its_key_answers_the_same(client, candidate, embedder):
    headers = {"Idempotency-Key": "approve-1"}

    first = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1}, headers=headers)
    embedded = len(embedder.documents)
    again = client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1}, headers=headers)

    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert Memory.objects.count() == 1
    assert len(embedder.documents) == embedded
    assert client.post(f"{URL}/{candidate.pk}/approve/", {"version": 2}, headers=headers).status_code == 422


def test_a_repetition_that_was_overtaken_while_it_prepared_answers_the_same_too(client, candidate, monkeypatch):
    from apps.approvals import api as door

    prepare, first = door.approval_prepare, []

    def send():
        return client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1}, headers={"Idempotency-Key": "k"})

    def overtaken(**options):
        if not first:
            first.append("on its way")
            first.append(send())
        return prepare(**options)

    monkeypatch.setattr(door, "approval_prepare", overtaken)

    second = send()

    assert (first[1].status_code, second.status_code) == (200, 200)
    assert first[1].json() == second.json()


def test_the_embedding_is_made_outside_the_transaction_of_the_key(client, candidate, pool, monkeypatch):
    """What is slow must not hold locks. In a test everything is in one transaction; what is counted is how deep."""
    depths = []
    prepare = pool.prepare

    def noted(text):
        depths.append(len(connection.savepoint_ids))
        return prepare(text)

    monkeypatch.setattr(pool, "prepare", noted)
    before = len(connection.savepoint_ids)

    client.post(f"{URL}/{candidate.pk}/approve/", {"version": 1}, headers={"Idempotency-Key": "k"})

    assert depths == [before]


# --- doors --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", ["{id}/approve/", "{id}/reject/", "{id}/reopen/", "bulk/"])
@pytest.mark.parametrize("method", ["get", "put", "patch", "delete"])
def test_decisions_are_posted(client, candidate, path, method):
    response = getattr(client, method)(f"{URL}/{path.format(id=candidate.pk)}")

    assert response.status_code == 405
    assert fresh(candidate).status == "pending"


def test_a_parameter_is_refused(client, candidate):
    assert client.post(f"{URL}/{candidate.pk}/approve/?version=1", {"version": 1}).status_code == 400
    assert fresh(candidate).status == "pending"


def test_a_candidate_that_is_not_there(client):
    missing = "0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b"

    for action, extra in (("approve", {}), ("reject", {"reason": "r"}), ("reopen", {"reason": "r"})):
        assert client.post(f"{URL}/{missing}/{action}/", {"version": 1} | extra).status_code == 404
        assert client.post(f"{URL}/not-an-id/{action}/", {"version": 1} | extra).status_code == 404


# --- what it costs ------------------------------------------------------------------------------------------
def statements(work) -> int:
    with CaptureQueriesContext(connection) as captured:
        work()
    return len(captured)


def one_approval(proposer, principal) -> int:
    """Statements of one plain approval, those of the pool on the same connection included."""
    candidate = propose(proposer)
    return statements(
        lambda: candidate_approve(principal=principal, candidate_id=candidate.pk, version=candidate.version)
    )


def test_an_approval_takes_at_most_twenty_statements_however_long_the_queue(proposer, reviewer, robo, settings):
    from tests.candidates.test_propose import fill

    settings.FIRM_MEMORY_THROTTLE = False
    one_approval(proposer, reviewer)
    fill(propose(proposer), 9)
    few = one_approval(proposer, reviewer)
    fill(propose(proposer), 500)

    many = one_approval(proposer, reviewer)

    assert many == few <= 20


def test_a_superseding_approval_takes_a_constant_number_more(proposer, reviewer):
    def approval(targets: int) -> int:
        olds = [remember(proposer, reviewer) for _ in range(targets)]
        candidate = propose(proposer, supersedes=tuple(old.label for old in olds))
        return statements(
            lambda: candidate_approve(principal=reviewer, candidate_id=candidate.pk, version=candidate.version)
        )

    one, five = approval(1), approval(5)

    assert one <= 33
    assert five - one <= 4 * 8  # what each further target costs: its row, and its passages in a savepoint


def test_a_rejection_takes_few_statements(proposer, reviewer):
    candidate = propose(proposer)

    assert statements(lambda: reject(reviewer, candidate)) <= 12


def test_the_pool_is_counted_in_the_budget(proposer, reviewer):
    """Its statements go through Django's connection, so what is measured above is everything."""
    candidate = propose(proposer)
    with CaptureQueriesContext(connection) as captured:
        approve(reviewer, candidate)

    assert sum("fm_pool_g" in query["sql"] for query in captured) == 1


def test_times_are_those_of_one_moment(candidate, reviewer):
    before = now()
    memory = approve(reviewer, candidate).memory
    after = now()

    assert before <= memory.recorded_at == memory.verdict.created_at <= after


def test_the_candidate_of_a_memory_is_found_through_its_verdict(candidate, reviewer):
    memory = approve(reviewer, candidate).memory

    assert Candidate.objects.get(pk=memory.verdict.subject_id) == candidate
    assert get_provider().statuses([memory.pk]) == {memory.pk: "active"}
