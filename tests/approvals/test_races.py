"""Two at the same moment, on connections of their own: exactly one wins and the other is told."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts.models import Audience
from apps.approvals import bulk
from apps.approvals.bulk import Item, candidates_decide
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import candidate_approve, memory_restore, memory_retire
from apps.candidates import corrections, services
from apps.candidates.models import Candidate, CandidateEvidence
from apps.core.clock import now
from apps.core.errors import AlreadyDecided, Conflict
from apps.core.problems import as_domain_error
from apps.memories.models import Action, Memory, Supersession, Verdict
from apps.sources.models import Source
from tests.at_once import at_once, in_background, kinds
from tests.capture.doubles import an_event
from tests.conftest import issue
from tests.in_time import until
from tests.ledger import (
    a_body,
    a_source,
    approve,
    constraint_of,
    fresh,
    of_person,
    of_token,
    propose,
    reject,
    remember,
    reopen,
    report,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]

URL = "/api/v1/candidates/"


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def other(carol):
    return of_person(carol)


def approve_over_rest(client, candidate):
    return client.post(f"{URL}{candidate.pk}/approve/", {"version": candidate.version})


# --- decisions ----------------------------------------------------------------------------------------------
def test_of_two_who_approve_one_wins_and_the_other_is_told_who(api, alice, carol, proposer, pool):
    clients = {"alice": api(alice), "carol": api(carol)}
    for _ in range(5):
        candidate = propose(proposer)

        answers = at_once(*(partial(approve_over_rest, client, candidate) for client in clients.values()))

        assert kinds(answers) == ["200", "409"]
        won, lost = sorted(answers, key=lambda answer: answer.status_code)
        winner = won.json()["memory"]["verdicts"][0]["reviewer"]
        assert lost.json()["extra"]["decided_by"] == winner
        assert lost.json()["extra"]["action"] == "approve"
        assert lost.json()["extra"]["version"] == 2
        assert Verdict.objects.filter(subject_id=candidate.pk).count() == 1
    assert Memory.objects.count() == pool.describe().memories == 5
    assert list(Memory.objects.order_by("number").values_list("number", flat=True)) == [1, 2, 3, 4, 5]


def test_of_an_approval_and_a_rejection_one_wins(proposer, reviewer, other, pool):
    for _ in range(5):
        candidate = propose(proposer)

        results = at_once(partial(approve, reviewer, candidate), partial(reject, other, candidate))

        assert kinds(results) == ["AlreadyDecided", "done"]
        verdict = Verdict.objects.get(subject_id=candidate.pk)
        row = fresh(candidate)
        assert (row.status, row.decision) == ({"approve": "approved", "reject": "rejected"}[verdict.action], verdict)
        assert Memory.objects.filter(verdict=verdict).exists() is (verdict.action == "approve")
    assert pool.describe().memories == Memory.objects.count()


def test_of_five_who_decide_each_in_their_way_one_wins(proposer, reviewer, other, robo, api):
    candidate = propose(proposer)
    items = [Item(candidate.pk, 1)]
    agent = api(robo)

    results = at_once(
        partial(approve, reviewer, candidate),
        partial(reject, other, candidate),
        partial(candidates_decide, principal=other, action=Action.APPROVE, items=items),
        partial(candidates_decide, principal=reviewer, action=Action.REJECT, items=items, reason="r"),
        partial(agent.post, f"{URL}{candidate.pk}/withdraw/", {"version": 1}),
    )

    assert Verdict.objects.filter(subject_id=candidate.pk).count() == 1, results
    assert not fresh(candidate).is_open


def test_of_two_reopenings_one_wins(proposer, reviewer, other):
    candidate = propose(proposer)
    memory = approve(reviewer, candidate).memory

    results = at_once(partial(reopen, reviewer, candidate), partial(reopen, other, candidate))

    assert kinds(results) in (["AlreadyDecided", "done"], ["Stale", "done"])
    assert fresh(memory).status == "retired"
    assert Verdict.objects.filter(subject_id=candidate.pk, action="reopen").count() == 1


def test_of_a_retirement_and_another_one_wins(proposer, reviewer, other):
    memory = remember(proposer, reviewer)

    results = at_once(
        *(partial(memory_retire, principal=who, reference=memory.pk, reason="Moot.") for who in (reviewer, other))
    )

    assert kinds(results) == ["Conflict", "done"]
    assert Verdict.objects.filter(subject_id=memory.pk, action="retire").count() == 1
    results = at_once(
        *(partial(memory_restore, principal=who, reference=memory.pk, reason="Not.") for who in (reviewer, other))
    )
    assert kinds(results) == ["Conflict", "done"]


def test_an_approval_waits_for_whoever_joins_and_is_then_stale(proposer, reviewer, botty):
    """What is approved is the version that was looked at, even while somebody adds to it."""
    candidate = propose(proposer, "Deploys happen on Tuesdays.")
    joined, go_on = threading.Event(), threading.Event()

    def join() -> None:
        with transaction.atomic():
            propose(of_token(botty.token), "Deploys happen on Tuesdays")
            joined.set()
            assert go_on.wait(30)

    joining = in_background(join)
    assert joined.wait(30)
    approving = in_background(
        partial(candidate_approve, principal=reviewer, candidate_id=candidate.pk, version=candidate.version)
    )
    go_on.set()

    assert joining() is None
    assert type(approving()).__name__ == "Stale"
    assert not Memory.objects.exists()
    assert approve(reviewer, candidate).memory.evidence.count() == 2


# --- proposals ----------------------------------------------------------------------------------------------
def test_twenty_identical_proposals_make_one_candidate(api, robo):
    client, body = api(robo), a_body()

    answers = at_once(*[partial(client.post, URL, body)] * 20)

    assert kinds(answers) == ["200"] * 19 + ["201"]
    assert len({answer.json()["id"] for answer in answers}) == 1
    candidate = Candidate.objects.get()
    assert (candidate.seen_count, candidate.version) == (20, 1)
    assert candidate.evidence.count() == candidate.proposers.count() == 1


def test_twenty_proposals_of_one_statement_by_many_keep_every_source(api, workspace):
    clients = [api(issue(workspace, f"robot {at}", "bot")) for at in range(20)]

    answers = at_once(*(partial(client.post, URL, a_body("Deploys happen on Tuesdays.")) for client in clients))

    assert kinds(answers) == ["200"] * 19 + ["201"]
    candidate = Candidate.objects.get()
    assert candidate.evidence.count() == candidate.proposers.count() == candidate.seen_count == 20
    assert candidate.version == 20


def test_one_key_makes_one_effect(api, robo):
    client, body = api(robo), a_body()

    answers = at_once(*[partial(client.post, URL, body, headers={"Idempotency-Key": "same"})] * 8)

    assert kinds(answers) == ["201"] * 8
    assert all(answer.json() == answers[0].json() for answer in answers)
    assert Candidate.objects.get().seen_count == 1


def test_one_key_approves_once_and_every_repetition_is_told_the_same(api, alice, proposer):
    client = api(alice)
    for round_ in range(5):
        candidate = propose(proposer)

        answers = at_once(
            *[
                partial(
                    client.post,
                    f"{URL}{candidate.pk}/approve/",
                    {"version": 1},
                    headers={"Idempotency-Key": f"approve {round_}".replace(" ", "-")},
                )
            ]
            * 6
        )

        assert kinds(answers) == ["200"] * 6
        assert len({answer.json()["memory"]["id"] for answer in answers}) == 1
    assert Memory.objects.count() == 5


def test_new_sources_in_opposite_order_do_not_lock_each_other_out(proposer, botty):
    for round_ in range(10):
        sources = [a_source(f"round {round_} source {at}") for at in range(6)]

        results = at_once(
            partial(propose, proposer, sources=tuple(sources)),
            partial(propose, of_token(botty.token), sources=tuple(reversed(sources))),
        )

        assert kinds(results) == ["done", "done"], results
    assert Source.objects.count() == 60


def test_new_names_in_opposite_order_do_not_either(proposer, botty):
    from apps.candidates.proposal import ScopeInput
    from apps.scopes.models import Domain, Repository

    for round_ in range(10):
        names = tuple(f"r{round_}-{at}" for at in range(4))
        scopes = (ScopeInput(domains=names, repos=names), ScopeInput(domains=names[::-1], repos=names[::-1]))

        results = at_once(
            partial(propose, proposer, scope=scopes[0]), partial(propose, of_token(botty.token), scope=scopes[1])
        )

        assert kinds(results) == ["done", "done"], results
    assert Domain.objects.count() == Repository.objects.count() == 40


def test_the_cap_holds_against_many_at_once(api, robo, monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_PER_ORIGIN", 4)
    client = api(robo)

    answers = at_once(*(partial(client.post, URL, a_body()) for _ in range(12)))

    assert kinds(answers) == ["201"] * 4 + ["429"] * 8
    assert Candidate.objects.count() == 4


def test_two_revisions_do_not_become_the_same(api, robo, proposer):
    client = api(robo)
    for round_ in range(5):
        candidates = propose(proposer), propose(proposer)

        answers = at_once(
            *(
                partial(
                    client.post,
                    f"{URL}{candidate.pk}/revise/",
                    {"version": 1, "content": f"Both say this in round {round_}."},
                )
                for candidate in candidates
            )
        )

        assert kinds(answers) == ["200", "409"]
        refused = max(answers, key=lambda answer: answer.status_code).json()
        assert refused["code"] == "duplicate"


def test_a_rejection_and_the_same_proposal_again_leave_one_candidate(api, robo, alice, proposer, reviewer):
    client = api(robo)
    for _ in range(5):
        body = a_body()
        candidate_id = client.post(URL, body).json()["id"]
        candidate = Candidate.objects.get(pk=candidate_id)

        again, rejected = at_once(
            partial(client.post, URL, body | {"sources": a_body()["sources"]}), partial(reject, reviewer, candidate)
        )

        assert again.status_code == 200
        assert again.json()["id"] == candidate_id
        assert isinstance(rejected, Candidate | Conflict)
        assert Candidate.objects.filter(content=body["content"]).count() == 1


# --- supersession -------------------------------------------------------------------------------------------
def test_two_do_not_replace_one_at_once(proposer, reviewer, other, pool):
    for _ in range(5):
        old = remember(proposer, reviewer)
        first, second = (propose(proposer, supersedes=(old.label,)) for _ in range(2))

        results = at_once(partial(approve, reviewer, first), partial(approve, other, second))

        assert kinds(results) == ["Conflict", "done"]
        edge = Supersession.objects.get(old=old)
        assert pool.statuses([old.pk, edge.new_id]) == {old.pk: "superseded", edge.new_id: "active"}
        refused = next(result for result in results if isinstance(result, Conflict))
        assert refused.extra["successor"]["id"] == str(edge.new_id)


def test_two_that_are_amended_to_say_the_same_make_one_memory(proposer, reviewer, other):
    for round_ in range(5):
        first, second = propose(proposer), propose(proposer)
        text = f"Both say this in round {round_}."

        results = at_once(
            partial(approve, reviewer, first, content=text), partial(approve, other, second, content=text.upper())
        )

        assert kinds(results) == ["Conflict", "done"], results
        assert next(result for result in results if isinstance(result, Conflict)).code == "already_known"
    assert Memory.objects.count() == 5


def test_merges_that_share_targets_do_not_lock_each_other_out(proposer, reviewer, other):
    for _ in range(5):
        olds = [remember(proposer, reviewer) for _ in range(4)]
        labels = [old.label for old in olds]
        first = propose(proposer, supersedes=tuple(labels))
        second = propose(proposer, supersedes=tuple(reversed(labels)))

        results = at_once(partial(approve, reviewer, first), partial(approve, other, second))

        assert kinds(results) == ["Conflict", "done"], results


def test_two_edges_at_once_close_no_circle(proposer, reviewer):
    for _ in range(5):
        left, right = remember(proposer, reviewer), remember(proposer, reviewer)

        def link(old: Memory, new: Memory) -> None:
            with transaction.atomic():
                Supersession.objects.create(
                    workspace_id=old.workspace_id, old=old, new=new, verdict=new.verdict, holds_from=now()
                )
                connection.check_constraints()

        results = at_once(partial(link, left, right), partial(link, right, left))

        assert kinds(results) == ["IntegrityError", "done"]
        refused = next(result for result in results if isinstance(result, IntegrityError))
        assert constraint_of(refused) == "supersession_no_cycle"


def test_undoing_an_approval_while_its_memory_is_replaced_leaves_one_head(proposer, reviewer, other):
    for _ in range(5):
        old = remember(proposer, reviewer)
        new = remember(proposer, reviewer, supersedes=[old])
        next_one = propose(proposer, supersedes=(new.label,))
        undone = Candidate.objects.get(pk=new.verdict.subject_id)

        results = at_once(partial(approve, reviewer, next_one), partial(reopen, other, undone))

        assert kinds(results) == ["Conflict", "done"], results
        heads = Memory.objects.filter(pk__in=[old.pk, new.pk], status="active") | Memory.objects.filter(
            verdict__subject_id=next_one.pk, status="active"
        )
        assert heads.count() == 1


# --- reports ------------------------------------------------------------------------------------------------
def test_a_report_made_again_while_it_is_dismissed_hangs_nobody(proposer, reviewer, botty):
    memory = remember(of_token(botty.token), reviewer)
    for _ in range(10):
        reported = report(proposer, memory, reason=f"Reason {now()}.")

        results = at_once(
            partial(report, proposer, memory, reason=reported.correction_reason),
            partial(reject, reviewer, reported),
        )

        assert "OperationalError" not in kinds(results), results
        if fresh(reported).is_open:
            reject(reviewer, reported)
        assert fresh(memory).status == "active"


def test_the_days_reports_are_counted_against_many_at_once(proposer, reviewer, botty, monkeypatch):
    monkeypatch.setattr(corrections, "MAX_REPORTS_PER_DAY", 3)
    memories = [remember(of_token(botty.token), reviewer) for _ in range(8)]

    results = at_once(*(partial(report, proposer, memory) for memory in memories))

    assert kinds(results) == ["TooMany"] * 5 + ["done"] * 3
    assert Memory.objects.filter(status="disputed").count() == 3


# --- restrictions -------------------------------------------------------------------------------------------
@pytest.fixture
def board(workspace):
    return Audience.objects.create(workspace=workspace, name="board")


def waits_for_a_lock() -> bool:
    """Whether somebody waits for the lock on a reference."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 827343 AND NOT granted")
        return bool(cursor.fetchone()[0])


