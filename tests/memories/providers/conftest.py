from __future__ import annotations

import pytest
from django.db import connection

from apps.memories.models import GenerationState, PoolGeneration
from apps.memories.pool import create_pool
from apps.memories.providers.inmemory import InMemoryProvider
from apps.memories.providers.mem0.provider import Mem0Provider

from .doubles import HashingEmbedder


def make_live(*, number: int, embedder: str, dimensions: int) -> PoolGeneration:
    """A pool of its own for a test, in place of the one that the migrations made."""
    PoolGeneration.objects.filter(state=GenerationState.LIVE).update(state=GenerationState.RETIRED)
    with connection.cursor() as cursor:
        create_pool(cursor, number=number, dimensions=dimensions)
    return PoolGeneration.objects.create(
        number=number, embedder=embedder, dimensions=dimensions, state=GenerationState.LIVE
    )


@pytest.fixture
def embedder() -> HashingEmbedder:
    return HashingEmbedder()


@pytest.fixture
def generation(db, embedder) -> PoolGeneration:
    return make_live(number=900, embedder=embedder.name, dimensions=embedder.dimensions)


@pytest.fixture
def mem0(generation, embedder) -> Mem0Provider:
    return Mem0Provider(embedder)


@pytest.fixture(params=["inmemory", pytest.param("mem0", marks=pytest.mark.django_db)])
def provider(request, embedder):
    """Each provider in turn: what is asserted of one holds for all."""
    if request.param == "inmemory":
        return InMemoryProvider(embedder)
    return request.getfixturevalue("mem0")
