"""What a part of the benchmarks found: a table, what was promised, and perhaps a picture."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.evals.benchmarks.chart import Chart


@dataclass(frozen=True, slots=True)
class Promise:
    """Something the project says of itself, and what was measured."""

    what: str
    limit: str
    measured: str
    holds: bool

    @classmethod
    def at_most(cls, what: str, limit: float, value: float, *, shown: str = "", unit: str = "×") -> Promise:
        return cls(what, f"≤ {limit:g} {unit}".strip(), shown or f"{value:.2f}", value <= limit)

    @classmethod
    def at_least(cls, what: str, limit: float, value: float, *, shown: str = "", unit: str = "") -> Promise:
        return cls(what, f"≥ {limit:g} {unit}".strip(), shown or f"{value:.2f}", value >= limit)


@dataclass(slots=True)
class Table:
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    heading: str = ""

    def add(self, *cells: object) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"A row of this table has {len(self.columns)} cells, not {len(cells)}.")
        self.rows.append(tuple(map(str, cells)))

    def under(self, heading: str) -> Table:
        """The same, with a sentence before it."""
        return Table(self.columns, self.rows, heading)


@dataclass(slots=True)
class Result:
    """``notes`` are full sentences, in the order in which they are to be read below the table."""

    tables: list[Table] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    chart: Chart | None = None
