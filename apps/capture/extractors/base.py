"""What every extractor takes and gives back: raw material in, facts out.

An extractor proposes and decides nothing. Whatever the material says about itself is data: a fact cannot raise its
own trust, and an edge that it asks for is a wish that a reviewer sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Material:
    """One event's text as it is kept: secrets and personal data masked, code cut out.

    ``kind`` is one of ``SourceKind``; ``hints`` are the lower-cased decision signals of the workspace's own languages.
    """

    text: str
    kind: str
    repos: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeChoice:
    """An active type as extractors and their prompts know it."""

    name: str
    slug: str
    description: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a workspace remembers, by type, and what it leaves out, by slug and description."""

    types: tuple[TypeChoice, ...]
    exclusions: tuple[tuple[str, str], ...] = ()

    def slug_of(self, name: str) -> str | None:
        """The slug of a type by either spelling, whatever its case; ``None`` for an unknown one."""
        wanted = name.strip().casefold()
        return next(
            (known.slug for known in self.types if wanted in (known.name.casefold(), known.slug.casefold())), None
        )


@dataclass(frozen=True, slots=True)
class Fact:
    """One self-contained statement. ``quote`` is the passage of the material that supports it, word for word.

    ``confidence`` is as reported, from 0 to 1, or ``None``. ``supersedes`` are references such as ``M-12`` that the
    material names. ``doubt`` says why the fact must wait in quarantine whatever its confidence, as a sentence.
    """

    content: str
    type: str
    confidence: float | None = None
    quote: str = ""
    supersedes: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A fact that was found and not taken, with the reason as a sentence.

    ``outcome`` is ``excluded`` where the reason is an exclusion, else ``dropped_classifier``. ``taints``: it was
    excluded for something that must not be kept, which in some form stands in the material, too.
    """

    content: str
    outcome: str
    reason: str
    taints: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """What an extraction cost. Tokens are as the model's server reports them."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Extraction:
    """``note`` says in a sentence why nothing was found, or what was repaired."""

    facts: tuple[Fact, ...] = ()
    refused: tuple[Refused, ...] = ()
    usage: Usage = field(default_factory=Usage)
    note: str = ""


class ExtractorError(Exception):
    """The extractor could not do its work: never an empty success. ``message`` is a sentence without any secret.

    ``permanent``: trying again will not help. ``retry_after``: seconds that the model's server asked to wait.
    ``usage`` is what was spent all the same.
    """

    def __init__(
        self,
        message: str,
        *,
        permanent: bool = False,
        retry_after: float | None = None,
        usage: Usage = Usage(),
    ) -> None:
        super().__init__(message)
        self.usage = usage
        self.message = message
        self.permanent = permanent
        self.retry_after = retry_after


class TooLong(ExtractorError):
    """More than the model can read at once. Less of it may do."""


Heartbeat = Callable[[], None]


def no_heartbeat() -> None:
    """Nobody waits for a sign of life."""


class Extractor(Protocol):
    """``heartbeat`` is called between slow steps; it raises when somebody else has taken the work over."""

    name: str

    def extract(
        self, material: Material, vocabulary: Vocabulary, *, heartbeat: Heartbeat = no_heartbeat
    ) -> Extraction: ...
