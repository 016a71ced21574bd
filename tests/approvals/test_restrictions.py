"""Restricting a source restricts everything that came from it, everywhere it could be seen."""

from __future__ import annotations

import json

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts.models import Audience, AuditEvent
from apps.approvals.restrictions import source_restrict
from apps.candidates.models import Candidate
from apps.core.errors import Conflict, Forbidden, NotFound, Unavailable
from apps.core.problems import as_domain_error
from apps.memories.providers.base import ProviderError
from apps.sources.models import Source
from apps.sources.services import SourceInput
from tests.capture import finished
from tests.conftest import issue
from tests.ledger import a_body, a_source, fresh, of_person, of_token, propose, remember, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def curator(carol):
    return of_person(carol)


@pytest.fixture
def board(workspace, dave):
    audience = Audience.objects.create(workspace=workspace, name="board")
    audience.members.add(dave)
    return audience


@pytest.fixture
def memory(proposer, alice):
    return remember(
        proposer, of_person(alice), "Initech is bought before the summer.", sources=(a_source("#board/1", kind="chat"),)
    )


@pytest.fixture
def source(memory):
    return Source.objects.get(reference="#board/1")


def restrict(principal, source, audience):
    return source_restrict(principal=principal, source_id=source.pk, audience_id=audience.pk)


def test_what_came_from_it_is_restricted_in_ledger_and_pool(curator, board, memory, source, pool):
    restrict(curator, source, board)

    assert fresh(source).audience == board
    assert fresh(memory).audience_ids == [board.pk]
    assert pool.get(memory.pk).audience_ids == (board.pk,)
    candidate = Candidate.objects.get(pk=memory.verdict.subject_id)
    assert candidate.audience_ids == [board.pk]
    assert candidate.version == 3
    assert AuditEvent.objects.get(verb="restrict").after == {"audience": "board"}


def test_nobody_outside_finds_reads_or_follows_it(api, curator, board, memory, source, alice, dave, robo, proposer):
    successor = remember(proposer, of_person(alice), "Initech was bought in May.", supersedes=[memory])
    restrict(curator, source, board)
    questions = [
        "/api/v1/memories/search/?q=Initech+is+bought+before+the+summer",
        "/api/v1/memories/search/?q=Initech+is+bought+before+the+summer&as_of=2099-01-01",
        "/api/v1/memories/search/?q=Initech+is+bought&known_at=2099-01-01&repos=acme/pay",
    ]

    for reader in (alice, robo):
        client = api(reader)
        for question in questions:
            answer = client.get(question).json()
            assert str(memory.pk) not in str(answer)
            assert "before the summer" not in str(answer)
        assert client.get(f"/api/v1/memories/{memory.pk}/").status_code == 404
        assert client.get(f"/api/v1/memories/{memory.label}/").status_code == 404
        chain = client.get(f"/api/v1/memories/{successor.pk}/").json()["chain"]
        assert [entry["id"] for entry in chain] == [str(successor.pk)]

    client = api(dave)
    assert client.get(f"/api/v1/memories/{memory.pk}/").status_code == 200
    assert len(client.get(f"/api/v1/memories/{successor.pk}/").json()["chain"]) == 2


def test_both_arms_of_a_search_leave_it_out(api, curator, board, memory, source, carol, dave):
    board.members.add(carol)
    restrict(curator, source, board)

    for recipe in ("vector", "text"):
        question = f"/api/v1/memories/search/?q=Initech+is+bought+before+the+summer&recipe={recipe}"
        assert [row["id"] for row in api(carol).get(question).json()["results"]] == [str(memory.pk)]
        board.members.remove(carol)
        assert api(carol).get(question).json()["results"] == []
        board.members.add(carol)


def test_proposals_name_it_as_unknown(api, curator, board, memory, source, robo):
    restrict(curator, source, board)
    client = api(robo)

    superseding = client.post("/api/v1/candidates/", a_body(supersedes=[memory.label]))
    same = client.post("/api/v1/candidates/", a_body("Initech is bought before the summer."))
    near = client.post("/api/v1/candidates/", a_body("Before the summer, Initech is to be bought."))

    assert superseding.status_code == 422
    assert str(memory.pk) not in str(same.json())
    assert memory.label not in str(same.json())
    assert near.json()["near"] == [] or str(memory.pk) not in str(near.json()["near"])


