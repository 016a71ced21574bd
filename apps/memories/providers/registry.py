"""Which provider and which embedder this process uses, made once each.

``FIRM_MEMORY_PROVIDER`` and ``FIRM_MEMORY_EMBEDDER`` decide; changed settings make new ones. Nothing heavy is
imported before it is needed: ``warm_up`` is for processes that would rather pay for it at their start.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings

from apps.core.errors import Unavailable
from apps.memories.providers.base import MemoryProvider, ProviderError
from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.embedders.litellm import PREFIX, LiteLLMEmbedder
from apps.memories.providers.embedders.local import DIMENSIONS, NAME, LocalEmbedder

_Key = tuple[object, ...]

_lock = threading.RLock()
_embedders: Final[dict[_Key, Embedder]] = {}
_providers: Final[dict[_Key, MemoryProvider]] = {}
_overrides: Final[list[MemoryProvider]] = []


class EmbedderRefused(Unavailable):
    """The configured embedder cannot be used, or not with the pool as it is; the message says what to do."""

    code = "embedder_refused"


def get_provider() -> MemoryProvider:
    """The provider that ``FIRM_MEMORY_PROVIDER`` names."""
    with _lock:
        if _overrides:
            return _overrides[-1]
        key = (settings.FIRM_MEMORY_PROVIDER, *_embedder_key())
        if key not in _providers:
            _providers[key] = _make_provider(settings.FIRM_MEMORY_PROVIDER)
        return _providers[key]


def get_embedder() -> Embedder:
    """The embedder that ``FIRM_MEMORY_EMBEDDER`` names; raises ``EmbedderRefused`` where it names none."""
    with _lock:
        key = _embedder_key()
        if key not in _embedders:
            _embedders[key] = make_embedder(settings.FIRM_MEMORY_EMBEDDER, settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS)
        return _embedders[key]


def warm_up() -> None:
    """Load what the first search would otherwise wait for: the provider's libraries and the embedding model."""
    get_provider().warm_up()


def check_embedder_matches_pool() -> None:
    """Raise ``EmbedderRefused`` when the live pool was made by another embedder than the configured one.

    Vectors of two models cannot be compared: searches would return noise, and nothing would say so.
    """
    from apps.memories.providers.mem0.generation import live_generation

    get_provider()
    embedder = get_embedder()
    if settings.FIRM_MEMORY_PROVIDER != "mem0":
        return
    try:
        generation = live_generation()
    except ProviderError as error:
        raise EmbedderRefused(error.message) from error
    if not generation.made_by(embedder):
        raise EmbedderRefused(
            f"The pool was made by the embedder {generation.embedder} with {generation.dimensions} dimensions, but "
            f"FIRM_MEMORY_EMBEDDER says {embedder.name} with {embedder.dimensions}. Set it back, or build the pool "
            "anew with `manage.py pool rebuild`."
        )


def reset() -> None:
    """Forget every provider and embedder made so far."""
    with _lock:
        _embedders.clear()
        _providers.clear()


@contextmanager
def override(provider: MemoryProvider) -> Iterator[MemoryProvider]:
    """Use ``provider`` wherever the configured one would be used: for tests and for a rebuild."""
    with _lock:
        _overrides.append(provider)
    try:
        yield provider
    finally:
        with _lock:
            _overrides.remove(provider)


def _embedder_key() -> _Key:
    return settings.FIRM_MEMORY_EMBEDDER, settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS


def _make_provider(name: str) -> MemoryProvider:
    makers: dict[str, Callable[[Embedder], MemoryProvider]] = {"mem0": _mem0, "inmemory": _inmemory}
    if name not in makers:
        raise Unavailable(
            f"FIRM_MEMORY_PROVIDER is {name!r}. It must be one of: {', '.join(sorted(makers))}.",
            code="provider_unknown",
        )
    return makers[name](get_embedder())


def _mem0(embedder: Embedder) -> MemoryProvider:
    from apps.memories.providers.mem0.provider import Mem0Provider

    return Mem0Provider(embedder)


def _inmemory(embedder: Embedder) -> MemoryProvider:
    from apps.memories.providers.inmemory import InMemoryProvider

    return InMemoryProvider(embedder)


def make_embedder(name: str, dimensions: int) -> Embedder:
    """The embedder of that name; raises ``EmbedderRefused`` where it is not one, or lacks its dimensions."""
    if name == NAME:
        if dimensions not in (0, DIMENSIONS):
            raise EmbedderRefused(
                f"The local embedder has {DIMENSIONS} dimensions. Leave FIRM_MEMORY_EMBEDDER_DIMENSIONS unset, or "
                f"set it to {DIMENSIONS}."
            )
        return LocalEmbedder(threads=settings.FIRM_MEMORY_EMBEDDER_THREADS)
    model = name.removeprefix(PREFIX)
    if model == name or not model:
        raise EmbedderRefused(
            f"FIRM_MEMORY_EMBEDDER is {name!r}. Write `local`, or `litellm:` and a model as LiteLLM names it, such "
            "as `litellm:openai/text-embedding-3-small`."
        )
    if dimensions < 1:
        raise EmbedderRefused(
            "Set FIRM_MEMORY_EMBEDDER_DIMENSIONS to the length of the model's vectors: the pool's table is made for "
            "one length."
        )
    return LiteLLMEmbedder(model, dimensions=dimensions)
