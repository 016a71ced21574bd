"""The queue as a page: who sees it, what the filter does, how it pages, and many decisions at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import Audience, AuditEvent
from apps.accounts.principal import Principal
from apps.approvals.claims import candidate_claim
from apps.approvals.models import SavedFilter
from apps.approvals.views import ROWS
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.proposal import ScopeInput
from apps.candidates.revisions import Revision, candidate_revise
from apps.core.clock import now
from apps.memories.models import Verdict
from tests import ledger
from tests.conftest import Issued
from tests.pages import text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

QUEUE = "/review/"
BULK = "/review/bulk/"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def agent(robo: Issued) -> Principal:
    return ledger.of_token(robo.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture
def page(browser: Callable[..., Client], alice: User) -> Client:
    return browser(alice)


def shown(answer: Any) -> list[str]:
    return [row.candidate.content for row in answer.context["rows"]]


# --- who ----------------------------------------------------------------------------------------------------
def test_reviewers_and_above_see_it(browser: Any, alice: User, carol: User, dave: User) -> None:
    for who in (alice, carol, dave):
        assert browser(who).get(QUEUE).status_code == 200


def test_members_are_told_why_not(browser: Any, bob: User) -> None:
    answer = browser(bob).get(QUEUE)
    assert answer.status_code == 403
    assert "Only a person with the reviewer role may review candidates." in text(answer)


def test_nobody_signs_in_first(browser: Any, workspace: Any) -> None:
    answer = browser().get(QUEUE)
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/accounts/login/?next=/review/"


def test_it_is_read_only(page: Client) -> None:
    assert page.post(QUEUE).status_code == 405


def test_outsiders_see_their_own_queue(browser: Any, charlie: User, bot: Principal) -> None:
    ledger.propose(bot, "Only firm knows this.")
    answer = browser(charlie).get(QUEUE)
    assert answer.status_code == 200
    assert "Only firm knows this." not in text(answer)
    assert "The queue is empty" in text(answer)


# --- what it shows ------------------------------------------------------------------------------------------
def test_a_row_says_what_a_first_look_needs(
    page: Client, bot: Principal, agent: Principal, reviewer: Principal
) -> None:
    old = ledger.remember(bot, reviewer, "Invoices are numbered without gaps.")
    candidate = ledger.propose(
        agent,
        "Invoices are numbered without gaps, per country.",
        type="business_rules",
        scope=ScopeInput(firm=True, domains=("billing",), repos=("acme/pay",)),
        confidence=0.82,
        supersedes=(old.label,),
    )
    ledger.propose(
        bot,
        "Invoices are numbered without gaps, per country.",
        type="business_rules",
        scope=ScopeInput(firm=True, domains=("billing",), repos=("acme/pay",)),
    )
    answer = page.get(QUEUE)
    (row,) = answer.context["rows"]
    assert row.candidate == candidate
    shown_words = words(answer)
    for expected in (
        "Invoices are numbered without gaps, per country.",
        "business rules",
        "Whole firm",
        "billing",
        "acme/pay",
        "82 %",
        "robo",
        "Proposed 2 times",
        f"Replaces {old.label}",
        "1 near",
        "New domain",
    ):
        assert expected in shown_words


def test_a_report_is_marked(page: Client, bot: Principal, agent: Principal, reviewer: Principal) -> None:
    memory = ledger.remember(bot, reviewer)
    ledger.report(agent, memory, kind="wrong")
    assert f"Reports {memory.label} as wrong" in text(page.get(QUEUE))


def test_a_target_that_has_moved_on_is_marked(
    page: Client, bot: Principal, agent: Principal, reviewer: Principal
) -> None:
    memory = ledger.remember(bot, reviewer)
    later = now() + timedelta(days=30)
    candidate = ledger.propose(agent, supersedes=(memory.label,))
    assert "Target not in force</span>" not in text(page.get(QUEUE))
    ledger.remember(bot, reviewer, supersedes=(memory,), valid_from=later)
    for query in ({}, {"flag": "target-not-in-force"}):
        (row,) = page.get(QUEUE, query).context["rows"]
        assert (row.candidate, row.flags) == (candidate, {"target-not-in-force": 1})


def test_what_another_reviewer_looks_at_is_shown(page: Client, bot: Principal, carol: User) -> None:
    candidate = ledger.propose(bot)
    candidate_claim(principal=ledger.of_person(carol), candidate=candidate)
    assert "carol</bdi> is looking at it" in text(page.get(QUEUE))


def test_near_rows_of_other_audiences_are_not_counted(page: Client, bot: Principal, workspace: Any) -> None:
    candidate = ledger.propose(bot, "Shards are rebuilt from the oldest replica on Sundays.")
    twin = ledger.propose(bot, "Shards are rebuilt from the oldest replica on Mondays.")
    audience = Audience.objects.create(workspace=workspace, name="board")
    Candidate.objects.filter(pk=twin.pk).update(audience_ids=[audience.pk])
    Candidate.objects.filter(pk=candidate.pk).update(
        near=[{"what": "candidate", "id": str(twin.pk), "similarity": 0.9, "how": "words"}]
    )
    (row,) = page.get(QUEUE).context["rows"]
    assert (row.candidate, row.near) == (candidate, 0)


def test_hostile_text_is_text(page: Client, agent: Principal) -> None:
    ledger.propose(agent, f"{HOSTILE} is text.", scope=ScopeInput(domains=(HOSTILE,), repos=(HOSTILE,)))
    html = text(page.get(QUEUE))
    assert HOSTILE not in html
    assert "&lt;img src=x onerror=alert(1)&gt; is text." in html


# --- the filter ---------------------------------------------------------------------------------------------
@pytest.fixture
def mixed(bot: Principal, agent: Principal) -> None:
    ledger.propose(bot, "Parsers keep ninety days.", type="bug_fixes", scope=ScopeInput(repos=("acme/web",)))
    ledger.propose(agent, "Shards reject duplicates.", scope=ScopeInput(domains=("a_b",)), confidence=0.9)
    ledger.propose(agent, "Caches expire quietly.", scope=ScopeInput(domains=("axb",)), confidence=0.7)
    ledger.propose(agent, "Coupons are a guess.", confidence=0.1)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["Parsers", "Shards", "Caches"]),
        ({"status": "quarantined"}, ["Coupons"]),
        ({"type": "bug_fixes"}, ["Parsers"]),
        ({"type": "BUG_FIX"}, ["Parsers"]),
        ({"repo": "acme/web"}, ["Parsers"]),
        ({"domain": "a_b"}, ["Shards"]),
        ({"origin": "robo"}, ["Shards", "Caches"]),
        ({"origin": "bot"}, ["Parsers"]),
        ({"origin": "person"}, []),
        ({"confidence": "0.8"}, ["Parsers", "Shards"]),
        ({"flag": "new-domain"}, ["Shards", "Caches"]),
        ({"age": "0"}, ["Parsers", "Shards", "Caches"]),
        ({"age": "3"}, []),
        ({"q": "duplicates"}, ["Shards"]),
        ({"q": "", "repo": "", "age": ""}, ["Parsers", "Shards", "Caches"]),
        ({"repo": "acme/web", "type": "tooling_setup"}, []),
    ],
)
def test_the_filter_narrows(page: Client, mixed: None, query: dict[str, str], expected: list[str]) -> None:
    answer = page.get(QUEUE, query)
    assert answer.status_code == 200
    assert [content.split()[0] for content in shown(answer)] == expected


def test_age_counts_days_of_waiting(page: Client, agent: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.candidates.services.now", lambda: now() - timedelta(days=4))
    ledger.propose(agent, "This is four days old.")
    assert shown(page.get(QUEUE, {"age": "3"})) == ["This is four days old."]
    assert shown(page.get(QUEUE, {"age": "5"})) == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"status": "bogus"}, "“bogus” is not a status. Use one of: pending, quarantined"),
        ({"type": "foo"}, "“foo” is not a type. Use one of: anti_patterns"),
        ({"flag": "foo"}, "“foo” is not a flag. Use one of: hidden-characters"),
        ({"age": "old"}, "Give a whole number of days"),
        ({"age": "-1"}, "greater than or equal to 0"),
        ({"age": "99999999999"}, "less than or equal to 36500"),
        ({"confidence": "2"}, "less than or equal to 1"),
        ({"confidence": "nan"}, "Give a number from 0 to 1"),
        ({"cursor": "nonsense"}, "This cursor was not given out for this list."),
        ({"repos": "acme/web"}, "The queue cannot be filtered by “repos”."),
        ({"q": "a\x00b"}, "Null characters are not allowed."),
        ({"status": HOSTILE}, "“&lt;img src=x onerror=alert(1)&gt;” is not a status."),
        ({HOSTILE: "1"}, "filtered by “&lt;img src=x onerror=alert(1)&gt;”."),
    ],
)
def test_what_will_not_do_is_said_and_nothing_is_listed(
    page: Client, mixed: None, query: dict[str, str], says: str
) -> None:
    answer = page.get(QUEUE, query)
    assert answer.status_code == 422
    assert says in text(answer)
    assert "Parsers" not in text(answer)
    assert HOSTILE not in text(answer)


@pytest.mark.parametrize(
    "address",
    [
        *("/review/?type=ownership&type=bug_fixes", "/review/?status=pending&status=rejected", "/review/?q=a&q=a"),
        *("/memories/?repo=a&repo=b", "/memories/?q=a&q=b", "/captured/?kind=chat&kind=issue"),
        *("/audit/?verb=approve&verb=reject", "/audit/?actor=a&actor=b", "/review/bulk/all/?repo=a&repo=b"),
    ],
)
def test_a_filter_with_two_values_is_refused_on_every_page(page: Client, address: str) -> None:
    """Of two values a page took the last one and said nothing of the other."""
    answer = page.get(address)
    assert answer.status_code == 422
    assert "takes one value; there are 2." in text(answer)


def test_an_unknown_name_is_said_to_be_unknown(page: Client, mixed: None) -> None:
    assert "There is no repository “acme/nowhere” here." in text(page.get(QUEUE, {"repo": "acme/nowhere"}))
    assert "There is no domain “nowhere” here." in text(page.get(QUEUE, {"domain": "nowhere"}))


@pytest.mark.parametrize(
    ("address", "given"),
    [
        ("/review/", None),
        ("/review/?status=pending", None),
        ("/review/?repo=acme/pay&q=retries&status=pending&age=3", 3),
        ("/memories/?status=all", None),
        ("/memories/?repo=acme/pay", 1),
        ("/captured/?outcome=queued&days=3", 1),
        ("/audit/?actor=robo&since=2026-01-01", 2),
    ],
)
def test_a_folded_filter_says_how_much_of_it_is_in_use(page: Client, address: str, given: int | None) -> None:
    shown = text(page.get(address))
    summary = shown[shown.index('<details class="filter-fold">') :].split("</summary>")[0]
    assert ("in use" in summary) is (given is not None)
    assert given is None or f'<span class="count">{given}<' in summary


def test_a_filter_that_will_not_do_is_not_folded(page: Client) -> None:
    for address in ("/review/?age=x", "/memories/?type=nope", "/captured/?days=x", "/audit/?since=x"):
        assert '<details class="filter-fold" open>' in text(page.get(address)), address


def test_where_nobody_counted_what_waits_there_is_no_number(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert '<span id="waiting-count" class="count">0<' in text(page.get("/memories/"))
    monkeypatch.setattr("apps.approvals.context_processors.waiting_count", lambda _: None)
    assert '<span id="waiting-count" class="count" hidden>' in text(page.get("/memories/"))


def test_tabs_count_what_the_filter_admits(page: Client, mixed: None) -> None:
    assert page.get(QUEUE).context["counts"]["pending"] == 3
    counts = page.get(QUEUE, {"origin": "robo"}).context["counts"]
    assert (counts["pending"], counts["quarantined"], counts["rejected"]) == (2, 1, 0)
    assert page.get(QUEUE, {"repo": "acme/nowhere"}).context["counts"]["pending"] == 0


def test_links_carry_the_filter_and_not_the_place_in_it(page: Client, mixed: None) -> None:
    html = text(page.get(QUEUE, {"domain": "a_b", "q": ""}))
    assert re.search(r'href="/review/[0-9a-f-]{36}/\?domain=a_b"', html)
    assert 'action="/review/bulk/?domain=a_b"' in html


# --- paging and its cost ------------------------------------------------------------------------------------
def test_pages_follow_each_other_and_lead_back(page: Client, agent: Principal) -> None:
    contents = [ledger.propose(agent).content for _ in range(3 * ROWS)]
    first = page.get(QUEUE)
    second = page.get(first.context["next"])
    third = page.get(second.context["next"])
    assert shown(first) + shown(second) + shown(third) == contents
    assert third.context["next"] is None and first.context["previous"] is None
    assert shown(page.get(third.context["previous"])) == shown(second)


def test_what_was_decided_is_listed_newest_first(page: Client, agent: Principal, reviewer: Principal) -> None:
    for content in ("First.", "Second."):
        ledger.reject(reviewer, ledger.propose(agent, content))
    answer = page.get(QUEUE, {"status": "rejected"})
    assert shown(answer) == ["Second.", "First."]
    assert 'type="checkbox"' not in text(answer)


def test_at_most_twelve_queries_and_none_with_an_offset(
    page: Client, agent: Principal, bot: Principal, reviewer: Principal, django_assert_max_num_queries: Any
) -> None:
    memory = ledger.remember(bot, reviewer, "Backups are encrypted at rest.")
    for at in range(30):
        row = ledger.propose(
            agent,
            f"Backups are encrypted at rest with key {at}.",
            supersedes=(memory.label,),
            scope=ScopeInput(domains=(f"d{at}", "storage"), repos=(f"acme/r{at}", "acme/pay")),
        )
        candidate_claim(principal=reviewer, candidate=row)
    everything = {
        "status": "pending", "type": "tooling_setup", "repo": "acme/pay", "domain": "storage", "origin": "robo",
        "age": "0", "confidence": "0.1", "flag": "new-domain", "q": "backups",
    }  # fmt: skip
    for query in ({}, everything):
        with django_assert_max_num_queries(12) as captured:
            answer = page.get(QUEUE, query)
        assert len(answer.context["rows"]) == ROWS
        assert not any(" OFFSET " in entry["sql"] for entry in captured.captured_queries)


def test_the_number_of_queries_does_not_grow_with_the_rows(page: Client, agent: Principal) -> None:
    ledger.propose(agent, scope=ScopeInput(domains=("x",), repos=("acme/pay",)))
    with CaptureQueriesContext(connection) as few:
        page.get(QUEUE)
    for _ in range(20):
        ledger.propose(agent, scope=ScopeInput(domains=("x",), repos=("acme/pay",)))
    with CaptureQueriesContext(connection) as many:
        page.get(QUEUE)
    assert len(many) <= len(few) + 1  # what is near it is looked up once there is something near


# --- many at once -------------------------------------------------------------------------------------------
def ticked(*candidates: Candidate) -> list[str]:
    return [f"{row.pk}:{Candidate.objects.get(pk=row.pk).version}" for row in candidates]


def test_approve_some_and_see_what_became_of_each(page: Client, agent: Principal, alice: User) -> None:
    good, other = ledger.propose(agent), ledger.propose(agent)
    never = ledger.propose(agent, type="business_rules")
    own = ledger.propose(ledger.of_person(alice))
    answer = page.post(BULK, {"action": "approve", "item": [*ticked(good, never, own), f"{other.pk}:7"]})
    assert answer.status_code == 200
    outcomes = {outcome.id: outcome.outcome for outcome, _ in answer.context["results"]}
    assert outcomes == {good.pk: "done", never.pk: "forbidden", own.pk: "forbidden", other.pk: "conflict"}
    assert "1 approved, 3 not" in text(answer)
    assert ledger.fresh(good).status == CandidateStatus.APPROVED
    assert ledger.fresh(never).status == CandidateStatus.PENDING
    assert Verdict.objects.get(subject_id=good.pk).batch_id == answer.context["batch"]


def test_what_was_opened_may_be_approved_in_bulk(page: Client, agent: Principal) -> None:
    rule = ledger.propose(agent, type="business_rules")
    page.get(f"/review/{rule.pk}/")
    answer = page.post(BULK, {"action": "approve", "item": ticked(rule)})
    assert answer.context["done"] == 1


def test_all_that_match_are_said_before_they_are_decided(page: Client, agent: Principal) -> None:
    rows = [ledger.propose(agent, scope=ScopeInput(repos=("acme/pay",))) for _ in range(12)]
    ledger.propose(agent, scope=ScopeInput(repos=("acme/web",)))
    unseen = ledger.propose(agent, type="business_rules", scope=ScopeInput(repos=("acme/pay",)))
    asked = page.get("/review/bulk/all/?repo=acme/pay")
    shown = words(asked)
    assert "Decide about all 13 at once?" in shown
    assert "and 3 more" in shown
    assert all(row.content in shown for row in [*rows, unseen]), "nobody decides about what is not shown"
    assert "Approve 12" in shown
    assert "1 of them is of a type that is never approved unseen" in shown
    sent = form_of_items(asked)
    late = ledger.propose(agent, scope=ScopeInput(repos=("acme/pay",)))
    candidate_revise(
        principal=agent, candidate_id=rows[0].pk, version=1, revision=Revision(values={"content": "Other words."})
    )
    answer = page.post("/review/bulk/?repo=acme/pay", sent | {"action": "approve"})
    assert "11 approved, 2 not" in words(answer)
    assert [outcome.id for outcome, _ in answer.context["failures"]] == [rows[0].pk, unseen.pk]
    assert ledger.fresh(late).status == CandidateStatus.PENDING


def test_no_approval_is_offered_where_all_have_to_be_opened(page: Client, agent: Principal) -> None:
    ledger.propose(agent, type="business_rules")
    shown = words(page.get("/review/bulk/all/"))
    assert "Reject 1" in shown
    assert "Approve 0" not in shown and "Approve 1" not in shown


def form_of_items(answer: Any) -> dict[str, Any]:
    return {"all": "1", "item": re.findall(r'name="item" value="([^"]+)"', text(answer))}


def test_all_that_match_need_a_reason_to_be_rejected(page: Client, agent: Principal) -> None:
    ledger.propose(agent)
    sent = form_of_items(page.get("/review/bulk/all/"))
    answer = page.post("/review/bulk/", sent | {"action": "reject", "reason": ""})
    assert answer.status_code == 422
    assert "Decide about the one at once?" in words(answer)
    assert "1 rejected" in words(page.post("/review/bulk/", sent | {"action": "reject", "reason": "Not so."}))


def test_nothing_matches_and_a_bad_filter_widens_nothing(page: Client, agent: Principal) -> None:
    ledger.propose(agent)
    assert "Nothing matches" in words(page.get("/review/bulk/all/?repo=acme/nowhere"))
    assert "Nothing matches" in words(page.get("/review/bulk/all/?status=rejected"))
    answer = page.get("/review/bulk/all/?colour=red")
    assert answer.status_code == 422
    assert 'name="item"' not in text(answer)


def test_the_filter_is_told_in_words(page: Client, agent: Principal) -> None:
    ledger.propose(agent, type="business_rules", scope=ScopeInput(repos=("acme/my_repo",)))
    asked = "?type=business_rules&flag=new-repository&repo=acme/my_repo&status=pending"
    seen = words(page.get(f"/review/bulk/all/{asked}"))
    for said in ("Type: business rules", "Flag: New repository", "Repository: acme/my_repo", "Status: pending"):
        assert said in seen, said
    assert "business_rules" not in seen


def test_members_and_outsiders_decide_about_nothing_that_matches(
    browser: Any, bob: User, charlie: User, agent: Principal
) -> None:
    ledger.propose(agent)
    assert browser(bob).get("/review/bulk/all/").status_code == 403
    assert "Nothing matches" in words(browser(charlie).get("/review/bulk/all/"))


def test_reject_with_one_reason(page: Client, agent: Principal) -> None:
    rows = [ledger.propose(agent), ledger.propose(agent)]
    answer = page.post(BULK, {"action": "reject", "item": ticked(*rows), "reason": HOSTILE})
    assert answer.context["done"] == 2
    assert HOSTILE not in text(answer)
    assert {verdict.reason for verdict in Verdict.objects.filter(action="reject")} == {HOSTILE}


def test_rejecting_without_a_reason_keeps_what_was_ticked(page: Client, agent: Principal) -> None:
    row = ledger.propose(agent)
    answer = page.post(BULK + "?origin=robo", {"action": "reject", "item": ticked(row), "reason": " "})
    assert answer.status_code == 422
    assert "Write a reason first: rejecting needs one" in text(answer)
    assert re.search(rf'value="{row.pk}:1"[^>]* checked', text(answer))
    assert ledger.fresh(row).status == CandidateStatus.PENDING


def test_what_is_missing_is_said_beside_the_field_that_wants_it(page: Client, agent: Principal) -> None:
    row = ledger.propose(agent)
    answer = page.post(BULK, {"action": "reject", "item": ticked(row), "reason": ""})
    _, bar = text(answer).split('<div class="bulk"')
    assert text(answer).count("Write a reason first: rejecting needs one") == bar.count('id="bulk-error"') == 1
    assert re.search(r'<input[^>]* name="reason"[^>]* aria-describedby="bulk-error" autofocus', bar)
    # In place, the page stays where it is.
    assert answer.headers["HX-Reswap"] == "outerHTML show:none"
    assert "HX-Reswap" not in page.get("/review/").headers


def test_a_secret_in_the_reason_is_not_repeated(page: Client, agent: Principal) -> None:
    row = ledger.propose(agent)
    answer = page.post(BULK, {"action": "reject", "item": ticked(row), "reason": "See AKIAIOSFODNN7EXAMPLA."})
    assert "AKIAIOSFODNN7EXAMPLA" not in text(answer)
    assert ledger.fresh(row).status == CandidateStatus.PENDING


def test_nothing_ticked(page: Client, agent: Principal) -> None:
    ledger.propose(agent)
    answer = page.post(BULK, {"action": "approve"})
    assert answer.status_code == 422
    assert "Tick at least one candidate first." in text(answer)


@pytest.mark.parametrize(
    "data",
    [
        {"action": "approve", "item": "nonsense"},
        {"action": "approve", "item": "0:1"},
        {"action": "approve", "item": "6f9619ff-8b86-d011-b42d-00cf4fc964ff:99999999999"},
        {"action": "retire", "item": "6f9619ff-8b86-d011-b42d-00cf4fc964ff:1"},
    ],
)
def test_what_no_form_of_ours_sends(page: Client, data: dict[str, str]) -> None:
    assert page.post(BULK, data).status_code == 400


def test_others_rows_are_not_there_in_bulk(browser: Any, charlie: User, agent: Principal) -> None:
    row = ledger.propose(agent, "Only firm knows this.")
    answer = browser(charlie).post(BULK, {"action": "approve", "item": ticked(row)})
    assert "There is no such candidate." in text(answer)
    assert "Only firm knows this." not in text(answer)
    assert ledger.fresh(row).status == CandidateStatus.PENDING


def test_bulk_is_closed_to_members_and_the_attempt_is_on_record(browser: Any, bob: User, agent: Principal) -> None:
    row = ledger.propose(agent)
    assert browser(bob).post(BULK, {"action": "approve", "item": ticked(row)}).status_code == 403
    assert ledger.fresh(row).status == CandidateStatus.PENDING
    assert AuditEvent.objects.get(actor="bob", verb__startswith="was refused").subject_id == "bulk"


def test_bulk_is_posted_and_from_a_form_of_ours(page: Client, browser: Any, alice: User, agent: Principal) -> None:
    assert page.get(BULK).status_code == 405
    row = ledger.propose(agent)
    answer = browser(alice, enforce_csrf_checks=True).post(BULK, {"action": "approve", "item": ticked(row)})
    assert answer.status_code == 403
    assert ledger.fresh(row).status == CandidateStatus.PENDING


# --- while the database is down -----------------------------------------------------------------------------
@pytest.mark.parametrize("path", [QUEUE, "/", "/memories/", "/propose/", "/memories/M-1/"])
def test_the_page_says_that_the_database_is_down(page: Client, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OperationalError("connection refused: secret detail")

    monkeypatch.setattr(CursorWrapper, "execute", refuse)
    answer = page.get(path)
    assert answer.status_code == 503
    html = text(answer)
    assert "The database does not answer." in html
    assert "It does not mean that nothing is there." in html
    assert "secret detail" not in html
    assert "queue is empty" not in html


# --- what it can be narrowed by -----------------------------------------------------------------------------
def test_facets_count_what_the_filter_admits(page: Client, bot: Principal, agent: Principal) -> None:
    for _ in range(2):
        ledger.propose(bot, scope=ScopeInput(repos=("acme/pay",)))
    ledger.propose(agent, type="business_rules", scope=ScopeInput(repos=("acme/shop", "acme/pay")))
    answer = page.get(QUEUE, {"repo": "acme/pay"})
    groups = {name: [(link.label, link.count) for link in links] for name, _, links in answer.context["facet_groups"]}
    assert groups["type"] == [("tooling setup", 2), ("business rules", 1)]
    assert groups["repo"] == [("acme/pay", 3), ("acme/shop", 1)]
    assert groups["origin"] == [("botty", 2), ("robo", 1)]
    assert "Narrow down" in words(answer)


def test_a_facet_leads_to_what_it_counted_and_back(page: Client, bot: Principal, agent: Principal) -> None:
    ledger.propose(bot, "Backups are encrypted.")
    ledger.propose(agent, "Webhooks retry.", type="business_rules")
    (link, _) = next(links for name, _, links in page.get(QUEUE).context["facet_groups"] if name == "type")
    answer = page.get(f"{QUEUE}?{link.query}")
    assert shown(answer) == ["Webhooks retry."]
    (chosen,) = next(links for name, _, links in answer.context["facet_groups"] if name == "type")
    assert chosen.chosen
    assert len(shown(page.get(f"{QUEUE}?{chosen.query}"))) == 2


def test_facets_stop_counting_and_say_so(page: Client, bot: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.memories.facets.MOST", 2)
    for _ in range(4):
        ledger.propose(bot)
    answer = page.get(QUEUE)
    assert not answer.context["facets"].complete
    assert answer.context["facets"].counted == 2
    assert "Counted among the first 2" in words(answer)


def test_what_others_may_not_see_is_not_counted(page: Client, workspace: Any, bot: Principal) -> None:
    ledger.propose(bot)
    hidden = ledger.propose(bot, scope=ScopeInput(repos=("acme/secret",)))
    board = Audience.objects.create(workspace=workspace, name="board")
    Candidate.objects.filter(pk=hidden.pk).update(audience_ids=[board.pk])
    answer = page.get(QUEUE)
    assert answer.context["counts"]["pending"] == 1
    assert "acme/secret" not in text(answer)


def test_decided_rows_say_who_and_why(page: Client, bot: Principal, reviewer: Principal) -> None:
    ledger.reject(reviewer, ledger.propose(bot, "Webhooks never retry."), "They do, with jitter.")
    memory = ledger.remember(bot, reviewer, "Backups are encrypted.")
    rejected = words(page.get(QUEUE, {"status": "rejected"}))
    assert "alice rejected it" in rejected
    assert "They do, with jitter." in rejected
    assert "turned down and why" in rejected
    approved = words(page.get(QUEUE, {"status": "approved"}))
    assert f"approved it just now as {memory.label}" in approved
    assert "waits for a person" not in approved


def test_a_secret_in_a_filter_is_repeated_by_no_link_and_kept_by_no_name(browser, alice, workspace) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    client = browser(alice)
    page = client.get("/review/", {"q": f"token {secret}", "status": "rejected"})
    links = re.findall(r'(?:href|action)="([^"]*)"', page.content.decode())
    assert any("q=token" in link for link in links)
    assert not any(secret in link for link in links)
    saving = reverse("approvals:filter-save")
    client.post(f"{saving}?{urlencode({'q': secret})}", {"name": "mine"})
    assert all(secret not in kept.query for kept in SavedFilter.objects.filter(workspace=workspace))
