"""POST memories/{id}/corrections/: an agent's report disputes a memory mildly; only a reviewer decides about it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounts.models import Audience
from apps.candidates import corrections
from apps.candidates.models import Candidate
from apps.core.clock import now
from apps.memories.models import Memory, Verdict
from apps.memories.providers.registry import get_provider
from apps.sources.models import Source
from tests.conftest import issue
from tests.ledger import a_source, approve, fresh, of_person, of_token, reject, remember, reopen, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def agent(api, robo):
    return api(robo)


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def memory(botty, reviewer):
    return remember(of_token(botty.token), reviewer, "Payments go through Initech.")


def body(**changes):
    values = {
        "kind": "stale",
        "reason": "Initech was replaced in May.",
        "sources": [{"kind": "issue", "reference": "acme/pay#9"}],
    }
    return values | changes


def correct(client, memory, **changes):
    return client.post(f"/api/v1/memories/{memory.pk}/corrections/", body(**changes))


def pooled(memory) -> str:
    return get_provider().statuses([memory.pk])[memory.pk]


# --- reporting ----------------------------------------------------------------------------------------------
def test_a_report_disputes_the_memory_and_waits_for_a_person(agent, memory):
    response = correct(agent, memory)

    assert response.status_code == 201
    assert response.json()["status"] == "pending"
    assert fresh(memory).status == pooled(memory) == "disputed"
    shown = agent.get(f"/api/v1/candidates/{response.json()['id']}/").json()
    assert shown["corrects"] == {
        "id": str(memory.pk),
        "kind": "stale",
        "reason": "Initech was replaced in May.",
        "has_replacement": False,
    }
    assert shown["supersedes"] == []
    assert shown["type"] == "tooling_setup"
    assert Verdict.objects.get(subject_id=memory.pk).action == "correct"


def test_a_replacement_is_what_is_proposed(agent, memory):
    response = correct(agent, memory, kind="wrong", replacement="Payments go through Hooli.")

    shown = agent.get(f"/api/v1/candidates/{response.json()['id']}/").json()
    assert shown["content"] == "Payments go through Hooli."
    assert shown["supersedes"] == [str(memory.pk)]
    assert shown["corrects"]["kind"] == "wrong"


def test_a_disputed_memory_is_still_served_a_little_lower(agent, memory, robo, reviewer):
    question = "/api/v1/memories/search/?q=Payments+go+through+Initech"
    before = agent.get(question).json()["results"][0]
    correct(agent, memory)

    after = agent.get(question).json()["results"][0]

    assert after["id"] == str(memory.pk)
    assert after["status"] == "disputed"
    assert before["score"] * 0.8 < after["score"] < before["score"]


def test_a_memory_is_reported_by_its_number_too(agent, memory):
    assert agent.post(f"/api/v1/memories/{memory.label}/corrections/", body()).status_code == 201


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"kind": "outdated"}, 422, "kind"),
        ({"kind": None}, 422, "kind"),
        ({"reason": ""}, 422, "reason"),
        ({"reason": "x" * 2_001}, 422, "reason"),
        ({"reason": "a\x00b"}, 422, "reason"),
        ({"replacement": ""}, 422, "replacement"),
        ({"replacement": "x" * 8_001}, 422, "replacement"),
        ({"replacement": "Payments go through Initech."}, 422, "replacement"),
        ({"sources": []}, 422, "sources"),
        ({"confidence": 1}, 400, "confidence"),
        ({"approve": True}, 400, "approve"),
    ],
)
def test_a_report_that_will_not_do_is_refused_by_name(agent, memory, changes, status, field):
    response = correct(agent, memory, **changes)

    assert response.status_code == status, response.json()
    assert field in {error["field"] for error in response.json()["errors"]}
    assert fresh(memory).status == "active"
    assert Candidate.objects.open().count() == 0


def test_what_is_not_there_or_not_in_force_is_not_reported(agent, api, other_workspace, memory, proposer, reviewer):
    stranger = api(issue(other_workspace, "stranger", "agent"))
    assert correct(stranger, memory).status_code == 404
    assert agent.post("/api/v1/memories/M-999/corrections/", body()).status_code == 404
    assert agent.post("/api/v1/memories/nonsense/corrections/", body()).status_code == 404
    assert correct(api(), memory).status_code == 401

    remember(proposer, reviewer, supersedes=[memory])
    assert correct(agent, memory).status_code == 409


def test_a_memory_that_one_may_not_see_is_not_there(workspace, agent, botty, alice, memory):
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(alice)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    hidden = remember(of_token(botty.token), of_person(alice), sources=(a_source("#board/1", kind="chat"),))

    assert correct(agent, hidden).status_code == 404


def test_a_report_about_a_restricted_memory_is_restricted_alike(workspace, alice, robo, botty):
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(alice)
    board.tokens.add(robo.token)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    hidden = remember(of_token(botty.token), of_person(alice), sources=(a_source("#board/1", kind="chat"),))

    reported = report(of_token(robo.token), hidden, replacement="Hooli is bought instead.")

    assert reported.audience_ids == [board.pk]
    assert approve(of_person(alice), reported).memory.audience_ids == [board.pk]


# --- once for a memory and an origin ------------------------------------------------------------------------
def test_a_second_open_report_by_the_same_origin_joins_the_first(agent, memory):
    first = correct(agent, memory).json()

    again = correct(agent, memory, kind="wrong", reason="It never did.", replacement="It goes through Hooli.")

    assert again.status_code == 200
    assert again.json()["id"] == first["id"]
    candidate = Candidate.objects.get(corrects=memory)
    assert (candidate.correction_kind, candidate.has_replacement) == ("stale", False)
    differs = {flag["field"]: flag["shown"] for flag in candidate.flags if flag["kind"] == "joined-differs"}
    assert differs == {
        "supersedes": memory.label,
        "kind": "wrong",
        "reason": "It never did.",
        "replacement": "It goes through Hooli.",
    }


def test_each_origin_reports_for_itself(agent, api, workspace, memory):
    other = api(issue(workspace, "another", "bot"))

    assert correct(agent, memory).status_code == 201
    assert correct(other, memory).status_code == 201
    assert Candidate.objects.filter(corrects=memory).count() == 2


def test_a_dismissed_report_is_not_made_again_but_another_one_may_be(agent, memory, reviewer):
    first = correct(agent, memory).json()
    reject(reviewer, Candidate.objects.get(pk=first["id"]), "It is still in use.")

    same = correct(agent, memory)
    other = correct(agent, memory, reason="The contract ended in June.")

    assert same.status_code == 200
    assert same.json()["status"] == "rejected"
    assert "It is still in use." in same.json()["reason"]
    assert other.status_code == 201
    assert other.json()["id"] != first["id"]
    assert fresh(memory).status == "disputed"


def test_a_new_source_reopens_a_dismissed_report_and_disputes_the_memory_again(agent, memory, reviewer):
    first = correct(agent, memory).json()
    reject(reviewer, Candidate.objects.get(pk=first["id"]), "Where does it say so?")
    assert fresh(memory).status == "active"

    again = correct(agent, memory, sources=[{"kind": "incident", "reference": "INC-12"}])

    assert (again.json()["id"], again.json()["status"]) == (first["id"], "pending")
    assert fresh(memory).status == pooled(memory) == "disputed"


def test_what_was_restored_after_a_report_may_be_reported_again(agent, memory, reviewer):
    from apps.approvals.services import memory_restore

    first = correct(agent, memory).json()
    approve(reviewer, Candidate.objects.get(pk=first["id"]))
    memory_restore(principal=reviewer, reference=memory.pk, reason="It is back.")

    again = correct(agent, memory)

    assert again.status_code == 201
    assert again.json()["id"] != first["id"]


# --- limits -------------------------------------------------------------------------------------------------
def test_an_origin_makes_so_many_reports_a_day(agent, botty, reviewer, monkeypatch):
    monkeypatch.setattr(corrections, "MAX_REPORTS_PER_DAY", 2)
    memories = [remember(of_token(botty.token), reviewer) for _ in range(3)]
    assert [correct(agent, memory).status_code for memory in memories[:2]] == [201, 201]

    refused = correct(agent, memories[2])

    assert refused.status_code == 429
    assert refused.json()["code"] == "too_many_reports"
    assert fresh(memories[2]).status == "active"
    assert Candidate.objects.filter(corrects=memories[2]).count() == 0
    assert Verdict.objects.filter(subject_id=memories[2].pk, action="correct").count() == 0


def test_twenty_a_day_is_the_limit():
    assert corrections.MAX_REPORTS_PER_DAY == 20


def test_an_origin_whose_reports_are_dismissed_disputes_nothing_any_more(proposer, botty, reviewer):
    memories = [remember(of_token(botty.token), reviewer) for _ in range(4)]
    for memory in memories[:3]:
        reject(reviewer, report(proposer, memory))

    report(proposer, memories[3])

    assert fresh(memories[3]).status == "active"
    assert Candidate.objects.open().filter(corrects=memories[3]).exists()


# --- deciding -----------------------------------------------------------------------------------------------
def test_an_agent_decides_about_no_report(agent, memory):
    made = correct(agent, memory).json()

    for action, extra in (("approve", {}), ("reject", {"reason": "r"})):
        response = agent.post(f"/api/v1/candidates/{made['id']}/{action}/", {"version": 1} | extra)
        assert response.status_code == 403


def test_a_dismissed_report_leaves_the_memory_active(proposer, reviewer, memory):
    reject(reviewer, report(proposer, memory))

    assert fresh(memory).status == pooled(memory) == "active"


def test_while_another_report_is_open_the_memory_stays_disputed(workspace, proposer, reviewer, memory):
    first = report(proposer, memory)
    report(of_token(issue(workspace, "another", "bot").token), memory)

    reject(reviewer, first)

    assert fresh(memory).status == "disputed"


def test_a_stale_memory_held_until_now(proposer, reviewer, memory):
    approved = approve(reviewer, report(proposer, memory, kind="stale"))

    row = fresh(memory)
    assert approved.memory == memory
    assert (row.status, row.retired_at) == ("retired", None)
    assert row.valid_to == row.closed_at is not None
    assert pooled(memory) == "retired"


def test_a_wrong_memory_was_never_right(proposer, reviewer, memory):
    approve(reviewer, report(proposer, memory, kind="wrong"))

    row = fresh(memory)
    assert row.status == "retired"
    assert row.retired_at is not None
    assert row.valid_to is None


def test_a_replacement_supersedes_the_memory(proposer, reviewer, memory):
    new = approve(reviewer, report(proposer, memory, replacement="Payments go through Hooli.")).memory

    assert new.content == "Payments go through Hooli."
    assert fresh(memory).status == "superseded"
    assert fresh(memory).replaced_by.get().new == new


def test_the_verdicts_of_an_upheld_report_say_why(proposer, reviewer, memory):
    reported = report(proposer, memory)
    approve(reviewer, reported, note="Confirmed with the payments team.")

    retired = Verdict.objects.get(subject_id=memory.pk, action="retire")
    assert retired.reason == "Confirmed with the payments team."
    assert retired.after["report"] == str(reported.pk)
    assert retired.reviewer_name == "alice"


def test_a_report_that_somebody_acted_on_already_is_upheld_and_ends_nothing_more(proposer, reviewer, memory):
    from apps.approvals.services import memory_retire

    reported = report(proposer, memory)
    memory_retire(principal=reviewer, reference=memory.pk, reason="Moot.")
    before = fresh(memory)

    assert approve(reviewer, reported).memory == memory
    assert fresh(reported).status == "approved"
    after = fresh(memory)
    assert (after.status, after.valid_to, after.retired_at) == ("retired", before.valid_to, before.retired_at)
    assert Verdict.objects.filter(subject_id=memory.pk, action="retire").count() == 1

    reopen(reviewer, reported)
    assert fresh(memory).status == "retired"


def test_both_of_two_right_reports_are_upheld(workspace, proposer, reviewer, memory):
    first, second = report(proposer, memory), report(of_token(issue(workspace, "another", "bot").token), memory)
    approve(reviewer, first)
    approve(reviewer, second)

    assert {fresh(first).status, fresh(second).status} == {"approved"}
    assert fresh(memory).status == "retired"


@pytest.mark.parametrize("kind", ["stale", "wrong"])
def test_a_successor_that_begins_later_stands_in_no_reports_way(proposer, reviewer, memory, kind, browser, alice):
    later = now() + timedelta(days=90)
    successor = remember(
        proposer, reviewer, "Payments go through Umbrella.", supersedes=(memory.label,), valid_from=later
    )
    reported = report(proposer, memory, kind=kind)
    page = browser(alice).get(f"/review/{reported.pk}/").content.decode()
    assert f"Approve and retire {memory.label}" in page
    assert "was replaced by" not in page

    approve(reviewer, reported)

    row = fresh(memory)
    assert row.status == pooled(memory) == "retired"
    assert fresh(successor).status == "active"

    reopen(reviewer, reported)
    row = fresh(memory)
    assert (row.status, row.valid_to, row.retired_at) == ("disputed", later, None)


def test_a_report_about_what_was_replaced_meanwhile_names_the_successor(proposer, reviewer, memory):
    from apps.core.errors import Conflict

    reported = report(proposer, memory)
    successor = remember(proposer, reviewer, "Payments go through Umbrella.", supersedes=(memory.label,))

    with pytest.raises(Conflict, match=f"was replaced by {successor.label} meanwhile. There is nothing left to end"):
        approve(reviewer, reported)


# --- reopening ----------------------------------------------------------------------------------------------
def test_reopening_a_dismissal_disputes_the_memory_again(proposer, reviewer, memory):
    reported = report(proposer, memory)
    reject(reviewer, reported)

    reopen(reviewer, reported)

    assert fresh(memory).status == "disputed"
    assert fresh(reported).status == "pending"


@pytest.mark.parametrize("kind", ["stale", "wrong"])
def test_reopening_an_upheld_report_brings_the_memory_back_disputed(proposer, reviewer, memory, kind):
    reported = report(proposer, memory, kind=kind)
    approve(reviewer, reported)

    reopen(reviewer, reported)

    row = fresh(memory)
    assert (row.status, row.valid_to, row.closed_at, row.retired_at) == ("disputed", None, None, None)
    assert pooled(memory) == "disputed"
    assert Verdict.objects.filter(subject_id=memory.pk, action="restore").count() == 1


def test_reopening_a_replacement_takes_it_back(proposer, reviewer, memory):
    reported = report(proposer, memory, replacement="Payments go through Hooli.")
    new = approve(reviewer, reported).memory

    reopen(reviewer, reported)

    assert fresh(new).status == "retired"
    assert fresh(memory).status == "disputed"
    assert fresh(memory).valid_to is None


def test_reopening_does_not_undo_a_later_retirement_for_another_reason(proposer, reviewer, memory):
    from apps.approvals.services import memory_restore, memory_retire

    reported = report(proposer, memory)
    approve(reviewer, reported)
    memory_restore(principal=reviewer, reference=memory.pk, reason="Too soon.")
    memory_retire(principal=reviewer, reference=memory.pk, reason="The product was discontinued.")

    reopen(reviewer, reported)

    assert fresh(memory).status == "retired"
    assert Memory.objects.get(pk=memory.pk).retired_at is not None