def test_an_open_candidate_and_a_report_are_restricted_too(curator, board, memory, source, proposer, botty):
    reported = report(of_token(botty.token), memory, sources=(a_source("#board/1", kind="chat"),))
    waiting = propose(proposer, sources=(a_source("#board/1", kind="chat"),))

    restrict(curator, source, board)

    assert fresh(reported).audience_ids == fresh(waiting).audience_ids == [board.pk]
    assert fresh(waiting).version == 2


def test_raw_material_from_it_is_restricted_whoever_handed_it_over(
    curator, board, memory, source, proposer, botty, browser, alice, dave
):
    named = SourceInput(kind="chat", reference="#board/1")
    other = SourceInput(kind="chat", reference="#board/2")
    said = "We decided to buy Initech before the summer."
    first = finished.done(proposer, content=said, sources=(other, named))
    second = finished.done(of_token(botty.token), content=said, sources=(named,))
    elsewhere = [
        finished.done(proposer, sources=(other,)),
        finished.done(proposer, sources=(SourceInput(kind="issue", reference="#board/1"),)),
    ]
    restrict(curator, source, board)
    restrict(curator, source, board)
    assert [fresh(event).audience_ids for event in (first, second)] == [[board.pk], [board.pk]]
    assert [fresh(event).audience_ids for event in elsewhere] == [[], []]
    assert said not in browser(alice).get("/captured/drops/").content.decode()
    assert browser(alice).get(f"/captured/{first.pk}/").status_code == 404
    assert said in browser(dave).get("/captured/drops/").content.decode()


COMMITS = (None, "9f2c1e7", "0d3b7aa")


@pytest.mark.parametrize("restricted", COMMITS)
def test_a_reference_has_one_audience_at_every_commit(api, curator, board, proposer, alice, dave, pool, restricted):
    """What is known of one commit of a merge request is known of the merge request."""
    at = [a_source("acme/board!1", commit=commit) for commit in COMMITS]
    memories = [
        remember(proposer, of_person(alice), f"Initech is bought in month {n}.", sources=(at[n],)) for n in (0, 1)
    ]
    waiting = propose(proposer, sources=(at[2],))
    event = finished.done(
        proposer, sources=(SourceInput(kind="merge_request", reference=" acme/board!1 ", commit="1"),)
    )

    restrict(curator, Source.objects.get(commit=restricted, reference="acme/board!1"), board)

    assert {source.audience for source in Source.objects.filter(reference="acme/board!1")} == {board}
    assert [fresh(row).audience_ids for row in (*memories, waiting, event)] == [[board.pk]] * 4
    assert [pool.get(memory.pk).audience_ids for memory in memories] == [(board.pk,)] * 2
    assert AuditEvent.objects.filter(verb="restrict").count() == 3
    for memory in memories:
        assert api(alice).get(f"/api/v1/memories/{memory.pk}/").status_code == 404
        assert api(dave).get(f"/api/v1/memories/{memory.pk}/").status_code == 200


@pytest.mark.parametrize("restricted", [None, "9f2c1e7"])
@pytest.mark.parametrize("door", ["candidates", "revise", "corrections", "ingest", "lines"])
def test_what_is_recorded_later_at_another_commit_inherits_it(
    api, curator, board, memory, robo, alice, dave, workspace, restricted, door
):
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/2", commit=restricted)
    restrict(curator, Source.objects.get(reference="#board/2"), board)
    named = [{"kind": "chat", "reference": "#board/2", "commit": "0d3b7aa"}]
    client = api(robo)
    material = {"content": "We decided it.", "kind": "chat", "scope": {"firm": True}, "sources": named}
    if door == "lines":
        answer = client.post("/api/v1/ingest/", json.dumps(material), content_type="application/x-ndjson")
        made = f"/api/v1/ingest/{answer.json()['events'][0]}/"
    elif door == "ingest":
        made = f"/api/v1/ingest/{client.post('/api/v1/ingest/', material).json()['event']}/"
    elif door == "corrections":
        body = {"kind": "stale", "reason": "It is sold.", "sources": named}
        made = f"/api/v1/candidates/{client.post(f'/api/v1/memories/{memory.pk}/corrections/', body).json()['id']}/"
    else:
        proposed = client.post("/api/v1/candidates/", a_body(**({"sources": named} if door == "candidates" else {})))
        made = f"/api/v1/candidates/{proposed.json()['id']}/"
        if door == "revise":
            assert client.post(f"{made}revise/", {"version": 1, "sources": named}).status_code == 200

    assert api(alice).get(made).status_code == 404
    assert api(dave).get(made).status_code == 200
    assert set(Source.objects.filter(reference="#board/2").values_list("audience", flat=True)) == {board.pk}


