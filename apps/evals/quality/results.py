"""What an evaluation found: for each suite and arm its figures, and enough to compare it with another run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from apps.evals.quality.figures import Figure

FORMAT: Final = 1
LEDGER: Final = "ledger"  # what is asked of no arm
TOTAL: Final = "total"  # of the stages: the whole search as its caller waits for it


@dataclass(slots=True)
class ArmResult:
    """``compared`` is the recipe's lead over this arm, for each measure, question by question."""

    figures: dict[str, Figure] = field(default_factory=dict)
    stages: dict[str, Any] = field(default_factory=dict)
    compared: dict[str, Figure] = field(default_factory=dict)
    growth: list[tuple[int, Figure]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "figures": {name: found.as_dict() for name, found in self.figures.items()},
            "stages": self.stages,
            "compared": {name: found.as_dict() for name, found in self.compared.items()},
            "growth": [[size, found.as_dict()] for size, found in self.growth],
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> ArmResult:
        return cls(
            figures={name: Figure(**found) for name, found in told["figures"].items()},
            stages=told["stages"],
            compared={name: Figure(**found) for name, found in told["compared"].items()},
            growth=[(size, Figure(**found)) for size, found in told["growth"]],
        )


@dataclass(slots=True)
class SuiteResult:
    name: str
    title: str
    half: str
    records: int
    queries: int
    corpus: str
    arms: dict[str, ArmResult] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "half": self.half,
            "records": self.records,
            "queries": self.queries,
            "corpus": self.corpus,
            "arms": {name: arm.as_dict() for name, arm in self.arms.items()},
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, name: str, told: dict[str, Any]) -> SuiteResult:
        arms = {arm: ArmResult.from_dict(found) for arm, found in told["arms"].items()}
        return cls(**(told | {"name": name, "arms": arms}))


@dataclass(slots=True)
class Evaluation:
    """``about`` says when, by which version and command, and on what."""

    about: dict[str, Any]
    suites: dict[str, SuiteResult] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "about": self.about,
            "suites": {name: suite.as_dict() for name, suite in self.suites.items()},
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Evaluation:
        if told.get("format") != FORMAT:
            raise ValueError(f"This is no evaluation in format {FORMAT}.")
        suites = {name: SuiteResult.from_dict(name, found) for name, found in told["suites"].items()}
        return cls(told["about"], suites)
