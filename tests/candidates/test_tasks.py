"""What the worker adds to a candidate: its vector, and what is near by meaning."""

from __future__ import annotations

from uuid import uuid4

import pytest

from apps.candidates import tasks
from apps.candidates.models import Candidate
from apps.candidates.tasks import find_near_by_vector
from apps.memories.providers.base import ProviderError
from tests.ledger import fresh, of_person, of_token, propose, reject, remember, reopen

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.mark.usefixtures("pool")
def test_memories_and_open_candidates_near_by_vector_are_added(proposer, alice):
    memory = remember(proposer, of_person(alice), "Refunds wait for the ledger to settle")
    waiting = propose(proposer, "Refunds wait for the ledger to settle first", type="bug_fixes")
    candidate = propose(proposer, "Refunds wait for the ledger to settle always")
    Candidate.objects.filter(pk=candidate.pk).update(near=[])
    find_near_by_vector(str(waiting.pk))

    said = find_near_by_vector(str(candidate.pk))

    row = Candidate.objects.get(pk=candidate.pk)
    assert said == "2 near."
    assert {(near["id"], near["how"]) for near in row.near} == {(str(memory.pk), "vector"), (str(waiting.pk), "vector")}
    assert row.vector is not None
    assert row.version == 1


@pytest.mark.usefixtures("pool")
def test_running_it_twice_changes_nothing_more(proposer):
    candidate = propose(proposer)
    find_near_by_vector(str(candidate.pk))
    before = Candidate.objects.filter(pk=candidate.pk).values().get()

    find_near_by_vector(str(candidate.pk))

    after = Candidate.objects.filter(pk=candidate.pk).values().get()
    assert before == after


@pytest.mark.usefixtures("pool")
def test_what_was_decided_meanwhile_is_left_alone(proposer, alice, embedder):
    candidate = propose(proposer)
    reject(of_person(alice), candidate)

    assert find_near_by_vector(str(candidate.pk)) == "It is no longer open."
    assert find_near_by_vector(str(uuid4())) == "It is no longer open."
    assert embedder.documents == []


@pytest.mark.usefixtures("pool")
def test_what_was_reworded_while_it_was_embedded_keeps_no_wrong_vector(proposer, monkeypatch):
    candidate = propose(proposer)

    def meanwhile(*_):
        Candidate.objects.filter(pk=candidate.pk).update(content="Said otherwise meanwhile.")
        return []

    monkeypatch.setattr(tasks, "near_by_vector", meanwhile)

    assert find_near_by_vector(str(candidate.pk)) == "It changed meanwhile."
    assert Candidate.objects.get(pk=candidate.pk).vector is None


@pytest.mark.usefixtures("pool")
def test_an_embedder_that_is_down_fails_the_task_so_that_it_is_tried_again(proposer, embedder, monkeypatch):
    candidate = propose(proposer)

    def down(texts):
        raise ProviderError("The embedder is down.", permanent=False)

    monkeypatch.setattr(embedder, "embed_documents", down)

    with pytest.raises(ProviderError):
        find_near_by_vector(str(candidate.pk))


@pytest.mark.usefixtures("pool")
def test_a_candidate_that_is_open_again_is_embedded_again(proposer, alice, django_assert_num_queries):
    from django_q.models import OrmQ

    candidate = propose(proposer)
    reject(of_person(alice), candidate)
    queued = OrmQ.objects.count()

    reopen(of_person(alice), candidate)

    assert OrmQ.objects.count() == queued + 1
    find_near_by_vector(str(candidate.pk))
    assert fresh(candidate).vector is not None


def test_the_local_model_finds_what_words_do_not(proposer, alice):
    """With the model that is shipped: the same fact in other words is shown near the first."""
    first = propose(proposer, "The checkout service retries failed payments at most three times.")
    again = propose(proposer, "After three unsuccessful attempts, charging the customer is given up by checkout.")
    find_near_by_vector(str(first.pk))

    find_near_by_vector(str(again.pk))

    assert [(near["id"], near["how"]) for near in fresh(again).near] == [(str(first.pk), "vector")]
