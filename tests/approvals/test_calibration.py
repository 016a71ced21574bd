"""What past verdicts say about a confidence: who counts as alike, from when on it is said, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Audience, Workspace
from apps.accounts.principal import Principal
from apps.approvals.calibration import ENOUGH, Calibration, calibration
from apps.approvals.restrictions import source_restrict
from apps.candidates.models import Candidate
from apps.sources.models import Source
from tests import ledger
from tests.conftest import Issued
from tests.pages import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def agent(robo: Issued) -> Principal:
    return ledger.of_token(robo.token)


@pytest.fixture
def bot(botty: Issued) -> Principal:
    return ledger.of_token(botty.token)


@pytest.fixture
def reviewer(alice: User) -> Principal:
    return ledger.of_person(alice)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four are enough here, so that no test has to decide about dozens."""
    assert ENOUGH == 20
    monkeypatch.setattr("apps.approvals.calibration.ENOUGH", 4)


def decided(
    proposer: Principal, reviewer: Principal, *, approved: int = 0, rejected: int = 0, **changes: Any
) -> list[Candidate]:
    rows = []
    for _ in range(approved):
        rows.append(ledger.propose(proposer, **changes))
        ledger.approve(reviewer, rows[-1])
    for _ in range(rejected):
        rows.append(ledger.propose(proposer, **changes))
        ledger.reject(reviewer, rows[-1])
    return rows


def said(reader: Principal, proposer: Principal, **changes: Any) -> Calibration | None:
    return calibration(reader, ledger.propose(proposer, **changes))


def test_it_says_how_many_like_it_were_approved(agent: Principal, reviewer: Principal) -> None:
    decided(agent, reviewer, approved=3, rejected=2, confidence=0.8)
    found = said(reviewer, agent, confidence=0.82)
    assert found == Calibration(decided=5, approved=3)
    assert str(found) == "Of 5 like this, 3 were approved."


@pytest.mark.parametrize(
    ("approved", "sentence"),
    [(0, "Of 1,000 like this, none was approved."), (1, "Of 1,000 like this, 1 was approved."),
     (1_000, "Of 1,000 like this, 1,000 were approved.")],
)  # fmt: skip
def test_the_sentence_counts_properly(approved: int, sentence: str) -> None:
    assert str(Calibration(decided=1_000, approved=approved)) == sentence


def test_too_few_say_nothing(agent: Principal, reviewer: Principal) -> None:
    decided(agent, reviewer, approved=2, rejected=1, confidence=0.8)
    assert said(reviewer, agent, confidence=0.8) is None
    decided(agent, reviewer, rejected=1, confidence=0.8)
    assert said(reviewer, agent, confidence=0.8) == Calibration(4, 2)


@pytest.mark.parametrize(
    ("of_this", "of_others", "alike"),
    [
        (0.8, 0.75, True),
        (0.8, 0.85, True),
        (0.3, 0.35, True),
        (0.8, 0.74, False),
        (0.8, 0.86, False),
        (None, None, True),
        (None, 0.9, False),
        (0.9, None, False),
    ],
)
def test_alike_is_what_was_about_as_sure(
    agent: Principal, reviewer: Principal, of_this: float | None, of_others: float | None, alike: bool
) -> None:
    decided(agent, reviewer, rejected=4, confidence=of_others)
    assert (said(reviewer, agent, confidence=of_this) is not None) is alike


def test_another_type_is_not_alike(agent: Principal, reviewer: Principal) -> None:
    decided(agent, reviewer, rejected=4, confidence=0.8, type="bug_fixes")
    assert said(reviewer, agent, confidence=0.8, type="tooling_setup") is None
    assert said(reviewer, agent, confidence=0.8, type="bug_fixes") == Calibration(4, 0)


def test_another_kind_of_origin_is_not_alike(
    agent: Principal, bot: Principal, reviewer: Principal, carol: User, dave: User
) -> None:
    decided(agent, reviewer, rejected=4, confidence=0.8)
    assert said(reviewer, bot, confidence=0.8) is None
    assert said(reviewer, ledger.of_person(carol), confidence=0.8) is None
    assert said(reviewer, agent, confidence=0.8) == Calibration(4, 0)


