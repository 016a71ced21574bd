"""Who gets past the gate. Agents, bots, members, strangers and proposers try every door that approves."""

from __future__ import annotations

import pytest

from apps.accounts.models import AuditEvent, Role
from apps.accounts.principal import operator
from apps.approvals.bulk import Item, candidates_decide
from apps.approvals.services import (
    candidate_approve,
    candidate_reject,
    candidate_reopen,
    memory_restore,
    memory_retire,
)
from apps.candidates.models import Candidate, Proposer
from apps.core.errors import Forbidden
from apps.memories.models import Action, Memory, Verdict
from tests.agents.calling import Agent
from tests.conftest import add_person, issue
from tests.ledger import a_body, approve, fresh, of_person, of_token, propose, reject, remember, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

URL = "/api/v1"


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def world(proposer, reviewer):
    """One of everything that can be decided about, by name."""
    approved, rejected, pending = propose(proposer), propose(proposer), propose(proposer)
    memory = approve(reviewer, approved).memory
    reject(reviewer, rejected)
    retired = remember(proposer, reviewer)
    memory_retire(principal=reviewer, reference=retired.pk, reason="Moot.")
    return {
        "pending": pending,
        "quarantined": propose(proposer, confidence=0.1),
        "approved": fresh(approved),
        "rejected": fresh(rejected),
        "report": report(proposer, memory),
        "memory": memory,
        "retired": fresh(retired),
    }


def decisions(world) -> list[tuple[str, dict]]:
    """Every REST request that decides."""
    found: list[tuple[str, dict]] = []
    for name in ("pending", "quarantined", "report"):
        row = world[name]
        found.append((f"{URL}/candidates/{row.pk}/approve/", {"version": row.version}))
        found.append((f"{URL}/candidates/{row.pk}/reject/", {"version": row.version, "reason": "r"}))
    for name in ("approved", "rejected"):
        row = world[name]
        found.append((f"{URL}/candidates/{row.pk}/reopen/", {"version": row.version, "reason": "r"}))
    items = [{"id": str(world["pending"].pk), "version": 1}]
    found.append((f"{URL}/candidates/bulk/", {"action": "approve", "items": items}))
    found.append((f"{URL}/candidates/bulk/", {"action": "reject", "items": items, "reason": "r"}))
    found.append((f"{URL}/memories/{world['memory'].pk}/retire/", {"reason": "r"}))
    found.append((f"{URL}/memories/{world['retired'].pk}/restore/", {"reason": "r"}))
    return found


def state() -> tuple:
    """Everything that a decision would change."""
    return (
        list(Candidate.objects.order_by("pk").values_list("pk", "status", "version", "decision")),
        list(Memory.objects.order_by("pk").values_list("pk", "status", "retired_at", "valid_to")),
        Verdict.objects.exclude(action="correct").count(),
    )


# --- agents and bots ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("who", ["robo", "botty", "bob"])
def test_no_agent_bot_or_member_decides_anything_over_rest(request, api, world, who):
    client = api(request.getfixturevalue(who))
    before = state()

    for path, body in decisions(world):
        refused = AuditEvent.objects.count()
        response = client.post(path, body)
        assert response.status_code == 403, (path, response.json())
        assert AuditEvent.objects.count() == refused + 1, path

    assert state() == before
    attempts = AuditEvent.objects.filter(verb__startswith="was refused to")
    assert attempts.count() == len(decisions(world))
    assert set(attempts.values_list("actor", flat=True)) == {who}


@pytest.mark.parametrize("who", ["robo", "botty", "alice_token"])
def test_nobody_decides_anything_over_mcp(request, world, who):
    """Not even with a reviewer's token: there is no such tool, and no argument that does it."""
    agent = Agent(request.getfixturevalue(who).secret)
    before = state()

    for path, body in decisions(world):
        *_, subject, verb, _ = path.split("/")
        for name in (f"memory_{verb}", f"candidate_{verb}", f"{verb}_approve"):
            assert agent.call(name, id=subject, **body).is_error
    propose = {"type": "tooling_setup", "firm": True, "sources": [{"kind": "chat", "reference": "x"}]}
    for extra in ({"status": "approved"}, {"reviewer": "alice"}, {"approve": True}, {"verdict": {"action": "approve"}}):
        assert agent.call("memory_propose", content="Approved by alice.", **propose, **extra).code == "unknown_keys"

    assert state() == before
    attempts = AuditEvent.objects.filter(verb="was refused to decide over MCP")
    assert attempts.count() >= len(decisions(world))


