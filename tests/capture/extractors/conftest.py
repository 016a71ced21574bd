from __future__ import annotations

from collections.abc import Iterator

import pytest

from apps.capture.extractors import findings
from apps.capture.extractors.base import TypeChoice, Vocabulary
from apps.taxonomy.seed import EXCLUSIONS, TYPES
from tests.capture.extractors.model_server import SECRET, ModelServer, model_server


@pytest.fixture
def vocabulary() -> Vocabulary:
    """What a workspace starts with."""
    return Vocabulary(tuple(TypeChoice(row.name, row.slug, row.description) for row in TYPES), EXCLUSIONS)


@pytest.fixture(autouse=True)
def _nothing_learned(monkeypatch) -> None:
    """How much a model can read is remembered from one text to the next."""
    monkeypatch.setattr(findings, "_room", {})


@pytest.fixture
def server(monkeypatch, settings) -> Iterator[ModelServer]:
    """The model that the settings name, at the address that LiteLLM's own variables give."""
    with model_server() as running:
        monkeypatch.setenv("OPENAI_API_BASE", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        settings.FIRM_MEMORY_LLM_MODEL = "openai/test"
        settings.FIRM_MEMORY_LLM_TIMEOUT = 20
        yield running
