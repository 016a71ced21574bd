"""The page on quality, with its tables and pictures, as a person sees it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import expect

from apps.evals.quality.figures import Figure
from apps.evals.quality.results import ArmResult
from apps.evals.services import evaluation_store
from tests import ledger
from tests.browser.checks import faults_of
from tests.browser.conftest import Watched
from tests.capture.finished import done, fact_of
from tests.conftest import Issued
from tests.evals.quality.doubles import an_evaluation

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Window = Callable[..., Watched]


@pytest.fixture
def measured(botty: Issued, alice: User) -> None:
    """A run with every kind of table, and candidates of all kinds of confidence."""
    found = an_evaluation(**{"hit_at_5": 0.93, "MRR_at_10": 0.81, "live_at_5": 0.9, "live_at_5 as of": 1.0})
    arms = found.suites["sample"].arms
    arms["default"].growth = [(1_000, Figure(0.9, 0.8, 1.0, 40)), (2_000, Figure(0.85, 0.8, 0.9, 40))]
    arms["grep"] = ArmResult(arms["default"].figures, compared={"hit@5": Figure(0.2, 0.1, 0.3, 40)})
    evaluation_store(found)
    bot, reviewer = ledger.of_token(botty.token), ledger.of_person(alice)
    candidates = [ledger.propose(bot, confidence=at / 20) for at in range(12, 20)]
    for at, candidate in enumerate(candidates):
        ledger.approve(reviewer, candidate) if at % 3 else ledger.reject(reviewer, candidate)
    done(bot, facts=tuple(fact_of(candidate) for candidate in candidates))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_it_can_be_read_by_everybody(window: Window, alice: User, measured: None, size: str, theme: str) -> None:
    watched = window(alice, size=size, theme=theme)
    watched.go("/insights/quality")
    watched.page.locator(".fold-table").evaluate_all("folds => folds.forEach(fold => { fold.open = true; })")
    expect(watched.page.get_by_role("img", name="hit@5 of each arm")).to_be_visible()
    expect(watched.page.get_by_role("img", name="Confidence against verdicts")).to_be_visible()
    assert faults_of(watched.page) == {}
    assert [each["id"] for each in Axe().run(watched.page).response["violations"]] == []


def test_with_nothing_to_show_it_can_be_read_as_well(window: Window, alice: User) -> None:
    watched = window(alice)
    watched.page.get_by_text("alice", exact=True).first.click()
    watched.page.get_by_role("link", name="Quality of answers").click()
    expect(watched.page.get_by_role("heading", name="Nothing has been measured here")).to_be_visible()
    assert faults_of(watched.page) == {}
    assert [each["id"] for each in Axe().run(watched.page).response["violations"]] == []
