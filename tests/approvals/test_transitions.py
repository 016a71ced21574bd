"""Every action in every status: what it leads to, or how it is refused."""

from __future__ import annotations

import pytest

from apps.accounts.models import AuditEvent
from apps.approvals.services import memory_restore, memory_retire
from apps.candidates.models import OPEN, Candidate, CandidateStatus
from apps.candidates.transitions import TRANSITIONS
from apps.core.errors import Conflict
from apps.memories.lifecycle import TRANSITIONS as MEMORY_TRANSITIONS
from apps.memories.models import Action, Memory, MemoryStatus, Verdict
from tests.ledger import (
    approve,
    fresh,
    of_person,
    of_token,
    propose,
    reject,
    remember,
    reopen,
    report,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

CANDIDATES = "/api/v1/candidates"
MEMORIES = "/api/v1/memories"


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


# --- candidates ---------------------------------------------------------------------------------------------
@pytest.fixture
def candidate_in(proposer, reviewer, api, robo):
    """``candidate_in(status)``"""

    def make(status: str):
        candidate = propose(proposer, confidence=0.1 if status == "quarantined" else None)
        if status == "approved":
            approve(reviewer, candidate)
        elif status == "rejected":
            reject(reviewer, candidate)
        elif status == "withdrawn":
            api(robo).post(f"{CANDIDATES}/{candidate.pk}/withdraw/", {"version": 1})
        candidate = fresh(candidate)
        assert candidate.status == status
        return candidate

    return make


_LEADS_TO = {
    ("pending", "approve"): "approved",
    ("pending", "reject"): "rejected",
    ("pending", "withdraw"): "withdrawn",
    ("pending", "revise"): "pending",
    ("quarantined", "approve"): "approved",
    ("quarantined", "reject"): "rejected",
    ("quarantined", "withdraw"): "withdrawn",
    ("quarantined", "revise"): "quarantined",
    ("approved", "reopen"): "pending",
    ("rejected", "reopen"): "pending",
}
_BODIES = {
    "approve": {},
    "reject": {"reason": "r"},
    "reopen": {"reason": "r"},
    "withdraw": {},
    "revise": {"content": "Said in other words."},
}


@pytest.mark.parametrize("action", list(_BODIES))
@pytest.mark.parametrize("status", CandidateStatus.values)
def test_every_action_in_every_status_of_a_candidate(api, robo, alice, candidate_in, status, action):
    candidate = candidate_in(status)
    client = api(robo if action in ("withdraw", "revise") else alice)
    verdicts = Verdict.objects.count()

    response = client.post(f"{CANDIDATES}/{candidate.pk}/{action}/", {"version": candidate.version} | _BODIES[action])

    row = fresh(candidate)
    expected = _LEADS_TO.get((status, action))
    if expected is None:
        assert response.status_code == 409, response.json()
        assert response.json()["code"] == "already_decided"
        assert (row.status, row.version) == (status, candidate.version)
        assert Verdict.objects.count() == verdicts
        return
    assert response.status_code == 200, response.json()
    assert (row.status, row.version) == (expected, candidate.version + 1)
    verdict = Verdict.objects.filter(subject_id=candidate.pk).latest("created_at")
    assert verdict.action == action
    assert verdict.before["status"] == status
    assert verdict.before["version"] == candidate.version
    assert (row.vector, row.claimed_by, row.claimed_until) == (None, None, None)


def test_the_table_says_what_was_tested():
    for action, (allowed, _) in TRANSITIONS.items():
        assert {status for status, tried in _LEADS_TO if tried == action} == set(map(str, allowed))
    assert OPEN == ("pending", "quarantined")


def test_each_change_raises_the_version_by_one(proposer, reviewer, api, robo):
    candidate = propose(proposer)
    approve(reviewer, candidate)
    for _ in range(3):
        reopen(reviewer, candidate)
        reject(reviewer, candidate)
        reopen(reviewer, candidate)
        approve(reviewer, candidate)

    versions = [verdict.before["version"] for verdict in Verdict.objects.filter(subject_id=candidate.pk)]
    assert versions == list(range(1, 14))
    assert fresh(candidate).version == 14
    assert Memory.objects.count() == 4
    assert Memory.objects.filter(status="active").count() == 1


# --- memories -----------------------------------------------------------------------------------------------
@pytest.fixture
def memory_in(proposer, reviewer):
    """``memory_in(status)``; ``stale`` and ``wrong`` are the two ways to be retired by a report."""

    def make(status: str) -> Memory:
        memory = remember(proposer, reviewer)
        if status == "disputed":
            report(proposer, memory)
        elif status == "superseded":
            remember(proposer, reviewer, supersedes=[memory])
        elif status == "retired":
            memory_retire(principal=reviewer, reference=memory.pk, reason="Moot.")
        elif status in ("stale", "wrong"):
            approve(reviewer, report(proposer, memory, kind=status))
        return fresh(memory)

    return make


_MEMORY_LEADS_TO = {
    ("active", "retire"): "retired",
    ("disputed", "retire"): "retired",
    ("superseded", "retire"): "retired",
    ("retired", "restore"): "active",
    ("stale", "restore"): "active",
    ("wrong", "restore"): "active",
    ("active", "corrections"): "disputed",
    ("disputed", "corrections"): "disputed",
}


@pytest.mark.parametrize("action", ["retire", "restore", "corrections"])
@pytest.mark.parametrize("status", ["active", "disputed", "superseded", "retired", "stale", "wrong"])
def test_every_action_in_every_status_of_a_memory(api, alice, botty, pool, memory_in, status, action):
    memory = memory_in(status)
    client = api(botty if action == "corrections" else alice)
    body = {"reason": "Because it is so."}
    if action == "corrections":
        body |= {"kind": "stale", "sources": [{"kind": "chat", "reference": "#pay/3"}]}

    response = client.post(f"{MEMORIES}/{memory.pk}/{action}/", body)

    row = fresh(memory)
    expected = _MEMORY_LEADS_TO.get((status, action))
    if expected is None:
        assert response.status_code == 409, response.json()
        assert response.json()["code"] == "wrong_status"
        assert row.status == memory.status
        return
    assert response.status_code in (200, 201), response.json()
    assert row.status == expected
    assert pool.statuses([row.pk]) == {row.pk: expected}
    if expected == "active":
        assert (row.retired_at, row.valid_to, row.closed_at) == (None, None, None)
    verdict = Verdict.objects.filter(subject_id=memory.pk).latest("created_at")
    assert verdict.action == {"corrections": "correct"}.get(action, action)
    assert verdict.reason == "Because it is so."
    assert verdict.before["status"] == memory.status


def test_the_table_of_memories_says_what_was_tested():
    words = {Action.RETIRE: "retire", Action.RESTORE: "restore", Action.CORRECT: "corrections"}
    for action, allowed in MEMORY_TRANSITIONS.items():
        tried = {status for status, name in _MEMORY_LEADS_TO if name == words[action]} - {"stale", "wrong"}
        assert tried == set(map(str, allowed))
    assert set(MemoryStatus.values) == {"active", "disputed", "superseded", "retired"}


def test_retiring_answers_with_the_memory_and_is_audited(api, alice, memory_in):
    memory = memory_in("active")

    shown = api(alice).post(f"{MEMORIES}/{memory.label}/retire/", {"reason": " The product ended. "}).json()

    assert shown["id"] == str(memory.pk)
    assert shown["status"] == "retired"
    assert shown["retired_at"] is not None
    assert [verdict["action"] for verdict in shown["verdicts"]] == ["approve", "retire"]
    assert shown["verdicts"][1]["reason"] == "The product ended."
    event = AuditEvent.objects.get(verb="retire")
    assert (event.before, event.after) == ({"status": "active"}, {"status": "retired"})


def test_retiring_does_not_revive_what_was_replaced(proposer, reviewer):
    old = remember(proposer, reviewer)
    new = remember(proposer, reviewer, supersedes=[old])

    memory_retire(principal=reviewer, reference=new.pk, reason="Moot.")

    assert fresh(old).status == "superseded"
    assert fresh(new).status == "retired"


def test_a_superseded_memory_that_was_retired_is_restored_to_superseded(proposer, reviewer, pool):
    old = remember(proposer, reviewer)
    new = remember(proposer, reviewer, supersedes=[old])
    ended = fresh(old).valid_to
    memory_retire(principal=reviewer, reference=old.pk, reason="It was never so.")

    memory_restore(principal=reviewer, reference=old.pk, reason="It was so after all.")

    row = fresh(old)
    assert (row.status, row.valid_to, row.retired_at) == ("superseded", ended, None)
    assert pool.statuses([old.pk]) == {old.pk: "superseded"}
    assert fresh(new).status == "active"


def test_a_restored_memory_with_an_open_report_is_disputed(proposer, reviewer):
    memory = remember(proposer, reviewer)
    report(proposer, memory)
    memory_retire(principal=reviewer, reference=memory.pk, reason="Moot.")

    memory_restore(principal=reviewer, reference=memory.pk, reason="Not moot.")

    assert fresh(memory).status == "disputed"


def test_restoring_puts_no_second_head_beside_what_says_the_same(proposer, reviewer):
    old = remember(proposer, reviewer, "Deploys happen on Tuesdays.")
    memory_retire(principal=reviewer, reference=old.pk, reason="Moot.")
    other = propose(proposer, "Deploys happen on Mondays.")
    twin = approve(reviewer, other, content="Deploys happen on TUESDAYS").memory

    with pytest.raises(Conflict) as refusal:
        memory_restore(principal=reviewer, reference=old.pk, reason="Again.")

    assert refusal.value.code == "second_head"
    assert refusal.value.extra["memory"]["number"] == twin.label
    assert fresh(old).status == "retired"


def test_what_an_undone_approval_made_is_not_restored(proposer, reviewer):
    memory = remember(proposer, reviewer)
    candidate = Candidate.objects.get(pk=memory.verdict.subject_id)
    reopen(reviewer, candidate)

    with pytest.raises(Conflict) as refusal:
        memory_restore(principal=reviewer, reference=memory.pk, reason="Again.")
    assert refusal.value.code == "approval_reopened"

    again = approve(reviewer, candidate).memory
    with pytest.raises(Conflict):
        memory_restore(principal=reviewer, reference=memory.pk, reason="Again.")
    assert fresh(again).status == "active"


def test_a_memory_takes_no_put_patch_or_delete(api, alice, memory_in):
    client, memory = api(alice), memory_in("active")

    for method in ("put", "patch", "delete"):
        assert getattr(client, method)(f"{MEMORIES}/{memory.pk}/", {"content": "x"}).status_code == 405
        assert getattr(client, method)(f"{MEMORIES}/{memory.label}/").status_code == 405
    assert fresh(memory).status == "active"


@pytest.mark.parametrize("action", ["retire", "restore"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"reason": ""}, 422),
        ({"reason": "x" * 2_001}, 422),
        ({"reason": "token ghp_16C7e42F292c6912E7710c838347Ae178B4a"}, 422),
        ({"reason": "r", "version": 1}, 400),
    ],
)
def test_a_reason_that_will_not_do(api, alice, memory_in, action, body, status):
    memory = memory_in("active" if action == "retire" else "retired")

    assert api(alice).post(f"{MEMORIES}/{memory.pk}/{action}/", body).status_code == status
    assert fresh(memory).status == memory.status