def recorders(proposer, commit):
    """What names the source, by how; each answers a row that has audiences."""
    named = a_source("#board/1", kind="chat", commit=commit)
    return {
        "proposal": lambda: propose(proposer, sources=(named,)),
        "material": lambda: an_event(proposer, sources=(named,)),
    }


# The same reference without a commit, with the one that is restricted, and with another one.
COMMITS = (None, "9f2c1e7", "0d3b7aa")


@pytest.mark.parametrize("commit", COMMITS)
@pytest.mark.parametrize("what", ["proposal", "material"])
def test_a_source_restricted_while_it_is_recorded_restricts_what_was_recorded(proposer, carol, board, what, commit):
    """It was recorded before the restriction and is committed while that waits."""
    source = Source.objects.create(workspace=board.workspace, kind="chat", reference="#board/1", commit="9f2c1e7")
    recorded, go_on = threading.Event(), threading.Event()

    def slowly():
        with transaction.atomic():
            row = recorders(proposer, commit)[what]()
            recorded.set()
            assert go_on.wait(30)
        return row

    recording = in_background(slowly)
    assert recorded.wait(30)
    restricting = in_background(
        lambda: source_restrict(principal=of_person(carol), source_id=source.pk, audience_id=board.pk)
    )
    until(waits_for_a_lock)
    go_on.set()
    row, restricted = recording(), restricting()

    assert not isinstance(restricted, BaseException), restricted
    assert fresh(row).audience_ids == [board.pk]
    assert set(Source.objects.values_list("audience", flat=True)) == {board.pk}