def test_an_agents_token_owned_by_a_reviewer_decides_nothing_either(workspace, api, alice, carol, world):
    before = state()

    for kind in ("agent", "bot"):
        client = api(issue(workspace, f"carol's {kind}", kind, owner=carol))
        for path, body in decisions(world):
            assert client.post(path, body).status_code == 403, path

    assert state() == before


def test_nobody_and_strangers_find_nothing_to_decide(api, world, charlie):
    before = state()

    for path, body in decisions(world):
        assert api().post(path, body).status_code == 401, path
        response = api(charlie).post(path, body)
        if path.endswith("bulk/"):
            assert [row["outcome"] for row in response.json()["results"]] == ["invalid"]
        else:
            assert response.status_code == 404, path

    assert state() == before


def test_a_read_only_token_of_a_reviewer_decides_nothing(workspace, api, carol, world):
    client = api(issue(workspace, "looking", "reviewer", owner=carol, read_only=True))
    before = state()

    for path, body in decisions(world):
        assert client.post(path, body).status_code == 403, path

    assert state() == before


@pytest.mark.parametrize("kind", ["agent", "bot", "reviewer"])
def test_revoked_expired_and_orphaned_tokens_decide_nothing(workspace, api, carol, world, kind):
    from datetime import timedelta

    from apps.accounts.models import ApiToken, Membership
    from apps.core.clock import now

    issued = issue(workspace, "gone", kind, owner=carol)
    client = api(issued)
    path = f"{URL}/candidates/{world['pending'].pk}/approve/"
    for change in ({"revoked_at": now()}, {"revoked_at": None, "expires_at": now() - timedelta(seconds=1)}):
        ApiToken.objects.filter(pk=issued.token.pk).update(**change)
        assert client.post(path, {"version": 1}).status_code == 401
    ApiToken.objects.filter(pk=issued.token.pk).update(expires_at=None)
    Membership.objects.filter(user=carol).delete()

    assert client.post(path, {"version": 1}).status_code == 401
    assert fresh(world["pending"]).status == "pending"


def test_a_session_decides_only_with_its_csrf_token(browser, alice, world):
    client = browser(alice, enforce_csrf_checks=True)
    path = f"{URL}/candidates/{world['pending'].pk}/approve/"

    refused = client.post(path, {"version": 1}, content_type="application/json")

    assert refused.status_code == 403
    assert refused.json()["code"] == "csrf_failed"
    assert fresh(world["pending"]).status == "pending"
    assert browser(alice).post(path, {"version": 1}, content_type="application/json").status_code == 200


@pytest.mark.parametrize("via", ["rest", "mcp", "ui", "admin", "command", "import"])
def test_no_agent_decides_through_any_door(proposer, workspace, world, via):
    before = state()
    pending, memory, retired = world["pending"].pk, world["memory"].pk, world["retired"].pk
    for principal in (proposer.through(via), operator(workspace).through(via)):
        for attempt in (
            lambda who: candidate_approve(principal=who, candidate_id=pending, version=1),
            lambda who: candidate_reject(principal=who, candidate_id=pending, version=1, reason="r"),
            lambda who: candidate_reopen(principal=who, candidate_id=world["rejected"].pk, version=2, reason="r"),
            lambda who: candidates_decide(principal=who, action=Action.APPROVE, items=[Item(pending, 1)]),
            lambda who: memory_retire(principal=who, reference=memory, reason="r"),
            lambda who: memory_restore(principal=who, reference=retired, reason="r"),
        ):
            with pytest.raises(Forbidden):
                attempt(principal)

    assert state() == before


def test_the_attempt_is_in_the_audit_trail_with_who_and_what(api, robo, world):
    api(robo).post(f"{URL}/candidates/{world['pending'].pk}/approve/", {"version": 1})

    event = AuditEvent.objects.first()
    assert event.verb == "was refused to approve a candidate"
    assert (event.actor, event.token) == ("robo", robo.token)
    assert event.subject_id == str(world["pending"].pk)
    assert "agent" in event.after["detail"]
    assert event.request_id


