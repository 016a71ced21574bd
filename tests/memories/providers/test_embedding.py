"""From text to vectors in bounded time, whatever the embedder does."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from apps.memories.providers.base import ProviderError
from apps.memories.providers.embedding import observers
from apps.memories.providers.inmemory import InMemoryProvider
from tests.in_time import in_time

from .doubles import HashingEmbedder, a_record


class Hanging(HashingEmbedder):
    def __init__(self):
        super().__init__()
        self.gate = threading.Event()

    def embed_documents(self, texts):
        self.gate.wait(20)
        return super().embed_documents(texts)

    def embed_query(self, text):
        self.gate.wait(20)
        return super().embed_query(text)


@pytest.fixture
def hanging():
    embedder = Hanging()
    yield embedder
    embedder.gate.set()


def test_a_hanging_embedder_fails_a_question_in_time_and_answers_it_later(hanging):
    provider = InMemoryProvider(hanging, query_seconds=0.05)

    def fails():
        with pytest.raises(ProviderError, match="did not answer") as caught:
            provider.embed_query("why?")
        return caught.value

    assert not in_time(fails, below=1).permanent
    hanging.gate.set()
    assert len(provider.embed_query("why?")) == hanging.dimensions


def test_a_hanging_embedder_fails_a_preparation_in_time(hanging):
    provider = InMemoryProvider(hanging, document_seconds=0.05)
    with pytest.raises(ProviderError, match="did not answer"):
        provider.prepare("text")


class Wrong(HashingEmbedder):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def embed_documents(self, texts):
        return np.ones(self.shape, np.float32)

    def embed_query(self, text):
        return np.ones(self.shape, np.float32)


@pytest.mark.parametrize("shape", [(1, 64), (3, 64), (2, 63)])
def test_too_few_or_too_many_vectors_are_noticed(shape):
    with pytest.raises(ProviderError, match="where 2 of 64 were expected") as caught:
        InMemoryProvider(Wrong(shape)).prepare_many(["one", "two"])
    assert caught.value.permanent


def test_a_question_of_the_wrong_length_is_noticed():
    with pytest.raises(ProviderError, match="where 1 of 64 were expected"):
        InMemoryProvider(Wrong((1, 65))).embed_query("why?")


def test_a_failure_is_not_remembered():
    class Recovering(HashingEmbedder):
        def embed_query(self, text):
            self.queries.append(text)
            if len(self.queries) == 1:
                raise ProviderError("Busy.", permanent=False)
            return self._vector(text)

    embedder = Recovering()
    provider = InMemoryProvider(embedder)
    with pytest.raises(ProviderError, match="Busy"):
        provider.embed_query("why?")
    assert provider.embed_query("why?") == pytest.approx(embedder._vector("why?").tolist())


def test_many_texts_are_embedded_in_bounded_pieces_and_in_order():
    class Counting(HashingEmbedder):
        def __init__(self):
            super().__init__()
            self.pieces = []

        def embed_documents(self, texts):
            self.pieces.append(len(texts))
            return super().embed_documents(texts)

    embedder = Counting()
    texts = [f"text {number} " + "filler " * (40 * (number % 3)) for number in range(90)]
    prepared = InMemoryProvider(embedder).prepare_many(texts)
    assert max(embedder.pieces) <= 64
    assert len(embedder.pieces) > 1
    for text, made in zip(texts, prepared, strict=True):
        assert text.startswith(made.passages[0].text.rstrip())
        assert made.passages[0].vector == pytest.approx(embedder._vector(made.passages[0].text).tolist())


def test_inserting_one_by_one_is_the_same_as_inserting_many(embedder):
    provider = InMemoryProvider(embedder)
    record = a_record()
    provider.insert(record, provider.prepare(record.content))
    assert provider.get(record.id) == record


@pytest.mark.parametrize("number", [0.0, float("nan"), float("inf")])
def test_a_vector_without_a_direction_is_refused(number):
    class Broken(HashingEmbedder):
        def embed_query(self, text):
            return np.full(self.dimensions, number, np.float32)

        def embed_documents(self, texts):
            return np.full((len(texts), self.dimensions), number, np.float32)

    provider = InMemoryProvider(Broken())
    for ask in (provider.embed_query, provider.prepare):
        with pytest.raises(ProviderError, match="without a direction"):
            ask("why?")


def test_a_models_own_error_becomes_ours_without_its_words(caplog):
    secret = "the text and the key"

    class Broken(HashingEmbedder):
        def embed_query(self, text):
            raise RuntimeError(secret)

    with pytest.raises(ProviderError, match=r"The embedding model failed \(RuntimeError\)\.") as caught:
        InMemoryProvider(Broken()).embed_query("why?")
    assert not caught.value.permanent
    assert caught.value.__cause__ is None
    assert secret not in caplog.text
    assert "embed_query" in caplog.text


def test_each_call_of_the_model_is_told_with_its_end(hanging):
    seen = []
    observers.add(seen.append)
    try:
        provider = InMemoryProvider(hanging, query_seconds=0.05)
        with pytest.raises(ProviderError):
            provider.embed_query("why?")
        hanging.gate.set()
        provider.embed_query("why?")
        provider.embed_query("why?")
        provider.prepare("because")
    finally:
        observers._observers.remove(seen.append)
    assert [(each.what, each.outcome) for each in seen] == [
        ("question", "timeout"),
        ("question", "done"),
        ("documents", "done"),
    ]
    assert all(each.embedder == "hashing" and each.seconds >= 0 for each in seen)
