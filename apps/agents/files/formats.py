"""Which files agents read, where they lie, and where what came from them holds."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from apps.core.errors import FieldError
from apps.core.screening import check_text

MAX_PATH: Final = 250


class Format(StrEnum):
    AGENTS_MD = "agents_md"
    CLAUDE_MD = "claude_md"
    CURSORRULES = "cursorrules"
    CURSOR_RULES = "cursor_rules"
    COPILOT = "copilot_instructions"
    INSTRUCTIONS = "instructions"
    DECISION = "decision_record"
    UNKNOWN = "unknown"


DECISION_FOLDERS: Final = frozenset(
    {"adr", "adrs", "decisions", "decision-records", "architecture-decisions", "peps", "keps", "rfcs", "rfc"}
)
_DECISION_NAME: Final = re.compile(
    r"(?:(?:adr|pep|kep|rfc)?[-_]?\d{1,5}[-_. ].*|(?:adr|pep|kep|rfc)[-_]?\d{1,5})\.(?:md|markdown|rst|txt)",
    re.IGNORECASE,
)
_NOT_A_DECISION: Final = re.compile(r"(?:readme|index|template|adr[-_]?template|0000[-_]template)\b.*", re.IGNORECASE)
# What lies in these belongs to the folder above them: they are places for documents, not for code.
_OF_DOCUMENTS: Final = DECISION_FOLDERS | {
    *("docs", "doc", "documentation", "architecture", "design", "proposals"),
    *(".github", ".cursor", ".claude", "rules", "instructions"),
}


def format_of(path: str) -> Format:
    """By its name and its folder, whatever their case."""
    *folders, name = path.lower().split("/")
    if name == "agents.md":
        return Format.AGENTS_MD
    if name in ("claude.md", "claude.local.md"):
        return Format.CLAUDE_MD
    if name == ".cursorrules":
        return Format.CURSORRULES
    if name.endswith(".mdc"):
        return Format.CURSOR_RULES
    if name == "copilot-instructions.md":
        return Format.COPILOT
    if name.endswith(".instructions.md"):
        return Format.INSTRUCTIONS
    if _is_decision(folders, name):
        return Format.DECISION
    return Format.UNKNOWN


def _is_decision(folders: list[str], name: str) -> bool:
    if _NOT_A_DECISION.fullmatch(name):
        return bool(folders) and name == "readme.md" and "keps" in folders[:-1]
    return bool(DECISION_FOLDERS & set(folders)) and _DECISION_NAME.fullmatch(name) is not None


def check_path(path: str, *, field: str) -> list[FieldError]:
    """Why ``path`` is none of a file in a repository, as it is written with slashes from its root."""
    errors = check_text(path, field=field, max_length=MAX_PATH, multiline=False)
    if errors:
        return errors
    if is_safe(path):
        return []
    return [
        FieldError(
            field,
            "Write the path from the root of the repository with slashes, such as docs/adr/0001-queues.md: without a "
            "leading slash, a colon, a backslash, or a part that is empty, `.` or `..`.",
        )
    ]


def is_safe(path: str) -> bool:
    """Whether it stays below the folder that it is joined to, on every system, and outside of ``.git``."""
    parts = path.split("/")
    return (
        0 < len(path) <= MAX_PATH
        and not set(path) & set(":\\")
        and path.isprintable()
        and not any(part in ("", ".", "..") or part.strip() != part or part.endswith(".") for part in parts)
        and ".git" not in (part.lower() for part in parts)
        and not path.startswith("~")
    )


def reference_of(repo: str, path: str, heading: str = "") -> str:
    """How a source names the place of a statement: ``acme/pay:services/api/AGENTS.md#Testing``."""
    place = f"{repo}:{path.replace('#', '%23')}"
    return (f"{place}#{heading}" if heading else place)[:500].rstrip()


def place_of(repo: str, reference: str) -> tuple[str, str] | None:
    """Path and heading that a reference of ``repo`` names; ``None`` for one that names no place in it."""
    if not reference.startswith(f"{repo}:"):
        return None
    path, _, heading = reference.removeprefix(f"{repo}:").partition("#")
    path = path.replace("%23", "#")
    return (path, heading) if is_safe(path) else None


def folder_of(path: str) -> str:
    """The folder that the rules in ``path`` are for: its own, or the one above folders for documents. Root: empty."""
    folders = path.split("/")[:-1]
    while folders and folders[-1].lower() in _OF_DOCUMENTS:
        folders.pop()
    return "/".join(folders)
