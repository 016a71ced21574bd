"""Proposing by hand, and what becomes of one's proposals."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.proposal import ScopeInput
from apps.candidates.revisions import Revision, candidate_revise
from apps.memories.models import Verdict
from tests import ledger
from tests.conftest import Issued, add_person
from tests.pages import form, text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

PROPOSE = "/propose/"
HOSTILE = "<img src=x onerror=alert(1)>"
GOOD = {
    "content": "Coupons never stack.",
    "type": "task_learnings",
    "repos": "acme/pay",
    "source-0-kind": "chat",
    "source-0-reference": "#checkout 2026-03-10",
}


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture
def member(browser: Callable[..., Client], bob: User) -> Client:
    return browser(bob)


def withdraw(candidate: Candidate) -> str:
    return f"/propose/{candidate.pk}/withdraw/"


# --- who ----------------------------------------------------------------------------------------------------
def test_every_member_proposes(browser: Any, bob: User, alice: User, dave: User) -> None:
    for who in (bob, alice, dave):
        assert browser(who).get(PROPOSE).status_code == 200


def test_nobody_signs_in_first(browser: Any, workspace: Workspace) -> None:
    assert browser().get(PROPOSE).headers["Location"] == "/accounts/login/?next=/propose/"
    assert browser().post(PROPOSE, GOOD).status_code == 302
    assert not Candidate.objects.exists()


def test_the_form_has_to_be_ours(member: Client, browser: Any, bob: User) -> None:
    assert browser(bob, enforce_csrf_checks=True).post(PROPOSE, GOOD).status_code == 403
    assert member.put(PROPOSE).status_code == 405
    assert not Candidate.objects.exists()


# --- propose ------------------------------------------------------------------------------------------------
def test_propose_with_everything(member: Client, bob: User, bot: Principal, reviewer: Principal) -> None:
    memory = ledger.remember(bot, reviewer, "Coupons stack twice.")
    data = form(member.get(PROPOSE), PROPOSE) | {
        "content": "Coupons never stack,\r\nsince the incident.",
        "type": "business_rules",
        "firm": "on",
        "repos": "acme/pay\r\n\r\n acme/web ",
        "domains": "checkout",
        "confidence": "0.9",
        "valid_from": "2026-03-01",
        "supersedes": memory.label,
        "source-0-kind": "incident",
        "source-0-reference": "INC-7",
        "source-0-url": "https://status.example/7",
        "source-0-title": "Free orders",
        "source-0-quote": "Three coupons made an order free.",
        "source-2-kind": "chat",
        "source-2-reference": "#checkout",
    }
    answer = member.post(PROPOSE, data)
    candidate = Candidate.objects.get(origin_user=bob)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{PROPOSE}?proposed={candidate.pk}")
    assert candidate.content == "Coupons never stack,\nsince the incident."
    assert (candidate.firm, len(candidate.repo_ids), len(candidate.domain_ids)) == (True, 2, 1)
    assert (candidate.confidence, candidate.supersedes) == (0.9, [memory.pk])
    assert candidate.valid_from == datetime(2026, 3, 1, tzinfo=UTC)
    references = [row.source.reference for row in candidate.evidence.select_related("source")]
    assert references == ["INC-7", "#checkout"]
    shown = words(member.get(answer.headers["Location"]))
    assert "Proposed. A reviewer decides about it; you can follow it below." in shown
    assert "Coupons never stack, since the incident." in shown


def test_the_least_that_is_needed(member: Client) -> None:
    assert member.post(PROPOSE, GOOD).status_code == 303
    assert Candidate.objects.get().confidence is None


@pytest.mark.parametrize(
    ("sent", "field", "says"),
    [
        ({"content": " "}, "content", "Write the statement."),
        ({"content": "x" * 8_001}, "content", "at most 8,000 characters"),
        ({"content": "Our key is AKIAIOSFODNN7EXAMPLA."}, "content", "There is a secret (aws access key)"),
        ({"content": "a\x00b"}, "content", "Null characters are not allowed."),
        ({"type": ""}, "type", "Choose a type."),
        ({"type": "foo"}, "type", "“foo” is not a type."),
        ({"repos": ""}, "firm", "Say where it holds"),
        ({"repos": "x" * 201}, "repos", "at most 200 characters"),
        ({"domains": "x" * 201}, "domains", "at most 200 characters"),
        ({"confidence": "1.5"}, "confidence", "Give a number from 0 to 1."),
        ({"confidence": "sure"}, "confidence", "Give a number from 0 to 1"),
        ({"valid_from": "soon"}, "valid_from", "Give a day as year, month and day"),
        ({"valid_from": "2999-01-01"}, "valid_from", "Give a moment between"),
        ({"supersedes": "M-99"}, "supersedes", "There is no memory M-99"),
    ],
)
def test_what_will_not_do_is_said_at_its_field(member: Client, sent: dict[str, str], field: str, says: str) -> None:
    answer = member.post(PROPOSE, GOOD | sent)
    assert answer.status_code == 422
    assert says in " ".join(answer.context["form"].errors[field])
    assert f'id="propose-{field}_error"' in text(answer)
    assert "#checkout 2026-03-10" in text(answer)
    assert not Candidate.objects.exists()


@pytest.mark.parametrize(
    ("sent", "field", "says"),
    [
        ({"source-0-reference": ""}, "reference", "Name at least one source"),
        ({"source-0-reference": "", "source-0-title": "x"}, "reference", "This is blank."),
        ({"source-0-kind": "rumour"}, "kind", "Use one of: merge_request"),
        ({"source-0-url": "javascript:alert(1)"}, "url", "Use an address that starts with http:// or https://."),
        ({"source-0-url": "x" * 2_001}, "url", "at most 2,000 characters"),
        ({"source-0-title": "x" * 501}, "title", "at most 500 characters"),
        ({"source-0-quote": "x" * 501}, "quote", "at most 500 characters"),
    ],
)
def test_what_is_wrong_with_a_source_is_said_there(member: Client, sent: dict[str, str], field: str, says: str) -> None:
    answer = member.post(PROPOSE, GOOD | sent)
    assert answer.status_code == 422
    row = answer.context["form"].sources.rows[0]
    assert says in " ".join(row.errors[field])
    assert "Each field says why." in text(answer)
    assert not Candidate.objects.exists()


def test_a_fault_in_a_later_row_is_shown_in_that_row(member: Client) -> None:
    sent = {"source-2-kind": "chat", "source-2-reference": "r", "source-2-url": "ftp://x"}
    answer = member.post(PROPOSE, GOOD | sent)
    rows = answer.context["form"].sources.rows
    assert [sorted(row.errors) for row in rows] == [[], [], ["url"]]


def test_everything_that_is_missing_is_said_at_once(member: Client) -> None:
    answer = member.post(PROPOSE, {})
    assert answer.status_code == 422
    form_ = answer.context["form"]
    assert set(form_.errors) == {"content", "type", "firm"}
    assert form_.sources.rows[0].errors["reference"]


@pytest.mark.parametrize("field", ["content", "source-0-quote", "source-0-title", "source-0-url", "repos"])
@pytest.mark.parametrize("also_wrong", [{}, {"confidence": "sure"}])
def test_a_secret_is_refused_and_not_repeated(member: Client, field: str, also_wrong: dict[str, str]) -> None:
    secret = "ghp_" + "k3Yq" * 9
    text_ = f"https://x.example/?{secret}" if field == "source-0-url" else f"The token {secret} is ours."
    answer = member.post(PROPOSE, GOOD | {field: text_} | also_wrong)
    assert answer.status_code == 422
    assert secret not in text(answer)
    assert "[secret: github token]" in text(answer)
    assert not Candidate.objects.exists()


# --- what becomes of it -------------------------------------------------------------------------------------
def test_what_is_near_is_shown(member: Client, bot: Principal, reviewer: Principal) -> None:
    memory = ledger.remember(bot, reviewer, "Coupons never stack on sale items in the shop.")
    ledger.propose(bot, "Coupons never stack on gift cards in the shop.")
    answer = member.post(PROPOSE, GOOD | {"content": "Coupons never stack on vouchers in the shop."})
    shown = member.get(answer.headers["Location"])
    assert "2 near it" in words(shown)
    assert f'href="/memories/{memory.label}/"' in text(shown)
    assert "A proposal of somebody else that waits for review." in words(shown)
    assert "gift cards" not in text(shown)


def test_the_same_again_joins_and_says_so(member: Client, bot: Principal) -> None:
    ledger.propose(bot, GOOD["content"], type=GOOD["type"], scope=ScopeInput(repos=("acme/pay",)))
    answer = member.post(PROPOSE, GOOD)
    assert "The same statement is already waiting for review" in words(member.get(answer.headers["Location"]))
    assert Candidate.objects.count() == 1


def test_what_was_rejected_before_is_told_with_its_reason(member: Client, reviewer: Principal, bob: User) -> None:
    member.post(PROPOSE, GOOD)
    ledger.reject(reviewer, Candidate.objects.get(), f"They do. {HOSTILE}")
    answer = member.post(PROPOSE, GOOD)
    page = member.get(answer.headers["Location"])
    assert "alice rejected the same statement on" in words(page)
    assert HOSTILE not in text(page)
    assert "alice rejected it just now" in words(page)


def test_a_guess_is_set_aside_and_told_why(member: Client) -> None:
    answer = member.post(PROPOSE, GOOD | {"confidence": "0.2"})
    shown = words(member.get(answer.headers["Location"]))
    assert "set aside until a reviewer asks for it" in shown
    assert "below the 0.6" in shown
    assert "Quarantined" in shown


def test_too_many_are_refused_and_the_text_is_kept(
    member: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr("apps.candidates.services.MAX_OPEN_PER_ORIGIN", 1)
    member.post(PROPOSE, GOOD)
    answer = member.post(PROPOSE, GOOD | {"content": "What I typed."})
    assert answer.status_code == 429
    assert "What I typed." in text(answer)
    assert "proposals are waiting for review already" in words(answer)


def test_only_own_ones_are_listed_with_their_verdicts(member: Client, bob: User, bot: Principal, alice: User) -> None:
    ledger.propose(bot, "The bot's own.")
    own = ledger.propose(ledger.of_person(bob), "Mine to follow.")
    ledger.reject(ledger.of_person(alice), own, "Not so.")
    shown = words(member.get(PROPOSE))
    assert "Mine to follow." in shown and "Not so." in shown
    assert "The bot's own." not in shown


def test_they_page(member: Client, bob: User) -> None:
    contents = [ledger.propose(ledger.of_person(bob)).content for _ in range(12)]
    first = member.get(PROPOSE)
    second = member.get(first.context["next"])
    shown = [row.content for answer in (first, second) for row, _ in answer.context["own"]]
    assert shown == contents[::-1]
    assert member.get(PROPOSE, {"cursor": "nonsense"}).status_code == 422


def test_hostile_text_is_text(member: Client) -> None:
    for sent in (
        dict.fromkeys(("content", "repos", "domains", "source-0-reference", "source-0-title"), HOSTILE),
        {"content": " ", "type": HOSTILE, "supersedes": HOSTILE, "source-0-url": HOSTILE, "confidence": HOSTILE},
    ):
        answer = member.post(PROPOSE, GOOD | sent)
        answer = member.get(answer.headers["Location"]) if answer.status_code == 303 else answer
        assert HOSTILE not in text(answer)
        assert "&lt;img src=x onerror=alert(1)&gt;" in text(answer)


# --- withdraw -----------------------------------------------------------------------------------------------
def test_withdraw(member: Client, bob: User) -> None:
    candidate = ledger.propose(ledger.of_person(bob))
    data = form(member.get(PROPOSE), withdraw(candidate))
    answer = member.post(withdraw(candidate), data)
    assert (answer.status_code, answer.headers["Location"]) == (303, PROPOSE)
    assert ledger.fresh(candidate).status == CandidateStatus.WITHDRAWN
    shown = member.get(PROPOSE)
    assert "bob withdrew it" in words(shown)
    assert withdraw(candidate) not in text(shown)
    assert Verdict.objects.get(subject_id=candidate.pk).via == "ui"


def test_withdrawing_too_late(member: Client, bob: User, reviewer: Principal) -> None:
    candidate = ledger.propose(ledger.of_person(bob))
    ledger.reject(reviewer, candidate, "Not so.")
    answer = member.post(withdraw(candidate), {"version": candidate.version})
    assert answer.status_code == 409
    assert "alice has already rejected this candidate" in words(answer)


def test_withdrawing_what_has_changed(member: Client, bob: User) -> None:
    candidate = ledger.propose(ledger.of_person(bob))
    candidate_revise(
        principal=ledger.of_person(bob),
        candidate_id=candidate.pk,
        version=1,
        revision=Revision(values={"content": "Said anew."}),
    )
    answer = member.post(withdraw(candidate), {"version": 1})
    assert answer.status_code == 409
    assert ledger.fresh(candidate).status == CandidateStatus.PENDING


def test_what_others_proposed_too_is_not_withdrawn(member: Client, bob: User, bot: Principal) -> None:
    candidate = ledger.propose(ledger.of_person(bob), "Coupons never stack.")
    ledger.propose(bot, "Coupons never stack.")
    assert withdraw(candidate) not in text(member.get(PROPOSE))
    assert member.post(withdraw(candidate), {"version": ledger.fresh(candidate).version}).status_code == 403


def test_others_withdraw_nothing(
    browser: Any, bob: User, alice: User, charlie: User, workspace: Workspace, member: Client
) -> None:
    candidate = ledger.propose(ledger.of_person(bob))
    other = add_person(workspace, "olga", Role.MEMBER)
    data = {"version": candidate.version}
    assert browser(other).post(withdraw(candidate), data).status_code == 404
    assert browser(charlie).post(withdraw(candidate), data).status_code == 404
    assert browser(alice).post(withdraw(candidate), data).status_code == 403
    assert browser().post(withdraw(candidate), data).status_code == 302
    assert browser(bob, enforce_csrf_checks=True).post(withdraw(candidate), data).status_code == 403
    assert member.get(withdraw(candidate)).status_code == 405
    assert member.post(withdraw(candidate), {}).status_code == 422
    assert ledger.fresh(candidate).status == CandidateStatus.PENDING
