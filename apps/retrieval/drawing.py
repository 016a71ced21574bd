"""A chain of memories as a picture beside its list: one row for each, lines from what was replaced to what replaced it.

What was replaced by several forks, and what replaced several is where lines meet. Each row gets what crosses it, so
that rows may be as high as their text is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

LANE: Final = 18
FIRST: Final = 12
MOST_LANES: Final = 8

Edge = tuple[UUID, UUID, bool]  # what was replaced, what replaced it, whether in full


@dataclass(frozen=True, slots=True)
class Line:
    """Between two lanes, in pixels from the left. ``full`` is drawn through, anything else dashed."""

    start: int
    end: int
    full: bool


@dataclass(slots=True)
class DrawnRow:
    """``arriving`` lines end at this memory, ``leaving`` ones start there, and ``passing`` ones go by."""

    at: int
    width: int = 0
    arriving: list[Line] = field(default_factory=list)
    passing: list[Line] = field(default_factory=list)
    leaving: list[Line] = field(default_factory=list)

    @property
    def below(self) -> list[Line]:
        """What goes on to the next row, straight down."""
        return [Line(line.end, line.end, line.full) for line in [*self.passing, *self.leaving]]


def drawn(members: Sequence[UUID], edges: Sequence[Edge]) -> tuple[list[UUID], Mapping[UUID, DrawnRow]]:
    """The members with what was replaced above what replaced it, otherwise as given; and the row of each.

    There are no rows where too many lines would run beside one another: the list says it in words as well.
    """
    order = _above_first(members, edges)
    if not edges:
        return order, {}
    leaving: dict[UUID, list[Edge]] = defaultdict(list)
    for edge in edges:
        leaving[edge[0]].append(edge)
    lanes: dict[int, Edge] = {}
    rows: dict[UUID, DrawnRow] = {}
    for pk in order:
        ending = sorted(lane for lane, edge in lanes.items() if edge[1] == pk)
        own = ending[0] if ending else _free(lanes)
        row = DrawnRow(_x(own))
        row.arriving = [Line(_x(lane), _x(own), lanes[lane][2]) for lane in ending]
        for lane in ending:
            del lanes[lane]
        row.passing = [Line(_x(lane), _x(lane), edge[2]) for lane, edge in sorted(lanes.items())]
        for edge in sorted(leaving[pk], key=lambda edge: order.index(edge[1])):
            lane = own if own not in lanes else _free(lanes)
            lanes[lane] = edge
            row.leaving.append(Line(_x(own), _x(lane), edge[2]))
        rows[pk] = row
    widest = max(
        (line.end for row in rows.values() for line in [*row.passing, *row.leaving, *row.arriving]), default=FIRST
    )
    if widest > _x(MOST_LANES - 1):
        return order, {}
    for row in rows.values():
        row.width = max(widest, row.at) + FIRST
    return order, rows


def _above_first(members: Sequence[UUID], edges: Sequence[Edge]) -> list[UUID]:
    """Dates may say otherwise, but a line always leads downwards."""
    waits = {pk: {old for old, new, _ in edges if new == pk} for pk in members}
    order: list[UUID] = []
    placed: set[UUID] = set()
    left = list(members)
    while left:
        following = next((pk for pk in left if waits[pk] <= placed), left[0])
        left.remove(following)
        order.append(following)
        placed.add(following)
    return order


def _free(lanes: Mapping[int, Edge]) -> int:
    return next(lane for lane in range(len(lanes) + 1) if lane not in lanes)


def _x(lane: int) -> int:
    return FIRST + LANE * lane
