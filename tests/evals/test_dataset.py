from __future__ import annotations

import itertools

import numpy as np
import pytest

from apps.evals.benchmarks import dataset
from apps.evals.benchmarks.by_hand import ByHand
from apps.evals.benchmarks.corpus import Corpus
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.evals.benchmarks.scopes import as_asked, measured_scopes
from apps.memories.models import Memory, MemoryStatus
from apps.memories.providers.base import ProviderError
from apps.memories.providers.embedders.base import unit_rows
from apps.memories.providers.mem0.provider import Mem0Provider

ROWS = 400


@pytest.fixture
def small_corpus():
    random = np.random.default_rng(3)
    vectors = unit_rows(random.normal(size=(120, 384)).astype(np.float32))
    statements = [f"Statement {at} of the order is about subject {at // 10} and some words more." for at in range(100)]
    return Corpus(
        source="a test",
        statements=statements,
        vectors=vectors[:100],
        questions=[f"What is subject {at} about?" for at in range(20)],
        question_vectors=vectors[100:],
        question_places=[at * 5 for at in range(20)],
    )


@pytest.mark.parametrize("rows", [1_000, 20_000, 100_000])
def test_every_row_belongs_to_one_stretch_and_the_measured_scopes_have_their_shares(rows):
    stretches = dataset.layout(rows)
    assert stretches[0].first == 0 and stretches[-1].after == rows
    assert all(one.after == following.first for one, following in itertools.pairwise(stretches))
    sizes = {name: one.after - one.first for one in stretches for name in (*one.repos, *one.domains)}
    assert sizes[dataset.ONE] == rows * 2 // 100
    assert sizes[dataset.NINE] == rows * 85 // 1000
    assert sizes[dataset.SMALL] == 30


@pytest.mark.django_db(transaction=True)
def test_a_load_goes_on_where_it_stopped_and_by_hand_finds_what_the_provider_finds(small_corpus):
    data, loaded = dataset.ensure(small_corpus, ROWS, say=lambda _: None)
    assert loaded.rows == ROWS
    assert Memory.objects.of(data.workspace).count() == ROWS
    _, again = dataset.ensure(small_corpus, ROWS, say=lambda _: None)
    assert again.rows == 0
    assert Memory.objects.filter(status=MemoryStatus.SUPERSEDED).exists()
    assert Memory.objects.filter(status=MemoryStatus.RETIRED).exists()

    provider = Mem0Provider(RecordedEmbedder())
    hand = ByHand()
    try:
        for scope in measured_scopes(data).values():
            query = scope.pool_query(data, 3, limit=10)
            found = [(hit.memory_id, round(hit.score, 5)) for hit in provider.search(query)]
            by_hand = [(memory_id, round(1 - distance, 5)) for memory_id, distance in hand.nearest(query)]
            assert found == [(memory_id, max(0.0, score)) for memory_id, score in by_hand]
            assert [row[0] for row in hand.brute_force(query)] == [row[0] for row in hand.nearest(query)]
            assert hand.admitted(query) == len(hand.admitted_ids(query)) >= len(found)
    finally:
        hand.close()


def test_no_two_rows_say_the_same_and_vectors_stay_near_to_their_statement(small_corpus):
    data = dataset.Dataset(ROWS, None, None, small_corpus, dataset.layout(ROWS))
    rows = list(dataset.records(data))
    assert len({record.content for record, _ in rows}) == ROWS
    for at, (_, vector) in enumerate(rows):
        assert vector @ small_corpus.vectors[at * 100 // ROWS] > 0.85


def test_rows_are_the_same_whenever_they_are_asked_for(small_corpus):
    data = dataset.Dataset(ROWS, None, None, small_corpus, dataset.layout(ROWS))
    whole, rest = list(dataset.records(data)), list(dataset.records(data, first=250))
    assert [record for record, _ in whole[250:]] == [record for record, _ in rest]
    assert all((mine == theirs).all() for (_, mine), (_, theirs) in zip(whole[250:], rest, strict=True))


def test_a_question_has_as_many_words_as_asked_for(small_corpus):
    data = dataset.Dataset(ROWS, None, None, small_corpus, dataset.layout(ROWS))
    assert as_asked(data, 0, words=3) == "What is subject"
    assert len(as_asked(data, 19, words=70).split()) == 70


def test_what_was_not_recorded_has_no_vector(small_corpus):
    embedder = RecordedEmbedder(dict(zip(small_corpus.statements, small_corpus.vectors, strict=True)))
    assert (embedder.embed_query(small_corpus.statements[4]) == small_corpus.vectors[4]).all()
    with pytest.raises(ProviderError, match="no recorded vector"):
        embedder.embed_query("unheard of")
