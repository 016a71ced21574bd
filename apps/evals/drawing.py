"""Pictures of the page on quality: where everything stands, in pixels, and the same in words.

The page's template draws them, in the colours of its stylesheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apps.evals.extraction import Bin, Reliability
from apps.evals.quality.figures import LOWER_IS_BETTER, Figure
from apps.evals.quality.results import SuiteResult

# What a suite is drawn by: the first of these that it has.
HEADLINES: Final = ("hit@5", "live@5 in repository", "live@5 as of", "heads as of")
ROW: Final = 28
LABELS: Final = 92
ACROSS: Final = 360
VALUES: Final = 148
TOP: Final = 8
SQUARE: Final = 280
EDGE: Final = 44
_LARGEST: Final = 14.0


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: Figure
    y: int
    width: float
    low: float
    high: float
    ours: bool

    @property
    def middle(self) -> int:
        return self.y + ROW // 2

    @property
    def told(self) -> str:
        return f"{self.value.value:.2f} ({self.value.low:.2f}–{self.value.high:.2f})"


@dataclass(frozen=True, slots=True)
class Bars:
    """One measure of all arms, from nothing at the left to everything at the right, with its intervals."""

    measure: str
    bars: tuple[Bar, ...]

    left = LABELS
    right = LABELS + ACROSS
    width = LABELS + ACROSS + VALUES

    @property
    def height(self) -> int:
        return TOP * 2 + ROW * len(self.bars) + 18

    @property
    def bottom(self) -> int:
        return TOP + ROW * len(self.bars)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        return [(LABELS + ACROSS * share, f"{share:g}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]

    @property
    def told(self) -> str:
        better = "lower is better" if self.measure in LOWER_IS_BETTER else "higher is better"
        return f"{better}. " + "; ".join(f"{bar.name}: {bar.told}" for bar in self.bars) + "."


def bars_of(suite: SuiteResult, ours: frozenset[str]) -> Bars | None:
    """Of the measure that says most about the suite; ``None`` where nothing was measured that can be drawn."""
    there = {name for arm in suite.arms.values() for name in arm.figures}
    measure = next((name for name in HEADLINES if name in there), None)
    if measure is None:
        return None
    arms = [(name, arm.figures[measure]) for name, arm in suite.arms.items() if measure in arm.figures]
    return Bars(measure, tuple(_bar(at, name, found, name in ours) for at, (name, found) in enumerate(arms)))


def _bar(at: int, name: str, found: Figure, ours: bool) -> Bar:
    return Bar(
        name=name,
        value=found,
        y=TOP + ROW * at,
        width=round(ACROSS * found.value, 1),
        low=round(LABELS + ACROSS * found.low, 1),
        high=round(LABELS + ACROSS * found.high, 1),
        ours=ours,
    )


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    radius: float
    bin: Bin


@dataclass(frozen=True, slots=True)
class Diagram:
    """Confidence to the right, the share that was approved upwards; on the diagonal the two are the same."""

    dots: tuple[Dot, ...]
    told: str

    side = SQUARE + EDGE + 16
    left = EDGE
    right = EDGE + SQUARE
    top = 16
    bottom = 16 + SQUARE

    @property
    def height(self) -> int:
        return self.bottom + EDGE

    @property
    def ticks(self) -> list[tuple[float, float, str]]:
        return [
            (EDGE + SQUARE * share, self.bottom - SQUARE * share, f"{share:g}") for share in (0, 0.25, 0.5, 0.75, 1)
        ]

    @property
    def path(self) -> str:
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


def diagram_of(found: Reliability) -> Diagram:
    most = max(one.decided for one in found.bins)
    return Diagram(tuple(_dot(one, most) for one in found.bins), _told(found.bins))


def _dot(one: Bin, most: int) -> Dot:
    return Dot(
        x=round(EDGE + SQUARE * one.middle, 1),
        y=round(Diagram.bottom - SQUARE * one.share, 1),
        radius=round(max(3.0, _LARGEST * (one.decided / most) ** 0.5), 1),
        bin=one,
    )


def _told(bins: Sequence[Bin]) -> str:
    return "; ".join(
        f"confidence {one.low:.1f} to {one.high:.1f}: {one.approved} of {one.decided} approved" for one in bins
    )