@pytest.mark.parametrize("commit", COMMITS)
@pytest.mark.parametrize("what", ["proposal", "material"])
def test_what_is_recorded_while_its_source_is_restricted_is_restricted(
    proposer, carol, board, monkeypatch, what, commit
):
    """It begins before the restriction is committed, and waits for it."""
    source = Source.objects.create(workspace=board.workspace, kind="chat", reference="#board/1", commit="9f2c1e7")
    restricted, go_on = threading.Event(), threading.Event()

    def slowly():
        with transaction.atomic():
            source_restrict(principal=of_person(carol), source_id=source.pk, audience_id=board.pk)
            restricted.set()
            assert go_on.wait(30)

    restricting = in_background(slowly)
    assert restricted.wait(30)
    recording = in_background(recorders(proposer, commit)[what])
    until(waits_for_a_lock)
    go_on.set()
    row, refusal = recording(), restricting()

    assert refusal is None
    assert fresh(row).audience_ids == [board.pk]
    assert set(Source.objects.values_list("audience", flat=True)) == {board.pk}


def test_many_who_record_and_restrict_at_once_come_through_with_one_audience(proposer, botty, carol, board):
    sources = [
        Source.objects.create(workspace=board.workspace, kind="chat", reference=f"#board/{number}")
        for number in range(4)
    ]

    def record(who, number):
        return propose(who, sources=(a_source(f"#board/{number}", kind="chat", commit=f"c{number}"),))

    def receive(who, number):
        return an_event(who, sources=tuple(a_source(f"#board/{each}", kind="chat") for each in (number, 3 - number)))

    results = at_once(
        *(partial(record, proposer, number) for number in range(4)),
        *(partial(receive, of_token(botty.token), number) for number in range(4)),
        *(
            partial(source_restrict, principal=of_person(carol), source_id=source.pk, audience_id=board.pk)
            for source in sources
        ),
    )

    assert not [result for result in results if isinstance(result, BaseException)]
    assert all(fresh(row).audience_ids == [board.pk] for row in results[:8])
    assert set(Source.objects.values_list("audience", flat=True)) == {board.pk}


