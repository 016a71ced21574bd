"""The labelled corpus: lines with one secret each, and harmless lines of engineering prose, settings and code.

Every line of ``corpus.jsonl`` holds ``label`` (secret or harmless), ``kind`` and ``text``, which is cut in pieces so
that no scanner of repositories finds in it what it is made for; ``⟦`` and ``⟧`` stand around the secret. All of them
were drawn at random and open nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("corpus.jsonl")


@dataclass(frozen=True)
class Line:
    number: int
    kind: str
    text: str
    start: int
    end: int

    @property
    def value(self) -> str:
        return self.text[self.start : self.end]

    def __str__(self) -> str:
        return f"{self.number}-{self.kind}".replace(" ", "-")


def read(label: str) -> list[Line]:
    return list(_read(label))


def _read(label: str) -> Iterator[Line]:
    for number, row in enumerate(_FILE.read_text(encoding="utf-8").splitlines(), start=1):
        line = json.loads(row)
        if line["label"] == label:
            marked = "".join(line["text"])
            start = marked.find("⟦")
            text = marked.replace("⟦", "").replace("⟧", "")
            yield Line(number, line["kind"], text, max(start, 0), max(marked.find("⟧") - 1, 0))
