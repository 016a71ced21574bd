"""Notes of tasks in the admin: there to be looked at, by whoever may see them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from apps.accounts.models import Audience
from apps.approvals.restrictions import source_restrict
from apps.candidates.models import Candidate
from apps.candidates.notes import note_delete, note_dispose, note_propose
from apps.core.clock import now
from apps.memories.models import TaskNote
from apps.memories.notes import notes_visible
from apps.sources.models import Source
from apps.sources.services import SourceInput
from tests.ledger import noted, of_person, of_token

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

LIST = reverse("admin:memories_tasknote_changelist")
HOSTILE = "<img src=x onerror=alert(1)>"


def page_of(note: TaskNote, page: str = "change") -> str:
    return reverse(f"admin:memories_tasknote_{page}", args=[note.pk])


def shown(client, **query: str) -> list[TaskNote]:
    return list(client.get(LIST, query).context["cl"].result_list)


def expire(note: TaskNote) -> None:
    TaskNote.objects.filter(pk=note.pk).update(expires_at=now() - timedelta(hours=1))


@pytest.fixture
def bot(botty):
    return of_token(botty.token)


# --- to be looked at ----------------------------------------------------------------------------------------------


def test_curators_look_at_notes(browser, carol, alice, bot) -> None:
    source = SourceInput(kind="merge_request", reference="acme/pay!4821", quote="never gives up")
    note = noted(bot, "The refund worker never gives up.", task="mr:acme/pay!4821", sources=(source,))
    note_dispose(principal=of_person(alice), task=note.task, note_id=note.pk, disposition="accepted")
    proposed = note_propose(principal=bot, task=note.task, note_id=note.pk, changes={}).candidate
    client = browser(carol)
    assert shown(client) == [note]
    assert f'<a href="{page_of(note)}">The refund worker never gives up.</a>' in client.get(LIST).content.decode()
    page = client.get(page_of(note)).content.decode()
    assert '<a href="/tasks/?task=mr%3Aacme%2Fpay%214821">mr:acme/pay!4821</a>' in page
    assert "merge request acme/pay!4821</a> “never gives up”" in page
    assert reverse("admin:candidates_candidate_change", args=[proposed.pk]) in page
    for text in ("Accepted", "alice", "botty", "repository acme/pay", str(note.pk)):
        assert text in page
    assert "accepted" in client.get(page_of(note, "history")).content.decode()


def test_the_index_leads_there(browser, carol) -> None:
    assert f'href="{LIST}"' in browser(carol).get(reverse("admin:index")).content.decode()


def test_notes_are_filtered_by_task(browser, carol, bot) -> None:
    mine, other = noted(bot, task="branch:feature/x"), noted(bot, task="branch:feature/X")
    client = browser(carol)
    assert shown(client, task="branch:feature/x") == [mine]
    assert shown(client, task="branch:feature/X") == [other]
    assert shown(client, task="branch:feature") == []
    page = client.get(LIST).content.decode()
    assert "?task=branch%3Afeature%2Fx" in page and "?task=branch%3Afeature%2FX" in page


def test_the_filter_names_the_latest_tasks_and_the_chosen_one(browser, carol, bot, monkeypatch) -> None:
    monkeypatch.setattr("apps.candidates.admin._TASKS", 2)
    for name in ("first", "second", "third"):
        noted(bot, task=name)
    client = browser(carol)
    page = client.get(LIST).content.decode()
    assert "?task=third" in page and "?task=second" in page and "?task=first" not in page
    assert "?task=first" in client.get(LIST, {"task": "first"}).content.decode()


def test_an_expired_note_is_here_until_it_is_deleted_and_nowhere_else(browser, carol, bot) -> None:
    living, gone = noted(bot, "It lives."), noted(bot, "It is over.")
    expire(gone)
    client = browser(carol)
    assert {*shown(client)} == {living, gone}
    assert shown(client, expired="no") == [living]
    assert shown(client, expired="yes") == [gone]
    assert client.get(page_of(gone)).status_code == 200
    assert list(notes_visible(of_person(carol))) == [living]


def test_what_waits_for_its_embedding_is_told_apart(browser, carol, bot) -> None:
    noted(bot)
    late = noted(bot)
    TaskNote.objects.filter(pk=late.pk).update(embedded_at=None)
    assert shown(browser(carol), embedded_at__isempty="1") == [late]


def test_notes_are_found_by_words_task_and_id(browser, carol, bot) -> None:
    note = noted(bot, "The bank blocks a merchant.", task="mr:acme/pay!4821")
    noted(bot, "Colours are named twice.", task="mr:acme/shop!7")
    client = browser(carol)
    for term in ("merchant", "BANK blocks", "pay!48", "MR:ACME/PAY", str(note.pk)):
        assert shown(client, q=term) == [note], term
    for term in ("merchant colours", "pay%48", "nothing"):
        assert shown(client, q=term) == [], term


@pytest.mark.parametrize("query", ["q=%00", "q=`", "q=(", "q=\\", "task=%00", "task=", "expired=x", "task=a&task=b"])
def test_no_question_is_a_server_error(browser, carol, bot, query) -> None:
    noted(bot)
    assert browser(carol).get(f"{LIST}?{query}").status_code < 500


def test_hostile_text_is_shown_as_text(browser, carol, bot) -> None:
    source = SourceInput(kind="document", reference=HOSTILE, title=HOSTILE, quote=HOSTILE)
    note = noted(bot, f"Beware of {HOSTILE}", task=f"mr:{HOSTILE}", sources=(source,))
    note_propose(principal=bot, task=note.task, note_id=note.pk, changes={})
    client = browser(carol)
    for address in (LIST, f"{LIST}?task=mr:{HOSTILE}", f"{LIST}?q={HOSTILE}", page_of(note), page_of(note, "history")):
        page = client.get(address).content.decode()
        assert "<img src=x" not in page, address
        assert "&lt;img src=x onerror=alert(1)&gt;" in page, address


def test_a_list_takes_as_many_queries_for_many_rows(browser, carol, bot, django_assert_max_num_queries) -> None:
    for at in range(12):
        noted(bot, task=f"mr:{at}")
    client = browser(carol)
    with django_assert_max_num_queries(10):
        assert client.get(LIST).status_code == 200


# --- and to be left alone -----------------------------------------------------------------------------------------


def test_nothing_can_be_added_changed_or_deleted(browser, dave, bot) -> None:
    note = noted(bot)
    before = TaskNote.objects.values().get()
    client, adding = browser(dave), reverse("admin:memories_tasknote_add")
    assert client.get(adding).status_code == 403
    assert client.post(adding, {"content": "Mine.", "task": "mine"}).status_code == 403
    assert client.post(page_of(note), {"content": "Mine.", "disposition": "fixed"}).status_code == 403
    assert client.get(page_of(note, "delete")).status_code == 403
    assert client.post(page_of(note, "delete"), {"post": "yes"}).status_code == 403
    client.post(LIST, {"action": "delete_selected", "_selected_action": [note.pk], "post": "yes"})
    assert 'name="action"' not in client.get(LIST).content.decode()
    assert TaskNote.objects.values().get() == before


def test_who_is_let_in(browser, alice, bob, api, robo, alice_token, bot) -> None:
    note = noted(bot)
    for address in (LIST, page_of(note)):
        for who in (alice, bob):
            assert browser(who).get(address, follow=True).status_code == 403
        assert browser().get(address, follow=True).redirect_chain[-1][0].startswith("/accounts/login/")
        for token in (robo, alice_token):
            assert "/login/" in api(token).get(address).headers["Location"]


def test_another_workspace_is_invisible(browser, carol, charlie, bot) -> None:
    noted(bot, "Ours.", task="mr:1")
    theirs = noted(of_person(charlie), "Theirs.", task="mr:zanzibar")
    client = browser(carol)
    assert [note.content for note in shown(client)] == ["Ours."]
    assert "zanzibar" not in client.get(LIST).content.decode()
    assert shown(client, q="theirs") == shown(client, q=str(theirs.pk)) == shown(client, task="mr:zanzibar") == []
    for page in ("change", "history"):
        assert client.get(page_of(theirs, page)).status_code == 302


def test_whoever_is_not_in_the_audience_sees_nothing_of_it(browser, workspace, carol, dave, bot) -> None:
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(dave)
    source = SourceInput(kind="chat", reference="#board/1")
    note = noted(bot, "The merger is off.", task="mr:zanzibar", sources=(source,))
    known = noted(bot, "Known to all.", task="mr:1")
    restricted = Source.objects.get(reference="#board/1")
    source_restrict(principal=of_person(dave), source_id=restricted.pk, audience_id=board.pk)
    client = browser(carol)
    assert shown(client) == [known]
    page = client.get(LIST).content.decode()
    assert "merger" not in page and "zanzibar" not in page
    assert shown(client, q="merger") == shown(client, q="zanzibar") == shown(client, q=str(note.pk)) == []
    for which in ("change", "history"):
        assert client.get(page_of(note, which)).status_code == 302
    assert {*shown(browser(dave))} == {note, known}
    assert browser(dave).get(page_of(note)).status_code == 200


def test_a_candidate_that_may_not_be_seen_is_not_named(browser, workspace, carol, dave, bot) -> None:
    """The same statement came from somewhere restricted since, and joined what the note was proposed as."""
    note = noted(bot, "The merger is off.")
    candidate = note_propose(principal=bot, task=note.task, note_id=note.pk, changes={}).candidate
    board = Audience.objects.create(workspace=workspace, name="board")
    Candidate.objects.filter(pk=candidate.pk).update(audience_ids=[board.pk])
    page = browser(carol).get(page_of(note)).content.decode()
    assert "The merger is off." in page
    assert str(candidate.pk) not in page


def test_what_was_deleted_is_gone(browser, carol, bot) -> None:
    note = noted(bot)
    note_delete(principal=bot, task=note.task, note_id=note.pk)
    assert shown(browser(carol)) == []
    assert browser(carol).get(page_of(note)).status_code == 302
