"""``manage.py import_export FILE --reviewer NAME``: bring a whole export into an empty workspace."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from apps.accounts.models import Workspace
from apps.accounts.selectors import principal_for_user, workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE
from apps.agents.files.whole.reading import Refused
from apps.agents.files.whole.restoring import export_restore, pool_fill
from apps.core.errors import DomainError
from apps.core.progress import Progress
from apps.memories.providers.base import ProviderError
from apps.retrieval.tasks import lexemes_count


class Command(BaseCommand):
    help = (
        "Bring a file of `export_all` into an empty workspace: memories with their ids and numbers, sources, verdicts, "
        "replacements, taxonomy and scopes. A reviewer of the workspace answers for it. Then everything is embedded."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--reviewer", required=True, help="Who answers for what is brought in.")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, **options: Any) -> None:
        if not options["file"].is_file():
            raise CommandError(f"There is no file {options['file']}.")
        user = User.objects.filter(username=options["reviewer"]).first()
        if user is None:
            raise CommandError(f"There is no person {options['reviewer']}. Add one with `manage.py member add`.")
        try:
            workspace = workspace_get(options["workspace"])
            principal = principal_for_user(user, workspace, "import")
            written = Progress("memories written", self.stderr.write)
            checked = export_restore(principal, options["file"], progress=written.show)
        except Refused as refusal:
            raise CommandError(str(refusal)) from None
        except DomainError as error:
            raise CommandError(error.detail) from None
        self._embed(workspace)
        for record, count in checked.counts.items():
            if record not in ("header", "trailer"):
                self.stdout.write(f"{count:>8,}  {record}")
        for sentence in checked.loosened:
            self.stdout.write(f"Loosened by the file: {sentence}")

    def _embed(self, workspace: Workspace) -> None:
        try:
            lexemes_count(workspace)
            pool_fill(workspace, progress=Progress("memories embedded", self.stderr.write).show)
        except (ProviderError, OperationalError, InterfaceError) as error:
            why = error.message if isinstance(error, ProviderError) else "The database does not answer."
            raise CommandError(
                f"{why} All of the file is written, and some of it is not embedded yet: "
                f"`manage.py pool audit --repair --workspace {workspace.slug}` goes on."
            ) from None
