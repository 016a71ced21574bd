"""What comes at the wrong moment: answers that overtake each other, and keys that were meant for what is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route, expect

from apps.accounts.principal import Principal
from apps.approvals.views import ROWS
from apps.candidates.models import Candidate
from apps.candidates.revisions import Revision, candidate_revise
from apps.memories.models import Memory
from tests import ledger
from tests.browser.checks import wait_for_focus
from tests.browser.conftest import Watched, look, look_anew, waiting

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Window = Callable[..., Watched]


@pytest.fixture
def window(window: Window) -> Window:
    """Whose requests pass by here from the start: a page that is open goes on for a moment without being held."""

    def make(who: User, **options: Any) -> Watched:
        seen = window(who, **options)
        seen.page.route("**/*", lambda route: route.continue_())
        return seen

    return make


def url(row: Candidate) -> str:
    return f"/review/{row.pk}/"


def statuses(rows: list[Candidate]) -> list[str]:
    return [ledger.fresh(row).status for row in rows]


def approvals(seen: Watched) -> int:
    """How many were sent, when there was time enough for one more."""
    look_anew(seen.page)
    return len([path for path in seen.asked if path.endswith("/approve/")])


class Held:
    """The next request to an address of this pattern, until it is let go."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page, self._routes = page, list[Route]()
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        if self._routes:
            route.fallback()
        else:
            self._routes.append(route)

    def route(self) -> Route:
        """Once the browser has handed it over, which it does a moment after the page has sent it."""
        for _ in range(200):
            if self._routes:
                break
            self._page.wait_for_timeout(50)
        return self._routes[0]

    def let_go(self) -> None:
        self.route().continue_()


def shows(page: Page, row: Candidate) -> None:
    """On the page and in the address."""
    expect(page.locator(".statement-hero")).to_have_text(row.content)
    assert page.url.endswith(url(row))


# --- answers that overtake each other -----------------------------------------------------------------------
def test_of_two_that_were_asked_for_the_last_one_is_shown(window: Window, alice: User, agent: Principal) -> None:
    rows = waiting(agent, 4)
    seen = window(alice, expect_failures=True)
    page = seen.page
    seen.go("/review/")
    late = Held(page, f"**{url(rows[0])}")
    page.get_by_role("link", name=rows[0].content).click()
    late.route()
    page.get_by_role("link", name=rows[2].content).click()
    shows(page, rows[2])
    late.let_go()
    page.keyboard.press("j")
    shows(page, rows[3])
    page.go_back()
    shows(page, rows[2])
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Review queue")


def test_a_filter_that_is_changed_before_its_answer_counts(window: Window, alice: User, agent: Principal) -> None:
    ledger.propose(agent, "Webhooks retry with jitter.")
    ledger.propose(agent, "Coupons never stack.")
    seen = window(alice, expect_failures=True)
    page = seen.page
    seen.go("/review/")
    late = Held(page, "**/review/?*q=webhooks*")
    for asked in ("webhooks", "coupons"):
        page.locator("#filter-q").fill(asked)
        page.keyboard.press("Enter")
    late.let_go()
    expect(page.locator(".row-title")).to_have_text(["Coupons never stack."])
    assert "q=coupons" in page.url


def test_what_was_asked_for_before_going_back_does_not_come_any_more(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, 2)
    seen = window(alice, expect_failures=True)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name=rows[0].content).click()
    shows(page, rows[0])
    asked, back = Held(page, f"**{url(rows[1])}"), Held(page, "**/review/")
    page.keyboard.press("j")
    asked.route()
    page.evaluate("history.back()")
    back.route()
    asked.let_go()
    back.let_go()
    expect(page.get_by_role("heading", level=1)).to_have_text("Review queue")
    assert page.url.endswith("/review/")


def test_whoever_goes_on_while_a_page_loads_gets_there(window: Window, alice: User, agent: Principal) -> None:
    """When nobody on it listens yet."""
    (row,) = waiting(agent, 1)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name=row.content).click()
    shows(page, row)
    script = Held(page, "**/firm-memory*.js")
    page.go_back(wait_until="commit")
    script.route()
    page.evaluate("history.forward()")
    page.wait_for_url(f"**{url(row)}", wait_until="commit")
    script.let_go()
    shows(page, row)


