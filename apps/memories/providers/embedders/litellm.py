"""Any embedding model that LiteLLM can reach: ``FIRM_MEMORY_EMBEDDER=litellm:<model>``.

Keys and addresses come from the environment variables that LiteLLM documents for the model. LiteLLM is
imported on first use, because that takes seconds and 200 MB.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from apps.core.logs import quieten
from apps.memories.providers.base import ProviderError, ProviderTimeout
from apps.memories.providers.embedders.base import Matrix, Span, unit_rows
from apps.memories.providers.embedders.families import Side, family_of
from apps.memories.providers.embedders.passages import estimated_spans

PREFIX: Final = "litellm:"

# What even small models read. A model that reads more says so in LiteLLM's own list.
DEFAULT_MAX_TOKENS: Final = 512

# The narrowest limits among the hosted models: 96 texts at once, and some 100,000 tokens.
_TEXTS_AT_ONCE = 64
_CHARACTERS_AT_ONCE = 100_000

# What will be answered the same way next time, whenever that is.
_PERMANENT = frozenset({400, 401, 402, 403, 404, 405, 413, 422})

_TOO_LATE = 408  # also what LiteLLM says when nothing was answered


class LiteLLMEmbedder:
    """A remote model. Vectors are brought to unit length here, whatever the model returns."""

    def __init__(
        self, model: str, *, dimensions: int, query_seconds: float = 3.0, document_seconds: float = 60.0
    ) -> None:
        self._model = model
        self._dimensions = dimensions
        self._query_seconds = query_seconds
        self._document_seconds = document_seconds
        self._family = family_of(model)
        # Whether the model has to be told how long its vectors shall be: found out by the first answer.
        self._asks_for_length = False

    @property
    def name(self) -> str:
        return f"{PREFIX}{self._model}"

    @property
    def dimensions(self) -> int:
        return self._dimensions

    @property
    def unrelated_below(self) -> float:
        return 0.0  # models differ too much in this to say it for all

    @cached_property
    def max_tokens(self) -> int:
        # Read from the list itself: LiteLLM's function for it asks the servers of some models.
        models = self._litellm.model_cost
        known = models.get(self._model) or models.get(self._model.partition("/")[2]) or {}
        return int(known.get("max_input_tokens") or DEFAULT_MAX_TOKENS)

    def reads(self, text: str) -> bool:
        """Whoever chooses a model chooses one that knows their languages."""
        return True

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        if not texts:
            return np.empty((0, self._dimensions), np.float32)
        parts = [self._embed(part, self._family.document, seconds=self._document_seconds) for part in _requests(texts)]
        return np.concatenate(parts)

    def embed_query(self, text: str) -> Matrix:
        row: Matrix = self._embed([text], self._family.query, seconds=self._query_seconds)[0]
        return row

    def warm_up(self) -> None:
        # A request would cost money each time a process starts.
        _ = self._litellm

    def token_spans(self, text: str) -> list[Span]:
        return estimated_spans(text)

    def _embed(self, texts: Sequence[str], side: Side, *, seconds: float) -> Matrix:
        marked = [f"{side.prefix}{text}" for text in texts]
        rows = self._request(marked, side, seconds)
        if rows.shape[1] != self._dimensions and not self._asks_for_length:
            # Models of a fixed length refuse to be asked for one, so it is asked for only where it is needed.
            self._asks_for_length = True
            rows = self._request(marked, side, seconds)
        if rows.shape != (len(texts), self._dimensions):
            raise ProviderError(
                f"The embedding model {self._model} returned {rows.shape[0]} vectors of {rows.shape[1]} dimensions "
                f"for {len(texts)} texts, while FIRM_MEMORY_EMBEDDER_DIMENSIONS says {self._dimensions}.",
                permanent=True,
            )
        return unit_rows(rows)

    def _request(self, texts: list[str], side: Side, seconds: float) -> Matrix:
        parameters: dict[str, Any] = dict(side.parameters)
        if self._asks_for_length:
            parameters["dimensions"] = self._dimensions
        try:
            answer = self._litellm.embedding(
                model=self._model,
                input=texts,
                timeout=seconds,
                max_retries=0,
                drop_params=True,
                **parameters,
            )
        except Exception as error:
            # LiteLLM has no base class for what it raises, and the messages may quote texts or keys.
            raise self._failure(error) from None
        return self._rows(answer.data)

    def _rows(self, data: Any) -> Matrix:
        try:
            found = [(_value(item, "index"), _value(item, "embedding")) for item in data or ()]
            rows = np.array([row for _, row in sorted(found, key=lambda each: each[0] or 0)], np.float32)
        except (KeyError, AttributeError, TypeError, ValueError):
            rows = np.empty((0, 0), np.float32)
        if rows.ndim != 2 or not rows.size:
            raise ProviderError(
                f"The embedding model {self._model} answered with something that is not a list of vectors.",
                permanent=False,
            )
        return rows

    def _failure(self, error: Exception) -> ProviderError:
        status = getattr(error, "status_code", None)
        # A missing key never reaches the server, and LiteLLM reports it as a failure of the server.
        permanent = status in _PERMANENT or "api_key" in str(error)
        reason = type(error).__name__
        if isinstance(status, int):
            reason = f"{reason}, status {status}"
        advice = " Check the model's name and its key in the environment." if permanent else ""
        message = f"The embedding model {self._model} could not be used ({reason}).{advice}"
        return ProviderTimeout(message) if status == _TOO_LATE else ProviderError(message, permanent=permanent)

    @property
    def _litellm(self) -> Any:
        return load_litellm()


_TALKATIVE: Final = ("LiteLLM", "openai", "httpx", "httpcore")


def load_litellm() -> Any:
    """The library, kept from the network, from its own retries and from saying what it sends. Takes seconds once."""
    # Without it, importing LiteLLM fetches a price list from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # They write requests at DEBUG, and an address that may carry the key at INFO; LiteLLM does so on standard output,
    # and already while it is imported.
    quieten(*_TALKATIVE)
    import litellm

    # It prints advice to standard output otherwise, which is where the MCP command speaks its protocol.
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    # Trying again is the caller's decision; here it would outlast the time allowed. LiteLLM takes a zero in
    # the request for "not set" and falls back to this.
    litellm.DEFAULT_MAX_RETRIES = 0
    quieten(*_TALKATIVE)
    return litellm


def _requests(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, in portions that a hosted model accepts at once."""
    portion: list[str] = []
    size = 0
    for text in texts:
        if portion and (len(portion) == _TEXTS_AT_ONCE or size + len(text) > _CHARACTERS_AT_ONCE):
            yield portion
            portion, size = [], 0
        portion.append(text)
        size += len(text)
    if portion:
        yield portion


def _value(item: Any, key: str) -> Any:
    """Some models' rows come as dictionaries, others as objects."""
    return item[key] if isinstance(item, dict) else getattr(item, key)
