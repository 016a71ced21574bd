"""Asking, where people see it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import expect

from apps.accounts.principal import Principal
from apps.memories.models import Memory
from apps.memories.providers.mem0.provider import Mem0Provider
from tests import ledger
from tests.answers.conftest import warm_up
from tests.browser.checks import faults_of
from tests.browser.conftest import Watched
from tests.capture.extractors.model_server import SECRET, ModelServer, model_server
from tests.conftest import Issued
from tests.memories.providers.doubles import HashingEmbedder

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = "<img src=x onerror=alert(1)>"
WHY = "/ask/?q=why+do+payment+retries+back+off"
REFUND = "Refunds are paid out in the currency of the invoice"
Window = Callable[..., Watched]


@pytest.fixture
def bot(botty: Issued, embedder: HashingEmbedder) -> Principal:
    embedder.unrelated_below = 0.25
    return ledger.of_token(botty.token)


@pytest.fixture
def known(pool: Mem0Provider, bot: Principal, alice: User) -> Memory:
    """A decision that was changed, a disputed one, hostile and right-to-left text, and one without a break in it."""
    reviewer = ledger.of_person(alice)
    old = ledger.remember(
        bot,
        reviewer,
        "Payment retries back off for a fixed minute.",
        type="architecture_decisions",
        valid_from=datetime(2023, 5, 2, tzinfo=UTC),
    )
    new = ledger.remember(
        bot,
        reviewer,
        "Payment retries back off exponentially and stop after five attempts, because the bank blocks a merchant who "
        "retries at once.",
        type="architecture_decisions",
        valid_from=datetime(2025, 3, 1, tzinfo=UTC),
        supersedes=(old,),
        confidence=0.9,
    )
    disputed = ledger.remember(bot, reviewer, f"Retries do back off in the queue as well. {HOSTILE}")
    ledger.report(bot, disputed)
    ledger.remember(bot, reviewer, "إعادة محاولات الدفع back off retries متزايدة.")
    ledger.remember(bot, reviewer, f"Retries back off: {'Weneverdeploybetweenthetwentiethofdecember' * 5}")
    ledger.remember(bot, reviewer, f"{REFUND}, because accounting may not show exchange gains.", type="business_rules")
    return new


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[ModelServer]:
    with model_server() as running:
        monkeypatch.setenv("OPENAI_API_BASE", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        settings.FIRM_MEMORY_LLM_MODEL = "openai/test"
        warm_up(running)
        yield running


def keep(seen: Watched, name: str) -> None:
    """A picture for whoever wants to look, where FIRM_MEMORY_PICTURES names a folder."""
    if folder := os.environ.get("FIRM_MEMORY_PICTURES"):
        seen.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_every_answer_is_well_made(window: Window, alice: User, known: Memory, size: str, theme: str) -> None:
    seen = window(alice, size=size, theme=theme)
    pages = {
        "/ask/": "An answer from what reviewers have approved.",
        WHY: "Until",
        "/ask/?q=zebra": "Nothing is known here about this.",
        "/ask/?q=": "This is blank",
        f"/ask/?q={HOSTILE}+retries": "What was found",
    }
    for at, (path, said) in enumerate(pages.items()):
        seen.go(path)
        expect(seen.page.locator("#main")).to_contain_text(said, ignore_case=True)
        assert faults_of(seen.page) == {}, path
        found = Axe().run(seen.page).response["violations"]
        assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == [], path
        keep(seen, f"{size}-{theme}-{at}")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_a_composed_answer_is_well_made(
    window: Window, alice: User, known: Memory, model: ModelServer, size: str, theme: str
) -> None:
    sentences = [
        {"text": "Payment retries back off exponentially and stop after five attempts.", "citations": [known.label]},
        {"text": "The bank blocks a merchant who retries at once.", "citations": [known.label]},
        {"text": "It was decided by the board.", "citations": [known.label]},
    ]
    model.says(json.dumps({"sentences": sentences}))
    seen = window(alice, size=size, theme=theme)
    assert seen.go(WHY) == 200
    expect(seen.page.locator("#main")).to_contain_text("A language model worded this")
    expect(seen.page.locator("#main")).not_to_contain_text("the board")
    assert faults_of(seen.page) == {}
    found = Axe().run(seen.page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    keep(seen, f"{size}-{theme}-composed")


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_somebody_asks_by_keyboard_and_opens_what_it_rests_on(
    window: Window, bob: User, known: Memory, javascript: bool
) -> None:
    seen = window(bob, javascript=javascript)
    page = seen.page
    page.get_by_role("link", name="Ask", exact=True).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Ask")
    page.get_by_label("Question").fill("why do payment retries back off")
    page.get_by_label("Question").press("Enter")
    expect(page.locator(".told")).to_contain_text("until 1 March 2025 it was:")
    assert "q=why" in page.url
    page.locator(".told").get_by_role("link", name=known.label).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(known.label)
    page.go_back()
    expect(page.locator(".told")).to_contain_text("Since 1 March 2025 it is:")