def test_postgresql_itself_refuses_a_reference_that_is_open_at_one_commit(workspace, board):
    rows = [
        Source.objects.create(workspace=workspace, kind="chat", reference="#board/2", commit=commit)
        for commit in COMMITS
    ]
    with pytest.raises(IntegrityError) as refusal, transaction.atomic():
        Source.objects.filter(pk=rows[1].pk).update(audience=board)
        connection.check_constraints()
    assert as_domain_error(refusal.value).code == "source_restricted"


def test_a_reference_with_two_audiences_stays_with_both(workspace, curator, board):
    """As an earlier version may have left it."""
    legal = Audience.objects.create(workspace=workspace, name="legal")
    for commit, audience in zip(COMMITS, (legal, legal, board), strict=True):
        Source.objects.create(workspace=workspace, kind="chat", reference="#board/2", commit=commit, audience=audience)
    with pytest.raises(Conflict):
        restrict(curator, Source.objects.filter(audience=legal).first(), board)
    later = Source.objects.create(workspace=workspace, kind="chat", reference="#board/2", commit="5")
    assert fresh(later).audience == legal


def test_a_second_restriction_adds_to_the_first(workspace, curator, board, proposer, dave):
    legal = Audience.objects.create(workspace=workspace, name="legal")
    legal.members.add(dave)
    both = remember(
        proposer,
        of_person(dave),
        sources=(a_source("#board/1", kind="chat"), a_source("#legal/1", kind="chat")),
    )
    restrict(curator, Source.objects.get(reference="#board/1"), board)
    restrict(curator, Source.objects.get(reference="#legal/1"), legal)

    assert fresh(both).audience_ids == sorted([board.pk, legal.pk])


def test_a_source_keeps_its_audience(workspace, curator, board, memory, source):
    legal = Audience.objects.create(workspace=workspace, name="legal")
    restrict(curator, source, board)

    restrict(curator, source, board)
    with pytest.raises(Conflict):
        restrict(curator, source, legal)

    assert fresh(memory).audience_ids == [board.pk]
    assert AuditEvent.objects.filter(verb="restrict").count() == 1


def test_only_curators_restrict_and_only_what_is_theirs(
    workspace, other_workspace, alice, robo, curator, board, source, charlie
):
    for principal in (of_person(alice), of_token(robo.token)):
        with pytest.raises(Forbidden):
            restrict(principal, source, board)
    theirs = Audience.objects.create(workspace=other_workspace, name="theirs")
    with pytest.raises(NotFound):
        restrict(curator, source, theirs)
    robot = of_token(issue(other_workspace, "their robot", "agent").token)
    elsewhere = remember(robot, of_person(charlie)).evidence.get().source
    with pytest.raises(NotFound):
        restrict(curator, elsewhere, board)


def test_if_the_pool_cannot_be_told_nothing_is_restricted(curator, board, memory, source, pool, monkeypatch):
    def refuses(*_):
        raise ProviderError("The pool could not be written (OperationalError).", permanent=False)

    monkeypatch.setattr(pool, "update", refuses)

    with pytest.raises(Unavailable, match="Nothing was changed"):
        restrict(curator, source, board)

    assert fresh(source).audience is None
    assert fresh(memory).audience_ids == []
