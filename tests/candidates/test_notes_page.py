"""The page with the notes of a task: what people see on it, and what they do there."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from apps.accounts.models import Audience
from apps.candidates.models import Candidate
from apps.memories.models import TaskNote
from apps.sources.models import Source
from tests.ledger import a_source, noted, of_person
from tests.pages import form, text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

TASK = "branch:feature/retries"
PAGE = f"/tasks/?task={quote(TASK, safe='')}"
HOSTILE = "<img src=x onerror=alert(1)> \u202e"


@pytest.fixture
def note(bot):
    return noted(bot, "The retry loop never gives up.", task=TASK, disposition="open", type="review_feedback")


def at(note: TaskNote, what: str) -> str:
    return f"/tasks/notes/{note.pk}/{what}/"


def test_members_see_the_latest_tasks_and_the_notes_of_one(browser, bob, bot, note):
    noted(bot, "Invoices are numbered twice.", task="mr:1")
    member = browser(bob)

    listed = words(member.get("/tasks/"))
    assert listed.index(" mr:1") < listed.index(TASK)
    assert "1 note1 open" in listed
    shown = words(member.get(PAGE))
    assert "The retry loop never gives up." in shown
    assert "Nobody has reviewed a note" in shown
    assert "botty" in shown
    assert "Invoices" not in shown
    assert '<a class="menu-item" href="/tasks/">' in text(member.get("/"))


def test_nobody_else_sees_them(browser, charlie, note):
    assert browser().get(PAGE).headers["Location"].startswith("/accounts/login/?next=/tasks/")
    outsider = browser(charlie)
    assert "No note of this task" in words(outsider.get(PAGE))
    assert "Nothing is noted" in words(outsider.get("/tasks/"))
    for what in ("propose", "disposition", "delete"):
        answer = outsider.post(at(note, what), {"task": TASK, "disposition": "fixed"})
        assert answer.status_code == 404
        assert "There is no such note" in words(answer)
    assert TaskNote.objects.get().disposition == "open"
    assert not Candidate.objects.exists()


def test_a_restricted_note_is_counted_for_its_audience_alone(browser, workspace, bob, carol, bot):
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(carol)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    noted(bot, "The merger is off.", task=TASK, sources=(a_source("#board/1", kind="chat"),))

    assert TASK not in words(browser(bob).get("/tasks/"))
    assert "merger" not in text(browser(bob).get(PAGE))
    assert "The merger is off." in words(browser(carol).get(PAGE))


def test_a_person_proposes_a_note_and_sees_where_it_went(browser, alice, bob, note):
    member, page = browser(bob), PAGE
    answer = member.post(at(note, "propose"), form(member.get(page), at(note, "propose")), follow=True)

    assert answer.redirect_chain == [(PAGE, 303)]
    assert "Proposed. Somebody else decides about it. Follow it here." in words(answer)
    candidate = Candidate.objects.get()
    assert candidate.origin_name == "bob"
    assert f"/propose/?proposed={candidate.pk}" in text(answer)
    assert at(note, "propose") not in text(member.get(page))
    assert f'href="/review/{candidate.pk}/"' in text(browser(alice).get(page))
    again = member.post(at(note, "propose"), {"task": TASK}, follow=True)
    assert "already waiting for review" in words(again)


def test_a_person_says_what_became_of_a_finding(browser, bob, note):
    member = browser(bob)
    answer = member.post(at(note, "disposition"), {"task": TASK, "disposition": "fixed"}, follow=True)

    assert "Noted what became of it." in words(answer)
    assert "Fixed by bob" in words(answer)
    for value in ("", "lost"):
        refused = member.post(at(note, "disposition"), {"task": TASK, "disposition": value})
        assert refused.status_code == 422
        assert "Use one of: open, accepted, fixed, dismissed." in words(refused)
    assert TaskNote.objects.get().disposition == "fixed"


def test_its_origin_and_reviewers_delete_a_note(browser, alice, bob, note):
    own = noted(of_person(bob), "What bob noted.", task=TASK)
    member = browser(bob)
    page = text(member.get(PAGE))
    assert at(note, "delete") not in page
    assert at(own, "delete") in page
    refused = member.post(at(note, "delete"), {"task": TASK})
    assert refused.status_code == 403
    assert "Only whoever noted it, or a reviewer, may delete it." in words(refused)
    assert member.post(at(own, "delete"), {"task": TASK}).status_code == 303
    assert "Deleted." in words(browser(alice).post(at(note, "delete"), {"task": TASK}, follow=True))
    assert not TaskNote.objects.exists()


def test_what_others_wrote_is_text(browser, bob, bot):
    task = f"branch:{HOSTILE}"
    noted(bot, f"Loops. {HOSTILE}", task=task, sources=(a_source("x", title=HOSTILE, quote=f"So {HOSTILE}"),))
    member = browser(bob)

    for path in ("/tasks/", f"/tasks/?task={quote(task, safe='')}"):
        page = text(member.get(path))
        assert "<img" not in page
        assert "onerror=alert(1)" in page
    assert "Loops." in words(member.get(f"/tasks/?task={quote(task, safe='')}"))


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("task=%00", "characters are not allowed"),
        (f"task={'a' * 201}", "too long"),
        ("colour=red", "colour"),
        ("task=a&task=b", "one value"),
        (f"task={quote(TASK)}&cursor=nonsense", "cursor"),
    ],
)
def test_an_address_that_will_not_do_is_refused(browser, bob, query, said):
    answer = browser(bob).get(f"/tasks/?{query}")
    assert answer.status_code == 422
    assert said in words(answer)


@pytest.mark.parametrize("what", ["propose", "disposition", "delete"])
def test_forms_are_sent_by_post_with_a_task(browser, bob, note, what):
    member = browser(bob)
    assert member.get(at(note, what)).status_code == 405
    for task in ("", "mr:1", "a\x00b"):
        answer = member.post(at(note, what), {"task": task, "disposition": "fixed"})
        assert answer.status_code in (404, 422)
    assert browser(bob, enforce_csrf_checks=True).post(at(note, what), {"task": TASK}).status_code == 403
    assert TaskNote.objects.get().disposition == "open"


def test_a_task_with_many_notes_has_pages_and_costs_few_queries(browser, bob, bot, django_assert_max_num_queries):
    for _ in range(27):
        noted(bot, task=TASK)
    member = browser(bob)
    with django_assert_max_num_queries(16):
        answer = member.get(PAGE)
    assert len(answer.context["notes"]) == 25
    rest = member.get(answer.context["next"])
    assert len(rest.context["notes"]) == 2
