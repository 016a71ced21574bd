"""How prefilter and rules extractor do on the labelled messages: ``python -m tests.capture.labelled.measuring``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MESSAGES = Path(__file__).with_name("messages.jsonl")


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled message. ``types`` are the slugs that a reviewer would accept; empty where nothing is to be kept."""

    text: str
    kind: str
    keep: bool
    types: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row: the prefilter's rule, or the types of the facts that the rules extractor found."""

    row: Row
    dropped: str
    types: tuple[str, ...]
    refused: tuple[str, ...]

    @property
    def found(self) -> bool:
        return bool(self.types)

    @property
    def typed(self) -> bool:
        return bool(set(self.types) & set(self.row.types))


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts over some rows. Precision and recall count messages, not facts."""

    name: str
    keep: int
    noise: int
    false_drops: int
    noise_dropped: int
    hits: int
    false_hits: int
    typed: int
    facts: int

    @property
    def recall(self) -> float:
        return self.hits / self.keep

    @property
    def precision(self) -> float:
        return self.hits / max(1, self.hits + self.false_hits)

    @classmethod
    def of(cls, name: str, outcomes: Iterable[Outcome]) -> Measured:
        outcomes = list(outcomes)
        keep = [one for one in outcomes if one.row.keep]
        noise = [one for one in outcomes if not one.row.keep]
        return cls(
            name=name,
            keep=len(keep),
            noise=len(noise),
            false_drops=sum(bool(one.dropped) for one in keep),
            noise_dropped=sum(bool(one.dropped) for one in noise),
            hits=sum(one.found for one in keep),
            false_hits=sum(one.found for one in noise),
            typed=sum(one.typed for one in keep),
            facts=sum(len(one.types) for one in outcomes),
        )


def rows_of(path: Path = MESSAGES) -> list[Row]:
    loaded: Iterator[dict[str, Any]] = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Row(row["text"], row["kind"], row["keep"], tuple(row["types"]), row["why"]) for row in loaded]


def outcomes_of(rows: Iterable[Row]) -> list[Outcome]:
    """Each row through the prefilter and, if it lives, through the rules extractor with the seeded types."""
    from apps.capture.extractors.base import Material, TypeChoice, Vocabulary
    from apps.capture.extractors.rules import RulesExtractor
    from apps.capture.prefilter import prefilter
    from apps.taxonomy.seed import EXCLUSIONS, TYPES

    vocabulary = Vocabulary(tuple(TypeChoice(one.name, one.slug, one.description) for one in TYPES), EXCLUSIONS)
    extractor = RulesExtractor()
    outcomes = []
    for row in rows:
        if drop := prefilter(row.text):
            outcomes.append(Outcome(row, drop.rule, (), ()))
            continue
        extraction = extractor.extract(Material(row.text, row.kind), vocabulary)
        types = tuple(fact.type for fact in extraction.facts)
        outcomes.append(Outcome(row, "", types, tuple(one.reason for one in extraction.refused)))
    return outcomes


def measure(path: Path = MESSAGES) -> list[Measured]:
    """All messages, and each half of them: the even lines were looked at while the rules were written, the odd not."""
    outcomes = outcomes_of(rows_of(path))
    return [
        Measured.of("all", outcomes),
        Measured.of("looked at", outcomes[::2]),
        Measured.of("not looked at", outcomes[1::2]),
    ]


def table(measured: Iterable[Measured]) -> str:
    lines = [
        "| messages | to keep | noise | wrongly dropped | noise dropped | precision | recall | right type | facts |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for one in measured:
        lines.append(
            f"| {one.name} | {one.keep} | {one.noise} | {one.false_drops} ({one.false_drops / one.keep:.1%})"
            f" | {one.noise_dropped} ({one.noise_dropped / one.noise:.0%})"
            f" | {one.precision:.2f} | {one.recall:.2f} ({one.hits})"
            f" | {one.typed / max(1, one.hits):.2f} | {one.facts} |"
        )
    return "\n".join(lines)


def by_kind(outcomes: Iterable[Outcome]) -> str:
    lines = ["| kind | to keep | found | noise | dropped | taken for a fact |", "|---|---:|---:|---:|---:|---:|"]
    kinds = Counter(one.row.kind for one in outcomes)
    for kind, _ in kinds.most_common():
        one = Measured.of(kind, (outcome for outcome in outcomes if outcome.row.kind == kind))
        lines.append(f"| {kind} | {one.keep} | {one.hits} | {one.noise} | {one.noise_dropped} | {one.false_hits} |")
    return "\n".join(lines)


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "firmmemory.settings.test")
    django.setup()
    print(table(measure()))
    print()
    print(by_kind(outcomes_of(rows_of())))
