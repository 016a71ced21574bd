"""What an answer is made of: sentences, each with the memories that it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from apps.retrieval.plain import plain

# How a sentence came about: by a model, from what it was given; word for word from a memory; from a memory that has
# been replaced, or from what replaced it, with the dates.
COMPOSED: Final = "composed"
QUOTED: Final = "quoted"
CHANGED: Final = "changed"
HOW: Final = (COMPOSED, QUOTED, CHANGED)


@dataclass(frozen=True, slots=True)
class Source:
    """A memory as a sentence cites it."""

    id: str
    number: str
    status: str

    @property
    def disputed(self) -> bool:
        return self.status == "disputed"

    @property
    def mark(self) -> str:
        """What stands behind the sentence: the number, and what a reader must know of it."""
        if self.status == "superseded":
            return f"{self.number}, replaced"
        return f"{self.number}, disputed" if self.disputed else self.number


@dataclass(frozen=True, slots=True)
class Sentence:
    """``said_before`` introduces a quotation: “Until 1 March 2025 it was:”."""

    text: str
    sources: tuple[Source, ...]
    how: str
    said_before: str = ""

    @property
    def disputed(self) -> bool:
        return any(source.disputed for source in self.sources)

    @property
    def whole(self) -> str:
        text = plain(self.text)
        return f"{self.said_before} “{text}”" if self.said_before else text

    @property
    def marked(self) -> str:
        return f"{self.whole} [{'; '.join(source.mark for source in self.sources)}]"

    def as_dict(self) -> dict[str, Any]:
        return {
            "text": self.whole,
            "citations": [source.id for source in self.sources],
            "how": self.how,
            "disputed": self.disputed,
        }


def source_of(entry: dict[str, Any]) -> Source:
    """Of a result, or of a member of its chain."""
    return Source(entry["id"], entry["number"], entry["status"])


def citations_of(sentences: Sequence[Sentence]) -> list[str]:
    """Each once, in the order in which they are cited."""
    return list(dict.fromkeys(source.id for sentence in sentences for source in sentence.sources))
