"""The audit trail: all that was done, for reviewers, as a page and as files, and nothing that they may not see."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper
from django.test import Client

from apps.accounts.audit import audit_record
from apps.accounts.models import Audience, AuditEvent, Role, Workspace
from apps.accounts.principal import Principal, operator
from apps.approvals.bulk import Item, candidates_decide
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_retire
from apps.approvals.trail.export import _cell
from apps.approvals.trail.selectors import TrailFilter, trail_entries, trail_page
from apps.core.wording import door_words
from apps.memories.models import Action, Verdict
from apps.sources.models import Source
from apps.sources.services import SourceInput
from tests import ledger
from tests.capture import finished
from tests.conftest import Issued, add_person
from tests.pages import text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

TRAIL = "/audit/"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture
def page(browser: Any, alice: User) -> Client:
    return browser(alice)


def done(answer: Any) -> list[tuple[str, str]]:
    return [(shown.entry.actor, shown.entry.verb) for shown in answer.context["entries"]]


def exported(client: Client, format: str, **query: str) -> str:
    answer = client.get(f"{TRAIL}export.{format}", query)
    assert answer.status_code == 200
    return b"".join(answer.streaming_content).decode()


# --- who ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", [TRAIL, f"{TRAIL}export.csv", f"{TRAIL}export.jsonl"])
def test_reviewers_alone_see_it(browser: Any, page: Client, bob: User, path: str) -> None:
    assert page.get(path).status_code == 200
    assert browser(bob).get(path).status_code == 403
    assert browser().get(path).status_code == 302
    assert page.post(path).status_code == 405


def test_another_workspace_has_its_own(browser: Any, charlie: User, bot: Principal, reviewer: Principal) -> None:
    ledger.remember(bot, reviewer, "Only firm knows this.")
    assert "botty" not in text(browser(charlie).get(TRAIL))
    assert "botty" not in exported(browser(charlie), "jsonl")


# --- what ---------------------------------------------------------------------------------------------------
def test_doors_are_told_in_words() -> None:
    assert [door_words(via) for via in ("rest", "ui", "mcp", "new_door")] == ["the API", "the pages", "MCP", "new door"]


def test_a_decision_is_told_once_with_its_reason(page: Client, bot: Principal, reviewer: Principal) -> None:
    memory = ledger.remember(bot, reviewer, "Backups are encrypted.")
    memory_retire(principal=reviewer, reference=memory.pk, reason="There are none any more.")
    answer = page.get(TRAIL)
    assert done(answer)[:3] == [("alice", "retire"), ("alice", "approve"), ("botty", "propose")]
    said = words(answer)
    assert "alice retired the memory M-1" in said
    assert "There are none any more." in said
    assert "as M-1" in said
    assert "through the pages" in said
    assert "via ui" not in said


def test_what_was_amended_is_shown_side_by_side(page: Client, bot: Principal, reviewer: Principal) -> None:
    candidate = ledger.propose(bot, "Backups are encrypted.")
    ledger.approve(reviewer, candidate, content="Backups are encrypted at rest.")
    answer = page.get(TRAIL, {"verb": "approve"})
    (shown,) = answer.context["entries"]
    change = next(change for change in shown.changes if change.field == "content")
    assert (change.before, change.after) == ("Backups are encrypted.", "Backups are encrypted at rest.")


def test_refused_attempts_are_there(browser: Any, page: Client, bob: User, bot: Principal) -> None:
    candidate = ledger.propose(bot)
    browser(bob).post(f"/review/{candidate.pk}/approve/", {"version": 1})
    answer = page.get(TRAIL, {"verb": "refused"})
    assert done(answer) == [("bob", "was refused to approve a candidate")]


def test_types_are_told_in_words(page: Client, workspace: Workspace, bot: Principal, reviewer: Principal) -> None:
    ledger.approve(reviewer, ledger.propose(bot, type="task_learnings"), type="bug_fixes")
    asked = {"slug": "legal_holds", "name": "LEGAL_HOLD"}
    audit_record(operator(workspace), "add", subject_kind="memorytype", subject_id=7, before={}, after=asked)
    said = words(page.get(TRAIL))
    assert "added the type legal holds" in said
    assert "task learnings → became bug fixes" in said
    assert "task_learnings" not in said and "bug_fixes" not in said


def test_curation_is_there(page: Client, workspace: Workspace) -> None:
    audit_record(
        operator(workspace), "change", subject_kind="domain", subject_id=7, before={"confirmed": False},
        after={"confirmed": True},
    )  # fmt: skip
    answer = page.get(TRAIL, {"kind": "domain"})
    assert done(answer) == [("operator", "change")]
    assert "Confirmed" in words(answer)


def test_hostile_text_is_text(page: Client, bot: Principal, reviewer: Principal, workspace: Workspace) -> None:
    ledger.reject(reviewer, ledger.propose(bot), HOSTILE)
    audit_record(operator(workspace), HOSTILE, subject_kind=HOSTILE, subject_id=HOSTILE, after={HOSTILE: HOSTILE})
    shown = text(page.get(TRAIL))
    assert "<img" not in shown
    assert shown.count("&lt;img") >= 4


# --- the filter ---------------------------------------------------------------------------------------------
def test_the_filter_narrows(page: Client, bot: Principal, reviewer: Principal) -> None:
    memory = ledger.remember(bot, reviewer, "Backups are encrypted.")
    other = ledger.propose(bot)
    _, (outcome,) = candidates_decide(
        principal=reviewer, action=Action.REJECT, items=[Item(other.pk, 1)], reason="Not so."
    )
    assert outcome.outcome == "done"
    batch = Verdict.objects.get(batch_id__isnull=False).batch_id
    for query, expected in (
        ({"actor": "botty"}, {"propose"}),
        ({"verb": "reject"}, {"reject"}),
        ({"kind": "memory"}, set()),
        ({"kind": "candidate", "verb": "approve"}, {"approve"}),
        ({"subject": memory.label}, {"approve", "propose"}),
        ({"subject": str(other.pk)}, {"reject", "propose"}),
        ({"batch": str(batch)}, {"reject"}),
        ({"since": "2999-01-01"}, set()),
        ({"until": "2000-01-01"}, set()),
        ({"request": "nothing"}, set()),
    ):
        found = {verb for _, verb in done(page.get(TRAIL, {**query, "actor": query.get("actor", "")}))}
        assert found - {"add", "create"} == expected, query


def test_a_request_leads_to_all_that_it_did(page: Client, bot: Principal, browser: Any, alice: User) -> None:
    candidate = ledger.propose(bot)
    browser(alice).post(f"/review/{candidate.pk}/reject/", {"version": 1, "reason": "Not so."})
    request_id = Verdict.objects.get().request_id
    assert request_id
    assert done(page.get(TRAIL, {"request": request_id})) == [("alice", "reject")]


@pytest.mark.parametrize(
    "query", [{"colour": "red"}, {"since": "soon"}, {"batch": "all"}, {"cursor": "abc"}, {"cursor": "WyJvIl0"}]
)
def test_what_is_not_understood_is_said_and_nothing_is_listed(page: Client, query: dict[str, str]) -> None:
    answer = page.get(TRAIL, query)
    assert answer.status_code == 422
    assert "Nothing is listed" in words(answer)


def test_pages_follow_each_other_and_lead_back(bot: Principal, reviewer: Principal, workspace: Workspace) -> None:
    for _ in range(4):
        ledger.reject(reviewer, ledger.propose(bot))
    # One moment for many, as an import leaves them: the place in the list must not depend on time alone.
    whole = [entry.key for entry in trail_entries(reviewer, TrailFilter())]
    assert len(whole) == len(set(whole))
    there, cursor = [], None
    while True:
        found = trail_page(reviewer, TrailFilter(), limit=3, cursor=cursor)
        there += [entry.key for entry in found.entries]
        if found.older is None:
            break
        cursor = found.older
    assert there == whole
    back = [entry.key for entry in found.entries]
    while found.newer:
        found = trail_page(reviewer, TrailFilter(), limit=3, cursor=found.newer)
        back = [entry.key for entry in found.entries] + back
    assert back == whole


def test_it_costs_few_queries(page: Client, bot: Principal, reviewer: Principal, django_assert_max_num_queries: Any):
    for _ in range(6):
        ledger.remember(bot, reviewer)
    with django_assert_max_num_queries(12):
        page.get(TRAIL)


# --- what is restricted ---------------------------------------------------------------------------------------
def test_nothing_is_told_of_what_a_reader_may_not_see(
    page: Client, browser: Any, bot: Principal, reviewer: Principal, workspace: Workspace, dave: User
) -> None:
    memory = ledger.remember(bot, reviewer, "The board sells the firm.", sources=(ledger.a_source("acme/board!1"),))
    audit_record(
        operator(workspace), "import", subject_kind="memory", subject_id="2 records",
        after={"first": "acme/board!1", "last": "acme/pay!9"},
    )  # fmt: skip
    memory_retire(principal=reviewer, reference=memory.pk, reason="The board said so.")
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(dave)
    source = Source.objects.get(reference="acme/board!1")
    source_restrict(principal=ledger.of_person(dave, via="admin"), source_id=source.pk, audience_id=board.pk)
    seen, files = text(page.get(TRAIL)), exported(page, "csv") + exported(page, "jsonl")
    for told in (f">{memory.label}<", str(memory.pk), "The board", "acme/board", "restrict"):
        assert told not in seen.replace('value="restrict"', "").replace("Restricted</option>", ""), told
        assert told not in files, told
    admitted = words(browser(dave).get(TRAIL))
    assert memory.label in admitted
    assert "The board said so." in admitted


def test_what_replaced_a_memory_is_not_named_to_whom_its_audience_keeps_out(
    browser: Any, bot: Principal, workspace: Workspace, api: Any, botty: Issued
) -> None:
    keeper, curator = (add_person(workspace, name, Role.CURATOR) for name in ("kim", "lee"))
    old = ledger.remember(bot, ledger.of_person(keeper))
    new = ledger.remember(
        bot, ledger.of_person(keeper), "The board sells.", sources=(ledger.a_source("acme/board!1"),), supersedes=(old,)
    )
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(keeper)
    source = Source.objects.get(reference="acme/board!1")
    source_restrict(principal=ledger.of_person(keeper, via="admin"), source_id=source.pk, audience_id=board.pk)

    def told(who: User) -> dict[str, str]:
        client = browser(who)
        files = exported(client, "csv") + exported(client, "jsonl")
        admin = text(client.get("/admin/memories/verdict/"))
        return {"page": text(client.get(f"/memories/{old.label}/")), "trail": text(client.get(TRAIL))} | {
            "files": files,
            "admin": admin,
        }

    answer = api(botty).get(f"/api/v1/memories/{old.label}/")
    assert answer.json()["verdicts"][-1]["reason"] == "Replaced by a memory that you may not see."
    for door, shown in (told(curator) | {"rest": answer.content.decode()}).items():
        assert f"{new.label}<" not in shown and f"Replaced by {new.label}" not in shown, door
        assert str(new.pk) not in shown, door
    for door, shown in told(keeper).items():
        assert f"Replaced by {new.label}" in shown, door


def test_an_overruled_drop_is_told_to_those_who_may_see_it(
    page: Client, browser: Any, bot: Principal, workspace: Workspace, dave: User
) -> None:
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(dave)
    Source.objects.create(workspace=workspace, kind="chat", reference="board/1", audience=board)
    told = finished.done(bot, reason="It is about lunch.")
    hidden = finished.done(bot, reason="The board said so.", sources=(SourceInput(kind="chat", reference="board/1"),))
    for event in (told, hidden):
        browser(dave).post(f"/captured/{event.pk}/overrule/")
    answer = page.get(TRAIL, {"kind": "capture event"})
    assert [(shown.entry.verb, shown.address) for shown in answer.context["entries"]] == [
        ("overrule drop", f"/captured/{told.pk}/")
    ]
    assert "It is about lunch." in words(answer)
    for seen in (text(page.get(TRAIL)), exported(page, "csv"), exported(page, "jsonl")):
        assert "The board said so." not in seen
        assert str(hidden.pk) not in seen
    assert len(browser(dave).get(TRAIL, {"verb": "overrule drop"}).context["entries"]) == 2


# --- files --------------------------------------------------------------------------------------------------
def test_files_hold_what_the_filter_admits(page: Client, bot: Principal, reviewer: Principal) -> None:
    ledger.reject(reviewer, ledger.propose(bot), "Not so, “really”.")
    ledger.remember(bot, reviewer)
    rows = list(csv.DictReader(io.StringIO(exported(page, "csv", verb="reject"))))
    assert [(row["actor"], row["verb"], row["reason"]) for row in rows] == [("alice", "reject", "Not so, “really”.")]
    lines = [json.loads(line) for line in exported(page, "jsonl").splitlines()]
    assert [line["verb"] for line in lines][:4] == ["approve", "propose", "reject", "propose"]
    assert lines[0]["before"]["status"] == "pending"


def test_files_refuse_an_unknown_filter_and_format(page: Client) -> None:
    assert page.get(f"{TRAIL}export.csv", {"colour": "red"}).status_code == 422
    assert page.get(f"{TRAIL}export.xlsx").status_code == 404


@pytest.mark.parametrize(
    "value", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r\n=cmd|' /C calc'!A0", "＝1", "|calc"]
)
def test_no_cell_begins_a_formula(value: str) -> None:
    assert _cell(value) == f"'{value}"


def test_a_formula_in_a_reason_stays_a_text(page: Client, bot: Principal, reviewer: Principal) -> None:
    ledger.reject(reviewer, ledger.propose(bot), '=HYPERLINK("http://evil.example","x")')
    (row,) = csv.DictReader(io.StringIO(exported(page, "csv", verb="reject")))
    assert row["reason"].startswith("'=HYPERLINK")


def test_long_trails_are_read_in_parts(
    reviewer: Principal, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.approvals.trail.selectors._EXPORTED_AT_ONCE", 3)
    for number in range(10):
        audit_record(operator(workspace), "probe", subject_kind="probe", subject_id=number)
    found = [entry.subject_id for entry in trail_entries(reviewer, TrailFilter(verb="probe"))]
    assert found == [str(number) for number in reversed(range(10))]
    assert AuditEvent.objects.filter(verb="probe").count() == 10


def test_a_database_that_is_down_is_no_empty_trail(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = CursorWrapper.execute

    def fail(self: Any, sql: str, *arguments: Any, **options: Any) -> Any:
        if "accounts_auditevent" in sql:
            raise OperationalError("gone")
        return execute(self, sql, *arguments, **options)

    monkeypatch.setattr(CursorWrapper, "execute", fail)
    for path in (TRAIL, f"{TRAIL}export.csv"):
        answer = page.get(path)
        assert answer.status_code == 503
        assert "Back in a moment" in words(answer)


def test_an_unknown_batch_finds_nothing(page: Client) -> None:
    assert "Nothing matches" in words(page.get(TRAIL, {"batch": str(uuid4())}))


def test_a_secret_in_the_filter_is_not_repeated(page: Client) -> None:
    assert "AKIAIOSFODNN7EXAMPLE" not in text(page.get(TRAIL, {"actor": "AKIAIOSFODNN7EXAMPLE"}))
