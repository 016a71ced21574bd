"""Commands that bring something in: propose, ingest, correct, notes. A person decides about all of it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from firm_memory_client.checkout import commit_of, repository_of, slug_of
from firm_memory_client.cli import show
from firm_memory_client.cli.common import (
    Exit,
    Run,
    command,
    place_here,
    scope_of,
    scope_options,
    source_options,
    sources_of,
    text_from,
)
from firm_memory_client.client import Material
from firm_memory_client.errors import FieldProblem, ProblemError
from firm_memory_client.models import Event, Scope, Source
from firm_memory_client.plain import one_line

FILE = click.Path(path_type=Path)


def _commit_here() -> Source | None:
    remote, commit = repository_of(Path.cwd()), commit_of(Path.cwd())
    return Source("commit", f"{slug_of(remote)}@{commit[:12]}", commit=commit) if remote and commit else None


@click.command()
@click.argument("content", required=False)
@click.option("--file", "file", type=FILE, help="Take the text from it; it is the source, too, where none is named.")
@click.option("--type", "type_", required=True, metavar="TYPE", help="The slug or the name of a type.")
@scope_options
@source_options
@click.option("--confidence", type=click.FloatRange(0, 1))
@click.option("--supersedes", multiple=True, metavar="M-12", help="What it would replace; repeats.")
@click.option("--valid-from", metavar="DATE")
@click.option("--tier", type=click.Choice(["durable", "index"]))
@command
def propose(
    run: Run,
    *,
    content: str | None,
    file: Path | None,
    type_: str,
    repos: tuple[str, ...],
    domains: tuple[str, ...],
    firm: bool,
    given_sources: tuple[tuple[str, str], ...],
    link: str | None,
    quote: str | None,
    confidence: float | None,
    supersedes: tuple[str, ...],
    valid_from: str | None,
    tier: str | None,
) -> None:
    """Propose one statement. A reviewer decides; until then no search finds it."""
    text = text_from(content, file)
    otherwise = Source("document", place_here(file)) if file is not None else None
    given = run.client.propose(
        text,
        type=type_,
        sources=sources_of(given_sources, link, quote, otherwise=otherwise),
        confidence=confidence,
        supersedes=supersedes,
        valid_from=valid_from,
        tier=tier,
        **scope_of(repos, domains, firm),
    )
    run.result(dict(given.raw), lambda: show.proposed(given))


@click.command()
@click.argument("reference")
@click.option("--kind", type=click.Choice(["stale", "wrong"]), required=True, help="It held once, or it never did.")
@click.option("--reason", required=True, help="What you saw, and where.")
@click.option("--replacement", metavar="TEXT", help="What should stand instead.")
@source_options
@command
def correct(
    run: Run,
    *,
    reference: str,
    kind: str,
    reason: str,
    replacement: str | None,
    given_sources: tuple[tuple[str, str], ...],
    link: str | None,
    quote: str | None,
) -> None:
    """Report a memory as stale or wrong. The source is the commit checked out here unless another is named."""
    sources = sources_of(given_sources, link, quote, otherwise=_commit_here())
    given = run.client.correct(reference, kind=kind, reason=reason, replacement=replacement, sources=sources)
    run.result(dict(given.raw), lambda: show.proposed(given))


@click.command()
@click.argument("files", nargs=-1, type=FILE)
@click.option("--kind", metavar="KIND", help="transcript, chat, issue, merge_request, incident, document, …")
@scope_options
@source_options
@click.option("--external-id", metavar="NAME", help="Its name where it comes from, for one piece: twice is one event.")
@click.option("--jsonl", is_flag=True, help="FILES hold a piece a line, as the REST interface takes them.")
@click.option("--wait", is_flag=True, help="Wait and tell what came of it.")
@click.option("--wait-seconds", type=click.FloatRange(1), default=120.0, show_default=True)
@command
def ingest(
    run: Run,
    *,
    files: tuple[Path, ...],
    kind: str | None,
    repos: tuple[str, ...],
    domains: tuple[str, ...],
    firm: bool,
    given_sources: tuple[tuple[str, str], ...],
    link: str | None,
    quote: str | None,
    external_id: str | None,
    jsonl: bool,
    wait: bool,
    wait_seconds: float,
) -> Exit:
    """Hand over raw material: FILES, or standard input for `-` or none."""
    paths = files or (Path("-"),)
    if jsonl:
        names, pieces = _lines(paths)
    else:
        if kind is None:
            raise click.UsageError("Say what it is: --kind transcript, chat, issue, …")
        if external_id and len(paths) > 1:
            raise click.UsageError("--external-id names one piece; give one file.")
        scope = Scope(**{name: _tupled(value) for name, value in scope_of(repos, domains, firm).items()})
        names, pieces = [], []
        for path in paths:
            otherwise = Source(kind, place_here(path)) if path.name != "-" else None
            sources = sources_of(given_sources, link, quote, otherwise=otherwise)
            pieces.append(Material(_read(path), kind, scope, tuple(sources), external_id).as_dict())
            names.append(str(path))
    events = _handed_over(run, names, pieces)
    if wait:
        events = _waited(run, events, wait_seconds)
    run.result({"events": [dict(each.raw) for each in events]}, lambda: _told(names, events))
    for each in events:
        for note in each.notes:
            run.note(note)
    unfinished = wait and any(not each.is_finished or each.state == "dead" for each in events)
    return Exit.NOTHING if unfinished else Exit.OK


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _told(names: list[str], events: list[Event]) -> str:
    return "\n".join(show.event(each, name) for each, name in zip(events, names, strict=False))


def _read(path: Path) -> str:
    return text_from("-", None) if path.name == "-" else text_from(None, path)


def _lines(paths: tuple[Path, ...]) -> tuple[list[str], list[dict[str, Any]]]:
    """Every line is read before the first is sent, so that a broken one is said while nothing is handed over."""
    names: list[str] = []
    pieces: list[dict[str, Any]] = []
    for path in paths:
        for number, line in enumerate(_read(path).splitlines(), start=1):
            if not line.strip():
                continue
            try:
                piece = json.loads(line)
            except (ValueError, RecursionError):
                piece = None
            if not isinstance(piece, dict):
                raise click.UsageError(f"{path}, line {number}, is no JSON object. Nothing was sent.")
            names.append(f"{path}:{number}")
            pieces.append(piece)
    if not pieces:
        raise click.UsageError("There is no line in it. Give one JSON object a line.")
    return names, pieces


def _handed_over(run: Run, names: list[str], pieces: list[dict[str, Any]]) -> list[Event]:
    events: list[Event] = []
    try:
        for batch in run.client.ingest_many(pieces):
            events += batch
            if len(pieces) > 1:
                run.note(f"Handed over {len(events):,} of {len(pieces):,}.")
    except ProblemError as error:
        _name_pieces(error, names[len(events) :])
        raise
    return events


def _name_pieces(error: ProblemError, names: list[str]) -> None:
    """The service counts the lines of a request; who reads this knows files, and lines of files."""

    def name(number: str) -> str:
        place = int(number) - 1
        found = names[place] if 0 <= place < len(names) else f"line {number}"
        return "standard input" if found == "-" else found

    error.detail = re.sub(r"^Line (\d+): ", lambda said: f"{name(said[1])}: ", error.detail)
    error.errors = tuple(
        FieldProblem(
            re.sub(r"^\[(\d+)\]\.(.+)$", lambda said: f"{said[2]} of {name(said[1])}", each.field), each.message
        )
        for each in error.errors
    )


def _waited(run: Run, events: list[Event], seconds: float) -> list[Event]:
    import time

    until = time.monotonic() + seconds
    return list(_each_waited(run, events, until))


def _each_waited(run: Run, events: list[Event], until: float) -> Iterator[Event]:
    import time

    for at, event in enumerate(events, start=1):
        if sys.stderr.isatty():
            run.note(f"Waiting for {at} of {len(events)}.")
        yield run.client.wait(event.id, timeout=max(0.0, until - time.monotonic()))


@click.group()
def notes() -> None:
    """Working notes of a task. A search finds them only with --task."""


@notes.command("add")
@click.argument("task")
@click.argument("content")
@click.option("--type", "type_", required=True, metavar="TYPE")
@scope_options
@source_options
@click.option("--disposition", metavar="WORD", help="What should become of it.")
@command
def notes_add(
    run: Run,
    *,
    task: str,
    content: str,
    type_: str,
    repos: tuple[str, ...],
    domains: tuple[str, ...],
    firm: bool,
    given_sources: tuple[tuple[str, str], ...],
    link: str | None,
    quote: str | None,
    disposition: str | None,
) -> None:
    """Keep a note of TASK, such as 'acme/pay#12'."""
    note = run.client.note(
        task,
        text_from(content, None),
        type=type_,
        sources=sources_of(given_sources, link, quote, otherwise=_commit_here()),
        disposition=disposition,
        **scope_of(repos, domains, firm),
    )
    run.result(dict(note.raw), lambda: one_line(note.id))


@notes.command("list")
@click.argument("task")
@command
def notes_list(run: Run, *, task: str) -> Exit:
    """The notes of TASK."""
    kept = run.client.notes(task)
    run.result(
        {"results": [dict(each.raw) for each in kept]},
        lambda: (
            show.table(("id", "type", "note"), [(each.id, each.type, each.content) for each in kept]) if kept else ""
        ),
    )
    if not kept:
        run.note(f"Nothing is noted of {task}, or all of it has expired. Tasks are compared letter by letter.")
    return Exit.OK if kept else Exit.NOTHING