def test_evidence_from_a_source_that_was_read_before_it_was_restricted_is_refused(proposer, carol, board):
    """Whoever takes no lock on the reference cannot slip through either."""
    source = Source.objects.create(workspace=board.workspace, kind="chat", reference="#board/1")
    candidate = propose(proposer)
    added, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        with transaction.atomic():
            CandidateEvidence.objects.create(candidate=candidate, source=source, workspace=board.workspace)
            added.set()
            assert go_on.wait(30)

    adding = in_background(slowly)
    assert added.wait(30)
    source_restrict(principal=of_person(carol), source_id=source.pk, audience_id=board.pk)
    go_on.set()

    assert as_domain_error(adding()).code == "source_restricted"
    assert not CandidateEvidence.objects.filter(source=source).exists()


def test_nor_while_what_it_supports_is_approved(proposer, reviewer, carol, board, pool):
    candidate = propose(proposer, sources=(a_source("#board/1", kind="chat"),))
    source = Source.objects.get()
    approved, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        with transaction.atomic():
            candidate_approve(principal=reviewer, candidate_id=candidate.pk, version=1)
            approved.set()
            assert go_on.wait(30)

    approving = in_background(slowly)
    assert approved.wait(30)
    restricting = in_background(
        lambda: source_restrict(principal=of_person(carol), source_id=source.pk, audience_id=board.pk)
    )
    go_on.set()
    outcomes = approving(), restricting()

    assert all(not isinstance(outcome, BaseException) for outcome in outcomes), outcomes
    memory = Memory.objects.get()
    assert memory.audience_ids == [board.pk]
    assert pool.get(memory.pk).audience_ids == (board.pk,)


