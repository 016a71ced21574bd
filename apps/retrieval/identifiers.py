"""Names that are meant letter by letter: code, tickets, merge requests, error codes, files, acronyms."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MAX_IDENTIFIERS: Final = 12
MAX_LENGTH: Final = 80
_READ: Final = 4_000  # characters of a text; further on a question is a page that somebody pasted

_KINDS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"`([^`\n]{2,80})`",
        r"(?<![\w.-])((?:[\w.-]+/)*[\w.-]*[!#]\d{1,9})\b",  # acme/payments!4821, #17
        r"\b((?i:HTTP)[ /]?[1-5]\d\d)\b",
        r"\b([A-Za-z][A-Za-z0-9]{0,9}-\d{1,9})\b",  # OMS-123, m-1042, UTF-8
        r"(?<![\w/])([\w.-]+(?:/[\w.-]+)+)",  # src/retry.py, acme/payments
        r"\b([A-Za-z][\w-]*(?:\.[A-Za-z_][\w-]*)+)\b",  # settings.prod, retry.py
        r"\b([A-Za-z0-9]+(?:_[A-Za-z0-9]+)+)\b",  # snake_case, MAX_RETRIES
        r"\b([a-z]+(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z0-9]+){2,})\b",  # camelCase, PascalCase
        r"\b(0x[0-9A-Fa-f]{2,16}|[A-Z]{1,6}\d{2,6})\b",  # 0x1F, E1042
    )
)
_MEMORY_NUMBER: Final = re.compile(r"[Mm]-([1-9][0-9]{0,17})")
_ACRONYM: Final = re.compile(r"\b[A-Z][A-Z0-9]{1,9}\b")
_COMMON_ACRONYMS: Final = frozenset(
    re.findall(
        r"\w+",
        "AND API CD CI CPU CSS DB HTML HTTP HTTPS ID JSON MR NOT OK OR OS PR QA RAM SDK SQL SSH TLS UI URL UTC UUID "
        "XML YAML",
    )
)


def acronyms_in(text: str) -> set[str]:
    """Words in capitals, without those that every engineer uses."""
    return set(_ACRONYM.findall(text)) - _COMMON_ACRONYMS


def memory_numbers(names: Iterable[str]) -> dict[int, str]:
    """Those of ``names`` that are the number of a memory, such as M-1042, by what they number."""
    return {int(match[1]): name for name in names if (match := _MEMORY_NUMBER.fullmatch(name))}


def identifiers_in(text: str) -> list[str]:
    """Each once, without its backticks, in the order of the text; what stands within another one is left out."""
    read = text[:_READ]
    found: list[tuple[int, int]] = []
    for kind in _KINDS:
        found += [match.span(1) for match in kind.finditer(read)]
    found += [match.span() for match in _ACRONYM.finditer(read) if match[0] not in _COMMON_ACRONYMS]
    outermost: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not outermost or start >= outermost[-1][1]:
            outermost.append((start, end))
    named = (read[start:end].strip().strip(".-/") for start, end in outermost)
    return list(dict.fromkeys(name for name in named if 2 <= len(name) <= MAX_LENGTH))[:MAX_IDENTIFIERS]
