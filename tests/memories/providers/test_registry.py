from __future__ import annotations

import sys
import threading

import pytest

from apps.core.errors import DomainError, Unavailable
from apps.memories.models import GenerationState, PoolGeneration
from apps.memories.providers import registry
from apps.memories.providers.embedders.litellm import LiteLLMEmbedder
from apps.memories.providers.embedders.local import LocalEmbedder
from apps.memories.providers.inmemory import InMemoryProvider
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.memories.providers.registry import (
    EmbedderRefused,
    check_embedder_matches_pool,
    get_embedder,
    get_provider,
    override,
    warm_up,
)

from .conftest import make_live


@pytest.fixture(autouse=True)
def fresh(settings):
    settings.FIRM_MEMORY_PROVIDER = "mem0"
    settings.FIRM_MEMORY_EMBEDDER = "local"
    settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS = 0
    registry.reset()
    yield
    registry.reset()


def test_the_defaults_are_mem0_and_the_local_embedder():
    assert type(get_provider()) is Mem0Provider
    assert type(get_embedder()) is LocalEmbedder
    assert get_provider().embedder is get_embedder()


def test_each_is_made_once_and_anew_when_the_settings_change(settings):
    first = get_provider()
    assert get_provider() is first
    settings.FIRM_MEMORY_PROVIDER = "inmemory"
    second = get_provider()
    assert type(second) is InMemoryProvider
    assert get_provider() is second
    settings.FIRM_MEMORY_PROVIDER = "mem0"
    assert get_provider() is first
    registry.reset()
    assert get_provider() is not first


def test_threads_share_one_provider():
    seen = []
    threads = [threading.Thread(target=lambda: seen.append(get_provider())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(each) for each in seen}) == 1


def test_the_local_model_uses_as_many_threads_as_it_may(settings):
    settings.FIRM_MEMORY_EMBEDDER_THREADS = 1
    assert get_embedder()._threads == 1


def test_a_model_of_litellm(settings):
    settings.FIRM_MEMORY_EMBEDDER = "litellm:openai/text-embedding-3-small"
    settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS = 1_536
    embedder = get_embedder()
    assert type(embedder) is LiteLLMEmbedder
    assert (embedder.name, embedder.dimensions) == ("litellm:openai/text-embedding-3-small", 1_536)


@pytest.mark.parametrize(
    ("name", "dimensions", "message"),
    [
        ("litellm:openai/text-embedding-3-small", 0, "Set FIRM_MEMORY_EMBEDDER_DIMENSIONS"),
        ("litellm:", 384, "FIRM_MEMORY_EMBEDDER is 'litellm:'. Write `local`"),
        ("openai/text-embedding-3-small", 1_536, "Write `local`, or `litellm:`"),
        ("", 0, "FIRM_MEMORY_EMBEDDER is ''"),
        ("local", 768, "The local embedder has 384 dimensions"),
    ],
)
def test_an_embedder_that_cannot_be_is_refused_with_what_to_do(settings, name, dimensions, message):
    settings.FIRM_MEMORY_EMBEDDER = name
    settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS = dimensions
    with pytest.raises(EmbedderRefused) as caught:
        get_provider()
    assert message in caught.value.detail
    assert (caught.value.status, caught.value.code) == (503, "embedder_refused")


def test_an_unknown_provider_is_refused_with_the_known_ones(settings):
    settings.FIRM_MEMORY_PROVIDER = "elsewhere"
    with pytest.raises(Unavailable, match="one of: inmemory, mem0") as caught:
        get_provider()
    assert isinstance(caught.value, DomainError)


def test_override_is_for_a_while_and_may_be_nested(embedder):
    outer, inner = InMemoryProvider(embedder), InMemoryProvider(embedder)
    with override(outer):
        assert get_provider() is outer
        with override(inner):
            assert get_provider() is inner
        assert get_provider() is outer
    assert type(get_provider()) is Mem0Provider


@pytest.mark.django_db
def test_a_pool_of_the_configured_embedder_is_accepted():
    check_embedder_matches_pool()


@pytest.mark.django_db
@pytest.mark.parametrize(("name", "dimensions"), [("litellm:voyage/voyage-3.5", 1_024), ("local", 768)])
def test_a_pool_of_another_embedder_is_refused_with_what_to_do(name, dimensions):
    make_live(number=901, embedder=name, dimensions=dimensions)
    with pytest.raises(EmbedderRefused) as caught:
        check_embedder_matches_pool()
    message = caught.value.detail
    assert f"{name} with {dimensions} dimensions" in message
    assert "FIRM_MEMORY_EMBEDDER says local with 384" in message
    assert "manage.py pool rebuild" in message


@pytest.mark.django_db
def test_the_check_does_not_load_the_model(monkeypatch):
    monkeypatch.setattr("apps.memories.providers.embedders.local._session", lambda *_: pytest.fail("loaded too early"))
    check_embedder_matches_pool()


def test_a_provider_in_process_has_no_pool_to_match(settings):
    settings.FIRM_MEMORY_PROVIDER = "inmemory"
    check_embedder_matches_pool()


@pytest.mark.django_db
def test_without_a_live_pool_the_refusal_says_what_to_do():
    PoolGeneration.objects.update(state=GenerationState.RETIRED)
    with pytest.raises(EmbedderRefused) as caught:
        check_embedder_matches_pool()
    assert "manage.py migrate" in caught.value.detail


def test_warming_up_loads_the_model_and_asks_nobody(embedder):
    """Without the database, since it runs in a thread of its own that would have to give its connection back."""
    with override(Mem0Provider(embedder)):
        warm_up()
    assert "mem0" in sys.modules
    assert embedder.warm
    assert embedder.queries == []
