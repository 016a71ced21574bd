"""Whether a text can be stored, how raw material is made storable, and when two texts are the same.

What in a text cannot be seen (``hidden_characters``) and what in it talks to its reader
(``instructions_to_reader``) have modules of their own and are offered here as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apps.core.errors import FieldError
from apps.core.screening import folding
from apps.core.screening.hidden import hidden_characters
from apps.core.screening.reader import instructions_to_reader
from apps.core.screening.spans import Span, line_and_column

__all__ = [
    "Span",
    "TextProblem",
    "check_text",
    "clean_text",
    "hidden_characters",
    "instructions_to_reader",
    "line_and_column",
    "normalise_for_fingerprint",
]

_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TERMINAL_SEQUENCE: Final = re.compile("\x1b(?:\\[[0-?]{0,32}[ -/]{0,8}[@-~]|\\][^\x07\x1b]{0,512}(?:\x07|\x1b\\\\))")
_CONTROL: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f]")
_RAISED: Final = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻₀₁₂₃₄₅₆₇₈₉₊₋]+")
_LINE_BREAK: Final = re.compile("[\n\r\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class TextProblem(FieldError):
    """Why a text cannot be stored. ``kind`` is one of nul, surrogate, control, line-break, blank, short, long."""

    kind: str = ""


def _where(value: str, index: int, *, multiline: bool) -> str:
    line, column = line_and_column(value, index)
    return f"line {line}, column {column}" if multiline else f"position {index + 1}"


def _forbidden(value: str, multiline: bool) -> Iterator[tuple[str, re.Pattern[str], str]]:
    yield "nul", re.compile("\x00"), "a NUL character"
    yield "surrogate", _SURROGATE, "half of a surrogate pair, which is no character by itself"
    yield "control", _CONTROL, "a control character"
    if not multiline:
        yield "line-break", _LINE_BREAK, "a line break, and this field is a single line"


def check_text(
    value: str, *, field: str, max_length: int, min_length: int = 1, multiline: bool = True
) -> list[FieldError]:
    """Every reason why ``value`` cannot be stored in ``field``; lengths are in characters (code points).

    A text of which nothing can be seen counts as blank. With ``min_length=0`` a blank text is accepted.
    """
    problems: list[FieldError] = []
    for kind, pattern, what in _forbidden(value, multiline):
        if found := pattern.search(value):
            where = _where(value, found.start(), multiline=multiline)
            message = f"There is {what}, at {where} (U+{ord(found[0]):04X}). Remove it and send the text again."
            problems.append(TextProblem(field, message, kind))
    visible = len(folding.HIDDEN_RUN.sub("", value).strip()) if len(value) <= max_length else len(value)
    if not visible and min_length > 0:
        problems.append(TextProblem(field, "This is blank. Write at least one visible character.", "blank"))
    elif visible < min_length:
        message = f"This is too short: at least {min_length:,} characters are needed, and it has {visible:,}."
        problems.append(TextProblem(field, message, "short"))
    if len(value) > max_length:
        message = f"This is too long: at most {max_length:,} characters are allowed, and it has {len(value):,}."
        problems.append(TextProblem(field, message, "long"))
    return problems


def _counted(count: int, what: str) -> str:
    return f"Removed {count:,} {what}{'' if count == 1 else 's'}."


def clean_text(value: str) -> tuple[str, list[str]]:
    """Raw material made storable: what no column can hold is taken out, and each kind leaves a note."""
    notes: list[str] = []
    value = _SURROGATE_PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), value)
    for pattern, what in (
        (re.compile("\x00"), "NUL character"),
        (_SURROGATE, "lone surrogate"),
        (_TERMINAL_SEQUENCE, "terminal control sequence"),
        (_CONTROL, "control character"),
    ):
        value, count = pattern.subn("", value)
        if count:
            notes.append(_counted(count, what))
    return value, notes


# --- Fingerprints ------------------------------------------------------------------------------------------

_TRAILING: Final = " .,;:!…。．、，；：！"


def normalise_for_fingerprint(value: str) -> str:
    """The form in which two wordings count as the same text: case, spacing, width and a final stop do not matter.

    Words of scripts without spaces are left as they are, so 支払い and 決済 stay two texts.
    """
    text = _RAISED.sub(lambda run: f"^{run[0]}", folding.HIDDEN_RUN.sub("", value))  # 10⁶ is not 106
    for _ in range(2):  # Unicode's caseless compatibility match: folding can undo a normal form, and once only
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).casefold())
    text = " ".join(text.split())
    return text.rstrip(_TRAILING) or text
