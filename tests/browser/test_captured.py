"""What was captured, where reviewers read it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from django.db.models.functions import Now
from playwright.sync_api import expect

from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.capture.models import CaptureEvent, EventOutcome, EventState
from apps.sources.services import SourceInput
from tests import ledger
from tests.browser.checks import faults_of, wait_for_focus
from tests.browser.conftest import Watched
from tests.capture.doubles import DECISION
from tests.capture.finished import a_fact_that_became_nothing, done, fact_of, in_state
from tests.conftest import Issued

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = "<img src=x onerror=alert(1)>"
LONG = "Weneverdeploybetweenthetwentiethofdecemberandepiphany" * 4
Window = Callable[..., Watched]


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def kept(bot: Principal, alice: User) -> CaptureEvent:
    """An event with every kind of fact; others of every outcome and state; a warning of each kind."""
    pending = ledger.propose(bot, f"Webhooks retry with jitter. {HOSTILE}", confidence=0.9)
    approved = ledger.propose(bot, "نسخ الحجوزات تُحفظ سنة كاملة.", confidence=0.7)
    ledger.approve(ledger.of_person(alice), approved)
    facts = (
        fact_of(pending, quote=f"we decided so {HOSTILE}"),
        fact_of(approved),
        fact_of(ledger.propose(bot, LONG, confidence=0.3), outcome="quarantined", reason="It is not sure enough."),
        a_fact_that_became_nothing(reason=HOSTILE),
        a_fact_that_became_nothing(content="", outcome="excluded", reason="It is about an individual engineer."),
    )
    source = SourceInput(
        kind="merge_request", reference="acme/pay!7", title=f"Retry {LONG}", url="https://git.acme.example/7"
    )
    event = done(bot, EventOutcome.QUEUED, facts=facts, sources=(source,), external_id=f"{LONG}@9f2c1e7")
    done(bot, EventOutcome.DUPLICATE, facts=(fact_of(approved, outcome="duplicate"),))
    in_state(bot, EventState.DEAD, attempts=8)
    in_state(bot, EventState.FAILED, attempts=2, next_attempt_at=Now() + timedelta(minutes=5))
    in_state(bot, EventState.PROCESSING, lease=uuid4(), leased_until=Now() - timedelta(hours=1))
    return event


@pytest.fixture
def dropped(bot: Principal) -> CaptureEvent:
    done(bot, EventOutcome.DROPPED_PREFILTER, f"lgtm {HOSTILE}", kind="chat")
    done(bot, EventOutcome.EXCLUDED, f"{LONG} " * 20, kind="interview")
    return done(bot, content=DECISION)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_page_is_well_made(
    window: Window, alice: User, kept: CaptureEvent, dropped: CaptureEvent, size: str, theme: str
) -> None:
    seen = window(alice, size=size, theme=theme)
    pages = {
        "/captured/": "No worker takes anything up.",
        f"/captured/{kept.pk}/": "we decided so",
        f"/captured/{dropped.pk}/": "What was dropped",
        "/captured/drops/": "to read, drawn at random",
        "/captured/?kind=incident": "Nothing matches",
    }
    for path, said in pages.items():
        assert seen.go(path) == 200
        expect(seen.page.locator("#main")).to_contain_text(said)
        assert faults_of(seen.page) == {}, path
        found = Axe().run(seen.page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], path


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_a_wrong_drop_is_found_and_overruled_by_keyboard(
    window: Window, alice: User, kept: CaptureEvent, dropped: CaptureEvent, javascript: bool
) -> None:
    seen = window(alice, javascript=javascript)
    page = seen.page
    page.get_by_role("link", name="Captured", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Captured")
    page.get_by_role("link", name="Nothing durable 1").press("Enter")
    expect(page.locator(".row")).to_have_count(1)
    assert "outcome=dropped_classifier" in page.url
    page.locator(".row-title").press("Enter")
    expect(page.locator("#event")).to_contain_text(DECISION)
    if javascript:
        wait_for_focus(page, "H1")  # what is pressed before would lose it
    page.get_by_role("link", name="Drops of this week").press("Enter")
    expect(page.locator(".drop")).to_have_count(3)
    page.locator(".drop", has_text=DECISION).get_by_role("button", name="Make a candidate of it").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("A candidate was made of the drop.")
    assert page.url.endswith(f"/review/{Candidate.objects.get(content=DECISION).pk}/")
    page.get_by_role("link", name="Back to the drops of this week").press("Enter")
    expect(page.locator(".figures")).to_contain_text("33.3 %")
    expect(page.locator(".drop")).to_have_count(2)


def test_rows_are_walked_by_keys(window: Window, alice: User, kept: CaptureEvent) -> None:
    seen = window(alice)
    seen.go("/captured/")
    seen.page.keyboard.press("j")
    seen.page.keyboard.press("j")
    seen.page.keyboard.press("Enter")
    expect(seen.page.locator("#event")).to_contain_text("tried again")
