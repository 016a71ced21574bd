"""Filters that reviewers keep under a name: each for themselves, and none that the queue would not understand."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal
from apps.approvals.models import SavedFilter
from apps.approvals.saved_filters import MAX_SAVED, saved_filter_save, saved_filters
from apps.core.errors import Forbidden, Invalid
from tests import ledger
from tests.conftest import Issued, add_person
from tests.pages import text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

SAVE = "/review/filters/"


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture
def page(browser: Any, alice: User) -> Client:
    return browser(alice)


def test_what_is_kept_is_the_filter_without_the_place_in_it(page: Client) -> None:
    answer = page.post(f"{SAVE}?repo=acme%2Fpay&status=quarantined&cursor=abc&type=", {"name": " Payments "})
    assert answer.status_code == 303
    kept = SavedFilter.objects.get()
    assert (kept.name, kept.query, kept.is_default) == ("Payments", "repo=acme%2Fpay&status=quarantined", False)
    assert answer.headers["Location"] == "/review/?repo=acme%2Fpay&status=quarantined"
    shown = page.get(answer.headers["Location"])
    assert 'aria-current="true"' in text(shown)
    assert "Kept as “Payments”." in words(shown)


def test_the_queue_opens_with_the_default_and_with_no_other(page: Client) -> None:
    page.post(f"{SAVE}?origin=bot", {"name": "Bots", "is_default": "on"})
    page.post(f"{SAVE}?age=7", {"name": "Old", "is_default": "on"})
    assert list(SavedFilter.objects.filter(is_default=True).values_list("name", flat=True)) == ["Old"]
    assert page.get("/review/").headers["Location"] == "/review/?age=7"
    assert page.get("/review/?status=pending").status_code == 200
    old = SavedFilter.objects.get(name="Old")
    page.post(f"{SAVE}{old.pk}/open-with/", {"default": "no"})
    assert page.get("/review/").status_code == 200


def test_a_name_that_is_taken_gets_the_new_filter(page: Client) -> None:
    for query in ("age=7", "age=9"):
        page.post(f"{SAVE}?{query}", {"name": "Old"})
    assert SavedFilter.objects.get().query == "age=9"


def test_it_can_be_removed(page: Client) -> None:
    page.post(f"{SAVE}?age=7", {"name": "Old"})
    answer = page.post(f"{SAVE}{SavedFilter.objects.get().pk}/remove/?age=7")
    assert answer.headers["Location"] == "/review/?age=7"
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize(
    ("query", "name", "said"),
    [
        ("colour=red", "Red", "The queue cannot be filtered by"),
        ("age=soon", "Soon", "Give a whole number of days"),
        ("type=nonsense", "Nonsense", "is not a type"),
        ("", "Nothing", "There is nothing to keep"),
        ("age=7", "", "Write at least one visible character"),
        ("age=7", "x" * 61, "at most 60 characters"),
        ("q=AKIAIOSFODNN7EXAMPLE", "Key", "There is a secret"),
    ],
)
def test_what_the_queue_would_not_understand_is_not_kept(page: Client, query: str, name: str, said: str) -> None:
    answer = page.post(f"{SAVE}?{query}", {"name": name})
    assert answer.status_code == 422
    assert said in words(answer)
    assert not SavedFilter.objects.exists()


def test_each_keeps_their_own(browser: Any, page: Client, workspace: Workspace, reviewer: Principal) -> None:
    page.post(f"{SAVE}?age=7", {"name": "Old"})
    erin = browser(add_person(workspace, "erin", Role.REVIEWER))
    kept = SavedFilter.objects.get()
    assert "Old" not in words(erin.get("/review/"))
    assert erin.post(f"{SAVE}{kept.pk}/remove/").status_code == 404
    assert erin.post(f"{SAVE}{kept.pk}/open-with/", {"default": "yes"}).status_code == 404
    assert saved_filters(reviewer) == [kept]


def test_in_another_workspace_there_is_none_of_them(browser: Any, charlie: User, page: Client) -> None:
    page.post(f"{SAVE}?age=7", {"name": "Old"})
    kept = SavedFilter.objects.get()
    assert browser(charlie).post(f"{SAVE}{kept.pk}/remove/").status_code == 404
    assert SavedFilter.objects.filter(pk=kept.pk).exists()


def test_members_and_tokens_keep_none(browser: Any, bob: User, robo: Issued) -> None:
    assert browser(bob).post(f"{SAVE}?age=7", {"name": "Old"}).status_code == 403
    with pytest.raises(Forbidden):
        saved_filter_save(principal=ledger.of_token(robo.token), name="Old", query="age=7")
    assert browser(bob).get(SAVE).status_code == 405


def test_there_is_an_end_to_how_many(reviewer: Principal) -> None:
    for number in range(MAX_SAVED):
        saved_filter_save(principal=reviewer, name=f"Filter {number}", query="age=7")
    with pytest.raises(Invalid, match="already"):
        saved_filter_save(principal=reviewer, name="One more", query="age=7")


def test_a_hostile_name_is_text(page: Client) -> None:
    page.post(f"{SAVE}?age=7", {"name": "<img src=x onerror=alert(1)>"})
    shown = text(page.get("/review/?age=7"))
    assert "<img" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown
