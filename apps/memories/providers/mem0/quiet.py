"""The one place where mem0 is imported.

mem0 arranges itself while it is imported: it decides about telemetry, makes a directory in the home folder and
mutes another library's log. All of that is decided here before, so whoever needs something of mem0 takes it from
this module. Importing it takes one to three seconds; nothing does so before the pool is used.
"""

from __future__ import annotations

import logging
import os
import tempfile
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from django.conf import settings

from apps.memories.providers.base import ProviderError


def own_directory() -> Path:
    """Inside the data folder; where that cannot be written, a folder that this process alone uses."""
    directory = Path(settings.DATA_DIR) / "mem0"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="firm-memory-mem0-"))
    return directory


def _import_quietly() -> ModuleType:
    os.environ["MEM0_TELEMETRY"] = "false"
    os.environ["MEM0_DIR"] = str(own_directory())
    network_log = logging.getLogger("urllib3")
    level = network_log.level
    try:
        module = import_module("mem0")
    finally:
        network_log.setLevel(level)
    if import_module("mem0.memory.telemetry").MEM0_TELEMETRY:
        raise ProviderError(
            "mem0 was imported elsewhere with its telemetry on, so the pool does not use it.", permanent=True
        )
    return module


Memory: Any = _import_quietly().Memory
factory: Any = import_module("mem0.utils.factory")
BaseLlmConfig: Any = import_module("mem0.configs.llms.base").BaseLlmConfig
EmbeddingBase: Any = import_module("mem0.embeddings.base").EmbeddingBase
LLMBase: Any = import_module("mem0.llms.base").LLMBase
VectorStoreBase: Any = import_module("mem0.vector_stores.base").VectorStoreBase
