"""Commands that look: search, get, context, ask, me."""

from __future__ import annotations

from pathlib import Path

import click

from firm_memory_client.checkout import repository_of, root_of
from firm_memory_client.cli import show
from firm_memory_client.cli.common import Exit, Run, command, looked_in, where_options
from firm_memory_client.plain import one_line, plain

STRICT = click.option("--strict", is_flag=True, help="End with 5 where not everything could be looked at.")


def _ended(run: Run, *, found: bool, degraded: bool, note: str, strict: bool) -> Exit:
    run.note(note)
    if degraded:
        return Exit.UNREACHABLE if strict else Exit.OK
    return Exit.OK if found else Exit.NOTHING


@click.command()
@click.argument("question")
@where_options
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only of this type; repeats.")
@click.option("--task", metavar="TASK", help="Its working notes too, which nobody has reviewed, such as mr:4821.")
@click.option("--limit", type=click.IntRange(1, 100), help="At most so many; 10 unless said.")
@click.option("--as-of", metavar="DATE", help="What held then.")
@click.option("--known-at", metavar="DATE", help="What was known then.")
@click.option("--intent", metavar="INTENT", help="explain-why, history, implement, look-up, ownership, …")
@STRICT
@command
def search(
    run: Run,
    *,
    question: str,
    repos: tuple[str, ...],
    domains: tuple[str, ...],
    everything: bool,
    types: tuple[str, ...],
    task: str | None,
    limit: int | None,
    as_of: str | None,
    known_at: str | None,
    intent: str | None,
    strict: bool,
) -> Exit:
    """Search what the firm knows. QUESTION is in plain words."""
    found = run.client.search(
        question,
        repos=looked_in(repos, domains, everything),
        domains=list(domains) or None,
        types=list(types) or None,
        task=task,
        limit=limit,
        as_of=as_of,
        known_at=known_at,
        intent=intent,
    )
    run.result(dict(found.raw), lambda: show.memories(found.results))
    note = found.note or ("" if len(found) else "Nothing is on record.")
    return _ended(run, found=bool(len(found)), degraded=found.degraded, note=note, strict=strict)


@click.command()
@click.argument("reference")
@command
def get(run: Run, *, reference: str) -> None:
    """One memory in any status, by number (M-12) or id, with its chain and verdicts."""
    found = run.client.get(reference)

    def shown() -> str:
        chain = [f"{each.get('number') or each.get('id')}  {each.get('status')}" for each in found.chain]
        verdicts = [
            f"{each.get('action')} by {each.get('reviewer')}: {each.get('reason') or '-'}"
            for each in found.raw.get("verdicts", ())
        ]
        parts = [show.memory(found)]
        if len(chain) > 1:
            parts.append("Chain, the oldest first\n" + "\n".join(f"  {one_line(each)}" for each in chain))
        if verdicts:
            parts.append("Verdicts\n" + "\n".join(f"  {one_line(each)}" for each in verdicts))
        return "\n\n".join(parts)

    run.result(dict(found.raw), shown)


@click.command()
@click.option("--repo", metavar="REPO", help="Instead of the one checked out here.")
@click.option("--path", "path", metavar="PATH", help="A path in it: from its root, or a file that is there.")
@click.option("--task", metavar="TASK", help="What the task is called.")
@click.option("--question", "-q", metavar="TEXT", help="What you are about to do, in plain words.")
@click.option("--budget-tokens", type=click.IntRange(1), help="How much it may be.")
@STRICT
@command
def context(
    run: Run,
    *,
    repo: str | None,
    path: str | None,
    task: str | None,
    question: str | None,
    budget_tokens: int | None,
    strict: bool,
) -> Exit:
    """What to know before working in a repository, ready for an agent to read."""
    where = repo if repo is not None else repository_of(Path.cwd())
    if where is None:
        raise click.UsageError("No repository is checked out here. Name one: --repo.")
    found = run.client.context(
        where, path=_from_root(path, named=repo is not None), task=task, q=question, budget_tokens=budget_tokens
    )
    run.result(dict(found.raw), lambda: plain(found.text) if found.items else "")
    note = found.note or ("" if found.items else "Nothing is on record.")
    return _ended(run, found=bool(found.items), degraded=found.degraded, note=note, strict=strict)


def _from_root(path: str | None, *, named: bool) -> str | None:
    if path is None or named or not Path(path).exists():
        return path
    root, full = root_of(Path.cwd()), Path(path).resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else path


@click.command()
@click.argument("question")
@where_options
@STRICT
@command
def ask(
    run: Run, *, question: str, repos: tuple[str, ...], domains: tuple[str, ...], everything: bool, strict: bool
) -> Exit:
    """Ask, and get an answer of which each sentence has its citations."""
    if domains:
        raise click.UsageError("A question takes --repo or --everything; fm search takes --domain.")
    given = run.client.ask(question, repos=looked_in(repos, (), everything))
    run.result(dict(given.raw), lambda: show.answer(given))
    return _ended(run, found=bool(given.citations), degraded=given.degraded, note=given.note, strict=strict)


@click.command()
@command
def me(run: Run) -> None:
    """Who the token is, and what it may do."""
    who = run.client.me()
    rows = [
        ("token", f"{who.name} ({who.kind})"),
        ("workspace", who.workspace),
        ("role", who.role or "none: it proposes and searches"),
        ("may write", "no" if who.read_only else "yes"),
        ("repositories", ", ".join(who.repositories) or "all"),
        ("expires", who.expires_at or "never"),
    ]
    run.result(dict(who.raw), lambda: show.table(("", ""), rows))
