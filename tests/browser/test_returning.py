"""Back from one thing to the list of many: where the reader was, and with what they had ticked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from playwright.sync_api import Locator, Page, Route, expect

from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal
from apps.approvals.services import candidate_reject
from apps.approvals.views import ROWS
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.revisions import Revision, candidate_revise
from tests import ledger
from tests.browser.checks import faults_of
from tests.browser.conftest import PASSWORD, Watched, admit, sign_in, waiting
from tests.conftest import add_person

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

Window = Callable[..., Watched]


def title(page: Page, row: Candidate) -> Locator:
    return page.get_by_role("link", name=row.content, exact=True)


def box(page: Page, row: Candidate) -> Locator:
    return page.get_by_role("checkbox", name=row.content, exact=True)


def fill_in(page: Page, content: str) -> None:
    page.get_by_role("textbox", name="Statement").fill(content)
    page.get_by_label("Type", exact=True).select_option("bug_fixes")
    page.get_by_label("It holds for the whole firm").check()
    page.locator("#source-0-reference").fill("acme/pay!7")


def opens(page: Page, row: Candidate) -> None:
    title(page, row).click()
    expect(page.locator(".statement-hero")).to_have_text(row.content)


@contextmanager
def goes_back_at_once(page: Page) -> Iterator[None]:
    """Back as soon as something has come; the page before comes only after a while."""

    def comes_late(route: Route) -> None:
        if route.request.is_navigation_request():
            time.sleep(0.3)
        route.continue_()

    page.evaluate("document.addEventListener('htmx:afterSwap', () => history.back(), { once: true })")
    page.route("**/review/**", comes_late)
    with page.expect_event("load"):
        yield
    page.unroute("**/review/**")


def is_landed_at(page: Page, row: Candidate) -> None:
    expect(title(page, row)).to_be_focused()
    expect(title(page, row)).to_be_in_viewport(ratio=1)


# --- the row ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", ["desk", "phone"])
def test_both_ways_back_lead_to_the_row_that_was_opened(
    window: Window, alice: User, agent: Principal, size: str
) -> None:
    rows = waiting(agent, ROWS + 15)
    late = rows[-3]
    seen = window(alice, size=size)
    page = seen.page
    seen.go("/review/")
    page.get_by_role("link", name="Next").click()
    opens(page, late)
    page.go_back()
    is_landed_at(page, late)
    opens(page, late)
    page.get_by_role("link", name="Review queue").click()
    is_landed_at(page, late)
    assert faults_of(page) == {}


def test_whoever_goes_back_at_once_lands_there_too(window: Window, alice: User, agent: Principal) -> None:
    """When the address is the list's again, and what is on the page is not."""
    rows = waiting(agent, ROWS + 2)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    with goes_back_at_once(page):
        title(page, rows[8]).click()
    is_landed_at(page, rows[8])


