"""mem0 taken as parts: its wiring and its interfaces, filled with our own classes.

Import this module late: it imports mem0.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from apps.memories.providers.embedders.base import Embedder
from apps.memories.providers.mem0.quiet import BaseLlmConfig, Memory, factory
from apps.memories.providers.mem0.slots import NoHistory

# mem0 accepts only names it knows; ours are put in their place while a Memory is built.
_STORE: Final = "pgvector"
_EMBEDDER: Final = "fastembed"
_MODEL: Final = "openai"

_SLOTS: Final = "apps.memories.providers.mem0.slots"

_wiring = threading.Lock()


def build_memory(*, collection: str, embedder: Embedder, store: str = "PoolStore") -> Any:
    """A ``mem0.Memory`` over one of the pool's tables. It opens no connection and writes no file.

    ``store`` names the class of ours that reads and writes the table.
    """
    with _wiring, _our_classes(store):
        memory = Memory.from_config(_configuration(collection, embedder.dimensions))
    memory.embedding_model.embedder = embedder
    memory.db.close()
    memory.db = NoHistory()
    return memory


def _configuration(collection: str, dimensions: int) -> dict[str, Any]:
    store = {
        "collection_name": collection,
        "embedding_model_dims": dimensions,
        # Required by mem0 and used by nobody: the store has Django's connection.
        "connection_string": "unused",
    }
    return {
        "vector_store": {"provider": _STORE, "config": store},
        "embedder": {"provider": _EMBEDDER, "config": {"embedding_dims": dimensions}},
        "llm": {"provider": _MODEL, "config": {}},
        "history_db_path": ":memory:",
    }


@contextmanager
def _our_classes(store: str) -> Iterator[None]:
    """mem0's tables of classes with ours in them; put back afterwards, so that its names keep their meaning."""
    places: list[tuple[dict[str, Any], str, Any]] = [
        (factory.VectorStoreFactory.provider_to_class, _STORE, f"{_SLOTS}.{store}"),
        (factory.EmbedderFactory.provider_to_class, _EMBEDDER, f"{_SLOTS}.EmbedderSlot"),
        (factory.LlmFactory.provider_to_class, _MODEL, (f"{_SLOTS}.NoLanguageModel", BaseLlmConfig)),
    ]
    originals = [table[name] for table, name, _ in places]
    for table, name, ours in places:
        table[name] = ours
    try:
        yield
    finally:
        for (table, name, _), original in zip(places, originals, strict=True):
            table[name] = original
