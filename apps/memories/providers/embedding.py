"""The half of a provider that is the same for all: from text to vectors, in bounded time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Final, Literal

import numpy as np

from apps.core.logs import without_words
from apps.core.observers import Observers
from apps.memories.providers.base import (
    MemoryRecord,
    NoteQuery,
    Passage,
    PoolQuery,
    Prepared,
    ProviderError,
    ProviderTimeout,
    Vector,
    require_text,
)
from apps.memories.providers.bounded import Bounded
from apps.memories.providers.embedders.base import Embedder, Matrix
from apps.memories.providers.embedders.passages import split_passages

QUERY_SECONDS: Final = 3.0
DOCUMENT_SECONDS: Final = 60.0

# What is embedded in one bounded piece of work: about three seconds of the local model at its slowest.
_PASSAGES_AT_ONCE = 64

# Agents repeat themselves; a question costs 3-4 ms locally and a round trip elsewhere.
_REMEMBERED_QUERIES = 512

What = Literal["question", "documents"]
Outcome = Literal["done", "timeout", "error"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Embedding:
    """One call of an embedding model and how it ended."""

    embedder: str
    what: What
    outcome: Outcome
    seconds: float


# Told in the thread that waited for the model.
observers: Final[Observers[Embedding]] = Observers()


class EmbeddingProvider:
    """Embeds texts and questions; what is stored where is the subclass's business."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        query_seconds: float = QUERY_SECONDS,
        document_seconds: float = DOCUMENT_SECONDS,
    ) -> None:
        self.embedder = embedder
        self._query_seconds = query_seconds
        self._document_seconds = document_seconds
        self._bounded = Bounded("The embedding model")
        # Failures are not remembered, only answers.
        self._remembered = lru_cache(maxsize=_REMEMBERED_QUERIES)(self._embed_query)

    @property
    def unrelated_below(self) -> float:
        return self.embedder.unrelated_below

    def reads(self, text: str) -> bool:
        return self.embedder.reads(text)

    def prepare_many(self, texts: Sequence[str]) -> list[Prepared]:
        for text in texts:
            require_text("text", text)
        cut = [split_passages(text, self.embedder) for text in texts]
        vectors = self._embed_documents([passage for passages in cut for passage in passages])
        return [self._prepared(passages, vectors) for passages in cut]

    def prepare(self, text: str) -> Prepared:
        return self.prepare_many([text])[0]

    def embed_query(self, text: str) -> Vector:
        require_text("text", text)
        return self._remembered(text)

    def insert(self, record: MemoryRecord, prepared: Prepared) -> None:
        self.insert_many([(record, prepared)])

    def insert_many(self, records: Sequence[tuple[MemoryRecord, Prepared]]) -> None:
        raise NotImplementedError

    def warm_up(self) -> None:
        self.embedder.warm_up()

    def require_own(self, prepared: Prepared) -> None:
        """Refuse what another embedder prepared: its vectors mean nothing here."""
        if (prepared.embedder, prepared.dimensions) != (self.embedder.name, self.embedder.dimensions):
            raise ProviderError(
                f"The text was prepared by the embedder {prepared.embedder} ({prepared.dimensions} dimensions), "
                f"while the pool uses {self.embedder.name} ({self.embedder.dimensions}). Prepare it again.",
                permanent=False,
            )

    def require_length(self, query: PoolQuery | NoteQuery) -> None:
        """Refuse a question embedded by another embedder, as far as its length shows."""
        if len(query.vector) != self.embedder.dimensions:
            raise ProviderError(
                f"The question's vector has {len(query.vector)} dimensions, the pool has {self.embedder.dimensions}.",
                permanent=True,
            )

    def _prepared(self, passages: list[str], vectors: Iterator[Vector]) -> Prepared:
        made = tuple(Passage(text, vector) for text, vector in zip(passages, vectors, strict=False))
        return Prepared(made, self.embedder.name, self.embedder.dimensions)

    def _embed_documents(self, texts: list[str]) -> Iterator[Vector]:
        queue = iter(texts)
        while piece := list(islice(queue, _PASSAGES_AT_ONCE)):
            work = partial(self.embedder.embed_documents, piece)
            rows = self._ask("documents", work, seconds=self._document_seconds)
            yield from self._vectors(rows, len(piece))

    def _embed_query(self, text: str) -> Vector:
        work = partial(self.embedder.embed_query, text)
        row = self._ask("question", work, seconds=self._query_seconds)
        return next(self._vectors(np.atleast_2d(row), 1))

    def _ask(self, what: What, work: Callable[[], Matrix], *, seconds: float) -> Matrix:
        started = time.monotonic()
        outcome: Outcome = "error"
        try:
            answer = self._answer(work, seconds)
            outcome = "done"
        except ProviderTimeout:
            outcome = "timeout"
            raise
        finally:
            observers.tell(Embedding(self.embedder.name, what, outcome, time.monotonic() - started))
        return answer

    def _answer(self, work: Callable[[], Matrix], seconds: float) -> Matrix:
        try:
            return self._bounded.run(work, seconds=seconds)
        except ProviderError:
            raise
        except Exception as error:
            # Whatever runs the model has errors of its own, and their messages may quote the text: the log gets to
            # know where it happened, and nobody what was said.
            logger.error("The embedding model %s failed: %s", self.embedder.name, without_words(error))
            raise ProviderError(f"The embedding model failed ({type(error).__name__}).", permanent=False) from None

    def _vectors(self, rows: Matrix, count: int) -> Iterator[Vector]:
        expected = (count, self.embedder.dimensions)
        if rows.shape != expected:
            raise ProviderError(
                f"The embedding model returned {rows.shape[0]} vectors of {rows.shape[-1]} dimensions where "
                f"{expected[0]} of {expected[1]} were expected.",
                permanent=True,
            )
        if not np.isfinite(rows).all() or not rows.any(axis=1).all():
            raise ProviderError("The embedding model returned a vector without a direction.", permanent=True)
        return map(tuple, rows.tolist())
