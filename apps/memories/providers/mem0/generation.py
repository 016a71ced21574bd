"""Which of the pool's tables is in use, and by which embedder it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import connection

from apps.memories.models import GenerationState, PoolGeneration
from apps.memories.pool import notes_table, pool_table
from apps.memories.providers.base import ProviderError
from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.mem0.lookup import Statement

NO_SETTINGS: Final[Statement] = ("", [])

_LIVE = "SELECT number, embedder, dimensions{settings} FROM {table} WHERE state = %s"
_HELD = f"{_LIVE} FOR SHARE"


@dataclass(frozen=True, slots=True)
class Generation:
    """One of the pool's tables, and the one of working notes beside it."""

    number: int
    embedder: str
    dimensions: int

    @property
    def table(self) -> str:
        return pool_table(self.number)

    @property
    def notes(self) -> str:
        return notes_table(self.number)

    def made_by(self, embedder: Embedder) -> bool:
        return (self.embedder, self.dimensions) == (embedder.name, embedder.dimensions)


def live_generation(settings: Statement = NO_SETTINGS) -> Generation:
    """The generation that is searched. ``settings``, calls of ``set_config``, are made on the way there."""
    return _required(_fetch(_LIVE, settings))


def held_generation() -> Generation:
    """The generation that is written, kept live until the caller's transaction ends.

    Switching to a rebuilt pool locks its row for update and so waits for the writers; they share it and do
    not wait for each other. One that had to wait for a switch finds that the row it waited for is live no
    more, and looks again.
    """
    return _required(_fetch(_HELD) or _fetch(_HELD))


def _fetch(statement: str, settings: Statement = NO_SETTINGS) -> Generation | None:
    calls, parameters = settings
    composed = statement.format(
        table=connection.ops.quote_name(PoolGeneration._meta.db_table), settings=f", {calls}" if calls else ""
    )
    with connection.cursor() as cursor:
        cursor.execute(composed, [*parameters, GenerationState.LIVE.value])
        row = cursor.fetchone()
    return None if row is None else Generation(*row[:3])


def _required(generation: Generation | None) -> Generation:
    if generation is None:
        raise ProviderError(
            "There is no live pool. Run `manage.py migrate`, which makes the first one.", permanent=True
        )
    return generation
