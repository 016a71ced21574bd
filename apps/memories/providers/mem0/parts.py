"""mem0 taken as parts: its wiring and its interfaces, with what acts by itself switched off.

mem0 arranges itself when it is imported: it decides about telemetry, makes a directory in the home folder and
mutes another library's log. So it is imported here and nowhere else, late, with all of that decided before.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from django.conf import settings

from apps.memories.providers.embedders.base import Embedder

# mem0 accepts only names it knows; ours are put in their place while a Memory is built.
_STORE_NAME: Final = "pgvector"
_EMBEDDER_NAME: Final = "fastembed"
_MODEL_NAME: Final = "openai"

_SLOTS: Final = "apps.memories.providers.mem0.slots"

_lock = threading.RLock()


def load() -> ModuleType:
    """Import mem0, once, and return our classes for its slots. Takes one to three seconds the first time."""
    with _lock, _arranged():
        from apps.memories.providers.mem0 import slots

        return slots


def build_memory(*, collection: str, embedder: Embedder) -> Any:
    """A ``mem0.Memory`` over one of the pool's tables. It opens no connection and writes no file."""
    with _lock:
        slots = load()
        from mem0 import Memory

        with _our_classes():
            memory = Memory.from_config(
                {
                    "vector_store": {
                        "provider": _STORE_NAME,
                        "config": {
                            "collection_name": collection,
                            "embedding_model_dims": embedder.dimensions,
                            # Required by mem0 and used by nobody: the store has Django's connection.
                            "connection_string": "unused",
                        },
                    },
                    "embedder": {
                        "provider": _EMBEDDER_NAME,
                        "config": {"embedding_dims": embedder.dimensions},
                    },
                    "llm": {"provider": _MODEL_NAME, "config": {}},
                    "history_db_path": ":memory:",
                }
            )
        memory.embedding_model.embedder = embedder
        memory.db.close()
        memory.db = slots.NoHistory()
        return memory


@contextmanager
def _arranged() -> Iterator[None]:
    """What mem0 reads at import, and what it leaves behind."""
    os.environ["MEM0_TELEMETRY"] = "false"
    os.environ.setdefault("MEM0_DIR", str(_own_directory()))
    network_log = logging.getLogger("urllib3")
    level = network_log.level
    try:
        yield
    finally:
        network_log.setLevel(level)


def _own_directory() -> Path:
    """Inside the data folder; where that cannot be written, in a folder that this process alone uses."""
    directory = Path(settings.DATA_DIR) / "mem0"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="firm-memory-mem0-"))
    return directory


@contextmanager
def _our_classes() -> Iterator[None]:
    """mem0's tables of classes with ours in them; put back afterwards, so that its names keep their meaning."""
    from mem0.utils import factory

    places: list[tuple[dict[str, Any], str, Any]] = [
        (factory.VectorStoreFactory.provider_to_class, _STORE_NAME, f"{_SLOTS}.PoolStore"),
        (factory.EmbedderFactory.provider_to_class, _EMBEDDER_NAME, f"{_SLOTS}.EmbedderSlot"),
        (factory.LlmFactory.provider_to_class, _MODEL_NAME, (f"{_SLOTS}.NoLanguageModel", _base_llm_config())),
    ]
    originals = [table[name] for table, name, _ in places]
    for table, name, ours in places:
        table[name] = ours
    try:
        yield
    finally:
        for (table, name, _), original in zip(places, originals, strict=True):
            table[name] = original


def _base_llm_config() -> Any:
    from mem0.configs.llms.base import BaseLlmConfig

    return BaseLlmConfig
