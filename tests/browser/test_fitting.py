"""Small windows and fingers: what lies folded, what says what it does, and what is large enough to be hit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import expect

from apps.accounts.principal import Principal
from apps.candidates.proposal import ScopeInput
from tests import ledger
from tests.browser.checks import faults_of
from tests.browser.conftest import Watched
from tests.conftest import Issued

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Window = Callable[..., Watched]
LISTS = ["/review/", "/memories/", "/captured/", "/audit/"]

_TOO_SMALL = """
(kinds) => [...document.querySelectorAll(kinds)]
  .filter(el => el.checkVisibility({visibilityProperty: true}))
  .filter(el => el.getBoundingClientRect().height < 43.5)
  .map(el => el.outerHTML.slice(0, 100))
"""


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def waiting(bot: Principal, reviewer: Principal) -> list[str]:
    """A memory, and three that wait: one would replace it."""
    memory = ledger.remember(bot, reviewer, "Payout files leave at noon.")
    pay = ScopeInput(repos=("acme/pay",))
    ledger.propose(bot, "Payout files leave at eleven.", scope=pay, supersedes=(memory.label,))
    ledger.propose(bot, "Webhooks retry with jitter.", scope=pay)
    ledger.propose(bot, "Coupons never stack.", scope=ScopeInput(repos=("acme/shop",)))
    return [memory.label]


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_on_a_phone_the_filter_lies_folded_above_the_list(
    window: Window, alice: User, waiting: list[str], javascript: bool
) -> None:
    seen = window(alice, size="phone", javascript=javascript)
    page = seen.page
    for path in LISTS:
        seen.go(path)
        expect(page.locator(".filter-main")).to_be_hidden()
    seen.go("/review/")
    row = page.locator(".row").first.bounding_box()
    assert row is not None and row["y"] < 844 / 2
    page.locator(".filter-fold > summary").click()
    page.get_by_role("textbox", name="Repository").fill("acme/pay")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator(".row")).to_have_count(2)
    expect(page.locator(".filter-fold > summary")).to_contain_text("Filter 1")
    expect(page.locator(".filter-main")).to_be_hidden()
    seen.go("/review/?type=nope")
    expect(page.locator(".filter-main")).to_be_visible()
    assert faults_of(page) == {}


@pytest.mark.parametrize("size", ["desk", "tablet"])
def test_where_there_is_room_the_filter_is_simply_there(
    window: Window, alice: User, waiting: list[str], size: str
) -> None:
    seen = window(alice, size=size)
    page = seen.page
    for path in LISTS:
        seen.go(path)
        expect(page.locator(".filter-fold > summary")).to_be_hidden()
        expect(page.locator(".filter-main")).to_be_visible()
    seen.go("/review/")
    page.keyboard.press("/")
    expect(page.get_by_label("Words")).to_be_focused()
    page.keyboard.type("jitter")
    page.keyboard.press("Enter")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".filter-main")).to_be_visible()


def test_on_a_phone_every_page_of_the_main_strip_is_in_sight(window: Window, alice: User, waiting: list[str]) -> None:
    page = window(alice, size="phone").page
    page.evaluate("document.querySelector('#waiting-count').firstChild.data = '500+'")
    assert page.evaluate("(nav => nav.scrollWidth - nav.clientWidth)(document.querySelector('.nav'))") <= 0


def test_on_a_phone_a_button_says_what_else_it_does_and_the_place_is_on_one_line(
    window: Window, alice: User, waiting: list[str]
) -> None:
    seen = window(alice, size="phone")
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name="Payout files leave at eleven.").click()
    bar = page.get_by_role("group", name="Decide")
    expect(bar.get_by_role("button")).to_have_text(f"Approve and replace {waiting[0]}")
    expect(page.locator(".crumb-place")).to_have_text("Candidate 1 of 3")
    page.get_by_role("link", name="Next").click()
    expect(page.locator(".crumb-place")).to_have_text("Candidate 2 of 3")
    steps = [page.get_by_role("link", name=name).bounding_box() for name in ("Previous", "Next")]
    assert all(steps) and len({step["y"] for step in steps if step}) == 1
    bar.get_by_role("button", name="Approve").click()
    expect(page.locator("#messages")).to_contain_text("Approved")
    expect(page.locator(".crumb-place")).to_have_text("Candidate 2 of 2")
    assert faults_of(page) == {}


def test_what_is_ticked_is_counted_on_the_buttons(window: Window, alice: User, waiting: list[str]) -> None:
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    bar = page.locator(".bulk")
    approve, reject = bar.get_by_role("button", name="Approve"), bar.get_by_role("button", name="Reject")
    expect(approve).to_have_text("Approve")
    for number in (1, 2):
        page.locator("[name=item]").nth(number).check()
        expect(approve).to_have_text(f"Approve {number}")
        expect(reject).to_have_text(f"Reject {number}")
    page.locator("[name=item]").nth(1).uncheck()
    page.locator("[name=item]").nth(2).uncheck()
    expect(approve).to_have_text("Approve")


def test_fingers_hit_what_they_mean(window: Window, alice: User, waiting: list[str]) -> None:
    """44 pixels, of what is no part of a sentence."""
    seen = window(alice, size="phone", fingers=True)
    page = seen.page
    seen.go("/review/")
    assert page.evaluate("matchMedia('(pointer: coarse)').matches")
    assert page.evaluate(_TOO_SMALL, ".facets-jump a, .facet, .filter-fold > summary") == []
    page.get_by_label("account and workspace").click()
    assert page.evaluate(_TOO_SMALL, ".menu-item") == []
    page.get_by_role("link", name="Audit trail").click()
    assert page.evaluate(_TOO_SMALL, ".trail-facts a") == []
    seen.go("/review/")
    page.get_by_role("link", name="Webhooks retry with jitter.").click()
    expect(page.locator(".crumb-place")).to_be_visible()
    assert page.evaluate(_TOO_SMALL, ".crumb a, .decide-bar .button") == []
    page.get_by_role("group", name="Decide").get_by_role("button", name="Approve").click()
    expect(page.locator("#messages")).to_contain_text("Approved")
    assert page.evaluate(_TOO_SMALL, ".notice-close") == []
    assert faults_of(page) == {}
