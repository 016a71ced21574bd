"""``manage.py export_files REPO --into DIR``: write what holds for a repository into the files that agents read."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.principal import operator
from apps.accounts.selectors import workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE
from apps.agents.files.exporting import DEFAULT_LINES, FileFormat, files_export
from apps.agents.files.on_disk import Unusable, Written, files_write
from apps.core.errors import DomainError
from apps.core.screening import clean_text


class Command(BaseCommand):
    help = (
        "Write what holds for a repository into AGENTS.md, CLAUDE.md or Cursor's rules, between markers. What stands "
        "around them stays. With --check nothing is written: it shows what differs, and ends with exit code 1 when a "
        "file is stale. A repository that is not known changes no file and ends with 1, too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("repo", help="A slug, an alias or a remote.")
        parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="The root of a checkout.")
        parser.add_argument("--format", choices=[each.value for each in FileFormat], default=FileFormat.AGENTS_MD.value)
        parser.add_argument("--max-lines", type=int, default=DEFAULT_LINES)
        parser.add_argument("--per-folder", action="store_true", help="A file in each folder that statements are for.")
        parser.add_argument("--check", action="store_true", help="Write nothing; say what is stale.")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, **options: Any) -> None:
        if not options["into"].is_dir():
            raise CommandError(f"There is no folder {options['into']}.")
        try:
            export = files_export(
                principal=operator(workspace_get(options["workspace"])),
                repo=options["repo"],
                format=FileFormat(options["format"]),
                max_lines=options["max_lines"],
                per_folder=options["per_folder"],
            )
            if not export.known:
                raise CommandError(
                    f"There is no repository {export.repo} in {options['workspace']}, so no file was changed. Is it "
                    "spelt right? Give its slug, an alias or a remote."
                )
            written = files_write(export.files, options["into"], check=options["check"])
        except DomainError as error:
            raise CommandError(error.detail) from None
        except Unusable as problem:
            raise CommandError(str(problem)) from None
        for file in written:
            self._tell(file, check=options["check"])
        if export.note:
            self.stdout.write(export.note)
        if options["check"] and any(file.state in ("new", "changed") for file in written):
            sys.exit(1)

    def _tell(self, file: Written, *, check: bool) -> None:
        stale = check and file.state in ("new", "changed")
        self.stdout.write(f"{'stale' if stale else file.state:<9}  {file.path}{f'  {file.why}' if file.why else ''}")
        for line in file.difference if check else ():
            # What stands in a file must not be obeyed by a terminal.
            self.stdout.write(f"    {clean_text(line)[0]}")
