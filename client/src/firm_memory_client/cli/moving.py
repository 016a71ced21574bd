"""Commands for files that agents read: import and export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from firm_memory_client.checkout import commit_of, repository_of, root_of
from firm_memory_client.cli import show
from firm_memory_client.cli.common import Exit, Run, command
from firm_memory_client.errors import FirmMemoryError
from firm_memory_client.files import Skipped, Written, export_to, found_in, read_all
from firm_memory_client.models import Exported, Imported
from firm_memory_client.plain import one_line, plain

FORMATS = ("agents_md", "claude_md", "cursorrules", "cursor_rules")


def _repository(repo: str | None, root: Path) -> str:
    named = repo if repo is not None else repository_of(root)
    if named is None:
        raise click.UsageError("No repository is checked out here, or its checkout has no remote. Name one: --repo.")
    return named


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--repo", metavar="REPO", help="Instead of the one checked out here.")
@click.option("--dry-run", is_flag=True, help="Say what would become of it; nothing is proposed.")
@command
def import_(run: Run, *, paths: tuple[Path, ...], repo: str | None, dry_run: bool) -> Exit:
    """Propose what AGENTS.md, CLAUDE.md, rules for Cursor and Copilot, and decision records state.

    PATHS are files and folders; without any the whole checkout is looked through.
    """
    root = root_of(Path.cwd())
    try:
        wanted = found_in(root, paths)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    texts, skipped = read_all(root, wanted)
    for each in skipped:
        run.note(f"{each.path}: left out. {each.reason}")
    if not texts:
        run.note("There is no file that agents read.")
        run.result(_import_data(Imported.of([]), skipped), "")
        return Exit.NOTHING
    imported = run.client.import_files(
        _repository(repo, root),
        texts,
        commit=commit_of(root),
        dry_run=dry_run,
        on_batch=lambda done: run.note(f"Sent {done} of {len(texts)} files.") if len(texts) > 1 else None,
    )
    run.result(_import_data(imported, skipped), lambda: _import_told(imported, dry_run=dry_run))
    for note in imported.notes:
        run.note(note)
    return Exit.REFUSED if imported.refused or imported.not_taken else Exit.OK


def _import_data(imported: Imported, skipped: list[Skipped]) -> dict[str, Any]:
    return dict(imported.raw) | {"left_out": [{"path": each.path, "reason": each.reason} for each in skipped]}


def _import_told(imported: Imported, *, dry_run: bool) -> str:
    head = ("statements", "new", "changed", "joined", "unchanged", "gone", "left out", "file")
    rows = [
        [
            *(str(getattr(file, name)) for name in ("statements", "new", "changed", "joined", "unchanged", "gone")),
            str(len(file.skipped)),
            file.path,
        ]
        for file in imported.files
    ]
    left_out = [
        f"{one_line(file.path)}:{line.get('line')}: {one_line(str(line.get('reason', '')))}"
        for file in imported.files
        for line in file.skipped
    ]
    end = "Nothing was proposed: this was a dry run." if dry_run else ""
    return "\n".join(filter(None, [show.table(head, rows), "\n".join(left_out), end]))


@click.command()
@click.option("--repo", metavar="REPO", help="Instead of the one checked out here.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="agents_md", show_default=True)
@click.option("--per-folder", is_flag=True, help="Also files in folders that something holds for.")
@click.option("--max-lines", type=click.IntRange(1), help="At most so many lines in a block.")
@click.option("--check", is_flag=True, help="Write nothing; end with 1 and show how files differ.")
@command
def export(run: Run, *, repo: str | None, format_: str, per_folder: bool, max_lines: int | None, check: bool) -> Exit:
    """Write what is known into AGENTS.md and the like, between markers; what people wrote around them stays."""
    root = root_of(Path.cwd())
    exported = run.client.export_files(
        _repository(repo, root), format=format_, max_lines=max_lines, per_folder=per_folder
    )
    if not exported.known:
        # What came back is no state of this repository: written, it would empty a file of what holds there.
        return _not_known(run, exported)
    written = export_to(root, exported.files, check=check)
    data = _export_data(exported, written, exported.note)
    run.result(data, lambda: "\n".join(_written_told(each) for each in written))
    run.note(exported.note)
    if any(each.state == "refused" for each in written):
        raise FirmMemoryError("Mend what is refused, and run it again.")
    return Exit.NOTHING if any(each.state == "stale" for each in written) and check else Exit.OK


def _not_known(run: Run, exported: Exported) -> Exit:
    why = (
        f"{exported.repo} is not known to {run.client.base_url}, so no file was changed. Is it spelt right? --repo "
        "names the repository as it is called there."
    )
    run.result(_export_data(exported, [], why), "")
    run.note(why)
    return Exit.NOTHING


def _export_data(exported: Exported, written: Sequence[Written], note: str) -> dict[str, Any]:
    files = [_written_data(each) for each in written]
    return {"repo": exported.repo, "known": exported.known, "files": files, "note": note}


def _written_data(each: Written) -> dict[str, str]:
    return {"path": each.path, "state": each.state, "reason": each.reason, "diff": each.diff}


def _written_told(each: Written) -> str:
    head = f"{each.state:<10} {one_line(each.path)}"
    return "\n".join(filter(None, [f"{head}  {one_line(each.reason)}".rstrip(), plain(each.diff)]))