def test_whoever_leaves_a_page_of_many_at_once_keeps_the_ticks_of_the_one_before(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = waiting(agent, ROWS + 2)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    box(page, rows[3]).check()
    with goes_back_at_once(page):
        page.get_by_role("link", name="Next").click()
    expect(box(page, rows[3])).to_be_checked()


def test_it_leads_to_the_one_that_was_looked_at_last(window: Window, alice: User, agent: Principal) -> None:
    rows = waiting(agent, ROWS)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    opens(page, rows[10])
    page.keyboard.press("r")
    page.keyboard.type("A guess.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".statement-hero")).to_have_text(rows[11].content)
    page.keyboard.press("j")
    expect(page.locator(".statement-hero")).to_have_text(rows[12].content)
    page.get_by_role("link", name="Review queue").click()
    is_landed_at(page, rows[12])


def test_a_list_that_is_opened_anew_begins_at_its_top(window: Window, alice: User, agent: Principal) -> None:
    rows = waiting(agent, ROWS)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    opens(page, rows[15])
    page.get_by_role("link", name="Memories").click()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Review").click()
    expect(title(page, rows[0])).to_be_in_viewport()
    expect(title(page, rows[15])).not_to_be_focused()


def test_a_memory_leads_back_to_the_search_that_found_it(
    window: Window, alice: User, agent: Principal, reviewer: Principal
) -> None:
    memory = ledger.remember(agent, reviewer, "Webhooks retry with jitter.")
    seen = window(alice)
    page = seen.page
    seen.go("/memories/?q=webhooks")
    page.get_by_role("link", name=memory.content).click()
    page.locator(".crumb a").click()
    page.wait_for_url("**/memories/?q=webhooks")
    expect(page.get_by_role("link", name=memory.content)).to_be_focused()
    seen.go("/memories/M-1/")
    assert page.locator(".crumb a").get_attribute("href") == "/memories/?q=webhooks"


def test_what_was_opened_from_elsewhere_leads_to_the_whole_list(window: Window, alice: User, agent: Principal) -> None:
    first, second = waiting(agent, 2)
    seen = window(alice)
    page = seen.page
    seen.go("/review/?type=coding_conventions&status=pending")
    seen.go(f"/review/?origin={agent.name}")
    opens(page, first)
    seen.go(f"/review/{second.pk}/")
    assert page.locator(".crumb a").first.get_attribute("href") == "/review/"


# --- the ticks ----------------------------------------------------------------------------------------------
def test_what_was_ticked_is_ticked_after_a_look_at_one_of_them(window: Window, alice: User, agent: Principal) -> None:
    rows = waiting(agent, 5)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    for row in (rows[1], rows[3]):
        box(page, row).check()
    expect(page.locator("[data-ticked]")).to_have_text("2 ticked")
    opens(page, rows[3])
    page.get_by_role("link", name="Review queue").click()
    for row in rows:
        expect(box(page, row)).to_be_checked(checked=row in (rows[1], rows[3]))
    expect(page.locator("[data-ticked]")).to_have_text("2 ticked")
    box(page, rows[1]).uncheck()
    page.reload()
    for row in rows:
        expect(box(page, row)).to_be_checked(checked=row == rows[3])
    page.get_by_label("All on this page").check()
    expect(page.locator("[data-ticked]")).to_have_text("5 ticked")
    box(page, rows[0]).uncheck()
    expect(page.get_by_label("All on this page")).not_to_be_checked()
    assert faults_of(page) == {}
    assert not Candidate.objects.exclude(status=CandidateStatus.PENDING).exists()


def test_what_has_changed_since_is_not_ticked_and_says_so(window: Window, alice: User, agent: Principal) -> None:
    rows = waiting(agent, 3)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    for row in rows[:2]:
        box(page, row).check()
    opens(page, rows[2])
    revised = ledger.fresh(rows[0])
    changed = candidate_revise(
        principal=agent,
        candidate_id=revised.pk,
        version=revised.version,
        revision=Revision(values={"content": "It says something else by now."}),
    )
    page.go_back()
    expect(box(page, rows[1])).to_be_checked()
    expect(page.get_by_role("checkbox", name="It says something else by now.")).not_to_be_checked()
    row = page.locator(".row", has_text=changed.content)
    expect(row).to_contain_text("Changed since you ticked it")
    expect(page.locator("[data-ticked]")).to_have_text("1 ticked")
    assert faults_of(page) == {}
    page.reload()
    expect(row).not_to_contain_text("Changed since you ticked it")


@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_no_tick_moves_to_another_row(
    window: Window, alice: User, agent: Principal, reviewer: Principal, javascript: bool
) -> None:
    """Browsers put back what was in the third field of a page, whatever that field stands for by now."""
    rows = waiting(agent, 5)
    seen = window(alice, javascript=javascript)
    page = seen.page
    seen.go("/review/")
    box(page, rows[2]).check()
    page.get_by_role("link", name="Memories").click()
    first = ledger.fresh(rows[0])
    candidate_reject(principal=reviewer, candidate_id=first.pk, version=first.version, reason="A guess.")
    page.go_back()
    expect(page.get_by_role("checkbox", name=rows[0].content, exact=True)).to_have_count(0)
    for row in rows[1:]:
        expect(box(page, row)).to_be_checked(checked=javascript and row == rows[2])


def test_a_decision_takes_the_ticks_off_and_a_refused_one_does_not(
    window: Window, alice: User, agent: Principal
) -> None:
    rows = [*waiting(agent, 2), ledger.propose(agent, type="business_rules")]
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    for row in rows[1:]:
        box(page, row).check()
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_role("alert")).to_contain_text("Write a reason first")
    page.reload()
    for row in rows:
        expect(box(page, row)).to_be_checked(checked=row != rows[0])
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 approved, 1 not")
    page.get_by_role("link", name="Back to the queue").click()
    for row in (rows[0], rows[2]):
        expect(box(page, row)).not_to_be_checked()


def test_ticks_are_of_one_person_and_one_list(
    window: Window, alice: User, workspace: Workspace, agent: Principal
) -> None:
    (row,) = waiting(agent, 1)
    seen = window(alice)
    page = seen.page
    seen.go("/review/")
    box(page, row).check()
    seen.go("/review/?status=pending&origin=agent")
    expect(box(page, row)).not_to_be_checked()
    page.context.clear_cookies()
    admit(seen, add_person(workspace, "erin", Role.REVIEWER))
    seen.go("/review/")
    expect(box(page, row)).not_to_be_checked()
    page.context.clear_cookies()
    admit(seen, alice)
    seen.go("/review/")
    expect(box(page, row)).to_be_checked()


# --- what was typed -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("javascript", [True, False], ids=["with scripts", "without scripts"])
def test_no_amendment_comes_back_unseen(window: Window, alice: User, agent: Principal, javascript: bool) -> None:
    """What a browser puts back by itself would lie in a closed part of the page, and be approved."""
    row = ledger.propose(agent)
    seen = window(alice, javascript=javascript)
    page = seen.page
    seen.go(f"/review/{row.pk}/")
    page.get_by_text("Amend before approving").click()
    page.get_by_role("textbox", name="Statement").fill("Something else.")
    page.get_by_role("link", name="Memories").click()
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Should this be remembered?")
    expect(page.locator("#approve-content")).to_have_value(row.content)
    if javascript:
        page.get_by_role("button", name="Discard it").click()
    page.locator("#approve .button-approve").first.click()
    expect(page.get_by_role("status")).to_contain_text("Approved as M-1.")
    assert ledger.fresh(row).content == row.content


def test_a_proposal_survives_the_end_of_a_session(window: Window, bob: User) -> None:
    """Written for ten minutes, sent when nobody is signed in any more."""
    seen = window()
    page = seen.page
    sign_in(seen, bob, "/propose/")
    fill_in(page, "Webhooks retry with jitter.")
    page.get_by_text("Source 2").click()
    page.locator("#source-1-reference").fill("acme/pay#7")
    Session.objects.all().delete()
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_text("Your proposal was not recorded")).to_be_visible()
    page.get_by_label("Name or e-mail address").fill(bob.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Put it back").click()
    expect(page.get_by_role("textbox", name="Statement")).to_have_value("Webhooks retry with jitter.")
    expect(page.get_by_label("It holds for the whole firm")).to_be_checked()
    expect(page.locator("#source-1-reference")).to_have_value("acme/pay#7")
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_role("status")).to_contain_text("Proposed.")
    seen.go("/propose/")
    expect(page.locator("[data-draft]")).to_have_count(0)
    assert Candidate.objects.get().evidence.count() == 2


