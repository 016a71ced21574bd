"""Names that the wire spells, as people read them."""

from __future__ import annotations

import re
from typing import Final

_FIELDS: Final = {
    "content": "the statement",
    "reason": "the reason",
    "replacement": "the better wording",
    "supersedes": "what this replaces",
    "valid_from": "the beginning of its validity",
    "kind": "what is the matter",
    "scope.domains": "a domain",
    "scope.repos": "a repository",
}
_OF_SOURCES: Final = {"url": "address", "occurred_at": "date"}
_SOURCE: Final = re.compile(r"sources\[(\d+)\]\.(\w+)")


_DOORS: Final = {
    "ui": "the pages",
    "rest": "the API",
    "mcp": "MCP",
    "command": "a command",
    "import": "an import",
    "capture": "capture",
    "admin": "administration",
}


# Before the door of what was not decided here and came with an export of another firm memory.
RESTORED: Final = "restored:"


def door_words(via: str) -> str:
    """By which door something came in, after “through”."""
    if via.startswith(RESTORED):
        return f"{door_words(via.removeprefix(RESTORED))} of the firm memory that it was exported from"
    return _DOORS.get(via, words(via))


def words(slug: str) -> str:
    """``architecture_decisions`` and ``merge_request`` as people read them."""
    return slug.replace("_", " ")


def field_words(path: str) -> str:
    """Which field a refusal or a flag is about, for the middle of a sentence: “the quote of source 1”."""
    of_source = _SOURCE.fullmatch(path)
    if of_source:
        name = of_source[2]
        return f"the {_OF_SOURCES.get(name, words(name))} of source {int(of_source[1]) + 1}"
    return _FIELDS.get(path.partition("[")[0]) or f"the {words(path)}"
