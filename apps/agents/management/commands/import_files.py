"""``manage.py import_files PATH… --repo REPO``: propose what rules files and decision records of a checkout state."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import ApiToken, Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_user, principal_of_origin, workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE, builtin_bot
from apps.agents.files.on_disk import Unusable, files_under
from apps.agents.files.services import MAX_ALL, MAX_FILES, FileInput, Imported, files_import
from apps.core.errors import DomainError
from apps.core.progress import Progress

IMPORTER: Final = "importer"
SHOWN: Final = 20
# Everything was read, and some statements were not taken; 1 is for a command that could not begin or go on.
REFUSED: Final = 3
_HEAD = "statements    new  joined  unchanged  changed   gone  skipped  file"


class Command(BaseCommand):
    help = (
        "Propose what rules files (AGENTS.md, CLAUDE.md, .cursorrules, .mdc, copilot and other instructions) and "
        "decision records state. Of folders everything is read that agents read. What came from them before is not "
        "proposed again. "
        f"Ends with exit code {REFUSED} when statements were refused or there was no room for them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="Files and folders of a checkout.")
        parser.add_argument("--repo", required=True, help="The repository: a slug, an alias or a remote.")
        parser.add_argument(
            "--root", type=Path, help="The root of the checkout; else the only folder named, or this one."
        )
        parser.add_argument("--commit", help="The commit that is checked out, kept with each source.")
        who = parser.add_mutually_exclusive_group()
        who.add_argument("--as", dest="person", metavar="NAME", help="Propose in the name of this person.")
        who.add_argument(
            "--token", metavar="NAME", help="Propose in the name of this token (its name, not its secret)."
        )
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)
        parser.add_argument("--dry-run", action="store_true", help="Say what would become of it; write nothing.")

    def handle(self, **options: Any) -> None:
        missing = [str(path) for path in options["paths"] if not path.exists()]
        if missing:
            raise CommandError(f"There is no file or folder {', '.join(missing)}. Nothing was imported.")
        try:
            files = list(files_under(options["paths"], options["root"] or _root(options["paths"])))
            if not files:
                raise CommandError("There is no file that agents read in it.")
            self._import(files, options)
        except Unusable as problem:
            raise CommandError(str(problem)) from None
        except DomainError as error:
            details = "".join(f"\n{fault.field}: {fault.message}" for fault in error.errors)
            raise CommandError(f"{error.detail}{details}") from None

    def _import(self, files: Sequence[FileInput], options: dict[str, Any]) -> None:
        principal = _principal(workspace_get(options["workspace"]), options["person"], options["token"])
        progress, left = Progress("statements looked at", self.stderr.write), 0
        self.stdout.write(_HEAD)
        for batch in _batches(files):
            imported = files_import(
                principal=principal,
                repo=options["repo"],
                files=batch,
                commit=options["commit"],
                dry_run=options["dry_run"],
                progress=progress.show,
            )
            left += imported.refused + imported.not_taken
            self._tell(imported)
        if left:
            raise CommandError(f"{left:,} statements were not taken.", returncode=REFUSED)

    def _tell(self, imported: Imported) -> None:
        for report in imported.files:
            self.stdout.write(
                f"{report.statements:>10,} {report.new:>6,} {report.joined:>7,} {report.unchanged:>10,} "
                f"{report.changed:>8,} {report.gone:>6,} {len(report.skipped):>8,}  {report.path} ({report.format})"
            )
            for skipped in report.skipped[:SHOWN]:
                self.stdout.write(f"    line {skipped.line:,}: {skipped.reason}")
            if len(report.skipped) > SHOWN:
                self.stdout.write(f"    … and {len(report.skipped) - SHOWN:,} more.")
        for note in imported.notes:
            self.stdout.write(note)


def _root(paths: Sequence[Path]) -> Path:
    return paths[0] if len(paths) == 1 and paths[0].is_dir() else Path()


def _batches(files: Sequence[FileInput]) -> Iterator[list[FileInput]]:
    """As many as one import takes."""
    batch: list[FileInput] = []
    size = 0
    for file in files:
        if batch and (len(batch) == MAX_FILES or size + len(file.content) > MAX_ALL):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += len(file.content)
    yield batch


def _principal(workspace: Workspace, person: str | None, token: str | None) -> Principal:
    """Whoever is named; else a built-in bot, which decides nothing and belongs to nobody."""
    if person is not None:
        user = User.objects.filter(username=person).first()
        if user is None:
            raise CommandError(f"There is no person {person}. Add one with `manage.py member add`.")
        return principal_for_user(user, workspace, "command")
    row = builtin_bot(workspace, IMPORTER) if token is None else _token(workspace, token)
    return principal_of_origin(workspace, token_id=row.pk, user_id=None, via="command")


def _token(workspace: Workspace, name: str) -> ApiToken:
    row = ApiToken.objects.filter(workspace=workspace, name=name, revoked_at__isnull=True).first()
    if row is None:
        raise CommandError(f"There is no token {name} in {workspace}, or it was revoked.")
    return row
