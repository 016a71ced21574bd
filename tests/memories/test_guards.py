"""What PostgreSQL holds by itself, whoever writes: raw SQL and the ORM go round the services here."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.db import connection, transaction

from apps.accounts.models import Audience, Membership
from apps.candidates.models import Candidate
from apps.core.clock import now
from apps.memories.models import (
    Action,
    Memory,
    MemoryEvidence,
    SubjectKind,
    Supersession,
    Verdict,
)
from apps.sources.models import Source
from tests.ledger import (
    a_source,
    approve,
    fresh,
    of_person,
    of_token,
    propose,
    refused_as_immutable,
    refused_by,
    remember,
    reopen,
    report,
    sql,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def memory(proposer, reviewer):
    return remember(proposer, reviewer)


@pytest.fixture
def pair(proposer, reviewer, memory):
    """A memory and the one that replaced it."""
    return memory, remember(proposer, reviewer, supersedes=[memory])


def a_verdict(candidate, reviewer, **changes) -> Verdict:
    values = {
        "workspace_id": candidate.workspace_id,
        "subject_kind": SubjectKind.CANDIDATE,
        "subject_id": candidate.pk,
        "action": Action.APPROVE,
        "reviewer": reviewer,
        "reviewer_name": "forged",
        "via": "sql",
        "created_at": now(),
    }
    return Verdict(**(values | changes))


def a_memory(verdict, candidate, **changes) -> Memory:
    values = {
        "workspace_id": candidate.workspace_id,
        "number": 900,
        "content": candidate.content,
        "type": candidate.type,
        "firm": candidate.firm,
        "domain_ids": candidate.domain_ids,
        "repo_ids": candidate.repo_ids,
        "audience_ids": candidate.audience_ids,
        "tier": candidate.tier,
        "recorded_at": now(),
        "verdict": verdict,
        "fingerprint": candidate.fingerprint,
    }
    return Memory(**(values | changes))


def close(candidate, verdict) -> None:
    type(candidate).objects.filter(pk=candidate.pk).update(status="approved", decision=verdict, version=9)


def with_evidence(memory: Memory) -> None:
    memory.save(force_insert=True)
    source = Source.objects.filter(workspace=memory.workspace_id).first()
    MemoryEvidence.objects.create(memory=memory, source=source, workspace_id=memory.workspace_id)


# --- nothing is deleted -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "table",
    [
        *("memories_memory", "memories_memoryevidence", "memories_supersession", "memories_verdict"),
        *("candidates_candidate", "candidates_candidateevidence", "candidates_proposer"),
        *("sources_source", "accounts_auditevent", "accounts_workspace", "accounts_apitoken"),
        *("taxonomy_memorytype", "taxonomy_category", "scopes_repository"),
    ],
)
def test_no_row_is_deleted(pair, table):
    before = sql(f"SELECT count(*) FROM {table}")
    assert before != [(0,)]

    with refused_as_immutable():
        sql(f"DELETE FROM {table}")

    assert sql(f"SELECT count(*) FROM {table}") == before


@pytest.mark.parametrize("model", [Memory, MemoryEvidence, Supersession, Verdict, Source])
def test_the_orm_deletes_no_row_either(pair, model):
    row = model.objects.order_by("pk").first()

    with refused_as_immutable():
        model.objects.filter(pk=row.pk)._raw_delete(using="default")
    assert model.objects.filter(pk=row.pk).exists()


# --- nothing approved is changed ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "change",
    [
        *("content = 'forged'", "number = 77", "firm = true", "domain_ids = domain_ids || 0::bigint", "tier = 'index'"),
        *("fingerprint = 'f'", "recorded_at = now()", "valid_from = now()", "id = gen_random_uuid()"),
        "repo_ids = repo_ids || 0::bigint",
    ],
)
def test_what_was_approved_is_read_only(memory, change):
    with refused_as_immutable():
        sql(f"UPDATE memories_memory SET {change}")


@pytest.mark.parametrize("change", ["reviewer_name = 'x'", "reason = 'x'", "action = 'reject'", "created_at = now()"])
def test_verdicts_are_never_changed(memory, change):
    with refused_as_immutable():
        sql(f"UPDATE memories_verdict SET {change}")


@pytest.mark.parametrize("change", ["quote = 'x'", "source_id = source_id + 1"])
def test_evidence_is_never_changed(memory, change):
    with refused_as_immutable():
        sql(f"UPDATE memories_memoryevidence SET {change}")


@pytest.mark.parametrize("change", ["reference = 'x'", "url = 'https://x'", "title = 'x'", "kind = 'chat'"])
def test_sources_keep_what_they_said(memory, change):
    with refused_as_immutable():
        sql(f"UPDATE sources_source SET {change}")


@pytest.mark.parametrize("change", ["kind = 'partial'", "old_id = new_id", "holds_from = now()", "verdict_id = NULL"])
def test_edges_are_read_only(pair, change):
    with refused_as_immutable():
        sql(f"UPDATE memories_supersession SET {change}")


def test_what_follows_from_the_ledger_may_change(memory):
    sql("UPDATE memories_memory SET status = 'disputed', confidence = 0.5, valid_to = now(), closed_at = now()")

    assert fresh(memory).status == "disputed"


def test_an_audience_is_never_taken_off_a_memory(workspace, memory):
    board, legal = (Audience.objects.create(workspace=workspace, name=name) for name in ("board", "legal"))
    Memory.objects.filter(pk=memory.pk).update(audience_ids=[board.pk])
    Memory.objects.filter(pk=memory.pk).update(audience_ids=[board.pk, legal.pk])

    with refused_by("memory_audience_only_grows"):
        Memory.objects.filter(pk=memory.pk).update(audience_ids=[legal.pk])
    with refused_by("memory_audience_only_grows"):
        Memory.objects.filter(pk=memory.pk).update(audience_ids=[])


def test_a_retired_memory_says_so(memory):
    with refused_by("memory_retired_says_so"):
        Memory.objects.filter(pk=memory.pk).update(retired_at=now())


# --- no memory without a gate -------------------------------------------------------------------------------
def test_a_memory_needs_a_source(proposer, alice):
    candidate = propose(proposer)
    verdict = a_verdict(candidate, alice)

    with refused_by("memory_has_evidence"):
        verdict.save(force_insert=True)
        close(candidate, verdict)
        a_memory(verdict, candidate).save(force_insert=True)


def test_a_memory_needs_its_candidate_approved(proposer, alice):
    candidate = propose(proposer)
    verdict = a_verdict(candidate, alice)

    with refused_by("memory_was_approved"):
        verdict.save(force_insert=True)
        with_evidence(a_memory(verdict, candidate))


@pytest.mark.parametrize("action", [Action.REJECT, Action.REOPEN, Action.REVISE, Action.WITHDRAW, Action.RETIRE])
def test_a_memory_needs_an_approving_verdict(proposer, alice, action):
    candidate = propose(proposer)
    verdict = a_verdict(candidate, alice, action=action)

    with refused_by("memory_was_approved"):
        verdict.save(force_insert=True)
        with_evidence(a_memory(verdict, candidate))


def test_one_verdict_makes_one_memory(memory):
    with refused_by("memories_memory_verdict_id_key"):
        with_evidence(a_memory(memory.verdict, memory))


def test_a_memory_says_what_was_approved(proposer, alice):
    candidate = propose(proposer)
    verdict = a_verdict(candidate, alice)

    with refused_by("memory_was_approved"):
        verdict.save(force_insert=True)
        close(candidate, verdict)
        with_evidence(a_memory(verdict, candidate, content="Something else entirely."))


def test_an_amended_memory_says_what_the_verdict_says(proposer, reviewer):
    candidate = propose(proposer)

    memory = approve(reviewer, candidate, content="As the reviewer put it.").memory
    connection.check_constraints()

    assert memory.content == "As the reviewer put it."


def test_a_bare_report_lets_no_memory_in(proposer, reviewer, memory):
    bare = report(proposer, memory)
    approve(reviewer, bare)
    connection.check_constraints()
    bare = fresh(bare)

    with refused_by("memory_was_approved"):
        with_evidence(a_memory(bare.decision, bare))


def test_an_approval_that_was_undone_before_the_commit_was_one(proposer, reviewer):
    memory = remember(proposer, reviewer)
    reopen(reviewer, Candidate.objects.get(pk=memory.verdict.subject_id))

    connection.check_constraints()

    assert fresh(memory).status == "retired"


# --- who gives verdicts -------------------------------------------------------------------------------------
@pytest.mark.parametrize("action", ["approve", "reject", "reopen", "retire", "restore", "supersede"])
def test_only_reviewers_give_verdicts(proposer, bob, action):
    candidate = propose(proposer)

    with refused_by("verdict_by_a_reviewer"):
        a_verdict(candidate, bob, action=action).save()


def test_nobody_gives_no_verdict(proposer):
    candidate = propose(proposer)

    with refused_by("verdict_by_a_reviewer"):
        a_verdict(candidate, None).save()


def test_a_reviewer_of_another_workspace_gives_none(proposer, charlie):
    candidate = propose(proposer)

    with refused_by("verdict_by_a_reviewer"):
        a_verdict(candidate, charlie).save()


def test_a_reviewer_who_left_gives_none(proposer, alice):
    candidate = propose(proposer)
    Membership.objects.filter(user=alice).delete()

    with refused_by("verdict_by_a_reviewer"):
        a_verdict(candidate, alice).save()


def test_no_bot_gives_a_verdict_in_a_reviewers_name(proposer, alice, robo, botty):
    candidate = propose(proposer)

    for token in (robo.token, botty.token):
        with refused_by("verdict_by_a_reviewer"):
            a_verdict(candidate, alice, token=token).save()


def test_no_reviewers_token_gives_one_in_another_reviewers_name(proposer, carol, alice_token):
    candidate = propose(proposer)

    with refused_by("verdict_by_a_reviewer"):
        a_verdict(candidate, carol, token=alice_token.token).save()


def test_a_verdict_is_about_something_in_its_workspace(workspace, other_workspace, proposer, alice, charlie):
    candidate = propose(proposer)

    with refused_by("verdict_of_a_subject"):
        a_verdict(candidate, alice, subject_id=uuid4()).save()
    with refused_by("verdict_of_a_subject"):
        a_verdict(candidate, alice, subject_kind=SubjectKind.MEMORY).save()
    with refused_by("verdict_of_a_subject"):
        a_verdict(candidate, charlie, workspace_id=other_workspace.pk).save()


def test_the_proposer_makes_no_memory(workspace, alice, carol):
    by_alice = propose(of_person(alice))
    verdict = a_verdict(by_alice, alice)

    with refused_by("candidate_second_person"):
        verdict.save(force_insert=True)
        close(by_alice, verdict)


@pytest.mark.parametrize("honest", [True, False])
def test_one_person_approves_alone_only_where_allowed_and_where_the_verdict_says_so(workspace, alice, honest):
    workspace.second_person = False
    workspace.save()
    candidate = propose(of_person(alice))
    verdict = a_verdict(candidate, alice, second_person=not honest)

    def forge() -> None:
        verdict.save(force_insert=True)
        close(candidate, verdict)
        with_evidence(a_memory(verdict, candidate))

    if honest:
        with transaction.atomic():
            forge()
            connection.check_constraints()
        return
    with refused_by("candidate_second_person"):
        forge()


# --- edges --------------------------------------------------------------------------------------------------
def an_edge(old, new, verdict, **changes) -> Supersession:
    values = {"workspace_id": old.workspace_id, "old": old, "new": new, "verdict": verdict, "holds_from": now()}
    return Supersession(**(values | changes))


def test_an_edge_needs_an_approving_verdict(proposer, reviewer, alice, memory):
    other = remember(proposer, reviewer)
    rejecting = a_verdict(propose(proposer), alice, action=Action.REJECT)
    rejecting.save(force_insert=True)

    with refused_by("supersession_approved"):
        an_edge(memory, other, rejecting).save()


def test_an_edge_is_voided_by_a_reopening_alone_and_for_good(proposer, reviewer, pair):
    old, new = pair
    edge = Supersession.objects.get(old=old, new=new)

    with refused_by("supersession_approved"):
        Supersession.objects.filter(pk=edge.pk).update(voided_by=new.verdict)

    reopen(reviewer, Candidate.objects.get(pk=new.verdict.subject_id))
    with refused_by("supersession_voided_once"):
        Supersession.objects.filter(pk=edge.pk).update(voided_by=None)


def test_no_cycle_however_long(proposer, reviewer):
    first = remember(proposer, reviewer)
    second = remember(proposer, reviewer, supersedes=[first])
    third = remember(proposer, reviewer, supersedes=[second])

    for old, new in ((second, first), (third, first), (third, second), (first, first)):
        with refused_by("supersession_no_cycle"):
            an_edge(old, new, new.verdict).save()


def test_a_cycle_of_partial_edges_is_one_too(proposer, reviewer):
    first, second = remember(proposer, reviewer), remember(proposer, reviewer)
    an_edge(first, second, second.verdict, kind="partial").save()

    with refused_by("supersession_no_cycle"):
        an_edge(second, first, first.verdict, kind="amends").save()


def test_an_edge_is_on_record_once(pair):
    old, new = pair

    with refused_by("supersession_once_while_live"):
        an_edge(old, new, new.verdict).save()


# --- workspaces ---------------------------------------------------------------------------------------------
@pytest.fixture
def theirs(other_workspace, charlie):
    """A memory of the other workspace."""
    from tests.conftest import issue

    robot = issue(other_workspace, "their robot", "agent")
    return remember(of_token(robot.token), of_person(charlie))


def test_a_memory_takes_nothing_from_another_workspace(proposer, alice, theirs):
    candidate = propose(proposer)
    verdict = a_verdict(candidate, alice)
    verdict.save(force_insert=True)

    for change in (
        {"type": theirs.type},
        {"repo_ids": theirs.repo_ids},
        {"domain_ids": [10**9]},
        {"audience_ids": [10**9]},
        {"workspace_id": theirs.workspace_id},
        {"verdict": theirs.verdict, "workspace_id": candidate.workspace_id},
    ):
        with refused_by("memory_same_workspace"):
            a_memory(change.pop("verdict", verdict), candidate, **change).save(force_insert=True)


def test_evidence_and_edges_stay_within_a_workspace(memory, theirs):
    source = Source.objects.get(workspace=theirs.workspace_id)

    with refused_by("memory_evidence_same_workspace"):
        MemoryEvidence.objects.create(memory=memory, source=source, workspace_id=memory.workspace_id)
    with refused_by("supersession_same_workspace"):
        an_edge(memory, theirs, memory.verdict).save()
    with refused_by("supersession_same_workspace"):
        an_edge(theirs, memory, memory.verdict).save()


def test_a_source_is_restricted_within_its_workspace(memory, theirs):
    board = Audience.objects.create(workspace_id=theirs.workspace_id, name="board")

    with refused_by("source_same_workspace"):
        Source.objects.filter(workspace=memory.workspace_id).update(audience=board)


# --- restricted sources -------------------------------------------------------------------------------------
def test_a_restriction_of_a_source_is_never_taken_off(workspace, memory):
    board, legal = (Audience.objects.create(workspace=workspace, name=name) for name in ("board", "legal"))
    source = Source.objects.get(memory_evidence__memory=memory)
    connection.check_constraints()
    Source.objects.filter(pk=source.pk).update(audience=board)

    for change in (None, legal):
        with refused_by("source_stays_restricted"):
            Source.objects.filter(pk=source.pk).update(audience=change)


def test_a_memory_inherits_what_its_sources_are_restricted_to(workspace, memory):
    board = Audience.objects.create(workspace=workspace, name="board")
    secret = Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)

    with refused_by("memory_inherits_audience"):
        MemoryEvidence.objects.create(memory=memory, source=secret, workspace=workspace)

    Memory.objects.filter(pk=memory.pk).update(audience_ids=[board.pk])
    with transaction.atomic():
        MemoryEvidence.objects.create(memory=memory, source=secret, workspace=workspace)
        connection.check_constraints()


def test_a_statement_is_at_most_so_long_and_never_empty(proposer, alice):
    candidate = propose(proposer, sources=(a_source(),))
    verdict = a_verdict(candidate, alice)
    verdict.save(force_insert=True)

    for change in ({"content": ""}, {"content": "x" * 8_001}, {"content": "x" * 20_001, "tier": "index"}):
        with refused_by("memory_content_length"):
            a_memory(verdict, candidate, **change).save(force_insert=True)
    with refused_by("memory_has_scope"):
        a_memory(verdict, candidate, firm=False, domain_ids=[], repo_ids=[]).save(force_insert=True)
