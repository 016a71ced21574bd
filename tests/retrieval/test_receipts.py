"""Read receipts: who was given what, in answer to which question, told to reviewers and kept for 90 days."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import OperationalError, transaction

from apps.accounts.models import Audience
from apps.core.clock import now
from apps.core.schedules import registered
from apps.memories.models import Memory
from apps.retrieval import receipts
from apps.retrieval.models import Served
from apps.retrieval.tasks import forget_receipts
from tests.agents.calling import Agent
from tests.at_once import at_once
from tests.ledger import of_token
from tests.pages import text

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

STATEMENT = "Ledgers are closed at midnight, because the bank books then."
ASKED = "when are ledgers closed"


@pytest.fixture
def memory(remember):
    return remember(STATEMENT, type="architecture_decisions")


DOORS = {
    "rest search": lambda rest, mcp, memory: rest.get("/api/v1/memories/search/", {"q": ASKED}),
    "rest get": lambda rest, mcp, memory: rest.get(f"/api/v1/memories/{memory.label}/"),
    "rest context": lambda rest, mcp, memory: rest.get("/api/v1/context/", {"repo": "acme/pay", "q": ASKED}),
    "rest ask": lambda rest, mcp, memory: rest.get("/api/v1/ask/", {"q": ASKED}),
    "mcp search": lambda rest, mcp, memory: mcp.call("memory_search", query=ASKED),
    "mcp get": lambda rest, mcp, memory: mcp.call("memory_get", id=memory.label),
    "mcp context": lambda rest, mcp, memory: mcp.call("memory_context", repo="acme/pay", path="ledgers/closed.py"),
    "mcp decisions": lambda rest, mcp, memory: mcp.call("memory_decisions", subject=ASKED),
}


@pytest.mark.parametrize("door", DOORS)
def test_each_door_leaves_one_for_each_memory(api, robo, memory, door):
    DOORS[door](api(robo), Agent(robo.secret), memory)

    (row,) = Served.objects.all()
    assert f"{row.via} {row.asked_for}" == door
    assert (row.memory, row.principal, row.name, row.kind) == (memory.pk, f"token:{robo.token.pk}", "robo", "agent")
    assert bool(row.question) is (row.asked_for != "get")
    assert row.request_id
    assert now() - row.at < timedelta(minutes=1)


def test_several_at_once_are_one_statement(api, robo, memory, remember, django_assert_num_queries):
    remember("Ledgers are closed by the bank on holidays.")
    principal = of_token(robo.token)
    results = api(robo).get("/api/v1/memories/search/", {"q": ASKED}).json()["results"]
    Served.objects.all().delete()

    with django_assert_num_queries(3):  # a savepoint around it, since this test is in a transaction
        receipts.served_record(principal, "search", results=results, question=ASKED)

    assert Served.objects.count() == len(results) == 2


def test_where_nothing_is_found_nothing_is_kept(api, robo):
    api(robo).get("/api/v1/memories/search/", {"q": "zebras"})

    assert not Served.objects.exists()


def test_the_question_is_masked_and_cut(robo, memory):
    question = f"What is password=hunter2hunter2 for? {'x' * 2_000}"
    receipts.served_record(of_token(robo.token), "search", results=[{"id": str(memory.pk)}], question=question)

    kept = Served.objects.get().question
    assert "hunter2" not in kept and len(kept) == receipts.MAX_QUESTION


def test_a_search_that_cannot_be_recorded_is_answered(api, robo, memory, monkeypatch, caplog):
    monkeypatch.setattr(receipts, "_RECORD", "SELECT nothing FROM nowhere WHERE %(workspace)s = 1")

    answer = api(robo).get("/api/v1/memories/search/", {"q": ASKED})

    assert answer.status_code == 200 and answer.json()["results"]
    assert "was not recorded" in caplog.text
    assert not Served.objects.exists()


def test_nor_does_a_database_that_has_gone_in_between(api, robo, memory, monkeypatch):
    def gone():
        raise OperationalError("gone")

    monkeypatch.setattr(receipts, "_by_itself", gone)

    assert api(robo).get("/api/v1/memories/search/", {"q": ASKED}).json()["results"]
    assert not Agent(robo.secret).call("memory_search", query=ASKED).is_error


def test_reviewers_see_what_relied_on_it(api, browser, robo, bob, alice, memory):
    Agent(robo.secret).call("memory_search", query=ASKED)
    address = f"/api/v1/memories/{memory.label}/"

    for who in (robo, bob):
        assert "served" not in api(who).get(address).json()
    served = api(alice).get(address).json()["served"]
    assert served["total"] == 3
    last = served["latest"][-1]
    assert (last["name"], last["via"], last["asked_for"], last["question"]) == ("robo", "mcp", "search", ASKED)

    page = text(browser(alice).get(f"/memories/{memory.label}/"))
    assert "What relied on it" in page and ASKED in page and "robo" in page
    assert "What relied on it" not in text(browser(bob).get(f"/memories/{memory.label}/"))


def test_what_relied_on_it_is_told_when_it_was_replaced_since(api, browser, robo, alice, remember, memory):
    for call in DOORS.values():
        call(api(robo), Agent(robo.secret), memory)
    doors = {(row.via, row.asked_for) for row in Served.objects.filter(memory=memory.pk)}

    remember("Ledgers are closed at noon.", supersedes=[memory])

    shown = api(alice).get(f"/api/v1/memories/{memory.label}/").json()
    assert (shown["status"], shown["served"]["total"]) == ("superseded", len(DOORS))
    assert {(row["via"], row["asked_for"]) for row in shown["served"]["latest"]} == doors
    assert {f"{via} {asked_for}" for via, asked_for in doors} == DOORS.keys()
    assert all(row["name"] in ("robo", "alice") for row in shown["served"]["latest"])
    assert "robo" in text(browser(alice).get(f"/memories/{memory.pk}/"))


def test_a_page_of_a_memory_that_nobody_was_given_says_so(browser, alice, memory):
    assert "Nobody was given it" in text(browser(alice).get(f"/memories/{memory.label}/"))


def test_what_an_audience_asked_is_for_the_audience(api, workspace, robo, alice, carol, memory):
    board = Audience.objects.create(workspace=workspace, name="board")
    board.tokens.add(robo.token)
    board.members.add(carol)
    api(robo).get("/api/v1/memories/search/", {"q": ASKED})

    address = f"/api/v1/memories/{memory.label}/"
    assert api(alice).get(address).json()["served"]["latest"][0]["question"] == ""
    asked = [each["question"] for each in api(carol).get(address).json()["served"]["latest"]]
    assert ASKED in asked


def test_of_many_the_latest_are_shown_and_all_are_counted(api, robo, alice, memory):
    for number in range(receipts.SHOWN + 5):
        receipts.served_record(
            of_token(robo.token), "search", results=[{"id": str(memory.pk)}], question=f"Question {number}"
        )

    served = api(alice).get(f"/api/v1/memories/{memory.label}/").json()["served"]

    assert served["total"] == receipts.SHOWN + 5
    assert served["latest"][0]["question"] == f"Question {receipts.SHOWN + 4}"
    assert len(served["latest"]) == receipts.SHOWN


def test_they_are_forgotten_after_ninety_days(api, robo, alice, memory):
    api(robo).get("/api/v1/memories/search/", {"q": ASKED})
    api(robo).get("/api/v1/memories/search/", {"q": ASKED})
    old = Served.objects.first()
    Served.objects.filter(pk=old.pk).update(at=now() - timedelta(days=90, seconds=1))

    assert api(alice).get(f"/api/v1/memories/{memory.label}/").json()["served"]["total"] == 1
    assert forget_receipts() == "1 read receipts were removed."
    assert not Served.objects.filter(pk=old.pk).exists() and Served.objects.exists()
    assert forget_receipts() == "0 read receipts were removed."
    assert registered()["retrieval: forget receipts"].task == "apps.retrieval.tasks.forget_receipts"


def test_one_of_another_workspace_is_not_told(api, other_workspace, robo, alice, memory):
    api(robo).get("/api/v1/memories/search/", {"q": ASKED})
    Served.objects.bulk_create(
        [Served(workspace=other_workspace, memory=memory.pk, principal="token:0", kind="agent", name="x", via="rest")]
    )

    names = [row["name"] for row in api(alice).get(f"/api/v1/memories/{memory.label}/").json()["served"]["latest"]]
    assert names == ["robo"]


@pytest.mark.django_db(transaction=True)
def test_a_decision_in_progress_holds_no_receipt_up(api, robo, memory):
    """Nobody who asks waits for whoever decides about what is found."""

    def ask():
        return api(robo).get("/api/v1/memories/search/", {"q": ASKED}).status_code

    with transaction.atomic():
        Memory.objects.select_for_update().get(pk=memory.pk)
        (status,) = at_once(ask)
    assert status == 200
    assert Served.objects.count() == 1
