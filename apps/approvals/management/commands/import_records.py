"""``manage.py import_records FILE.jsonl --reviewer NAME``: bring decision records in, with their supersessions."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_user
from apps.accounts.services import DEFAULT_WORKSPACE
from apps.approvals.importing.records import read_edges, read_records
from apps.approvals.importing.services import Importer
from apps.core.errors import DomainError
from apps.core.progress import Progress
from apps.memories.providers.base import ProviderError
from apps.retrieval.tasks import lexemes_count

BATCH = 64
# The import went through, and some lines were not taken; 1 is for one that could not begin or go on.
REFUSED = 3


class Command(BaseCommand):
    help = (
        "Import decision records (JSON lines) as memories, approved in the name of a reviewer. "
        f"Ends with exit code {REFUSED} when lines were refused and the rest was taken."
    )
    refused = 0

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--reviewer", required=True, help="Who answers for the records.")
        parser.add_argument("--edges", type=Path, help="A file of supersessions between records.")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)
        parser.add_argument("--set", dest="only_set", help="Only the records of this set.")
        parser.add_argument("--dry-run", action="store_true", help="Say what would become of each line; write nothing.")
        parser.add_argument("--report", type=Path, help="Write every refusal and remark to this file.")

    def handle(self, **options: Any) -> None:
        for path in (options["file"], options["edges"]):
            if path is not None and not path.is_file():
                raise CommandError(f"There is no file {path}.")
        try:
            reviewer = _reviewer(options["workspace"], options["reviewer"])
            importer = Importer(reviewer, dry_run=options["dry_run"])
            self._import(importer, options["file"], options["only_set"])
            if options["edges"]:
                importer.link(read_edges(options["edges"], only_set=options["only_set"]))
        except DomainError as error:
            raise CommandError(error.detail) from None
        except ProviderError as error:
            raise CommandError(f"{error.message} What was imported stays; run the command again to go on.") from None
        if not options["dry_run"]:
            lexemes_count(importer.workspace)
        self.refused = len(importer.report.refused)
        if options["report"]:
            options["report"].write_text("\n".join(importer.report.everything()) + "\n")
        for line in importer.report.lines():
            self.stdout.write(line)
        if options["dry_run"]:
            self.stdout.write("Nothing was written: this was a dry run.")

    def run_from_argv(self, argv: list[str]) -> None:
        super().run_from_argv(argv)
        if self.refused:
            sys.exit(REFUSED)

    def _import(self, importer: Importer, path: Path, only_set: str | None) -> None:
        total = sum(1 for _ in read_lines(path))
        progress = Progress("lines read", self.stderr.write)
        rows = read_records(path, only_set=only_set)
        while batch := list(islice(rows, BATCH)):
            importer.take(batch)
            progress.show(batch[-1].line, total)


def read_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _reviewer(workspace_slug: str, name: str) -> Principal:
    workspace = Workspace.objects.filter(slug=workspace_slug).first()
    if workspace is None:
        raise CommandError(f"There is no workspace {workspace_slug}. Add it with `manage.py workspace add`.")
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is no person {name}. Add one with `manage.py member add`.")
    return principal_for_user(user, workspace, "import")