def test_a_persons_own_token_is_that_person(
    reviewer: Principal, alice_token: Issued, carol: User, principal: Any
) -> None:
    decided(principal(alice_token), ledger.of_person(carol), rejected=2, confidence=0.8)
    decided(reviewer, ledger.of_person(carol), rejected=2, confidence=0.8)
    assert said(reviewer, ledger.of_person(carol), confidence=0.8) == Calibration(4, 0)


def test_what_nobody_decided_is_not_counted(agent: Principal, reviewer: Principal) -> None:
    rows = decided(agent, reviewer, rejected=4, confidence=0.8)
    ledger.propose(agent, confidence=0.8)
    assert calibration(reviewer, rows[0]) is None  # of the others there are three
    ledger.reopen(reviewer, rows[1])
    assert said(reviewer, agent, confidence=0.8) is None


def test_reports_are_alike_among_themselves(agent: Principal, bot: Principal, reviewer: Principal) -> None:
    for _ in range(4):
        ledger.reject(reviewer, ledger.report(agent, ledger.remember(bot, reviewer)))
    assert said(reviewer, agent) is None
    assert calibration(reviewer, ledger.report(agent, ledger.remember(bot, reviewer))) == Calibration(4, 0)


def test_what_was_imported_says_nothing(agent: Principal, alice: User) -> None:
    decided(agent, ledger.of_person(alice, via="import"), approved=4, confidence=0.8)
    assert said(ledger.of_person(alice), agent, confidence=0.8) is None


def test_another_workspace_and_what_is_restricted_are_not_counted(
    agent: Principal, reviewer: Principal, charlie: User, dave: User, workspace: Workspace
) -> None:
    source = ledger.a_source("board/1")
    decided(agent, reviewer, rejected=1, confidence=0.8, sources=(source,))
    decided(agent, reviewer, rejected=3, confidence=0.8)
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(dave)
    restricted = Source.objects.get(reference="board/1")
    source_restrict(principal=ledger.of_person(dave, via="admin"), source_id=restricted.pk, audience_id=board.pk)
    assert said(reviewer, agent, confidence=0.8) is None
    assert said(ledger.of_person(dave), agent, confidence=0.8) == Calibration(4, 0)
    assert said(ledger.of_person(charlie), ledger.of_person(charlie), confidence=0.8) is None


def test_the_newest_are_looked_at_in_one_query(
    agent: Principal, reviewer: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.approvals.calibration.LOOKED_AT", 5)
    decided(agent, reviewer, approved=4, confidence=0.8)
    decided(agent, reviewer, rejected=4, confidence=0.8)
    candidate = Candidate.objects.select_related("origin_token").get(pk=ledger.propose(agent, confidence=0.8).pk)
    with CaptureQueriesContext(connection) as queries:
        assert calibration(reviewer, candidate) == Calibration(5, 1)
    assert len(queries) == 1


def test_the_page_of_a_candidate_says_it(browser: Any, agent: Principal, reviewer: Principal, alice: User) -> None:
    page: Client = browser(alice)
    candidate = ledger.propose(agent, confidence=0.8)
    assert "like this" not in words(page.get(f"/review/{candidate.pk}/"))
    decided(agent, reviewer, approved=3, rejected=1, confidence=0.8)
    assert "Of 4 like this, 3 were approved." in words(page.get(f"/review/{candidate.pk}/"))


def test_past_verdicts_cost_the_page_one_query(
    browser: Any, agent: Principal, reviewer: Principal, alice: User
) -> None:
    page: Client = browser(alice)
    candidate = ledger.propose(agent, confidence=0.8)
    page.get(f"/review/{candidate.pk}/")
    with CaptureQueriesContext(connection) as before:
        page.get(f"/review/{candidate.pk}/")
    decided(agent, reviewer, approved=4, rejected=4, confidence=0.8)
    with CaptureQueriesContext(connection) as after:
        page.get(f"/review/{candidate.pk}/")
    assert len(after) == len(before)
    assert sum("UNION ALL" in query["sql"] and "via" in query["sql"] for query in after) == 1
