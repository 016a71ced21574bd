"""docs/benchmarks.md: a section for each part, of which a run replaces its own and leaves the others as they are."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

from django.db import connection

from apps.evals.benchmarks.results import Promise, Result, Table

_INTRODUCTION = """\
# Benchmarks

`make bench` measures and writes this page; `manage.py bench --part NAME` does one section anew, `--help` lists the
parts. It builds what it needs in a PostgreSQL of its own and keeps it there (`.data/bench`), so that a second run
starts at once.

Whatever is compared takes turns in one run on the same rows, because absolute times say little on a machine that
does other things as well. Ratios are medians of the rounds' ratios, with the lowest and the highest in brackets;
times are in milliseconds, the median with the 95th percentile in brackets.
"""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What was measured on, and by which command."""

    command: str
    data: str
    load: float

    def sentence(self) -> str:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version'), "
                "coalesce((SELECT coalesce(installed_version, default_version) FROM pg_available_extensions "
                "WHERE name = 'vector'), 'none')"
            )
            postgres, pgvector = cursor.fetchone()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        parts = (
            f"Measured on {date.today():%Y-%m-%d} on {os.cpu_count()} cores ({_processor()}) with {memory:.0f} GB",
            f"load {self.load:.1f} when it began",
            f"Python {platform.python_version()}, Django {version('django')}, psycopg {version('psycopg')}, "
            f"PostgreSQL {postgres.split()[0]}, pgvector {pgvector}",
        )
        return f"{'; '.join(parts)}. {self.data} `{self.command}`"


def circumstances(command: str, data: str) -> Circumstances:
    return Circumstances(command, data, os.getloadavg()[0])


def write(path: Path, name: str, title: str, result: Result, where: Circumstances, *, order: Iterable[str]) -> None:
    """Put the section into the page, at its place in ``order``, and its picture beside it."""
    sections = _read(path)
    sections[name] = "\n".join(section(name, title, result, where)).strip()
    if result.chart is not None:
        picture = path.parent / path.stem / f"{name}.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_text(result.chart.svg())
    known = [*(one for one in order if one in sections), *(one for one in sections if one not in set(order))]
    path.write_text(_INTRODUCTION + "".join(f"\n{_framed(one, sections[one])}" for one in known))


def section(name: str, title: str, result: Result, where: Circumstances) -> Iterator[str]:
    yield f"## {title}"
    for table in result.tables:
        if table.heading:
            yield from ("", table.heading)
        yield from ("", *_table(table))
    if result.promises:
        yield from ("", *_table(_promised(result.promises)))
    if result.chart is not None:
        yield from ("", f"![{result.chart.title}](benchmarks/{name}.svg)")
    for note in result.notes:
        yield from ("", note)
    yield from ("", f"*{where.sentence()}*")


def _promised(promises: list[Promise]) -> Table:
    table = Table(("promise", "limit", "measured", ""))
    for promise in promises:
        table.add(promise.what, promise.limit, promise.measured, "holds" if promise.holds else "**misses**")
    return table


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'|'.join('---' if at == 0 else '---:' for at in range(len(table.columns)))}|"
    for row in table.rows:
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"


_SECTION = re.compile(r"<!-- part: (?P<name>[a-z0-9-]+) -->\n(?P<text>.*?)\n<!-- end of part -->", re.DOTALL)


def _read(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    return {match["name"]: match["text"] for match in _SECTION.finditer(path.read_text())}


def _framed(name: str, text: str) -> str:
    return f"<!-- part: {name} -->\n{text}\n<!-- end of part -->\n"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    models = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
