"""What PostgreSQL holds about the queue by itself, whoever writes."""

from __future__ import annotations

import pytest
from django.db import connection, transaction

from apps.accounts.models import Audience
from apps.candidates.models import Candidate, CandidateEvidence, Opened, Proposer
from apps.core.clock import now
from apps.memories.models import Action, SubjectKind, Verdict
from apps.sources.models import Source
from tests.conftest import issue
from tests.ledger import (
    approve,
    fresh,
    of_person,
    of_token,
    propose,
    refused_as_immutable,
    refused_by,
    reject,
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
def candidate(proposer):
    return propose(proposer)


def decide(candidate: Candidate, status: str, verdict: Verdict | None) -> None:
    Candidate.objects.filter(pk=candidate.pk).update(status=status, decision=verdict, version=50)


def a_verdict(candidate: Candidate, reviewer, action: Action, **changes) -> Verdict:
    values = {
        "workspace_id": candidate.workspace_id,
        "subject_kind": SubjectKind.CANDIDATE,
        "subject_id": candidate.pk,
        "action": action,
        "reviewer": reviewer,
        "reviewer_name": "somebody",
        "via": "sql",
        "created_at": now(),
    }
    return Verdict.objects.create(**(values | changes))


# --- a status needs a verdict -------------------------------------------------------------------------------
@pytest.mark.parametrize("status", ["approved", "rejected"])
def test_no_decision_without_a_verdict(candidate, status):
    with refused_by("candidate_decided_by_verdict"):
        decide(candidate, status, None)


@pytest.mark.parametrize(
    ("status", "action"), [("approved", Action.REJECT), ("rejected", Action.APPROVE), ("approved", Action.REOPEN)]
)
def test_a_verdict_says_what_the_status_says(candidate, alice, status, action):
    verdict = a_verdict(candidate, alice, action)

    with refused_by("candidate_decided_by_verdict"):
        decide(candidate, status, verdict)


def test_a_verdict_on_another_candidate_does_not_count(candidate, proposer, alice):
    other = propose(proposer)
    verdict = a_verdict(other, alice, Action.APPROVE)

    with refused_by("candidate_decided_by_verdict"):
        decide(candidate, "approved", verdict)


@pytest.mark.parametrize(("decision", "status"), [(approve, "approved"), (reject, "rejected")])
def test_an_old_verdict_is_not_used_again(candidate, reviewer, decision, status):
    decision(reviewer, candidate)
    old = fresh(candidate).decision
    reopen(reviewer, candidate)

    with refused_by("candidate_decided_by_verdict"):
        decide(candidate, status, old)


def test_a_decision_is_not_exchanged_for_another(candidate, proposer, reviewer, alice):
    approve(reviewer, candidate)
    other = propose(proposer)
    verdict = a_verdict(other, alice, Action.APPROVE)

    with refused_by("candidate_decided_by_verdict"):
        Candidate.objects.filter(pk=candidate.pk).update(decision=verdict)
    with refused_by("candidate_decided_by_verdict"):
        Candidate.objects.filter(pk=candidate.pk).update(decision=None)


def test_an_open_candidate_has_no_decision_put_on_it(candidate, alice):
    verdict = a_verdict(candidate, alice, Action.APPROVE)

    with refused_by("candidate_decided_by_verdict"):
        Candidate.objects.filter(pk=candidate.pk).update(decision=verdict)


def test_an_approval_is_not_taken_back_without_a_verdict(candidate, reviewer):
    approve(reviewer, candidate)

    for status in ("pending", "quarantined", "withdrawn", "rejected"):
        with refused_by("candidate_decided_by_verdict" if status == "rejected" else "candidate_reopened_by_verdict"):
            Candidate.objects.filter(pk=candidate.pk).update(status=status)


def test_nothing_goes_from_one_decision_to_another(candidate, reviewer, alice):
    reject(reviewer, candidate)
    verdict = a_verdict(candidate, alice, Action.APPROVE)

    with refused_by("candidate_reopened_by_verdict"):
        decide(candidate, "approved", verdict)


def test_a_candidate_starts_open(candidate):
    for status in ("approved", "rejected", "withdrawn"):
        with refused_by("candidate_starts_open"):
            Candidate(
                workspace_id=candidate.workspace_id,
                content="Straight into the memory.",
                type=candidate.type,
                repo_ids=candidate.repo_ids,
                origin_token=candidate.origin_token,
                origin_name="robo",
                fingerprint="f",
                status=status,
                created_at=now(),
            ).save(force_insert=True)


def test_the_proposer_of_a_bare_report_does_not_approve_it(proposer, reviewer, alice):
    memory = remember(proposer, reviewer)
    bare = report(reviewer, memory)
    verdict = a_verdict(bare, alice, Action.APPROVE)

    with refused_by("candidate_second_person"):
        decide(bare, "approved", verdict)


@pytest.mark.parametrize("kind", ["agent", "bot", "reviewer"])
def test_nor_does_the_owner_of_the_token_that_proposed(workspace, alice, kind):
    token = issue(workspace, "alice's helper", kind, owner=alice).token
    candidate = propose(of_token(token))
    verdict = a_verdict(candidate, alice, Action.APPROVE)

    with refused_by("candidate_second_person"):
        decide(candidate, "approved", verdict)


# --- what was decided on stays as it was --------------------------------------------------------------------
_REWORDED = [
    *("content = 'forged'", "firm = true", "repo_ids = '{}', firm = true", "confidence = 0.1", "valid_from = now()"),
    *("fingerprint = 'f'", "correction_reason = 'forged'"),
]


@pytest.mark.parametrize("change", _REWORDED)
@pytest.mark.parametrize("decision", [approve, reject])
def test_a_decided_candidate_is_not_reworded(candidate, reviewer, decision, change):
    decision(reviewer, candidate)

    with refused_by("candidate_reworded_while_open"):
        sql(f"UPDATE candidates_candidate SET {change}")


def test_nor_while_it_is_being_decided(candidate, alice):
    verdict = a_verdict(candidate, alice, Action.APPROVE)

    with refused_by("candidate_reworded_while_open"):
        Candidate.objects.filter(pk=candidate.pk).update(status="approved", decision=verdict, content="Swapped.")


@pytest.mark.parametrize(
    "change",
    [
        *("tier = 'index'", "origin_name = 'alice'", "origin_token_id = NULL, origin_user_id = 1"),
        *("created_at = now() - interval '1 day'", "id = gen_random_uuid()", "has_replacement = true"),
    ],
)
def test_where_it_came_from_never_changes(candidate, alice, change):
    with refused_as_immutable():
        sql(f"UPDATE candidates_candidate SET {change}")


def test_version_and_audiences_only_grow(workspace, candidate):
    board = Audience.objects.create(workspace=workspace, name="board")
    Candidate.objects.filter(pk=candidate.pk).update(audience_ids=[board.pk])

    with refused_by("candidate_only_grows"):
        Candidate.objects.filter(pk=candidate.pk).update(audience_ids=[])
    with refused_by("candidate_only_grows"):
        Candidate.objects.filter(pk=candidate.pk).update(version=0)


def test_proposers_and_evidence_are_on_record_for_good(candidate):
    for table in ("candidates_proposer", "candidates_candidateevidence"):
        for statement in (f"UPDATE {table} SET candidate_id = candidate_id", f"DELETE FROM {table}"):
            with refused_as_immutable():
                sql(statement)


# --- what every candidate has -------------------------------------------------------------------------------
def test_a_candidate_needs_a_source_and_a_proposer(candidate):
    def bare(fingerprint: str) -> Candidate:
        row = Candidate(
            workspace_id=candidate.workspace_id,
            content="From nowhere.",
            type=candidate.type,
            repo_ids=candidate.repo_ids,
            origin_token=candidate.origin_token,
            origin_name="robo",
            fingerprint=fingerprint,
            created_at=now(),
        )
        row.save(force_insert=True)
        return row

    with refused_by("candidate_has_evidence"):
        bare("a")
    with refused_by("candidate_has_proposer"):
        source = Source.objects.first()
        CandidateEvidence.objects.create(candidate=bare("b"), source=source, workspace_id=candidate.workspace_id)


def test_one_open_candidate_says_one_thing(candidate):
    with refused_by("candidate_once_while_open"):
        Candidate(
            workspace_id=candidate.workspace_id,
            content=candidate.content,
            type=candidate.type,
            repo_ids=candidate.repo_ids,
            origin_token=candidate.origin_token,
            origin_name="robo",
            fingerprint=candidate.fingerprint,
            created_at=now(),
        ).save(force_insert=True)


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ("confidence = 1.5", "candidate_confidence_is_share"),
        ("confidence = 'NaN'", "candidate_confidence_is_share"),
        ("status = 'nonsense'", "candidate_status_known"),
        ("repo_ids = '{}'", "candidate_has_scope"),
        ("content = ''", "candidate_content_length"),
    ],
)
def test_values_that_will_not_do(candidate, change, constraint):
    with refused_by(constraint):
        sql(f"UPDATE candidates_candidate SET {change}")


