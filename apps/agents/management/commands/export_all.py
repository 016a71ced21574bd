"""``manage.py export_all FILE``: everything that was approved in a workspace, as lines of JSON."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.principal import operator
from apps.accounts.selectors import workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE
from apps.agents.files.whole.writing import export_lines
from apps.core.errors import DomainError
from apps.core.progress import Progress


class Command(BaseCommand):
    help = (
        "Write everything that was approved in a workspace to a file, restricted memories too: lines of JSON that "
        "`import_export` reads. It is no backup: people, tokens and what waits are not in it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, **options: Any) -> None:
        target: Path = Path(os.path.realpath(options["file"]))
        if target.name == "-" or (target.exists() and not target.is_file()):
            raise CommandError(f"{options['file']} is no file. Name one, which is written as a whole or not at all.")
        beside = target.with_name(f"{target.name}.part")
        try:
            written = self._write(beside, options["workspace"])
            beside.replace(target)
        except DomainError as error:
            raise CommandError(error.detail) from None
        except OSError as error:
            raise CommandError(f"{target} cannot be written: {error.strerror}.") from None
        finally:
            beside.unlink(missing_ok=True)
        self.stdout.write(f"{written:,} lines in {target}. Only its owner may read it; keep it so.")

    def _write(self, path: Path, workspace: str) -> int:
        path.unlink(missing_ok=True)
        path.touch(mode=0o600, exist_ok=False)
        progress, total, number = Progress("lines written", self.stderr.write), 0, 0
        with path.open("w", encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(export_lines(operator(workspace_get(workspace))), start=1):
                file.write(line)
                # The header and the trailer are lines as well.
                total = total or sum(json.loads(line)["counts"].values()) + 2
                progress.show(number, total)
        return number
