"""The memory browser and a memory's page, with what may be done from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts.models import Audience, AuditEvent, Workspace
from apps.accounts.principal import Principal
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_retire
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.proposal import ScopeInput
from apps.core.clock import now
from apps.memories.models import Action, Memory, MemoryStatus, Verdict
from apps.memories.providers.base import ProviderError
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.sources.models import Source
from tests import ledger
from tests.pages import form, text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

HOSTILE = "<img src=x onerror=alert(1)>"
SOURCE = {"source-0-kind": "document", "source-0-reference": "wiki/1"}


@pytest.fixture
def member(browser: Callable[..., Client], bob: User) -> Client:
    return browser(bob)


@pytest.fixture
def page(browser: Callable[..., Client], alice: User) -> Client:
    return browser(alice)


def at(memory: Memory, action: str = "") -> str:
    return f"/memories/{memory.label}/{action}"


def numbers(answer: Any) -> list[str]:
    return [row["number"] for row in answer.context["rows"]]


# --- the browser --------------------------------------------------------------------------------------------
def test_members_browse_and_nobody_else(member: Client, browser: Any, charlie: User, remember: Any) -> None:
    remember("Only firm knows this.")
    assert "Only firm knows this." in text(member.get("/memories/"))
    assert browser().get("/memories/").headers["Location"] == "/accounts/login/?next=/memories/"
    assert "Nothing is remembered yet" in words(browser(charlie).get("/memories/"))
    assert member.post("/memories/").status_code == 405


def test_what_is_pending_is_not_in_it(member: Client, bot: Principal) -> None:
    ledger.propose(bot, "Not yet a memory.")
    for path in ("/memories/", "/memories/?status=all", "/memories/?q=not+yet+a+memory"):
        assert "Not yet a memory." not in text(member.get(path))


@pytest.fixture
def shelf(remember: Any, reviewer: Principal, bot: Principal) -> None:
    first = remember("Parsers keep ninety days.", type="bug_fixes", scope=ScopeInput(repos=("acme/web",)))
    remember("Parsers keep a year.", supersedes=(first,), scope=ScopeInput(domains=("a_b",)))
    ledger.report(bot, remember("Shards reject duplicates.", scope=ScopeInput(domains=("axb",))))
    memory_retire(principal=reviewer, reference=remember("Caches expire.").pk, reason="They do not.")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["M-3", "M-2"]),
        ({"status": "all"}, ["M-4", "M-3", "M-2", "M-1"]),
        ({"status": "active"}, ["M-2"]),
        ({"status": "disputed"}, ["M-3"]),
        ({"status": "superseded"}, ["M-1"]),
        ({"status": "retired"}, ["M-4"]),
        ({"status": "all", "type": "bug_fixes"}, ["M-1"]),
        ({"status": "all", "type": "BUG_FIX"}, ["M-1"]),
        ({"status": "all", "repo": "acme/web"}, ["M-1"]),
        ({"domain": "a_b"}, ["M-2"]),
        ({"repo": "acme/nowhere"}, []),
        ({"q": "", "type": ""}, ["M-3", "M-2"]),
    ],
)
def test_the_filter_narrows(member: Client, shelf: None, query: dict[str, str], expected: list[str]) -> None:
    answer = member.get("/memories/", query)
    assert answer.status_code == 200
    assert numbers(answer) == expected


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"status": "bogus"}, "“bogus” is not a status."),
        ({"type": "foo"}, "“foo” is not a type."),
        ({"q": "x", "type": "foo"}, "“foo” is not a type."),
        ({"cursor": "nonsense"}, "This cursor was not given out for this list."),
        ({"repos": "acme/web"}, "Memories cannot be filtered by “repos”."),
        ({"q": "x" * 20_001}, "at most 20,000 characters"),
        ({"q": "a\x00b"}, "Null characters are not allowed."),
        ({"q": "x", "repo": "y" * 501}, "at most 500 characters"),
        ({HOSTILE: "1"}, "“&lt;img src=x onerror=alert(1)&gt;”"),
    ],
)
def test_what_will_not_do_is_said_and_nothing_is_listed(
    member: Client, shelf: None, query: dict[str, str], says: str
) -> None:
    answer = member.get("/memories/", query)
    assert answer.status_code == 422
    assert says in text(answer)
    assert "Parsers" not in text(answer)
    assert HOSTILE not in text(answer)


def test_pages_follow_each_other_within_the_budget(
    member: Client, remember: Any, django_assert_max_num_queries: Any
) -> None:
    for at_ in range(30):
        remember(scope=ScopeInput(domains=(f"d{at_}", "x"), repos=(f"acme/r{at_}", "acme/pay")))
    everything = {"status": "in-force", "type": "tooling_setup", "repo": "acme/pay", "domain": "x"}
    for query in ({}, everything):
        with django_assert_max_num_queries(12) as captured:
            first = member.get("/memories/", query)
        assert not any(" OFFSET " in entry["sql"] for entry in captured.captured_queries)
        second = member.get(first.context["next"])
        assert numbers(first) + numbers(second) == [f"M-{number}" for number in range(30, 0, -1)]
        assert numbers(member.get(second.context["previous"])) == numbers(first)


# --- search -------------------------------------------------------------------------------------------------
def test_search_answers_with_the_best_first(member: Client, shelf: None) -> None:
    answer = member.get("/memories/", {"q": "which duplicates do shards reject?"})
    assert answer.status_code == 200
    assert numbers(answer)[0] == "M-3"
    assert "M-1" not in numbers(answer) and "M-4" not in numbers(answer)
    assert "the whole workspace was searched" in words(answer)


def test_search_within_a_filter(member: Client, shelf: None) -> None:
    assert numbers(member.get("/memories/", {"q": "parsers", "domain": "a_b"})) == ["M-2"]
    assert "Not known here: “acme/nowhere”." in words(
        member.get("/memories/", {"q": "parsers", "repo": "acme/nowhere"})
    )


def test_a_search_that_could_not_look_says_so(
    member: Client, shelf: None, pool: Mem0Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise ProviderError("The pool does not answer.", permanent=False)

    monkeypatch.setattr(pool, "search", fail)
    answer = member.get("/memories/", {"q": "zebra"})
    assert answer.status_code == 200
    assert "Not everything could be looked at." in words(answer)
    assert "Nothing was found in what could be looked at" in words(answer)
    assert "Nothing answers that" not in words(answer)


@pytest.mark.parametrize("q", ["`foo`", '"', ":*", "(", "支払い", "a/b-c", HOSTILE])
def test_any_question_is_a_question(member: Client, shelf: None, q: str) -> None:
    answer = member.get("/memories/", {"q": q})
    assert answer.status_code == 200
    assert HOSTILE not in text(answer)


# --- one memory ---------------------------------------------------------------------------------------------
def test_by_number_and_by_id(member: Client, remember: Any) -> None:
    memory = remember("Exports close at midnight.")
    for reference in (memory.label, memory.pk):
        answer = member.get(f"/memories/{reference}/")
        assert answer.status_code == 200
        assert "Exports close at midnight." in text(answer)


def test_what_is_not_there(member: Client, browser: Any, charlie: User, remember: Any) -> None:
    memory = remember()
    for path in ("/memories/M-99/", "/memories/nonsense/", "/memories/6f9619ff-8b86-d011-b42d-00cf4fc964ff/"):
        assert member.get(path).status_code == 404
    assert browser(charlie).get(f"/memories/{memory.pk}/").status_code == 404
    for action in ("retire/", "restore/", "correct/"):
        answer = browser(charlie).post(at(memory, action), {"reason": "So.", "kind": "wrong"} | SOURCE)
        assert answer.status_code == 404
    assert ledger.fresh(memory).status == MemoryStatus.ACTIVE


def test_what_ended_before_it_began_was_never_in_force(page: Client, remember: Any) -> None:
    begins = now() + timedelta(days=60)
    first = remember(valid_from=begins)
    second = remember(supersedes=(first,))
    began, ended = (f"{at:%-d %b %Y}" for at in (begins, ledger.fresh(first).valid_to))
    shown = words(page.get(at(first)))
    assert re.search(rf"Never in force\s*It was to begin on {began}, and ended on {ended}\.", shown)
    for memory in (first, second):
        assert f"never in force: to begin {began}, ended {ended}" in words(page.get(at(memory)))
    assert "Valid from" not in shown and "until" not in shown


def test_everything_about_it(member: Client, page: Client, bot: Principal, reviewer: Principal, remember: Any) -> None:
    candidate = ledger.propose(
        bot,
        "Exports close at eleven.",
        scope=ScopeInput(firm=True, domains=("billing",), repos=("acme/pay",)),
        confidence=0.9,
        valid_from=datetime(2026, 2, 1, tzinfo=UTC),
        sources=(ledger.a_source("acme/pay!7", url="https://git.example/7", title="Midnight", quote="At midnight."),),
    )
    memory = ledger.approve(reviewer, candidate, note="The hour was off.", content="Exports close at midnight.").memory
    shown = words(member.get(at(memory)))
    for expected in (
        "Exports close at midnight.",
        "tooling setup",
        "Whole firm",
        "billing",
        "acme/pay",
        "90 %",
        "1 Feb 2026",
        "At midnight.",
        "Midnight",
        "alice approved this",
        "The hour was off.",
    ):
        assert expected in shown
    assert "Exports close at eleven." not in shown  # nobody approved that
    seen_by_a_reviewer = words(page.get(at(memory)))
    assert "alice amended and approved this" in seen_by_a_reviewer
    assert "Exports close at eleven." in seen_by_a_reviewer
    assert 'rel="noopener noreferrer nofollow"' in text(member.get(at(memory)))
    assert f'href="/review/{candidate.pk}/"' in text(page.get(at(memory)))
    assert f'href="/review/{candidate.pk}/"' not in text(member.get(at(memory)))


def test_the_chain_is_shown_oldest_first(member: Client, remember: Any) -> None:
    first = remember("Exports close at ten.")
    second = remember("Exports close at eleven.", supersedes=(first,))
    third = remember("Exports close at midnight.", supersedes=(second,))
    answer = member.get(at(second))
    assert [link.memory for link in answer.context["leaf"].chain] == [first, second, third]
    shown = words(answer)
    assert f"Replaced by {third.label}." in shown
    assert f"Replaces {first.label}" in shown
    assert "Superseded" in shown
    assert "Replaced by" not in words(member.get(at(third)))


def test_a_disputed_one_says_why_and_where_it_is_decided(
    member: Client, page: Client, remember: Any, bot: Principal
) -> None:
    memory = remember()
    report = ledger.report(bot, memory, reason=f"It ended. {HOSTILE}")
    answer = member.get(at(memory))
    assert "botty reported this as stale" in words(answer)
    assert "It ended." in words(answer)
    assert HOSTILE not in text(answer)
    assert f"/review/{report.pk}/" not in text(answer)
    assert f"/review/{report.pk}/" in text(page.get(at(memory)))


def test_hostile_text_is_text(page: Client, remember: Any) -> None:
    memory = remember(
        f"{HOSTILE} in content.\u202e",
        scope=ScopeInput(domains=(HOSTILE,), repos=(HOSTILE,)),
        sources=(ledger.a_source(HOSTILE, title=HOSTILE, quote=HOSTILE),),
    )
    for path in (at(memory), "/memories/", "/memories/?q=content", "/"):
        answer = page.get(path)
        assert answer.status_code == 200
        assert HOSTILE not in text(answer) and "\u202e" not in text(answer)
        assert "&lt;img src=x onerror=alert(1)&gt; in content." in text(answer)


def test_what_came_from_a_restricted_source_is_for_its_audience(
    page: Client, remember: Any, workspace: Workspace, carol: User, alice: User
) -> None:
    memory = remember("Only the board knows.", sources=(ledger.a_source("board/1"),))
    successor = remember("Everybody knows.", supersedes=(memory,))
    audience = Audience.objects.create(workspace=workspace, name="board")
    source = Source.objects.get(reference="board/1")
    source_restrict(principal=ledger.of_person(carol), source_id=source.pk, audience_id=audience.pk)
    assert page.get(at(memory)).status_code == 404
    for path in (at(successor), "/memories/?status=all", "/"):
        assert "Only the board knows." not in text(page.get(path))
    audience.members.add(alice)
    assert "Only the board knows." in text(page.get(at(successor)))


# --- retire and restore -------------------------------------------------------------------------------------
def test_retire_and_restore(page: Client, remember: Any) -> None:
    memory = remember()
    answer = page.post(at(memory, "retire/"), {"reason": "It ended."})
    assert (answer.status_code, answer.headers["Location"]) == (303, at(memory))
    shown = words(page.get(at(memory)))
    assert f"{memory.label} is retired now." in shown
    assert "Retired by alice just now: It ended." in shown
    assert page.post(at(memory, "restore/"), {"reason": "It did not."}).status_code == 303
    assert ledger.fresh(memory).status == MemoryStatus.ACTIVE
    actions = Verdict.objects.filter(subject_id=memory.pk).values_list("action", "via")
    assert list(actions) == [(Action.RETIRE, "ui"), (Action.RESTORE, "ui")]


@pytest.mark.parametrize("reason", ["", " ", "x" * 2_001, "AKIAIOSFODNN7EXAMPLA"])
def test_retiring_needs_a_reason_that_will_do(page: Client, remember: Any, reason: str) -> None:
    memory = remember()
    answer = page.post(at(memory, "retire/"), {"reason": reason})
    assert answer.status_code == 422
    assert answer.context["retire"].errors["reason"]
    assert ledger.fresh(memory).status == MemoryStatus.ACTIVE


def test_what_cannot_be_done_in_its_status_is_a_conflict(page: Client, remember: Any) -> None:
    memory = remember()
    answer = page.post(at(memory, "restore/"), {"reason": "What I typed."})
    assert answer.status_code == 409
    assert f"{memory.label} is active, so it cannot be restored." in words(answer)
    page.post(at(memory, "retire/"), {"reason": "It ended."})
    answer = page.post(at(memory, "retire/"), {"reason": "Again."})
    assert answer.status_code == 409


def test_a_second_head_is_refused(page: Client, remember: Any, bot: Principal, reviewer: Principal) -> None:
    memory = remember("Exports close at midnight.")
    page.post(at(memory, "retire/"), {"reason": "It ended."})
    twin = ledger.approve(reviewer, ledger.propose(bot, "Exports close."), content="Exports close at midnight.").memory
    answer = page.post(at(memory, "restore/"), {"reason": "It did not."})
    assert answer.status_code == 409
    assert f"{twin.label} says the same and is in force" in words(answer)
    assert "It did not." in text(answer)


def test_members_retire_nothing_and_the_attempt_is_on_record(member: Client, remember: Any) -> None:
    memory = remember()
    assert "retire/" not in text(member.get(at(memory)))
    for action in ("retire/", "restore/"):
        assert member.post(at(memory, action), {"reason": "So."}).status_code == 403
    assert ledger.fresh(memory).status == MemoryStatus.ACTIVE
    assert AuditEvent.objects.filter(actor="bob", verb__startswith="was refused", subject_id=memory.label).count() == 2


def test_changes_are_posted_from_a_form_of_ours(page: Client, browser: Any, alice: User, remember: Any) -> None:
    memory = remember()
    strict = browser(alice, enforce_csrf_checks=True)
    for action in ("retire/", "restore/", "correct/"):
        assert page.get(at(memory, action)).status_code == 405
        assert strict.post(at(memory, action), {"reason": "So."}).status_code == 403
        assert browser().post(at(memory, action), {"reason": "So."}).status_code == 302
    assert ledger.fresh(memory).status == MemoryStatus.ACTIVE


def test_the_pool_is_down(page: Client, remember: Any, pool: Mem0Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = remember()

    def fail(*args: Any, **kwargs: Any) -> None:
        raise ProviderError("The pool does not answer.", permanent=False)

    monkeypatch.setattr(pool, "update", fail)
    answer = page.post(at(memory, "retire/"), {"reason": "What I typed."})
    assert answer.status_code == 503
    assert "Nothing was changed. The pool does not answer." in words(answer)
    assert "What I typed." in text(answer)
    assert ledger.fresh(memory).status == MemoryStatus.ACTIVE


# --- report -------------------------------------------------------------------------------------------------
def test_a_member_reports_a_memory(member: Client, remember: Any, bob: User) -> None:
    memory = remember()
    data = form(member.get(at(memory)), at(memory, "correct/"))
    assert data["kind"] == "stale"
    data |= {"reason": "It ended.", "content": "It goes on\r\nelsewhere."} | SOURCE
    answer = member.post(at(memory, "correct/"), data)
    assert (answer.status_code, answer.headers["Location"]) == (303, at(memory))
    report = Candidate.objects.get(corrects=memory)
    assert (report.origin_user, report.correction_kind, report.content) == (bob, "stale", "It goes on\nelsewhere.")
    assert report.evidence.get().source.reference == "wiki/1"
    shown = words(member.get(at(memory)))
    assert "Reported. A reviewer decides about it." in shown
    assert "Disputed" in shown


def test_a_second_report_joins_the_first(member: Client, remember: Any) -> None:
    memory = remember()
    for _ in range(2):
        member.post(at(memory, "correct/"), {"kind": "wrong", "reason": "It never held."} | SOURCE)
    assert Candidate.objects.filter(corrects=memory).count() == 1
    assert "Your earlier report is still open." in words(member.get(at(memory)))


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"reason": " "}, "This is blank."),
        ({"kind": "odd"}, "Use one of: stale, wrong."),
        ({"content": "x" * 8_001}, "at most 8,000 characters"),
        ({"source-0-reference": ""}, "Name at least one source"),
        ({"source-0-url": "javascript:alert(1)"}, "Use an address that starts with http:// or https://."),
        ({"source-0-quote": "x" * 501}, "at most 500 characters"),
        ({"source-0-kind": "rumour"}, "Use one of: merge_request"),
    ],
)
def test_what_will_not_do_is_said_at_its_field(member: Client, remember: Any, sent: dict[str, str], says: str) -> None:
    memory = remember()
    data = {"kind": "stale", "reason": "What I typed.", "content": "Better."} | SOURCE | sent
    answer = member.post(at(memory, "correct/"), data)
    assert answer.status_code == 422
    assert says in words(answer)
    assert "javascript:alert(1)" not in re.findall(r'href="([^"]*)"', text(answer))
    if "reason" not in sent:
        assert "What I typed." in text(answer)
    assert not Candidate.objects.filter(corrects=memory).exists()


def test_what_is_not_in_force_is_not_reported(member: Client, remember: Any, reviewer: Principal) -> None:
    memory = remember()
    memory_retire(principal=reviewer, reference=memory.pk, reason="It ended.")
    assert "correct/" not in text(member.get(at(memory)))
    answer = member.post(at(memory, "correct/"), {"kind": "wrong", "reason": "What I typed."} | SOURCE)
    assert answer.status_code == 409
    assert "it cannot be reported" in words(answer)


def test_an_upheld_report_shows_in_the_verdicts(page: Client, member: Client, remember: Any) -> None:
    memory = remember()
    member.post(at(memory, "correct/"), {"kind": "stale", "reason": "It ended."} | SOURCE)
    report = Candidate.objects.get(corrects=memory)
    page.post(f"/review/{report.pk}/approve/", {"version": report.version})
    assert ledger.fresh(report).status == CandidateStatus.APPROVED
    shown = words(member.get(at(memory)))
    assert "bob reported this as stale" in shown
    assert "Retired by alice" in shown


# --- narrowing ----------------------------------------------------------------------------------------------
def groups(answer: Any) -> dict[str, list[tuple[str, int]]]:
    return {name: [(link.label, link.count) for link in links] for name, _, links in answer.context["facet_groups"]}


def test_facets_and_tabs_count_what_is_there(
    member: Client, bot: Principal, reviewer: Principal, django_assert_max_num_queries: Any
) -> None:
    ledger.remember(bot, reviewer, "Backups are encrypted.", type="business_rules")
    ledger.remember(bot, reviewer, "Webhooks retry.", tier="index")
    gone = ledger.remember(bot, reviewer, "Coupons stack.")
    memory_retire(principal=reviewer, reference=gone.pk, reason="They do not.")
    with django_assert_max_num_queries(12):
        answer = member.get("/memories/", {"repo": "acme/pay"})
    assert answer.context["counts"] == {
        "in-force": 2, "active": 2, "disputed": 0, "superseded": 0, "retired": 1, "all": 3,
    }  # fmt: skip
    assert groups(answer)["type"] == [("business rules", 1), ("tooling setup", 1)]
    assert sorted(groups(answer)["tier"]) == [("Durable", 1), ("Index card", 1)]
    cards = member.get("/memories/", {"tier": "index"})
    assert [row["content"] for row in cards.context["rows"]] == ["Webhooks retry."]
    assert member.get("/memories/", {"tier": "gold"}).status_code == 422


def test_words_are_looked_for_in_every_status(member: Client, bot: Principal, reviewer: Principal) -> None:
    gone = ledger.remember(bot, reviewer, "Coupons stack on Sundays.")
    memory_retire(principal=reviewer, reference=gone.pk, reason="They do not.")
    ledger.remember(bot, reviewer, "Webhooks retry.")
    answer = member.get("/memories/", {"q": "sunday coupons", "status": "retired"})
    assert [row["number"] for row in answer.context["rows"]] == [gone.label]
    assert "Every word of the question occurs in these" in words(answer)
    in_force = member.get("/memories/", {"q": "sunday coupons"}).context["rows"]
    assert gone.label not in [row["number"] for row in in_force]


def test_a_search_says_what_its_results_can_be_narrowed_by(
    member: Client, bot: Principal, reviewer: Principal, django_assert_max_num_queries: Any
) -> None:
    ledger.remember(bot, reviewer, "Webhooks retry with jitter.", type="business_rules")
    answer = member.get("/memories/", {"q": "webhooks"})
    assert groups(answer)["type"] == [("business rules", 1)]


def test_what_is_restricted_is_in_no_count(
    member: Client, bot: Principal, reviewer: Principal, workspace: Workspace
) -> None:
    memory = ledger.remember(bot, reviewer, "The board sells.", type="ownership", scope=ScopeInput(repos=("acme/x",)))
    board = Audience.objects.create(workspace=workspace, name="board")
    Memory.objects.filter(pk=memory.pk).update(audience_ids=[board.pk])
    for query in ({}, {"status": "all"}, {"q": "board"}, {"q": "board", "status": "all"}):
        answer = member.get("/memories/", query)
        assert "acme/x" not in text(answer)
        assert "ownership" not in str(groups(answer) if answer.context.get("facet_groups") else "")
        assert set((answer.context.get("counts") or {}).values()) <= {0}
    assert "Nothing new within a week" in words(member.get("/"))


def test_a_chain_is_drawn_and_said_in_words(member: Client, bot: Principal, reviewer: Principal) -> None:
    first = ledger.remember(bot, reviewer, "Backups are kept a week.")
    second = ledger.remember(bot, reviewer, "Backups are kept a month.", supersedes=(first,))
    page = member.get(f"/memories/{second.label}/")
    assert f"Replaces {first.label}" in words(page)
    assert text(page).count("chain-dot-superseded") == 1
    assert "chain-dot-current" in text(page)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "Nothing is remembered yet"),
        ("?status=all", "Nothing is remembered yet"),
        ("?status=disputed", "Nothing is disputed"),
        ("?status=superseded", "Nothing is superseded"),
        ("?status=retired", "Nothing is retired"),
        ("?status=retired&repo=acme/pay", "Nothing matches"),
    ],
)
def test_where_nothing_is_listed_it_is_said_what_would_be(member: Client, query: str, said: str) -> None:
    assert f"<h2>{said}</h2>" in text(member.get(f"/memories/{query}"))
