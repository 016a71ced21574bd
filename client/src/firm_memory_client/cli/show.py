"""What people read at a terminal. Everything that others wrote goes through ``plain``, behind a bar or on one line."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

import click

from firm_memory_client.models import Answer, Event, Memory, Proposed, Source
from firm_memory_client.plain import barred, one_line


def memory(found: Memory) -> str:
    head = [click.style(one_line(found.number) or f"note {one_line(found.id)}", bold=True), one_line(found.type)]
    if found.status not in ("active", ""):
        head.append(click.style(one_line(found.status), fg="yellow"))
    if found.score is not None:
        head.append(f"{found.score:.2f}")
    head.append(one_line(str(found.scope)))
    return "\n".join(["  ".join(filter(None, head)), barred(found.content), *(source(each) for each in found.sources)])


def memories(found: Sequence[Memory]) -> str:
    return "\n\n".join(memory(each) for each in found)


def source(each: Source) -> str:
    parts = [one_line(each.kind), one_line(each.reference), one_line(each.title), one_line(each.url)]
    return click.style(f"  {'  '.join(filter(None, parts))}", dim=True)


def answer(given: Answer) -> str:
    cited = ["\n".join([_head(each), *(source(one) for one in each.sources)]) for each in given.cited]
    return "\n\n".join(filter(None, [barred(given.answer), "\n".join(cited)]))


def _head(cited: Memory) -> str:
    return f"{click.style(one_line(cited.number), bold=True)}  {one_line(cited.content)[:160]}"


def proposed(given: Proposed) -> str:
    parts = [f"{one_line(given.id)}  {one_line(given.status)}", one_line(given.reason), one_line(given.note)]
    near = [f"near {one_line(str(each.get('number') or each.get('id')))}" for each in given.raw.get("near", ())]
    return "\n".join(filter(None, [*parts, *near]))


def event(given: Event, name: str) -> str:
    state = given.outcome or given.state
    parts = [one_line(name), one_line(given.id), one_line(state), one_line(given.reason)]
    return "  ".join(filter(None, parts))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be; the last one wraps. Nothing in a cell is read as markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, show_edge=False, show_header=any(head))
    for at, name in enumerate(head):
        made.add_column(name, no_wrap=at < len(head) - 1, overflow="fold")
    for row in rows:
        made.add_row(*(Text(one_line(cell)) for cell in row))
    kept = io.StringIO()
    width = None if sys.stdout.isatty() else 200
    Console(file=kept, no_color=True, width=width, highlight=False, markup=False, legacy_windows=False).print(made)
    return "\n".join(line.rstrip() for line in kept.getvalue().splitlines())
