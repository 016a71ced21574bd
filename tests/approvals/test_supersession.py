"""What replaces what: chains, forks, merges, moments, and taking it back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError

from apps.approvals.bulk import Item, candidates_decide
from apps.candidates.models import Candidate
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden
from apps.core.problems import as_domain_error
from apps.memories.lifecycle import edges_write
from apps.memories.models import Action, EdgeKind, Memory, Supersession, Verdict
from apps.memories.tasks import refresh_ended
from apps.retrieval import services
from tests.ledger import (
    a_source,
    approve,
    constraint_of,
    fresh,
    of_person,
    of_token,
    propose,
    proposed,
    reject,
    remember,
    reopen,
    report,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

MARCH = datetime(2025, 3, 1, tzinfo=UTC)
JUNE = datetime(2025, 6, 1, tzinfo=UTC)


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def client(api, alice):
    return api(alice)


def candidate_of(memory: Memory) -> Candidate:
    return Candidate.objects.get(pk=memory.verdict.subject_id)


def served(client, question: str = "payments go through") -> set[str]:
    answer = client.get("/api/v1/memories/search/", {"q": question, "limit": 100}).json()
    assert answer["degraded"] is False
    return {result["number"] for result in answer["results"]}


# --- one after the other ------------------------------------------------------------------------------------
@pytest.mark.parametrize("door", ["rest", "bulk"])
def test_a_replacement_leaves_what_it_replaces_a_time_in_which_it_held(proposer, reviewer, api, alice, door):
    old = remember(proposer, reviewer, "Payments go through Initech.", valid_from=JUNE)
    candidate = propose(proposer, "Payments go through Hooli.", valid_from=MARCH, supersedes=(old.label,))
    if door == "rest":
        response = api(alice).post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": 1})
        assert response.status_code == 422
        (error,) = response.json()["errors"]
        assert error["field"] == "amendment.valid_from"
        assert f"{old.label} holds from {JUNE:%Y-%m-%d}" in error["message"]
    else:
        _, (outcome,) = candidates_decide(principal=reviewer, action=Action.APPROVE, items=[Item(candidate.pk, 1)])
        assert outcome.outcome == "invalid"
    assert (fresh(candidate).status, fresh(old).status, fresh(old).valid_to) == ("pending", "active", None)

    approve(reviewer, candidate, valid_from=JUNE)
    assert fresh(old).valid_to == JUNE


def test_what_never_held_is_replaced_from_whenever(proposer, reviewer):
    old = remember(proposer, reviewer, "Payments go through Initech.", valid_from=JUNE)
    wrong = report(proposer, old, kind="wrong", replacement="Payments go through Hooli.")
    new = approve(reviewer, wrong, valid_from=MARCH).memory
    assert (fresh(old).status, fresh(old).valid_to, new.valid_from) == ("superseded", MARCH, MARCH)


def test_what_was_to_begin_later_may_be_replaced_now(proposer, reviewer):
    old = remember(proposer, reviewer, "Payments go through Initech.", valid_from=now() + timedelta(days=30))
    new = remember(proposer, reviewer, "Payments go through Hooli.", supersedes=[old])
    assert fresh(old).valid_to == new.valid_from


def test_a_replacement_ends_the_old_one_when_it_holds(proposer, reviewer, pool, client):
    old = remember(proposer, reviewer, "Payments go through Initech.", valid_from=MARCH)

    new = remember(proposer, reviewer, "Payments go through Hooli.", valid_from=JUNE, supersedes=[old])

    row = fresh(old)
    assert (row.status, row.valid_to, row.closed_at) == ("superseded", JUNE, new.recorded_at)
    record = pool.get(old.pk)
    assert (record.status, record.valid_to) == ("superseded", JUNE)
    edge = Supersession.objects.get()
    assert (edge.old, edge.new, edge.kind, edge.holds_from) == (old, new, "full", JUNE)
    assert edge.verdict == new.verdict
    superseded = Verdict.objects.get(subject_id=old.pk, action="supersede")
    assert superseded.reviewer_name == "alice"
    assert superseded.after["by"] == str(new.pk)
    assert served(client) == {new.label}


def test_without_a_date_it_is_the_moment_of_the_verdict(proposer, reviewer):
    old = remember(proposer, reviewer)

    new = remember(proposer, reviewer, supersedes=[old])

    assert fresh(old).valid_to == new.verdict.created_at == fresh(old).closed_at


def test_a_chain_is_shown_whole_and_oldest_first_from_every_member(client, proposer, reviewer):
    first = remember(proposer, reviewer, valid_from=MARCH)
    second = remember(proposer, reviewer, valid_from=JUNE, supersedes=[first])
    third = remember(proposer, reviewer, supersedes=[second])

    for member in (first, second, third):
        chain = client.get(f"/api/v1/memories/{member.label}/").json()["chain"]
        assert [entry["id"] for entry in chain] == [str(row.pk) for row in (first, second, third)]
        assert [entry["status"] for entry in chain] == ["superseded", "superseded", "active"]
        assert chain[0]["valid_to"] == chain[1]["valid_from"] == JUNE.isoformat()


def test_another_fact_supersedes_nothing(client, proposer, reviewer):
    """Only an explicit, approved edge replaces anything, however near two statements are."""
    owns = remember(proposer, reviewer, "Team X owns repository A.", type="ownership")
    reviews = remember(proposer, reviewer, "Team X reviews repository B.", type="ownership")
    again = remember(proposer, reviewer, "Team Y owns repository A.", type="ownership")

    assert not Supersession.objects.exists()
    assert served(client, "Team X owns repository") >= {owns.label, reviews.label, again.label}


def test_a_proposal_supersedes_nothing_before_it_is_approved(client, proposer, reviewer):
    old = remember(proposer, reviewer, "Payments go through Initech.")
    propose(proposer, "Payments go through Hooli.", supersedes=(old.label,))

    assert fresh(old).status == "active"
    assert served(client) == {old.label}


# --- forks and merges ---------------------------------------------------------------------------------------
def test_two_do_not_replace_one_and_the_second_is_told_what_did(client, proposer, reviewer):
    old = remember(proposer, reviewer)
    first = propose(proposer, supersedes=(old.label,))
    second = propose(proposer, supersedes=(old.label,))
    winner = approve(reviewer, first).memory

    response = client.post(f"/api/v1/candidates/{second.pk}/approve/", {"version": 1})

    assert response.status_code == 409
    body = response.json()
    assert body["code"] == "target_not_in_force"
    assert body["extra"]["target"] == {"id": str(old.pk), "number": old.label, "status": "superseded"}
    assert body["extra"]["successor"] == {"id": str(winner.pk), "number": winner.label}
    assert old.label in body["detail"]
    assert winner.label in body["detail"]
    assert fresh(second).status == "pending"
    assert not Verdict.objects.filter(subject_id=second.pk).exists()

    rebased = client.post(
        f"/api/v1/candidates/{second.pk}/approve/", {"version": 1, "amendment": {"supersedes": [winner.label]}}
    )
    assert rebased.status_code == 200
    assert fresh(winner).status == "superseded"


def test_what_was_retired_is_not_replaced_either(client, proposer, reviewer):
    from apps.approvals.services import memory_retire

    old = remember(proposer, reviewer)
    candidate = propose(proposer, supersedes=(old.label,))
    memory_retire(principal=reviewer, reference=old.pk, reason="Moot.")

    response = client.post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": 1})

    assert response.status_code == 409
    assert response.json()["extra"]["successor"] is None
    assert "was retired" in response.json()["detail"]


def test_a_target_that_was_replaced_already_is_flagged_from_the_start(proposer, reviewer, client):
    old = remember(proposer, reviewer)
    remember(proposer, reviewer, supersedes=[old])

    late = propose(proposer, supersedes=(old.label,))

    flags = client.get(f"/api/v1/candidates/{late.pk}/").json()["flags"]
    assert [flag["kind"] for flag in flags] == ["target-not-in-force"]


def test_one_replaces_several(client, proposer, reviewer):
    olds = [remember(proposer, reviewer) for _ in range(3)]

    new = remember(proposer, reviewer, supersedes=olds)

    assert {fresh(old).status for old in olds} == {"superseded"}
    assert len(client.get(f"/api/v1/memories/{new.pk}/").json()["chain"]) == 4


def test_if_one_of_several_targets_moved_on_none_is_replaced(proposer, reviewer):
    first, second = remember(proposer, reviewer), remember(proposer, reviewer)
    candidate = propose(proposer, supersedes=(first.label, second.label))
    remember(proposer, reviewer, supersedes=[second])

    with pytest.raises(Conflict, match=second.label):
        approve(reviewer, candidate)

    assert fresh(first).status == "active"


def test_a_target_that_the_reviewer_may_not_see_is_not_replaced_blindly(workspace, proposer, alice, carol, robo):
    from apps.accounts.models import Audience
    from apps.sources.models import Source

    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(carol)
    board.tokens.add(robo.token)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    hidden = remember(proposer, of_person(carol), sources=(a_source("#board/1", kind="chat"),))
    candidate = propose(of_token(robo.token), supersedes=(hidden.label,))

    with pytest.raises(Forbidden):
        approve(of_person(alice), candidate)

    assert fresh(hidden).status == "active"


def test_a_successor_that_the_reviewer_may_not_see_is_not_named(workspace, proposer, alice, carol, robo):
    from apps.accounts.models import Audience
    from apps.sources.models import Source

    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(carol)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    old = remember(proposer, of_person(alice))
    candidate = propose(proposer, supersedes=(old.label,))
    hidden = remember(proposer, of_person(carol), supersedes=[old], sources=(a_source("#board/1", kind="chat"),))

    with pytest.raises(Conflict) as refusal:
        approve(of_person(alice), candidate)

    assert refusal.value.extra["successor"] is None
    assert hidden.label not in refusal.value.detail


# --- other kinds of edges -----------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [EdgeKind.PARTIAL, EdgeKind.AMENDS])
def test_a_partial_edge_adds_to_the_chain_and_hides_nothing(client, proposer, reviewer, kind):
    old = remember(proposer, reviewer, "Payments go through Initech.")
    new = remember(proposer, reviewer, "Refunds and payments go through Hooli in Asia.")

    edges_write(new, [old], verdict=new.verdict, kind=kind, at=now())

    row = fresh(old)
    assert (row.status, row.valid_to) == ("active", None)
    assert served(client) == {old.label, new.label}
    chain = client.get(f"/api/v1/memories/{old.pk}/").json()["chain"]
    assert [entry["number"] for entry in chain] == [old.label, new.label]
    # A partial edge is no head: the old one may still be replaced in full.
    assert remember(proposer, reviewer, supersedes=[old])


def test_a_cycle_is_refused_with_a_sentence(proposer, reviewer):
    first = remember(proposer, reviewer)
    second = remember(proposer, reviewer, supersedes=[first])
    third = remember(proposer, reviewer, supersedes=[second])

    with pytest.raises(IntegrityError) as refusal:
        edges_write(first, [third], verdict=first.verdict, at=now())

    assert constraint_of(refusal.value) == "supersession_no_cycle"
    assert (as_domain_error(refusal.value).status, as_domain_error(refusal.value).code) == (409, "cycle")


# --- moments to come ----------------------------------------------------------------------------------------
@pytest.fixture
def tomorrow():
    return now() + timedelta(days=1)


def test_until_its_successor_takes_effect_a_memory_is_in_force(client, proposer, reviewer, pool, tomorrow):
    old = remember(proposer, reviewer, "Payments go through Initech.")

    new = remember(proposer, reviewer, "Payments go through Hooli.", valid_from=tomorrow, supersedes=[old])

    row = fresh(old)
    assert (row.status, row.valid_to) == ("active", tomorrow)
    assert pool.get(old.pk).status == "active"
    assert served(client) == {old.label}
    assert served(client) != {new.label}
    answer = client.get(
        "/api/v1/memories/search/", {"q": "payments go through", "as_of": (tomorrow + timedelta(hours=1)).isoformat()}
    )
    assert {result["number"] for result in answer.json()["results"]} == {new.label}


def test_when_the_moment_has_come_the_worker_says_so(proposer, reviewer, pool, tomorrow, monkeypatch):
    from apps.memories import tasks

    old, other = remember(proposer, reviewer), remember(proposer, reviewer)
    remember(proposer, reviewer, valid_from=tomorrow, supersedes=[old])
    assert refresh_ended() == "0 memories have ended."

    monkeypatch.setattr(tasks, "now", lambda: tomorrow + timedelta(seconds=1))
    assert refresh_ended() == "1 memories have ended."

    row = fresh(old)
    assert (row.status, row.valid_to) == ("superseded", tomorrow)
    assert pool.statuses([old.pk, other.pk]) == {old.pk: "superseded", other.pk: "active"}
    assert refresh_ended() == "0 memories have ended."


def test_a_search_does_not_wait_for_the_worker(client, proposer, reviewer, tomorrow, monkeypatch):
    """The status is a copy; what a search goes by are the moments."""
    old = remember(proposer, reviewer, "Payments go through Initech.")
    new = remember(proposer, reviewer, "Payments go through Hooli.", valid_from=tomorrow, supersedes=[old])
    assert served(client) == {old.label}
    monkeypatch.setattr(services, "now", lambda: tomorrow + timedelta(seconds=1))

    assert fresh(old).status == "active"
    assert served(client) == {new.label}


def test_two_do_not_replace_one_even_if_the_first_takes_effect_later(proposer, reviewer, tomorrow):
    old = remember(proposer, reviewer)
    remember(proposer, reviewer, valid_from=tomorrow, supersedes=[old])

    with pytest.raises(Conflict):
        remember(proposer, reviewer, supersedes=[old])


def test_a_scheduled_end_is_taken_back_with_the_approval(proposer, reviewer, pool, tomorrow):
    old = remember(proposer, reviewer)
    new = remember(proposer, reviewer, valid_from=tomorrow, supersedes=[old])

    reopen(reviewer, candidate_of(new))

    row = fresh(old)
    assert (row.status, row.valid_to, row.closed_at) == ("active", None, None)
    assert pool.get(old.pk).valid_to is None


def test_a_disputed_memory_ends_too(proposer, reviewer, tomorrow, monkeypatch):
    from apps.memories import tasks

    old = remember(proposer, reviewer)
    remember(proposer, reviewer, valid_from=tomorrow, supersedes=[old])
    report(proposer, old)
    assert fresh(old).status == "disputed"

    monkeypatch.setattr(tasks, "now", lambda: tomorrow + timedelta(seconds=1))
    refresh_ended()

    assert fresh(old).status == "superseded"


# --- taking it back -----------------------------------------------------------------------------------------
def test_reopening_an_approval_takes_back_all_it_did(client, proposer, reviewer, pool):
    first, second = remember(proposer, reviewer), remember(proposer, reviewer)
    new = remember(proposer, reviewer, supersedes=[first, second])
    candidate = candidate_of(new)

    response = client.post(
        f"/api/v1/candidates/{candidate.pk}/reopen/", {"version": candidate.version, "reason": "Too soon."}
    )

    assert response.status_code == 200
    assert response.json()["status"] == "pending"
    row = fresh(new)
    assert row.status == "retired"
    assert row.retired_at is not None
    for old in (first, second):
        row = fresh(old)
        assert (row.status, row.valid_to, row.closed_at) == ("active", None, None)
        assert pool.statuses([old.pk]) == {old.pk: "active"}
    reopening = Verdict.objects.get(subject_id=candidate.pk, action="reopen")
    assert set(Supersession.objects.values_list("voided_by", flat=True)) == {reopening.pk}
    retired = Verdict.objects.get(subject_id=new.pk, action="retire")
    assert retired.reason == "Too soon."
    assert client.get(f"/api/v1/memories/{new.pk}/").json()["status"] == "retired"
    assert [entry["id"] for entry in client.get(f"/api/v1/memories/{first.pk}/").json()["chain"]] == [str(first.pk)]


def test_approving_it_again_makes_a_new_memory(proposer, reviewer, pool):
    old = remember(proposer, reviewer)
    new = remember(proposer, reviewer, supersedes=[old])
    candidate = candidate_of(new)
    reopen(reviewer, candidate)

    again = approve(reviewer, candidate).memory

    assert again.pk != new.pk
    assert again.label == "M-3"
    assert fresh(new).status == "retired"
    assert fresh(old).status == "superseded"
    assert pool.statuses([old.pk, new.pk, again.pk]) == {
        old.pk: "superseded",
        new.pk: "retired",
        again.pk: "active",
    }
    assert Supersession.objects.live().get().new == again


def test_what_was_replaced_since_is_not_undone_underneath(client, proposer, reviewer):
    first = remember(proposer, reviewer)
    second = remember(proposer, reviewer, supersedes=[first])
    third = remember(proposer, reviewer, supersedes=[second])
    candidate = candidate_of(second)

    response = client.post(f"/api/v1/candidates/{candidate.pk}/reopen/", {"version": 2, "reason": "r"})

    assert response.status_code == 409
    assert response.json()["code"] == "replaced_since"
    assert response.json()["extra"]["successor"]["number"] == third.label
    assert [fresh(row).status for row in (first, second, third)] == ["superseded", "superseded", "active"]

    reopen(reviewer, candidate_of(third))
    reopen(reviewer, candidate)
    assert [fresh(row).status for row in (first, second, third)] == ["active", "retired", "retired"]


def test_a_memory_that_was_retired_already_stays_so_when_its_approval_is_reopened(proposer, reviewer):
    from apps.approvals.services import memory_retire

    old = remember(proposer, reviewer)
    new = remember(proposer, reviewer, supersedes=[old])
    memory_retire(principal=reviewer, reference=new.pk, reason="Moot.")
    retired_at = fresh(new).retired_at

    reopen(reviewer, candidate_of(new))

    assert fresh(new).retired_at == retired_at
    assert fresh(old).status == "active"
    assert Verdict.objects.filter(subject_id=new.pk, action="retire").count() == 1


def test_an_old_one_that_was_retired_itself_stays_retired(proposer, reviewer):
    from apps.approvals.services import memory_retire

    old = remember(proposer, reviewer)
    new = remember(proposer, reviewer, supersedes=[old])
    memory_retire(principal=reviewer, reference=old.pk, reason="It was never so.")

    reopen(reviewer, candidate_of(new))

    assert fresh(old).status == "retired"


def test_reopening_puts_no_second_head_beside_what_says_the_same(proposer, reviewer):
    old = remember(proposer, reviewer, "Deploys happen on Tuesdays.")
    new = remember(proposer, reviewer, supersedes=[old])
    twin = approve(reviewer, propose(proposer), content="Deploys happen on tuesdays").memory

    with pytest.raises(Conflict) as refusal:
        reopen(reviewer, candidate_of(new))

    assert refusal.value.code == "second_head"
    assert refusal.value.extra["memory"]["number"] == twin.label
    assert fresh(new).status == "active"
    assert Supersession.objects.live().count() == 1


def test_a_decision_is_not_reopened_while_the_same_waits_again(proposer, reviewer):
    candidate = propose(proposer, "Deploys happen on Tuesdays.")
    reject(reviewer, candidate)
    twin = propose(proposer, "Deploys happen on Mondays.")
    # A twin that is open with the same fingerprint: only possible by another way than proposing.
    Candidate.objects.filter(pk=twin.pk).update(fingerprint=candidate.fingerprint)

    with pytest.raises(Conflict) as refusal:
        reopen(reviewer, candidate)

    assert refusal.value.code == "duplicate"
    assert refusal.value.extra["duplicate_of"]["id"] == str(twin.pk)


def test_what_was_replaced_does_not_come_back_with_the_same_merge_request(proposer, reviewer, client):
    """The same source, captured again after the fact was replaced, leads to the memory and changes nothing."""
    source = a_source("acme/pay!77")
    old = remember(proposer, reviewer, "Payments go through Initech.", sources=(source,))
    new = remember(proposer, reviewer, "Payments go through Hooli.", supersedes=[old])

    again = proposed(proposer, "Payments go through Initech.", sources=(source,))

    assert not again.created
    assert again.duplicate_of.id == old.pk
    assert "superseded" in again.reason
    assert served(client) == {new.label}
    assert not Candidate.objects.open().exists()
