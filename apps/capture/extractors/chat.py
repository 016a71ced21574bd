"""A language model over the plain chat interface of LiteLLM, so that any model works.

Keys and addresses come from the environment variables that LiteLLM documents for the model. LiteLLM is imported on
first use, because that takes seconds and 200 MB. It is kept from the network while it is imported, from its own
retries, and from writing what it sends and receives into a log at any level.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from django.conf import settings

from apps.capture.extractors.base import ExtractorError, TooLong, Usage
from apps.capture.extractors.prompts import Messages
from apps.core.clock import now
from apps.memories.providers.base import ProviderTimeout
from apps.memories.providers.bounded import Bounded
from apps.memories.providers.embedders.litellm import load_litellm

# What will be answered the same way next time, whenever that is.
_PERMANENT: Final = frozenset({400, 401, 402, 403, 404, 405, 413, 422})
_TOO_MUCH: Final = 429
_TOO_LATE: Final = frozenset({408, 504})
_NO_MODEL: Final = (
    "FIRM_MEMORY_LLM_MODEL names no model. Name one as LiteLLM does, such as openai/gpt-4.1-mini, or set "
    "FIRM_MEMORY_EXTRACTOR to rules."
)
_LONGEST_WAIT: Final = 86_400.0
# A server that sends a byte now and then never runs into a time-out of the connection.
_bounded = Bounded("The language model")


@dataclass(frozen=True, slots=True)
class Answer:
    """``cut``: the model stopped because it had no room left."""

    text: str
    usage: Usage
    cut: bool = False


class ChatModel:
    """One model. ``seconds`` is how long one call may take altogether."""

    def __init__(self, model: str, *, seconds: float) -> None:
        self.model = model
        self._seconds = seconds

    def ask(self, messages: Messages) -> Answer:
        """One call and one answer. Raises ``ExtractorError``, whose sentence holds neither the key nor the messages."""
        litellm = _litellm()
        try:
            answer = _bounded.run(lambda: self._complete(litellm, messages), seconds=self._seconds + 1)
        except ProviderTimeout:
            raise self._late() from None
        except Exception as error:
            # LiteLLM has no base class for what it raises, and the messages may quote the material or keys.
            raise self._failure(error) from None
        return self._read(answer)

    def _complete(self, litellm: Any, messages: Messages) -> Any:
        return litellm.completion(
            model=self.model,
            messages=messages,
            temperature=0,
            timeout=self._seconds,
            max_retries=0,
            num_retries=0,
            # Some models refuse to be told a temperature.
            drop_params=True,
        )

    def _read(self, answer: Any) -> Answer:
        try:
            choice = answer.choices[0]
            text, reason = choice.message.content, choice.finish_reason
        except (AttributeError, IndexError, TypeError):
            text, reason = None, None
        if reason == "content_filter":
            raise ExtractorError(
                f"The language model {self.model} refuses to read this material (content filter).", permanent=True
            )
        if not isinstance(text, str) or not text.strip():
            raise ExtractorError(f"The language model {self.model} answered without a text.")
        return Answer(text, _usage(getattr(answer, "usage", None)), cut=reason == "length")

    def _late(self) -> ExtractorError:
        return ExtractorError(
            f"The language model {self.model} did not answer within {self._seconds:g} seconds "
            "(FIRM_MEMORY_LLM_TIMEOUT)."
        )

    def _failure(self, error: Exception) -> ExtractorError:
        kind, status = type(error).__name__, getattr(error, "status_code", None)
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        if kind == "ContextWindowExceededError":
            return TooLong(
                f"The language model {self.model} cannot read that much at once. Use one with a longer context.",
                permanent=True,
            )
        if status in _TOO_LATE:
            return self._late()
        # A missing key never reaches a server, and LiteLLM reports it as a failure of the server.
        permanent = status in _PERMANENT or (not headers and "api_key" in str(error))
        reason = f"{kind}, status {status}" if isinstance(status, int) and headers else kind
        advice = _advice(status, permanent)
        message = f"The language model {self.model} could not be used ({reason}).{advice}"
        return ExtractorError(message, permanent=permanent, retry_after=_retry_after(headers))


def configured_model() -> ChatModel:
    """The model of the settings. Raises ``ExtractorError`` where none is named."""
    if not settings.FIRM_MEMORY_LLM_MODEL:
        raise ExtractorError(_NO_MODEL, permanent=True)
    return ChatModel(settings.FIRM_MEMORY_LLM_MODEL, seconds=float(settings.FIRM_MEMORY_LLM_TIMEOUT))


def _advice(status: Any, permanent: bool) -> str:
    if status == _TOO_MUCH:
        return " Its server takes no more for now."
    return " Check FIRM_MEMORY_LLM_MODEL and the key of its provider in the environment." if permanent else ""


def _usage(usage: Any) -> Usage:
    return Usage(1, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: Any, name: str) -> int:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and count > 0 else 0


def _retry_after(headers: Any) -> float | None:
    """Seconds, from a number or a date (RFC 9110, section 10.2.3); at most a day."""
    value = str(headers.get("retry-after") or "").strip()
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", value):
        return min(float(value), _LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(value)
        return min(max((moment - now()).total_seconds(), 0.0), _LONGEST_WAIT)
    except (TypeError, ValueError):
        return None


def _litellm() -> Any:
    litellm = load_litellm()
    # Parts of it are imported by the first call, and one of them makes Pydantic warn about itself.
    warnings.filterwarnings("ignore", message=r"Items? .{1,300} using the `ReadOnly` qualifier", category=UserWarning)
    return litellm
