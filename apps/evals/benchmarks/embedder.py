"""An embedder that looks its answers up, so that a measurement is not one of the embedding model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from apps.memories.providers.base import ProviderError
from apps.memories.providers.embedders.base import Matrix, Span
from apps.memories.providers.embedders.local import DIMENSIONS, MAX_TOKENS, NAME, UNRELATED_BELOW


class RecordedEmbedder:
    """Passes for the local model with vectors made before; ``known`` has one for each text it will be asked."""

    name = NAME
    dimensions = DIMENSIONS
    max_tokens = MAX_TOKENS
    unrelated_below = UNRELATED_BELOW

    def __init__(self, known: Mapping[str, Matrix] | None = None) -> None:
        self.known: dict[str, Matrix] = dict(known or {})

    def reads(self, text: str) -> bool:
        return True

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        try:
            return np.stack([self.known[text] for text in texts])
        except KeyError:
            raise ProviderError("There is no recorded vector for this text.", permanent=True) from None

    def embed_query(self, text: str) -> Matrix:
        return self.embed_documents([text])[0]

    def warm_up(self) -> None: ...

    def token_spans(self, text: str) -> list[Span]:
        """None, so that no text is cut: what is recorded was short enough to be read whole."""
        return []