def test_a_candidate_inherits_what_its_sources_are_restricted_to(workspace, candidate):
    board = Audience.objects.create(workspace=workspace, name="board")
    secret = Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)

    with refused_by("candidate_inherits_audience"):
        CandidateEvidence.objects.create(candidate=candidate, source=secret, workspace=workspace)

    Candidate.objects.filter(pk=candidate.pk).update(audience_ids=[board.pk])
    with transaction.atomic():
        CandidateEvidence.objects.create(candidate=candidate, source=secret, workspace=workspace)
        connection.check_constraints()


# --- workspaces ---------------------------------------------------------------------------------------------
def test_a_candidate_takes_nothing_from_another_workspace(candidate, other_workspace, charlie):
    robot = issue(other_workspace, "their robot", "agent")
    theirs = remember(of_token(robot.token), of_person(charlie))
    source = Source.objects.get(workspace=other_workspace)

    for change in (
        {"type": theirs.type},
        {"repo_ids": theirs.repo_ids},
        {"supersedes": [theirs.pk]},
        {"audience_ids": [10**9]},
        {"domain_ids": [10**9]},
    ):
        with refused_by("candidate_same_workspace"):
            Candidate.objects.filter(pk=candidate.pk).update(**change)
    with refused_by("candidate_evidence_same_workspace"):
        CandidateEvidence.objects.create(candidate=candidate, source=source, workspace_id=candidate.workspace_id)
    with refused_by("proposer_same_workspace"):
        Proposer.objects.create(
            candidate=candidate, workspace_id=candidate.workspace_id, token=robot.token, name="their robot"
        )
    with refused_by("opened_same_workspace"):
        Opened.objects.create(candidate=candidate, workspace=other_workspace, user=charlie, version=1)
