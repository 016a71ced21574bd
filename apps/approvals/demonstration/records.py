"""This project's decision records (docs/adr), read as a build server would read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from apps.candidates.proposal import Proposal, ScopeInput
from apps.sources.services import SourceInput

REPOSITORY: Final = "firm-memory"
TYPE: Final = "architecture_decisions"
_TITLE: Final = re.compile(r"^# (\d+)\. (.+)$", re.MULTILINE)
_DATE: Final = re.compile(r"^Date: (\d{4}-\d{2}-\d{2})$", re.MULTILINE)
_SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_SUPERSEDES: Final = re.compile(r"Supersedes \[(\d+)\]")
_SECTIONS: Final = ("Status", "Context", "Decision", "Consequences")


class UnreadableRecord(ValueError):
    """A file of the folder is no decision record; the message says what it lacks."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """``status`` is its first word in small letters, ``supersedes`` the numbers of what it replaces."""

    number: int
    title: str
    decided_at: datetime
    status: str
    supersedes: tuple[int, ...]
    context: str
    decision: str
    consequences: str
    path: str

    @property
    def label(self) -> str:
        return f"{self.number}. {self.title}"

    @property
    def content(self) -> str:
        """One statement that can be read by itself, with its reason."""
        return f"{self.title}.\n\n{self.decision}\n\nWhy: {self.context}\n\nWhat follows from it: {self.consequences}"

    def proposal(self, replaces: tuple[str, ...]) -> Proposal:
        """``replaces`` are the memories that the records it supersedes have become."""
        return Proposal(
            content=self.content,
            type=TYPE,
            scope=ScopeInput(repos=(REPOSITORY,)),
            sources=(
                SourceInput(
                    kind="document", reference=self.path, title=self.label, quote=_first_sentence(self.decision)
                ),
            ),
            supersedes=replaces,
            valid_from=self.decided_at,
        )


def read_records(folder: Path) -> list[DecisionRecord]:
    """All records of ``folder`` by number. Raises ``UnreadableRecord``."""
    return sorted((_read(path) for path in folder.glob("[0-9]*.md")), key=lambda record: record.number)


def _read(path: Path) -> DecisionRecord:
    text = path.read_text(encoding="utf-8")
    title, date = _TITLE.search(text), _DATE.search(text)
    sections = _sections(text)
    missing = [name for name in _SECTIONS if not sections.get(name)]
    if title is None or date is None or missing:
        lacks = ["a title such as “# 7. Two clocks”"] if title is None else []
        lacks += ["a line such as “Date: 2026-11-29”"] if date is None else []
        lacks += [f"the section {name}" for name in missing]
        raise UnreadableRecord(f"{path.name} lacks {', '.join(lacks)}.")
    return DecisionRecord(
        number=int(title[1]),
        title=title[2].strip(),
        decided_at=datetime.fromisoformat(date[1]).replace(tzinfo=UTC),
        status=re.split(r"\W", sections["Status"].lower(), maxsplit=1)[0],
        supersedes=tuple(int(number) for number in _SUPERSEDES.findall(sections["Status"])),
        context=sections["Context"],
        decision=sections["Decision"],
        consequences=sections["Consequences"],
        path=f"docs/adr/{path.name}",
    )


def _sections(text: str) -> dict[str, str]:
    """Text by heading, every paragraph on one line."""
    _, *parts = _SECTION.split(text)
    return {heading.strip(): _unwrapped(body) for heading, body in zip(parts[::2], parts[1::2], strict=True)}


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))


def _first_sentence(text: str) -> str:
    return text.split(". ")[0][:500]
