"""From a call to what the agent gets: every failure is a short answer that it can read, and none breaks its turn."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from apps.accounts.principal import Principal
from apps.agents.call import joined
from apps.agents.telling import STRUCTURED_DATA, harmless
from apps.agents.tools import TOOLS, perform
from apps.core import problems
from apps.core.errors import DomainError
from apps.core.patience import READ_SECONDS, WRITE_SECONDS, patience
from apps.core.screening import masked
from apps.taxonomy.api import taxonomy_shown

logger = logging.getLogger(__name__)

_FOR_CLIENTS: Final = ("code", "detail", "errors", "extra", "request_id")


@dataclass(frozen=True, slots=True)
class Caller:
    """``identify`` raises for whoever is not, or no longer, let in; ``checkout`` is the remote of where they work.

    ``given`` is the message as it was sent, where the SDK got another one.
    """

    identify: Callable[[], Principal]
    checkout: str | None = None
    given: Mapping[str, Any] | None = None

    def arguments(self, parsed: Mapping[str, Any] | None) -> Any:
        params = self.given.get("params") if self.given is not None else None
        return params.get("arguments") if isinstance(params, Mapping) else parsed


@dataclass(frozen=True, slots=True)
class Answer:
    texts: list[str]
    structured: dict[str, Any]
    is_error: bool = False


def answer(caller: Caller, name: str, arguments: Any) -> Answer:
    try:
        return _answer(caller, name, arguments)
    except Exception as error:
        return _refusal(_as_refusal(error))


def _answer(caller: Caller, name: str, arguments: Any) -> Answer:
    reads = name in TOOLS and TOOLS[name].reads
    with patience(READ_SECONDS if reads else WRITE_SECONDS):
        outcome = perform(caller.identify(), name, arguments, checkout=caller.checkout)
    note = joined(outcome.note, STRUCTURED_DATA if reads and outcome.results else "")
    structured = harmless({"results": outcome.results, "note": note, **outcome.beside})
    return Answer([text for text in (outcome.text, harmless(outcome.note)) if text] or ["Done."], structured)


def _as_refusal(error: Exception) -> DomainError:
    ours = problems.as_domain_error(error)
    if ours is None:
        logger.error("A tool failed.", exc_info=error)
        return problems.broken()
    return ours


def _refusal(error: DomainError) -> Answer:
    told = {name: value for name, value in problems.problem(error).items() if name in _FOR_CLIENTS}
    # It repeats names that were sent in the place of known ones, and those may be anything.
    told |= {name: _quotable(told[name]) for name in ("detail", "errors") if name in told}
    fields = [joined(f"{each['field']}:" if each["field"] else "", each["message"]) for each in told.get("errors", [])]
    text = "\n".join([told["detail"], *(f"- {field}" for field in fields if field != told["detail"])])
    return Answer([text], {"results": [], "note": told["detail"], "error": harmless(told)}, is_error=True)


def _quotable(value: Any) -> Any:
    if isinstance(value, str):
        return harmless(masked(value))
    if isinstance(value, list):
        return [_quotable(each) for each in value]
    return {name: _quotable(each) for name, each in value.items()} if isinstance(value, Mapping) else value


def taxonomy(caller: Caller) -> str:
    """The types that a proposal may name, as JSON. Raises ``DomainError``."""
    try:
        with patience(READ_SECONDS):
            shown = taxonomy_shown(caller.identify().workspace)
    except Exception as error:
        raise _as_refusal(error) from error
    return json.dumps(harmless(shown), ensure_ascii=False, indent=1)