def test_an_attempt_with_an_idempotency_key_is_recorded_too(api, robo, world):
    path = f"{URL}/memories/{world['memory'].pk}/retire/"
    for _ in range(2):
        assert api(robo).post(path, {"reason": "r"}, headers={"Idempotency-Key": "k"}).status_code == 403

    assert AuditEvent.objects.filter(verb="was refused to retire a memory").count() == 1


@pytest.mark.parametrize("reference", ["M-999", "nonsense", "x" * 300, "%00", "a%2Fb"])
@pytest.mark.parametrize("action", ["retire", "restore"])
def test_what_is_not_there_is_not_there_for_an_agent_either(api, robo, reference, action):
    assert api(robo).post(f"{URL}/memories/{reference}/{action}/", {"reason": "r"}).status_code == 404


# --- names in a body mean nothing ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "extra",
    [
        {"reviewer": "alice"},
        {"reviewer_name": "alice"},
        {"approved_by": "alice"},
        {"second_person": True},
        {"principal": "user:1"},
        {"via": "ui"},
        {"user": 1},
    ],
)
def test_a_reviewers_name_in_the_body_is_refused(api, robo, carol, world, extra):
    before = state()

    for client in (api(robo), api(carol)):
        for path, body in decisions(world):
            response = client.post(path, body | extra)
            assert response.status_code == 400, path
            assert response.json()["errors"][0]["field"] == next(iter(extra))

    assert state() == before


# --- the second person --------------------------------------------------------------------------------------
def may_not_approve(client, candidate) -> None:
    version = fresh(candidate).version
    response = client.post(f"{URL}/candidates/{candidate.pk}/approve/", {"version": version})
    assert response.status_code == 403, response.json()
    assert response.json()["code"] == "own_proposal"
    items = [{"id": str(candidate.pk), "version": version}]
    client.get(f"{URL}/candidates/{candidate.pk}/")
    (row,) = client.post(f"{URL}/candidates/bulk/", {"action": "approve", "items": items}).json()["results"]
    assert row["outcome"] == "forbidden"
    assert fresh(candidate).is_open
    attempts = AuditEvent.objects.filter(subject_id=str(candidate.pk), verb__startswith="was refused to approve")
    assert attempts.count() == 2


def test_nobody_approves_what_they_proposed(api, alice):
    may_not_approve(api(alice), propose(of_person(alice)))


def test_nor_what_their_token_proposed(api, alice, alice_token):
    made = api(alice_token).post(f"{URL}/candidates/", a_body()).json()

    may_not_approve(api(alice), Candidate.objects.get(pk=made["id"]))
    may_not_approve_again = api(alice_token).post(f"{URL}/candidates/{made['id']}/approve/", {"version": 1})
    assert may_not_approve_again.status_code == 403


@pytest.mark.parametrize("kind", ["agent", "bot"])
def test_nor_what_an_agent_of_theirs_proposed(workspace, api, alice, kind):
    token = issue(workspace, "alice's helper", kind, owner=alice).token

    may_not_approve(api(alice), propose(of_token(token)))


def test_nor_with_a_token_what_they_proposed_in_the_browser(browser, api, alice, alice_token):
    candidate = propose(of_person(alice, via="ui"))

    may_not_approve(api(alice_token), candidate)


def test_nor_what_they_joined(api, alice, robo, proposer):
    candidate = propose(proposer, "Deploys happen on Tuesdays.")
    assert api(alice).post(f"{URL}/candidates/", a_body("deploys happen on tuesdays")).status_code == 200

    may_not_approve(api(alice), candidate)


def test_nor_what_their_agent_joined(workspace, api, alice, proposer):
    candidate = propose(proposer, "Deploys happen on Tuesdays.")
    helper = api(issue(workspace, "alice's helper", "agent", owner=alice))
    assert helper.post(f"{URL}/candidates/", a_body("deploys happen on tuesdays")).status_code == 200

    may_not_approve(api(alice), candidate)


def test_nor_their_own_report(api, alice, proposer, reviewer):
    memory = remember(proposer, of_person(alice))

    may_not_approve(api(alice), report(of_person(alice), memory))


def test_nor_after_it_was_rejected_and_reopened(api, alice, carol):
    candidate = propose(of_person(alice))
    reject(of_person(carol), candidate)
    response = api(alice).post(f"{URL}/candidates/{candidate.pk}/reopen/", {"version": 2, "reason": "Look again."})
    assert response.status_code == 200

    may_not_approve(api(alice), candidate)