def test_a_refused_proposal_goes_on_at_what_is_amiss_and_keeps_no_secret(window: Window, bob: User) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    seen = window(bob)
    page = seen.page
    seen.go("/propose/")
    fill_in(page, "Webhooks retry with jitter.")
    page.locator("#source-0-reference").fill("")
    page.get_by_role("button", name="Propose").click()
    expect(page.locator("#source-0-reference")).to_be_focused()
    page.locator("#source-0-reference").fill("acme/pay!7")
    page.get_by_role("textbox", name="Statement").fill(f"Webhooks retry with {secret}.")
    page.get_by_role("button", name="Propose").click()
    expect(page.get_by_role("textbox", name="Statement")).to_be_focused()
    assert secret not in page.evaluate("JSON.stringify(sessionStorage)")


@pytest.mark.parametrize("what", ["report", "retire"])
def test_what_is_said_about_a_memory_survives_the_end_of_a_session(
    window: Window, alice: User, agent: Principal, reviewer: Principal, what: str
) -> None:
    memory = ledger.remember(agent, reviewer, "Webhooks retry with jitter.")
    seen = window()
    page = seen.page
    sign_in(seen, alice, f"/memories/{memory.label}/")
    if what == "report":
        page.get_by_text("Report this memory").click()
        page.get_by_label("It never held").check()
        page.get_by_label("Reference").fill("acme/pay!7")
    reason = page.locator("#correct-reason" if what == "report" else "#retire-reason")
    reason.fill("They never did.")
    button = page.get_by_role("button", name="Send the report" if what == "report" else "Retire M-1")
    Session.objects.all().delete()
    button.click()
    page.get_by_label("Name or e-mail address").fill(alice.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Put it back").click()
    expect(reason).to_have_value("They never did.")
    button.click()
    expect(page.get_by_role("status")).to_contain_text("Reported." if what == "report" else "M-1 is retired now.")
    page.reload()
    expect(page.locator("[data-draft]")).to_have_count(0)
    memory.refresh_from_db()
    assert memory.status == ("disputed" if what == "report" else "retired")


# --- what sticks to the window ------------------------------------------------------------------------------
@pytest.mark.parametrize("size", ["desk", "tablet", "phone"])
def test_no_row_that_has_the_focus_is_under_the_bar(window: Window, alice: User, agent: Principal, size: str) -> None:
    waiting(agent, ROWS)
    seen = window(alice, size=size)
    page = seen.page
    seen.go("/review/")
    page.locator("[name=item]").first.check()
    page.locator("h1").click()
    for _ in range(ROWS):
        page.keyboard.press("j")
        under = page.evaluate(_UNDER_THE_BAR)
        assert not under, under


_UNDER_THE_BAR = """
() => { const bar = document.querySelector('.bulk').getBoundingClientRect();
        const row = document.activeElement.getBoundingClientRect();
        return row.bottom > bar.top && row.top < bar.bottom ? document.activeElement.textContent : ''; }
"""


def test_a_message_hides_no_button_and_can_be_closed(window: Window, alice: User, agent: Principal) -> None:
    waiting(agent, ROWS)
    seen = window(alice)
    page = seen.page
    seen.go("/review/?origin=agent")
    page.get_by_text("Keep this filter", exact=True).click()
    page.get_by_label("Keep this filter as").fill("Of agents")
    page.get_by_role("button", name="Keep it").click()
    said = page.locator("#messages .notice")
    expect(said).to_contain_text("Kept as “Of agents”.")
    lowest = "box => box.getBoundingClientRect().bottom"
    assert said.evaluate(lowest) <= page.locator(".bulk").evaluate("bar => bar.getBoundingClientRect().top")
    said.get_by_role("button", name="Close").click()
    expect(said).to_have_count(0)