@pytest.mark.parametrize("refused", [False, True])
def test_nothing_overtakes_a_decision(window: Window, alice: User, agent: Principal, refused: bool) -> None:
    """Its answer says what became of it; keys and links go on afterwards."""
    rows = waiting(agent, 3)
    seen = window(alice)
    page = seen.page
    seen.go(url(rows[0]))
    decision = Held(page, "**/approve/")
    page.keyboard.press("a")
    decision.route()
    page.get_by_role("link", name="Next").click()
    if refused:
        changed = Revision(values={"content": "It says something else by now."})
        candidate_revise(principal=agent, candidate_id=rows[0].pk, version=rows[0].version, revision=changed)
    decision.let_go()
    if refused:
        expect(page.get_by_role("alert")).to_contain_text("It has changed")
        expect(page.locator(".statement-hero")).to_have_text("It says something else by now.")
    else:
        expect(page.locator("#messages")).to_contain_text("Approved as M-1.")
    page.keyboard.press("j")
    shows(page, rows[1 if refused else 2])


def test_the_landing_is_kept_through_an_answer_that_comes_after_going_back(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, ROWS)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name=rows[8].content, exact=True).click()
    shows(page, rows[8])
    decision, back = Held(page, "**/reject/"), Held(page, "**/review/")
    # Nothing can be looked up on a page while another is on its way, so that it has to tell.
    page.evaluate("addEventListener('htmx:afterSettle', () => console.log('settled'), { once: true })")
    page.keyboard.press("r")
    page.keyboard.press("Control+Enter")
    decision.route()
    page.evaluate("history.back()")
    back.route()
    with page.expect_console_message(lambda message: message.text == "settled"):
        decision.let_go()
    back.let_go()
    expect(page.get_by_role("link", name=rows[8].content, exact=True)).to_be_focused()


def test_what_follows_the_last_decision_does_not_come(window: Window, alice: User, agent: Principal) -> None:
    (row,) = waiting(agent, 1)
    seen = window(alice, expect_failures=True)
    page = seen.page
    seen.go(url(row))
    following = Held(page, "**/review/")
    page.keyboard.press("a")
    following.route()
    page.keyboard.press("a")
    page.locator("#approve .button-approve").first.click()
    following.route().abort()
    expect(page.locator("#messages")).to_contain_text("Your decision is recorded; only the page after it did not come.")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    seen.said.remove("uncaught: undefined")  # htmx promises that page to nobody
    assert approvals(seen) == 1
    assert Memory.objects.count() == 1


# --- trying again -------------------------------------------------------------------------------------------
def test_a_row_that_could_not_be_opened_offers_no_decision(window: Window, alice: User, agent: Principal) -> None:
    """It lies in the form of those that are ticked, which is nothing that trying again might send."""
    rows = waiting(agent, 2)
    seen = window(alice, expect_failures=True)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("checkbox", name=rows[0].content, exact=True).check()
    page.route("**/review/**", lambda route: route.abort())
    page.locator(".queue-form button[value=approve]").click()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.get_by_role("link", name=rows[1].content, exact=True).click()
    expect(page.locator("#messages")).to_contain_text("It did not reach the server.")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert statuses(rows) == ["pending", "pending"]


def test_trying_again_sends_what_was_under_way(window: Window, alice: User, agent: Principal) -> None:
    """And not what was pressed meanwhile, to no effect."""
    (row,) = waiting(agent, 1)
    seen = window(alice, expect_failures=True)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("checkbox", name=row.content, exact=True).check()
    reason = page.get_by_placeholder("Reason, needed to reject")
    reason.fill("It is a duplicate.")
    decision = Held(page, "**/bulk/")
    page.get_by_role("button", name="Reject 1", exact=True).click()
    decision.route()
    reason.press("Enter")
    decision.route().abort()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 rejected")


def test_opening_a_narrower_list_takes_no_tick_off_there(window: Window, alice: User, agent: Principal) -> None:
    first, second = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    seen.go("/review/?repo=acme%2Fpay")
    page.get_by_role("checkbox", name=second.content, exact=True).check()
    seen.go("/review/")
    page.locator(".row", has_text=first.content).get_by_role("link", name="acme/pay").click()
    page.wait_for_url("**/review/?repo=acme%2Fpay")
    expect(page.get_by_role("checkbox", name=second.content, exact=True)).to_be_checked()


# --- keys and clicks ----------------------------------------------------------------------------------------
PRESSES = """() => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
    document.querySelector("#approve .button-approve").click();
}"""


def pressed_when(page: Page, comes: str) -> None:
    """A key and a click as soon as something has come."""
    page.evaluate(f"addEventListener('{comes}', {PRESSES}, {{ once: true }})")


