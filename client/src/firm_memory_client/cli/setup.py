"""Commands around it: configure, doctor, connect, and what clients start."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from firm_memory_client.checkout import repository_of, root_of
from firm_memory_client.cli import show
from firm_memory_client.cli.common import Exit, Run, command
from firm_memory_client.client import DEFAULT_URL
from firm_memory_client.config import kept_url, settings, settings_write
from firm_memory_client.connect import CLIENTS, CannotConnect, How, plan_for, write
from firm_memory_client.errors import Misconfigured
from firm_memory_client.transport import is_open


@click.command()
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of asking for it.")
@command
def configure(run: Run, *, token_stdin: bool) -> None:
    """Keep the address and the token in a file that only you can read.

    Without --url, and where nobody can be asked, the address that is kept already stays.
    """
    asks = sys.stdin.isatty() and not token_stdin
    before = kept_url() or DEFAULT_URL
    url = run.url or (click.prompt("Address", default=before, err=True) if asks else before)
    token = click.prompt("Token", hide_input=True, err=True) if asks else sys.stdin.read()
    path = settings_write(url, token)
    if is_open(url):
        run.note(f"{url} is not encrypted: whoever is on the way can read the token. Use https.")
    run.result({"path": str(path), "url": url}, f"Kept in {path}. `fm doctor` looks whether it works.")


@click.command()
@command
def doctor(run: Run) -> Exit:
    """Look at each part by itself, and say what to do where one fails."""
    from firm_memory_client.doctor import FAIL, Doctor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says so itself
        examining = Doctor(settings(run.url), Path.cwd(), timeout=run.timeout)
    try:
        checks = examining.examined()
    finally:
        examining.close()
    failed = [check for check in checks if check.state == FAIL]
    marks = {"ok": "ok", "warn": "WARN", "fail": "FAIL", "skipped": "-"}
    rows = [(marks[check.state], check.name, f"{check.said} {check.todo}".strip()) for check in checks]
    run.result(
        {"ok": not failed, "checks": [check.as_dict() for check in checks]}, lambda: show.table(("", "", ""), rows)
    )
    codes = {"usage": Exit.USAGE, "denied": Exit.NOT_ALLOWED, "unreachable": Exit.UNREACHABLE}
    return codes.get(failed[0].kind, Exit.NOTHING) if failed else Exit.OK


@click.command()
@click.argument("client", type=click.Choice(CLIENTS))
@click.option("--write", "writes", is_flag=True, help="Put it into the client's file; what else is there stays.")
@click.option("--stdio", is_flag=True, help="The client starts `fm mcp`, instead of calling the address.")
@click.option(
    "--server",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="The client starts the installation of Firm Memory in FOLDER on this machine.",
)
@click.option("--user", is_flag=True, help="For all your projects, instead of the one checked out here.")
@command
def connect(run: Run, *, client: str, writes: bool, stdio: bool, server: Path | None, user: bool) -> None:
    """Print what connects an agent's client, or put it into the client's file.

    The token is written nowhere: the file names the variable FIRM_MEMORY_TOKEN.
    """
    found, root = settings(run.url), root_of(Path.cwd())
    try:
        plan = plan_for(client, How(url=found.url, root=root, stdio=stdio, server=server, user=user))
        inside = None if user or client == "claude-desktop" else root
        done = write(plan, inside) if writes else None
    except CannotConnect as error:
        raise Misconfigured(str(error)) from None
    data: dict[str, Any] = {"client": client, "path": str(plan.path), "entry": plan.entry, "snippet": plan.snippet}
    if done is None:
        run.result(data, plan.snippet.rstrip())
        run.note(f"For {plan.path}; `--write` puts it there.")
    else:
        data |= {"changed": done.changed, "backup": str(done.backup) if done.backup else None}
        kept = f" As it was: {done.backup}." if done.backup else ""
        run.result(data, f"{plan.path} is written.{kept}" if done.changed else f"{plan.path} holds it already.")
    for note in plan.notes:
        run.note(note)


@click.command()
@click.option("--folder", type=click.Path(path_type=Path), default=Path(), help="The folder of the checkout.")
@click.option("--repo", metavar="REPO", help="Instead of the one checked out there.")
@command
def mcp(run: Run, *, folder: Path, repo: str | None) -> None:
    """Serve an agent's client over standard input and output; it starts this by itself."""
    from firm_memory_client.bridge import Bridge, lines_of

    where = repo or repository_of(folder)
    transport = run.client.transport
    run.note(f"Firm Memory at {transport.base_url}, for {where or 'no repository: the whole workspace is searched'}.")
    bridge = Bridge(transport, sys.stdout.buffer, repo=where, timeout=max(60.0, run.timeout))
    bridge.serve(lines_of(sys.stdin.buffer))


@click.command(hidden=True)
@click.argument("name", type=click.Choice(["session-start", "session-end"]))
def hook(name: str) -> None:
    """What the plugin of Claude Code runs. It ends with 0 whatever happens."""
    from firm_memory_client import hooks

    try:
        event = json.loads(sys.stdin.buffer.read() or b"{}")
        if not isinstance(event, dict):
            return
        if name == "session-end":
            hooks.session_end(event)
        elif answer := hooks.session_start(event):
            click.echo(json.dumps(answer))
    except Exception as error:
        # A session is never held up by its memory.
        click.echo(f"fm: {type(error).__name__}: nothing was done.", err=True)
