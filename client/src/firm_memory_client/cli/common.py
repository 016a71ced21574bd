"""What all commands share: options, how they speak, and the codes that they end with."""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import click

from firm_memory_client.checkout import repository_of, slug_of
from firm_memory_client.client import Client
from firm_memory_client.config import settings
from firm_memory_client.errors import (
    FirmMemoryError,
    Misconfigured,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    ProblemError,
    ServerFault,
    TooMany,
    Unreachable,
)
from firm_memory_client.models import Source
from firm_memory_client.plain import plain

Command = Callable[..., None]


class Exit(IntEnum):
    """Documented in docs/client.md; scripts rely on them."""

    OK = 0
    NOTHING = 1
    USAGE = 2
    REFUSED = 3
    NOT_ALLOWED = 4
    UNREACHABLE = 5


def exit_code(error: FirmMemoryError) -> Exit:
    kinds: list[tuple[tuple[type[FirmMemoryError], ...], Exit]] = [
        ((Misconfigured,), Exit.USAGE),
        ((Unreachable, ServerFault, TooMany), Exit.UNREACHABLE),
        ((NotAuthenticated, NotAllowed), Exit.NOT_ALLOWED),
        ((NotFound,), Exit.NOTHING),
    ]
    return next((code for classes, code in kinds if isinstance(error, classes)), Exit.REFUSED)


class Run:
    """One command: where it asks, and how it speaks. Standard output has the result alone; all else is on the other."""

    def __init__(self, *, as_json: bool, url: str | None, timeout: float) -> None:
        self.as_json = as_json
        self.url = url
        self.timeout = timeout
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            found = settings(self.url)
            if found.token is None:
                where = f" The one kept is in {found.token_from}." if found.token_from else ""
                raise Misconfigured(
                    f"There is no token for {found.url}.{where} Set FIRM_MEMORY_TOKEN, or run `fm configure`."
                )
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._client = Client(found.url, found.token.reveal(), timeout=self.timeout)
            for warning in caught:
                self.note(str(warning.message))
        return self._client

    def note(self, text: str) -> None:
        """A sentence for the person, on standard error."""
        if text:
            click.secho(plain(text), err=True, dim=True, color=_color(sys.stderr))

    def result(self, data: Any, shown: Callable[[], str] | str) -> None:
        """``data`` as JSON, or what ``shown`` makes of it to read."""
        if self.as_json:
            click.echo(json.dumps(data, indent=2))
            return
        text = shown() if callable(shown) else shown
        if text:
            click.echo(text.encode("utf-8", "backslashreplace").decode(), color=_color(sys.stdout))

    def fail(self, error: FirmMemoryError) -> Exit:
        code = exit_code(error)
        if self.as_json:
            click.echo(json.dumps({"error": _as_data(error) | {"exit": int(code)}}, indent=2))
        click.secho(plain(str(error)), err=True, fg="red", color=_color(sys.stderr))
        if isinstance(error, ProblemError) and error.request_id and error.status >= 500:
            self.note(f"Request {error.request_id}.")
        return code

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def _as_data(error: FirmMemoryError) -> dict[str, Any]:
    if not isinstance(error, ProblemError):
        kind = "misconfigured" if isinstance(error, Misconfigured) else "unreachable"
        return {"code": kind, "detail": str(error), "errors": []}
    return {
        "code": error.code,
        "status": error.status,
        "detail": error.detail,
        "errors": [{"field": each.field, "message": each.message} for each in error.errors],
        "extra": error.extra,
        "request_id": error.request_id,
    }


