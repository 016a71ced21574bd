"""Home, the queue's filters, the memory browser and the audit trail, where people see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import expect
from psycopg import sql

from apps.accounts.principal import Principal
from apps.approvals.models import SavedFilter
from apps.candidates.proposal import ScopeInput
from apps.memories.models import Memory
from tests import ledger
from tests.browser.checks import faults_of
from tests.browser.conftest import Watched
from tests.conftest import Issued

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = "<img src=x onerror=alert(1)>"
Window = Callable[..., Watched]


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def shelf(bot: Principal, reviewer: Principal) -> Memory:
    """A fork that meets again, a rejected and a few open candidates, hostile and right-to-left text among them."""
    first = ledger.remember(bot, reviewer, "Backups are kept for a week.")
    left = ledger.remember(bot, reviewer, f"Backups of ledgers are kept for a month. {HOSTILE}", supersedes=(first,))
    right = ledger.remember(bot, reviewer, "نسخ الحجوزات تُحفظ سنة كاملة.", type="business_rules")
    both = ledger.remember(bot, reviewer, "備份保留兩年，因為審計需要。", supersedes=(left, right))
    ledger.reject(reviewer, ledger.propose(bot, "Backups are never kept."), f"They are. {HOSTILE}")
    ledger.propose(bot, "Webhooks retry with jitter.", scope=ScopeInput(repos=(HOSTILE[:40],), domains=("webhooks",)))
    ledger.propose(bot, "Coupons never stack.", type="business_rules", confidence=0.8)
    ledger.propose(reviewer, "Refunds are paid in the currency of the invoice.")
    return both


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_page_is_well_made(window: Window, alice: User, shelf: Memory, size: str, theme: str) -> None:
    seen = window(alice, size=size, theme=theme)
    pages = {
        "/": "wait",
        "/review/?origin=botty": "Narrow down",
        "/review/?status=rejected": "They are.",
        "/memories/": "Narrow down",
        f"/memories/{shelf.label}/": "How it came to this",
        "/audit/": "rejected",
    }
    for path, said in pages.items():
        assert seen.go(path) == 200
        expect(seen.page.locator("#main")).to_contain_text(said)
        assert faults_of(seen.page) == {}, path
        found = Axe().run(seen.page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], path


def test_the_account_menu_lies_over_everything(window: Window, alice: User) -> None:
    page = window(alice, size="phone").page
    page.get_by_label("account and workspace").click()
    page.get_by_role("link", name="Audit trail").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Audit trail")


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_a_filter_is_found_kept_and_opened(window: Window, alice: User, shelf: Memory, javascript: bool) -> None:
    seen = window(alice, javascript=javascript)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name="business rules 1").click()
    expect(page.locator(".row")).to_have_count(1)
    assert "type=business_rules" in page.url
    page.get_by_text("Keep this filter", exact=True).click()
    page.get_by_label("Keep this filter as").fill(f"Rules {HOSTILE}"[:60])
    page.get_by_label("Open the queue with it").check()
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("status").first).to_contain_text("Kept as “Rules")
    seen.go("/review/")
    expect(page.locator(".row")).to_have_count(1)
    page.get_by_role("link", name="take it off").click()
    expect(page.locator(".row")).to_have_count(3)
    page.get_by_text("Change your filters").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("status").first).to_contain_text("is removed.")
    assert not SavedFilter.objects.exists()


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_memories_and_the_trail_are_narrowed(window: Window, alice: User, shelf: Memory, javascript: bool) -> None:
    seen = window(alice, javascript=javascript)
    page = seen.page
    seen.go("/memories/")
    page.get_by_role("link", name="All 4").click()
    expect(page.locator(".row")).to_have_count(4)
    page.get_by_role("link", name="Superseded", exact=False).last.click()
    expect(page.locator(".row")).to_have_count(3)
    seen.go("/audit/")
    page.get_by_label("Did what").select_option("reject")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".trail-entry")).to_have_count(1)
    expect(page.locator(".trail-entry")).to_contain_text(f"They are. {HOSTILE}")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename.startswith("audit-firm-")
    assert download.value.path().read_text().count("alice,reject") == 1


@contextmanager
def database_down() -> Iterator[None]:
    """Nobody is let in, and who is in is put out: what the application sees of a PostgreSQL that has stopped."""
    name = connection.settings_dict["NAME"]
    given = {key: connection.settings_dict[key.upper()] for key in ("host", "port", "user", "password")}
    closed = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
    with psycopg.connect(**given, dbname="postgres", autocommit=True) as server:
        server.execute(closed.format(sql.Identifier(name), sql.SQL("false")))
        server.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            server.execute(closed.format(sql.Identifier(name), sql.SQL("true")))
            connection.close()


def test_pages_say_that_the_database_is_down_and_come_back(window: Window, alice: User, shelf: Memory) -> None:
    seen = window(alice, expect_failures=True)
    paths = ("/", "/review/", "/memories/", "/audit/", f"/memories/{shelf.label}/")
    with database_down():
        for path in paths:
            assert seen.go(path) == 503
            expect(seen.page.get_by_role("heading", level=1)).to_have_text("Back in a moment")
            assert "nothing is there" in seen.page.locator("#main").inner_text()
    for path in paths:
        assert seen.go(path) == 200
