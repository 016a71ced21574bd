"""The notes of a task, where people see them."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import expect

from apps.candidates.models import Candidate
from apps.memories.models import TaskNote
from tests import ledger
from tests.browser.checks import faults_of
from tests.browser.conftest import Watched
from tests.conftest import Issued

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = "<img src=x onerror=alert(1)>"
TASK = "branch:feature/x"
Window = Callable[..., Watched]


def test_notes_are_seen_and_one_is_proposed(window: Window, alice: User, botty: Issued) -> None:
    bot = ledger.of_token(botty.token)
    ledger.noted(bot, f"Coupons stack. {HOSTILE} {'a' * 120}", task=TASK, disposition="dismissed")
    ledger.noted(bot, "The retry loop never gives up.", task=TASK, disposition="open")
    for size, theme in (("desk", "light"), ("phone", "dark")):
        seen = window(alice, size=size, theme=theme, javascript=size == "desk")
        for path, said in (("/tasks/", "Noted lately"), (f"/tasks/?task={quote(TASK, safe='')}", "retry loop")):
            assert seen.go(path) == 200
            expect(seen.page.locator("#main")).to_contain_text(said)
            assert faults_of(seen.page) == {}, path
            if size == "desk":
                found = Axe().run(seen.page).response["violations"]
                assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], path
        first = seen.page.locator(".row").first
        if size == "desk":
            first.get_by_role("button", name="Propose").click()
            expect(seen.page.get_by_role("status").first).to_contain_text("Somebody else decides about it.")
        else:
            first.get_by_role("button", name="Fixed").click()
            expect(seen.page.get_by_role("status").first).to_contain_text("Noted what became of it.")
    assert Candidate.objects.get().content == "The retry loop never gives up."
    assert TaskNote.objects.get(content__startswith="The retry").disposition == "fixed"


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_a_note_is_deleted_in_two_steps(window: Window, alice: User, botty: Issued, javascript: bool) -> None:
    """There is no way back from it, and it stands beside what is pressed often."""
    ledger.noted(ledger.of_token(botty.token), "The retry loop never gives up.", task=TASK)
    seen = window(alice, size="phone", javascript=javascript)
    seen.go(f"/tasks/?task={quote(TASK, safe='')}")
    row = seen.page.locator(".row")
    expect(row.get_by_role("button", name="Delete it for good")).to_be_hidden()
    row.locator(".note-delete > summary").click()
    expect(row.get_by_role("button", name="Delete it for good")).to_be_visible()
    assert faults_of(seen.page) == {}
    assert TaskNote.objects.exists()
    row.get_by_role("button", name="Delete it for good").click()
    expect(seen.page.get_by_role("status").first).to_contain_text("Deleted. Nothing finds it any more.")
    assert not TaskNote.objects.exists()