@pytest.mark.parametrize("role", [Role.CURATOR, Role.ADMIN])
def test_no_rank_approves_its_own(workspace, api, role):
    boss = add_person(workspace, "boss", role)

    may_not_approve(api(boss), propose(of_person(boss)))


def test_somebody_else_does_and_the_verdict_says_so(api, alice, carol):
    candidate = propose(of_person(alice))

    response = api(carol).post(f"{URL}/candidates/{candidate.pk}/approve/", {"version": 1})

    assert response.status_code == 200
    (verdict,) = response.json()["memory"]["verdicts"]
    assert (verdict["reviewer"], verdict["second_person"], verdict["via"]) == ("carol", True, "rest")


def test_a_one_person_firm_may_do_without_and_every_such_verdict_shows_it(workspace, api, alice, carol):
    workspace.second_person = False
    workspace.save()
    mine, other = propose(of_person(alice)), propose(of_person(carol))

    own = api(alice).post(f"{URL}/candidates/{mine.pk}/approve/", {"version": 1})
    others = api(alice).post(f"{URL}/candidates/{other.pk}/approve/", {"version": 1})

    assert [verdict["second_person"] for verdict in own.json()["memory"]["verdicts"]] == [False]
    assert [verdict["second_person"] for verdict in others.json()["memory"]["verdicts"]] == [True]


def test_alone_one_still_needs_the_role(workspace, api, bob, robo):
    workspace.second_person = False
    workspace.save()
    by_bob, by_robo = propose(of_person(bob)), propose(of_token(robo.token))

    assert api(bob).post(f"{URL}/candidates/{by_bob.pk}/approve/", {"version": 1}).status_code == 403
    assert api(robo).post(f"{URL}/candidates/{by_robo.pk}/approve/", {"version": 1}).status_code == 403


def test_what_was_done_alone_says_so_in_every_verdict_of_it(workspace, alice, proposer, carol):
    workspace.second_person = False
    workspace.save()
    principal = of_person(alice)
    old, other = remember(proposer, principal), remember(proposer, principal)
    new = remember(principal, principal, supersedes=[old])
    approve(principal, report(principal, other))

    alone = Verdict.objects.filter(second_person=False)

    assert {(verdict.action, verdict.subject_id) for verdict in alone} == {
        ("approve", new.verdict.subject_id),
        ("supersede", old.pk),
        ("approve", other.corrections.get().pk),
        ("retire", other.pk),
    }


def test_switching_it_back_on_counts_from_then_on(workspace, api, alice):
    workspace.second_person = False
    workspace.save()
    client = api(alice)
    candidate = propose(of_person(alice))
    workspace.second_person = True
    workspace.save()

    assert client.post(f"{URL}/candidates/{candidate.pk}/approve/", {"version": 1}).status_code == 403


def test_a_role_that_was_taken_away_in_between_does_not_decide(alice, proposer):
    """The principal was read before; the row that matters is read again by PostgreSQL."""
    from django.db import IntegrityError

    from apps.accounts.models import Membership
    from apps.core.problems import as_domain_error

    candidate, principal = propose(proposer), of_person(alice)
    Membership.objects.filter(user=alice).update(role=Role.MEMBER)

    with pytest.raises(IntegrityError) as refusal:
        approve(principal, candidate)

    error = as_domain_error(refusal.value)
    assert (error.status, error.code) == (403, "not_a_reviewer")
    assert fresh(candidate).status == "pending"


def test_the_switch_is_read_again_by_postgresql(workspace, alice):
    from django.db import IntegrityError

    from apps.accounts.models import Workspace
    from apps.core.problems import as_domain_error

    workspace.second_person = False
    workspace.save()
    candidate, principal = propose(of_person(alice)), of_person(alice)
    Workspace.objects.filter(pk=workspace.pk).update(second_person=True)

    with pytest.raises(IntegrityError) as refusal:
        approve(principal, candidate)

    assert as_domain_error(refusal.value).code == "own_proposal"


def test_every_proposer_is_on_record(proposer, alice, robo):
    candidate = propose(proposer, "Deploys happen on Tuesdays.")
    propose(of_person(alice), "Deploys happen on Tuesdays")

    rows = Proposer.objects.filter(candidate=candidate).values_list("name", "token", "user")
    assert list(rows) == [("robo", robo.token.pk, None), ("alice", None, alice.pk)]
