from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.capture.extractors.chat import ChatModel
from tests.capture.extractors.model_server import SECRET, ModelServer, model_server
from tests.conftest import ApiClient, Issued
from tests.memories.providers.doubles import HashingEmbedder


@pytest.fixture(autouse=True)
def _a_floor(embedder: HashingEmbedder) -> None:
    """What shares no word with the question is not near to it."""
    embedder.unrelated_below = 0.25


@pytest.fixture
def agent(api: Callable[..., ApiClient], robo: Issued) -> ApiClient:
    return api(robo)


_warm = False


def warm_up(server: ModelServer) -> None:
    """The first call of LiteLLM imports it, which on a busy machine takes longer than somebody who asks waits."""
    global _warm
    if not _warm:
        ChatModel("openai/test", seconds=100).ask([{"role": "user", "content": "Good morning."}])
        server.asked.clear()
    _warm = True


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[ModelServer]:
    """The model that the settings name, at the address that LiteLLM's own variables give."""
    with model_server() as running:
        monkeypatch.setenv("OPENAI_API_BASE", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        settings.FIRM_MEMORY_LLM_MODEL = "openai/test"
        settings.FIRM_MEMORY_LLM_TIMEOUT = 60
        warm_up(running)
        yield running
