"""Looks at text before anything is stored, logged, embedded or sent to a model.

``screen`` says what must be refused and what a reviewer should see; nothing here touches the database, and no
answer ever carries the value of a secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from apps.core.errors import Excluded, FieldError
from apps.core.screening.code import SOURCE_CODE, find_code
from apps.core.screening.personal import find_personal
from apps.core.screening.secrets import SECRETS, Finding, find_secrets, mask
from apps.core.screening.text import (
    Span,
    TextProblem,
    check_text,
    clean_text,
    hidden_characters,
    instructions_to_reader,
    line_and_column,
    normalise_for_fingerprint,
)

__all__ = [
    "HIDDEN_CHARACTERS",
    "INSTRUCTIONS",
    "SECRETS",
    "SOURCE_CODE",
    "Finding",
    "Flag",
    "Refusal",
    "Screening",
    "Span",
    "TextProblem",
    "check_text",
    "clean_text",
    "find_code",
    "find_personal",
    "find_secrets",
    "hidden_characters",
    "instructions_to_reader",
    "mask",
    "masked",
    "normalise_for_fingerprint",
    "quotable",
    "raise_if_refused",
    "screen",
]

HIDDEN_CHARACTERS: Final = "hidden-characters"
INSTRUCTIONS: Final = "instructions-to-reader"
REFUSALS_PER_FIELD: Final = 20


@dataclass(frozen=True, slots=True)
class Refusal(FieldError):
    """A field that holds what must not be remembered, and where; never what it is."""

    exclusion: str
    kind: str
    line: int
    column: int

    def as_dict(self) -> dict[str, Any]:
        place = {"line": self.line, "column": self.column}
        return {"field": self.field, "message": self.message, "exclusion": self.exclusion, "kind": self.kind, **place}


@dataclass(frozen=True, slots=True)
class Flag:
    """Something a reviewer should see in a field. It decides nothing.

    ``kind`` is ``hidden-characters`` or ``instructions-to-reader``, ``detail`` names the sort within it, and
    ``shown`` is printable: hidden characters appear by name.
    """

    kind: str
    field: str
    start: int
    end: int
    shown: str
    detail: str = ""

    def as_dict(self) -> dict[str, str | int]:
        return {
            "kind": self.kind,
            "detail": self.detail,
            "field": self.field,
            "start": self.start,
            "end": self.end,
            "shown": self.shown,
        }


@dataclass(frozen=True, slots=True)
class Screening:
    refusals: list[Refusal]
    flags: list[Flag]


def screen(fields: Mapping[str, str], *, exclusions: Collection[str] = (SECRETS, SOURCE_CODE)) -> Screening:
    """Judge every field by itself; the keys are the names that the caller knows the fields by.

    ``exclusions`` holds the slugs in force. Secrets and personal data are looked for whatever it holds. A field that is
    refused raises no flags: they would show parts of a text that is not going to be kept.
    """
    refusals: list[Refusal] = []
    flags: list[Flag] = []
    for field, value in fields.items():
        refused = list(islice(_refusals(field, value, code=SOURCE_CODE in exclusions), REFUSALS_PER_FIELD))
        refusals.extend(refused)
        if not refused:
            flags.extend(_flags(field, value))
    return Screening(refusals, flags)


def raise_if_refused(fields: Mapping[str, str], *, exclusions: Collection[str] = (SECRETS, SOURCE_CODE)) -> list[Flag]:
    """Raise ``Excluded`` naming every refused field; otherwise answer what a reviewer should see."""
    screening = screen(fields, exclusions=exclusions)
    if screening.refusals:
        slugs = sorted({refusal.exclusion for refusal in screening.refusals})
        names = ", ".join(sorted({refusal.field for refusal in screening.refusals}))
        raise Excluded(
            f"This must not be remembered ({', '.join(slugs)}; see {names}). Nothing was stored.",
            errors=screening.refusals,
            extra={"exclusions": slugs},
        )
    return screening.flags


def masked(text: str) -> str:
    """``text`` with a mark in the place of every secret and all personal data."""
    findings = [*find_secrets(text), *find_personal(text)]
    return mask(text, findings) if findings else text


def quotable(text: str, *, length: int = 60) -> str:
    """What an error may repeat of a value that was sent: shortened, with secrets and personal data masked."""
    return masked(text).strip()[:length]


def _refusals(field: str, value: str, *, code: bool) -> Iterator[Refusal]:
    for finding in find_secrets(value):
        line, column = line_and_column(value, finding.start)
        message = (
            f"There is a secret ({finding.kind}) at line {line}, column {column}. Say what it is for and where"
            " it is kept, without its value; if it is real, revoke it, since it was sent here."
        )
        yield Refusal(field, message, SECRETS, finding.kind, line, column)
    for finding in find_personal(value):
        line, column = line_and_column(value, finding.start)
        message = (
            f"There is personal data ({finding.kind}) at line {line}, column {column}. Name the team or the role in its"
            " place, or leave it out."
        )
        yield Refusal(field, message, SECRETS, finding.kind, line, column)
    for found in find_code(value) if code else ():
        line, column = line_and_column(value, found.start)
        message = (
            f"There is {found.why} at line {line}, column {column} ({found.slug}). Say in words what holds and"
            " why; name a function, a file or a command in the text, and link to the code as a source."
        )
        yield Refusal(field, message, found.slug, found.kind, line, column)


def _flags(field: str, value: str) -> Iterator[Flag]:
    for kind, spans in (
        (HIDDEN_CHARACTERS, hidden_characters(value)),
        (INSTRUCTIONS, instructions_to_reader(value)),
    ):
        for span in spans:
            yield Flag(kind, field, span.start, span.end, span.shown, span.kind)