def test_what_is_pressed_while_a_page_loads_decides_about_nothing(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    page.add_init_script(f"addEventListener('load', {PRESSES}, {{ once: true }})")
    seen.go(url(rows[0]))
    assert approvals(seen) == 0
    page.keyboard.press("a")
    shows(page, rows[1])
    assert statuses(rows) == ["approved", "pending"]


def test_what_is_pressed_when_a_kept_page_is_shown_again_decides_about_nothing(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    seen.go(url(rows[0]))
    look(page)
    pressed_when(page, "pageshow")
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    assert approvals(seen) == 0
    shows(page, rows[0])


def test_what_is_pressed_right_after_going_back_decides_about_nothing(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    seen.go(url(rows[0]))
    page.keyboard.press("j")
    shows(page, rows[1])
    look(page)
    back = Held(page, f"**{url(rows[0])}")
    pressed_when(page, "popstate")
    page.evaluate("history.back()")
    back.let_go()
    shows(page, rows[0])
    assert approvals(seen) == 0


def test_a_key_that_is_pressed_while_another_page_is_on_its_way_decides_about_nothing(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    seen.go(url(rows[0]))
    following = Held(page, f"**{url(rows[1])}")
    page.keyboard.press("j")
    following.route()
    page.keyboard.press("a")
    following.let_go()
    shows(page, rows[1])
    assert approvals(seen) == 0


BUSY = """() => addEventListener("htmx:afterSwap", ({ target }) => {
    for (const began = performance.now(); target.id === "content" && performance.now() - began < 1500;);
})"""


def test_what_was_pressed_before_something_is_painted_decides_about_nothing(
    window: Window, alice: User, agent: Principal
) -> None:
    """However late a busy browser hears of it."""
    rows = waiting(agent, 3)
    seen = window(alice)
    page = seen.page
    seen.go(url(rows[0]))
    box = page.locator("#approve .button-approve").first.bounding_box()
    assert box is not None
    page.evaluate(BUSY)
    decision = Held(page, "**/approve/")
    page.keyboard.press("a")
    answer = decision.route().fetch()
    decision.route().fulfill(response=answer)
    page.wait_for_timeout(400)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert approvals(seen) == 1
    shows(page, rows[1])
    assert statuses(rows) == ["approved", "pending", "pending"]


@pytest.mark.parametrize("what", ["undo", "withdraw"])
def test_no_button_that_has_just_come_is_pressed_by_a_second_click(
    window: Window, alice: User, agent: Principal, reviewer: Principal, what: str
) -> None:
    first = ledger.propose(agent)
    own = ledger.propose(reviewer)
    seen = window(alice)
    page = seen.page
    seen.go(url(first))
    button = "[form=undo]" if what == "undo" else "form[action$='/withdraw/'] button"
    clicks = f'() => document.querySelector("{button}").click()'
    page.evaluate(f"addEventListener('htmx:afterSettle', {clicks}, {{ once: true }})")
    page.keyboard.press("a")
    shows(page, own)
    look(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    shows(page, own)
    assert statuses([first, own]) == ["approved", "pending"]


def test_whoever_begins_to_write_at_once_goes_on_writing(window: Window, alice: User, agent: Principal) -> None:
    rows = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    seen.go(url(rows[0]))
    begins = "() => setTimeout(() => document.getElementById('reject-reason').focus())"
    page.evaluate(f"addEventListener('htmx:afterSwap', {begins}, {{ once: true }})")
    page.keyboard.press("j")
    shows(page, rows[1])
    wait_for_focus(page, "reject-reason")
    look(page)
    wait_for_focus(page, "reject-reason")


def test_whoever_writes_before_the_script_has_come_goes_on_writing(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, ROWS)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name=rows[3].content, exact=True).click()
    shows(page, rows[3])
    script = Held(page, "**/firm-memory*.js")
    page.goto(seen.base + "/review/", wait_until="commit")
    page.locator("#filter-q").focus()
    script.let_go()
    page.wait_for_load_state()
    look(page)
    wait_for_focus(page, "filter-q")


def test_what_is_written_before_the_script_has_come_is_kept(window: Window, alice: User, agent: Principal) -> None:
    (row,) = waiting(agent, 1)
    seen = window(alice)
    page = seen.page
    script = Held(page, "**/firm-memory*.js")
    page.goto(seen.base + url(row), wait_until="commit")
    page.locator("#reject-reason").fill("It was never measured.")
    script.let_go()
    page.wait_for_load_state()
    page.reload()
    page.get_by_role("button", name="Put it back").click()
    expect(page.locator("#reject-reason")).to_have_value("It was never measured.")
