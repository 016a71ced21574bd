"""Pictures for the documents: lines and bars as SVG, readable on light and on dark paper.

Every line has a shape of mark and a label at its end, so that nothing depends on telling colours apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal

WIDTH: Final = 720
HEIGHT: Final = 400
LEFT: Final = 64
RIGHT: Final = 176  # room for the labels at the ends of the lines
TOP: Final = 48
BOTTOM: Final = 56
_LABEL_HEIGHT = 15

# In a file of its own the picture follows the reader's colour scheme; nothing is loaded from anywhere.
_STYLE: Final = """
.paper{fill:#fff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}.axis{stroke:#59636e}
.c0{stroke:#0550ae;fill:#0550ae}.c1{stroke:#bc4c00;fill:#bc4c00}.c2{stroke:#1a7f37;fill:#1a7f37}
.c3{stroke:#8250df;fill:#8250df}
@media (prefers-color-scheme: dark){
.paper{fill:#0d1117}.ink{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#30363d}.axis{stroke:#9198a1}
.c0{stroke:#79c0ff;fill:#79c0ff}.c1{stroke:#ffa657;fill:#ffa657}.c2{stroke:#7ee787;fill:#7ee787}
.c3{stroke:#d2a8ff;fill:#d2a8ff}}
text{font:13px system-ui,sans-serif;stroke:none}.title{font-size:16px;font-weight:600}
.line{fill:none;stroke-width:2}
"""


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """``y`` counts up to its largest value from zero, or in powers of ten where ``y_scale`` says so."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    x_scale: Literal["linear", "log"] = "log"
    y_scale: Literal["linear", "log"] = "log"

    def svg(self) -> str:
        if not any(line.points for line in self.lines):
            raise ValueError("There is nothing to draw.")
        return "".join(_draw(self))


@dataclass(frozen=True, slots=True)
class _Axis:
    """From values to pixels; ``ticks`` are the values that are written beside it."""

    ticks: tuple[float, ...]
    place: Callable[[float], float]


def _draw(chart: Chart) -> Iterator[str]:
    across = _axis([x for line in chart.lines for x, _ in line.points], chart.x_scale, LEFT, WIDTH - RIGHT)
    up = _axis([y for line in chart.lines for _, y in line.points], chart.y_scale, HEIGHT - BOTTOM, TOP)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{escape(_told(chart))}"><style>{_STYLE}</style>'
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>'
    )
    yield _text(LEFT, 24, chart.title, "title ink")
    yield from _grid(chart, across, up)
    for at, line in enumerate(chart.lines):
        yield from _line(at, line, across, up)
    yield from _labels(chart.lines, up)
    yield "</svg>\n"


def _grid(chart: Chart, across: _Axis, up: _Axis) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for value in up.ticks:
        y = up.place(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(LEFT - 8, y + 4, _number(value), "faint", anchor="end")
    for value in across.ticks:
        x = across.place(value)
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 5}"/>'
        yield _text(x, bottom + 20, _number(value), "faint", anchor="middle")
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}"/>'
    yield _text((LEFT + WIDTH - RIGHT) / 2, bottom + 42, chart.x, "faint", anchor="middle")
    yield _text(LEFT - 8, TOP - 10, chart.y, "faint", anchor="start")


def _line(at: int, line: Line, across: _Axis, up: _Axis) -> Iterator[str]:
    places = [(across.place(x), up.place(y)) for x, y in line.points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="line c{at % 4}" points="{path}"/>'
    for (x, y), (value_x, value_y) in zip(places, line.points, strict=True):
        told = escape(f"{line.name}: {_number(value_y)} at {_number(value_x)}")
        yield f'<g class="c{at % 4}"><title>{told}</title>{_mark(at, x, y)}</g>'


def _mark(at: int, x: float, y: float) -> str:
    shapes = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
        f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>',
        f'<path d="M{x:.1f},{y - 5:.1f}l5,9h-10z"/>',
        f'<path d="M{x:.1f},{y - 5:.1f}l5,5l-5,5l-5,-5z"/>',
    )
    return shapes[at % len(shapes)]


def _labels(lines: Sequence[Line], up: _Axis) -> Iterator[str]:
    """At the lines' ends, moved apart where they would cover each other."""
    ends = sorted((up.place(line.points[-1][1]), at) for at, line in enumerate(lines) if line.points)
    lowest = float(TOP - _LABEL_HEIGHT)
    for y, at in ends:
        lowest = max(y, lowest + _LABEL_HEIGHT)
        yield f'<g class="c{at % 4}">{_mark(at, WIDTH - RIGHT + 16, lowest)}</g>'
        yield _text(WIDTH - RIGHT + 26, lowest + 4, lines[at].name, "ink")


def _axis(values: Sequence[float], scale: str, start: float, end: float) -> _Axis:
    if scale == "log":
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        high = max(high, low + 1)
        ticks = tuple(10.0**power for power in range(low, high + 1))
        return _Axis(ticks, lambda value: start + (math.log10(value) - low) / (high - low) * (end - start))
    step = _step(max(values))
    top = step * math.ceil(max(values) / step)
    ticks = tuple(step * at for at in range(round(top / step) + 1))
    return _Axis(ticks, lambda value: start + value / top * (end - start))


def _step(top: float) -> float:
    """One, two or five times a power of ten, so that there are about five of them."""
    rough = (top or 1.0) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)


def _told(chart: Chart) -> str:
    """The picture in words, for those who do not see it."""
    lines = (
        f"{line.name}: " + ", ".join(f"{_number(y)} at {_number(x)}" for x, y in line.points) for line in chart.lines
    )
    return f"{chart.title}. {chart.y} by {chart.x}. {'; '.join(lines)}."


def _text(x: float, y: float, text: str, style: str, *, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _number(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} million"
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
