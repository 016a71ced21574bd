"""What turns text into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.memories.providers.base import ProviderError

Matrix = NDArray[np.float32]
Span = tuple[int, int]


class Embedder(Protocol):
    """One model. Texts and questions may be embedded differently; vectors have unit length.

    ``name`` is what ``FIRM_MEMORY_EMBEDDER`` says and what a generation of the pool remembers. Failures are
    ``ProviderError``.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text the model reads; what stands behind them is lost to it."""
        ...

    @property
    def unrelated_below(self) -> float:
        """The cosine below which a question and a text have nothing in common; 0 where nobody measured it."""
        ...

    def reads(self, text: str) -> bool:
        """Whether the model knows the script of ``text``; vectors of what it cannot read say nothing about meaning."""
        ...

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """One row of ``dimensions`` numbers for each text, in order."""
        ...

    def embed_query(self, text: str) -> Matrix:
        """One row for a question."""
        ...

    def warm_up(self) -> None:
        """Load whatever the first text would otherwise wait for, without embedding anything."""
        ...

    def token_spans(self, text: str) -> list[Span]:
        """Where each token begins and ends in ``text``, in characters; an estimate will do."""
        ...


def unit_rows(rows: Matrix) -> Matrix:
    """The rows scaled to length one; a row without direction is refused, since no search could find it."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or not (norms > 0).all():
        raise ProviderError("The embedding model returned a vector without a direction.", permanent=True)
    unit: Matrix = (rows / norms).astype(np.float32)
    return unit