def test_deciding_twice_is_told_apart_from_a_version_that_moved_on(proposer, reviewer, other):
    candidate = propose(proposer)
    approve(reviewer, candidate)

    with pytest.raises(AlreadyDecided):
        approve(other, candidate)


def test_two_keyed_bulk_decisions_on_the_same_rows_never_wait_for_each_other(
    api, alice, carol, proposer, reviewer, monkeypatch
):
    """A key keeps every lock to the end; whatever order the items are named in, they are locked in one."""
    memories = [remember(proposer, reviewer) for _ in range(2)]
    rows = [propose(proposer, supersedes=(str(memory.pk),)) for memory in memories]
    decide = bulk.candidate_approve

    def slowly(**values):
        approved = decide(**values)
        time.sleep(0.5)
        return approved

    monkeypatch.setattr(bulk, "candidate_approve", slowly)
    items = [{"id": str(row.pk), "version": 1} for row in rows]
    works = [
        partial(
            api(who).post,
            f"{URL}bulk/",
            {"action": "approve", "items": order},
            headers={"Idempotency-Key": who.username},
        )
        for who, order in ((alice, items), (carol, items[::-1]))
    ]

    answers = at_once(*works)

    assert [answer.status_code for answer in answers] == [200, 200]
    results = sorted({row["outcome"] for row in answer.json()["results"]} for answer in answers)
    assert results == [{"conflict"}, {"done"}] or results == [{"done"}, {"conflict"}]


def test_a_keyed_bulk_decision_and_a_single_one_never_wait_for_each_other(
    api, alice, carol, proposer, reviewer, monkeypatch
):
    memories = [remember(proposer, reviewer) for _ in range(2)]
    rows = [propose(proposer, supersedes=(str(memory.pk),)) for memory in memories]
    alone, begun = api(carol), threading.Event()
    decide = bulk.candidate_approve

    def slowly(**values):
        approved = decide(**values)
        begun.set()
        time.sleep(1)
        return approved

    monkeypatch.setattr(bulk, "candidate_approve", slowly)
    items = [{"id": str(row.pk), "version": 1} for row in rows]
    many = partial(
        api(alice).post, f"{URL}bulk/", {"action": "approve", "items": items}, headers={"Idempotency-Key": "many"}
    )

    def one():
        begun.wait(30)
        return approve_over_rest(alone, rows[1])

    bulk_answer, single = at_once(many, one)

    assert {row["outcome"] for row in bulk_answer.json()["results"]} == {"done"}
    assert single.status_code == 409