def _color(stream: Any) -> bool:
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def command(function: Callable[..., Any]) -> Command:
    """Options of all commands; the function gets a ``Run`` first, and what it returns is the exit code."""

    @click.option("--json", "as_json", is_flag=True, help="Standard output is JSON alone.")
    @click.option("--url", metavar="URL", help="Of Firm Memory, instead of FIRM_MEMORY_URL or the kept one.")
    @click.option(
        "--timeout",
        type=click.FloatRange(0.1, 3600),
        default=15.0,
        show_default=True,
        help="Seconds that a call may take in all.",
    )
    @functools.wraps(function)
    def wrapped(*args: Any, as_json: bool, url: str | None, timeout: float, **options: Any) -> None:
        run = Run(as_json=as_json, url=url, timeout=timeout)
        try:
            code = function(run, *args, **options)
        except FirmMemoryError as error:
            code = run.fail(error)
        finally:
            run.close()
        sys.exit(int(code or Exit.OK))

    return wrapped


# --- where, and from where --------------------------------------------------------------------------------
def where_options(function: Command) -> Command:
    function = click.option("--repo", "repos", multiple=True, metavar="REPO", help="A slug or a remote; repeats.")(
        function
    )
    function = click.option("--domain", "domains", multiple=True, metavar="DOMAIN", help="Repeats.")(function)
    return click.option("--everything", is_flag=True, help="The whole workspace, whatever is checked out here.")(
        function
    )


def looked_in(repos: Sequence[str], domains: Sequence[str], everything: bool) -> list[str] | None:
    """The repositories to search: those named, else the one checked out here, else none."""
    if everything and (repos or domains):
        raise click.UsageError("--everything goes with neither --repo nor --domain.")
    if repos:
        return list(repos)
    if everything or domains:
        return None
    here = repository_of(Path.cwd())
    return [here] if here else None


def scope_options(function: Command) -> Command:
    function = click.option("--repo", "repos", multiple=True, metavar="REPO", help="It holds there; repeats.")(function)
    function = click.option("--domain", "domains", multiple=True, metavar="DOMAIN", help="Repeats.")(function)
    return click.option("--firm", is_flag=True, help="It holds for the whole firm.")(function)


def scope_of(repos: Sequence[str], domains: Sequence[str], firm: bool) -> dict[str, Any]:
    """Where something holds: as named, else in the repository checked out here."""
    if not (repos or domains or firm):
        here = repository_of(Path.cwd())
        if here is None:
            raise click.UsageError("No repository is checked out here. Say where it holds: --repo, --domain or --firm.")
        repos = [here]
    return {"repos": list(repos), "domains": list(domains), "firm": firm}


def source_options(function: Command) -> Command:
    function = click.option(
        "--source",
        "given_sources",
        nargs=2,
        multiple=True,
        metavar="KIND REFERENCE",
        help="Where it comes from, such as merge_request 'acme/pay!128'; repeats.",
    )(function)
    function = click.option("--link", metavar="URL", help="Of the first source.")(function)
    return click.option("--quote", metavar="TEXT", help="The words of the first source that support it.")(function)


def sources_of(
    given: Iterable[tuple[str, str]], link: str | None, quote: str | None, *, otherwise: Source | None = None
) -> list[Source]:
    sources = [Source(kind=kind, reference=reference) for kind, reference in given]
    if not sources and otherwise is not None:
        sources = [otherwise]
    if not sources:
        raise click.UsageError("Say where it comes from: --source KIND REFERENCE.")
    first = sources[0]
    sources[0] = Source(first.kind, first.reference, link or first.url, "", None, first.commit, quote or "")
    return sources


def place_here(path: Path) -> str:
    """How a source names a file of the checkout: ``acme/pay docs/adr/0007.md``; outside of one its name."""
    from firm_memory_client.checkout import root_of

    remote, full = repository_of(path.parent), path.resolve()
    root = root_of(path.parent)
    inside = full.relative_to(root).as_posix() if full.is_relative_to(root) else full.name
    return f"{slug_of(remote)} {inside}" if remote else inside


def text_from(content: str | None, file: Path | None) -> str:
    """What was given, or the file, or standard input where the content is ``-``."""
    if (content is None) == (file is None):
        raise click.UsageError("Give the text or --file, and not both. `-` reads standard input.")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file} cannot be read: {getattr(error, 'strerror', 'it is not UTF-8')}.") from None
    return sys.stdin.read() if content == "-" else str(content)
