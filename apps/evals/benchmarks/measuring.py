"""Timing things against each other on a machine that has other things to do.

An absolute time says little on a shared machine, so contestants take turns on the same items in one run, and what
is reported is the ratio of their medians, round by round: the median of the rounds, with the lowest and the highest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one contestant, a list for each round."""

    rounds: tuple[tuple[float, ...], ...]

    @property
    def all(self) -> list[float]:
        return [seconds for one in self.rounds for seconds in one]

    @property
    def p50(self) -> float:
        return quantile(self.all, 0.50)

    @property
    def p95(self) -> float:
        return quantile(self.all, 0.95)

    def ms(self) -> str:
        return f"{1000 * self.p50:.1f} ({1000 * self.p95:.1f})"


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the rounds' ratios, with the lowest and the highest of them."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{_short(self.value)} ({_short(self.low)}–{_short(self.high)})"

    @property
    def inverse(self) -> Ratio:
        return Ratio(1 / self.value, 1 / self.high, 1 / self.low)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def in_turn(
    contestants: Mapping[str, Callable[[Item], object]], items: Sequence[Item], *, rounds: int, warm: bool = True
) -> dict[str, Times]:
    """Time every contestant on every item, in turn, the first to go changing with each item.

    An untimed round goes before, in which caches fill and connections open.
    """
    if warm:
        for item in items:
            for run in contestants.values():
                run(item)
    names = list(contestants)
    measured: dict[str, list[tuple[float, ...]]] = {name: [] for name in names}
    for turn in range(rounds):
        seconds: dict[str, list[float]] = {name: [] for name in names}
        for at, item in enumerate(items):
            first = (turn + at) % len(names)
            for name in (*names[first:], *names[:first]):
                started = time.perf_counter()
                contestants[name](item)
                seconds[name].append(time.perf_counter() - started)
        for name in names:
            measured[name].append(tuple(seconds[name]))
    return {name: Times(tuple(rows)) for name, rows in measured.items()}


def ratio(ours: Times, other: Times) -> Ratio:
    """How many times as long ours takes, by the medians of each round."""
    return spread(
        quantile(mine, 0.5) / quantile(theirs, 0.5) for mine, theirs in zip(ours.rounds, other.rounds, strict=True)
    )


def spread(values: Iterable[float]) -> Ratio:
    found = sorted(values)
    return Ratio(statistics.median(found), found[0], found[-1])


def _short(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"
