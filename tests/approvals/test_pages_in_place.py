"""Decisions that htmx sends: the answer holds the next candidate and what else on the page has changed by it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from apps.accounts.principal import Principal
from apps.approvals.shortcuts import SHORTCUTS
from apps.candidates.models import Candidate, CandidateStatus, Opened
from apps.core.database import DatabaseDown
from apps.core.frames import MARK
from apps.memories.models import Memory
from tests import ledger
from tests.conftest import Issued
from tests.pages import text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

HTMX = {"HX-Request": "true", "HX-Target": "content"}
SITUATION = (
    "{} are written twice and compared before they leave the gateway, which takes forty milliseconds at the median. "
    "We tried to compare them afterwards; a slow partner then took the whole checkout down. The alternative, a nightly "
    "batch, was rejected because merchants look at their balance while it changes. Case {} of the incident review."
)


@pytest.fixture
def agent(robo: Issued) -> Principal:
    return ledger.of_token(robo.token)


@pytest.fixture
def page(browser: Callable[..., Client], alice: User) -> Client:
    return browser(alice)


def without_tokens(page: str) -> str:
    return re.sub(r'name="csrfmiddlewaretoken" value="[^"]+"', "", page)


def at(candidate: Candidate, action: str = "") -> str:
    return f"/review/{candidate.pk}/{action}"


def sent(page: Client, candidate: Candidate, action: str, *, query: str = "", **data: Any) -> Any:
    return page.post(at(candidate, f"{action}/{query}"), {"version": candidate.version, **data}, headers=HTMX)


@pytest.mark.parametrize("path", ["/review/", "/review/{}/"])
def test_a_page_and_its_content_are_one_markup(page: Client, agent: Principal, path: str) -> None:
    path = path.format(ledger.propose(agent).pk)
    whole, alone = page.get(path), page.get(path, headers=HTMX)
    inner = text(alone).split('<div id="content"', 1)[1].split('<div hx-swap-oob="innerHTML:#messages"')[0].strip()
    assert without_tokens(inner) in without_tokens(text(whole))
    assert "<title>" in text(alone)
    assert "<html" not in text(alone)
    assert MARK not in whole.headers


def test_a_restored_history_gets_the_whole_page(page: Client, agent: Principal) -> None:
    ledger.propose(agent)
    answer = page.get("/review/", headers=HTMX | {"HX-History-Restore-Request": "true"})
    assert "<html" in text(answer)


def test_one_request_approves_and_brings_the_next(page: Client, agent: Principal, alice: User) -> None:
    first, second = ledger.propose(agent), ledger.propose(agent)
    answer = sent(page, first, "approve", query="?type=tooling_setup")
    assert answer.status_code == 200
    assert ledger.fresh(first).status == CandidateStatus.APPROVED
    assert second.content in words(answer)
    assert answer.headers["HX-Push-Url"] == at(second, "?type=tooling_setup")
    assert Opened.objects.filter(candidate=second, user=alice).exists()
    shown = text(answer)
    assert 'hx-swap-oob="innerHTML:#messages"' in shown
    assert f'href="{at(first)}"' in shown
    assert '<span id="waiting-count" class="count" hx-swap-oob="true">1<' in shown
    assert '<div id="undo-last" hx-swap-oob="true">' in shown
    assert f'action="{at(first, "reopen/")}?type=tooling_setup"' in shown


def test_after_the_last_one_comes_the_queue(page: Client, agent: Principal) -> None:
    answer = sent(page, ledger.propose(agent), "reject", reason="Not so.")
    assert (answer.status_code, answer.content) == (200, b"")
    assert '"path": "/review/"' in answer.headers["HX-Location"]
    assert "Rejected." in words(page.get("/review/", headers=HTMX))


def test_what_was_decided_last_is_taken_back(page: Client, agent: Principal) -> None:
    first, second = ledger.propose(agent), ledger.propose(agent)
    sent(page, first, "approve")
    undo = page.get(at(second)).context["last_decision"]
    assert undo.candidate_id == first.pk
    answer = page.post(at(first, "reopen/"), {"version": undo.version, "reason": "Undone."}, headers=HTMX)
    assert answer.headers["HX-Push-Url"] == at(first)
    assert "Reopened." in words(answer)
    assert first.content in words(answer)
    assert Memory.objects.get().status == "retired"
    assert page.get(at(second)).context["last_decision"] is None


@pytest.mark.parametrize("cookie", ["nonsense", "6f9619ff-8b86-d011-b42d-00cf4fc964ff:x", "a:1", ":", "<script>:1"])
def test_a_cookie_of_nobodys_making_is_passed_over(page: Client, cookie: str) -> None:
    page.cookies["decided"] = cookie
    answer = page.get("/review/")
    assert answer.context["last_decision"] is None
    assert 'id="undo"' not in text(answer)


def test_a_conflict_is_content_and_changes_no_address(page: Client, agent: Principal, bot: Principal) -> None:
    candidate = ledger.propose(agent)
    ledger.reject(ledger.of_person(User.objects.get(username="alice")), candidate)
    answer = sent(page, candidate, "approve", content="What alice typed.")
    assert answer.status_code == 409
    assert answer.headers[MARK] == "content"
    assert answer.headers["HX-Push-Url"] == "false"
    assert "What alice typed." in words(answer)


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


def test_a_server_that_is_down_answers_a_sentence_and_no_content(
    page: Client, agent: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = ledger.propose(agent)

    def down(*arguments: Any, **options: Any) -> None:
        raise DatabaseDown("The database does not answer. Try again in a moment.")

    monkeypatch.setattr("apps.approvals.services.candidate_approve", down)
    page.raise_request_exception = False
    monkeypatch.setattr("apps.approvals.views.policy.require_reviewer", down)
    answer = sent(page, candidate, "approve")
    assert answer.status_code == 503
    assert MARK not in answer.headers
    assert "notice-error" in text(answer)


def test_an_ended_session_leads_to_signing_in_and_back_to_the_page(browser: Any, agent: Principal) -> None:
    candidate = ledger.propose(agent)
    current = {"HX-Current-URL": f"http://testserver{at(candidate)}?type=bug_fixes"}
    answer = browser().post(at(candidate, "approve/"), {"version": 1}, headers=HTMX | current)
    assert answer.status_code == 204
    assert answer.headers["HX-Redirect"] == f"/accounts/login/?next={at(candidate)}%3Ftype%3Dbug_fixes"


# --- numbers ------------------------------------------------------------------------------------------------
def test_an_answer_to_a_decision_is_small(page: Client, agent: Principal) -> None:
    """Candidates as people write them, each with a quote, and near to the ones before it."""
    rows = []
    for number in range(20):
        content = SITUATION.format(("Payouts", "Refunds", "Tokens", "Exports")[number % 4], number)
        source = ledger.a_source(title="Compare before sending", url="https://git.example/7", quote=content[:200])
        rows.append(ledger.propose(agent, content, sources=(source,)))
    sizes = []
    for row in rows[:-1]:
        answer = sent(page, row, "approve")
        assert answer.status_code == 200
        sizes.append(len(answer.content))
    assert max(sizes) <= 15_000, sizes


# --- keys ---------------------------------------------------------------------------------------------------
def test_keys_are_printed_on_what_they_press(page: Client, agent: Principal) -> None:
    rows = [ledger.propose(agent) for _ in range(3)]
    shown = text(page.get(at(rows[1])))
    for key in ("a", "e", "r", "j", "k", "/", "?"):
        assert f'aria-keyshortcuts="{key}"' in shown
        assert f"<kbd>{key}</kbd>" in shown
    assert f'<a rel="prev" href="{at(rows[0])}"' in shown
    assert f'<a rel="next" href="{at(rows[2])}"' in shown


def test_every_key_has_one_meaning_in_its_place() -> None:
    places = [(shortcut.place, shortcut.keys) for shortcut in SHORTCUTS]
    assert len(set(places)) == len(places)
    assert len({shortcut.name for shortcut in SHORTCUTS}) == len(SHORTCUTS)


def test_keys_are_switched_off_and_on_again(page: Client, agent: Principal) -> None:
    candidate = ledger.propose(agent)
    off = page.post(reverse("approvals:shortcuts"), {"switch": "off", "back": at(candidate)})
    assert (off.status_code, off.headers["Location"]) == (303, at(candidate))
    shown = text(page.get(at(candidate)))
    assert "aria-keyshortcuts" not in shown
    assert 'aria-hidden="true">a</kbd>' not in shown
    page.post(reverse("approvals:shortcuts"), {"switch": "on", "back": "https://elsewhere.example/"})
    assert "aria-keyshortcuts" in text(page.get(at(candidate)))


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example/", "javascript:alert(1)", ""])
def test_the_switch_leads_nowhere_else(page: Client, back: str) -> None:
    assert page.post(reverse("approvals:shortcuts"), {"switch": "off", "back": back}).headers["Location"] == "/"


def test_members_see_no_keys_for_reviewers(browser: Any, bob: User) -> None:
    assert 'id="shortcuts"' not in text(browser(bob).get("/memories/"))
