"""The first pool of an installation."""

from __future__ import annotations

import pytest
from django.db import connection

from apps.memories.generations import ensure_live_generation
from apps.memories.models import GenerationState, PoolGeneration

pytestmark = pytest.mark.django_db


def test_the_migrations_leave_one_live_pool_and_asking_again_changes_nothing():
    live = PoolGeneration.objects.get(state=GenerationState.LIVE)
    assert (live.number, live.embedder, live.dimensions) == (1, "local", 384)
    assert ensure_live_generation() == live
    assert PoolGeneration.objects.count() == 1


def test_a_new_installation_gets_a_pool_for_the_embedder_it_is_configured_for(settings):
    settings.FIRM_MEMORY_EMBEDDER = "litellm:voyage/voyage-3.5"
    settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS = 1_024
    PoolGeneration.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE fm_pool_g1, fm_notes_g1")
    live = ensure_live_generation()
    assert (live.number, live.embedder, live.dimensions) == (1, "litellm:voyage/voyage-3.5", 1_024)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT atttypmod FROM pg_attribute WHERE attrelid = 'fm_pool_g1'::regclass AND attname = 'vector'"
        )
        assert cursor.fetchone() == (1_024,)
