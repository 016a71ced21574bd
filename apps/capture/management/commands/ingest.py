"""``manage.py ingest FILE… --kind KIND --repo REPO``: hand over raw material from files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_of_origin, workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE, builtin_bot
from apps.candidates.proposal import ScopeInput
from apps.capture.inbox import RawMaterial, event_receive
from apps.core.errors import DomainError
from apps.core.progress import Progress
from apps.sources.models import SourceKind
from apps.sources.services import SourceInput

INGESTER = "ingester"
# Some files were not taken, and the rest was; 1 is for a command that could not begin.
REFUSED = 3


class Command(BaseCommand):
    help = (
        "Hand over raw material from files (text, or exported sessions as JSON lines): one event a file. The worker "
        "reads them; a file that was handed over before, unchanged, is not read again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--kind", required=True, choices=SourceKind.values)
        parser.add_argument("--repo", action="append", default=[], dest="repos", help="What it is about; may repeat.")
        parser.add_argument("--domain", action="append", default=[], dest="domains", help="May repeat.")
        parser.add_argument("--firm", action="store_true", help="It is about the whole firm.")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)
        parser.add_argument("--url", default="", help="Where it can be read; for a single file.")

    def handle(self, **options: Any) -> None:
        files: list[Path] = options["files"]
        missing = [str(path) for path in files if not path.is_file()]
        if missing:
            raise CommandError(f"There is no file {', '.join(missing)}. Nothing was handed over.")
        if options["url"] and len(files) > 1:
            raise CommandError("--url names where one file can be read; there are several.")
        try:
            self._ingest(files, options)
        except DomainError as error:
            details = "".join(f"\n{fault.field}: {fault.message}" for fault in error.errors)
            raise CommandError(f"{error.detail}{details}") from None

    def _ingest(self, files: list[Path], options: dict[str, Any]) -> None:
        principal = _ingester(workspace_get(options["workspace"]))
        scope = ScopeInput(firm=options["firm"], domains=tuple(options["domains"]), repos=tuple(options["repos"]))
        progress, known, refused = Progress("files handed over", self.stderr.write), 0, 0
        for number, path in enumerate(files, start=1):
            material = _material(path, options["kind"], scope, options["url"])
            try:
                received = event_receive(principal=principal, material=material)
            except DomainError as error:
                details = " ".join(fault.message for fault in error.errors) or error.detail
                self.stdout.write(f"{path}: refused. {details}")
                refused += 1
                continue
            known += not received.created
            self.stdout.write(f"{received.event.pk}  {path}{'' if received.created else '  (handed over before)'}")
            for note in received.event.notes if received.created else ():
                self.stdout.write(f"    {note}")
            progress.show(number, len(files))
        new = len(files) - known - refused
        self.stdout.write(
            f"{new:,} handed over, {known:,} known before, {refused:,} refused. `manage.py capture status` tells what "
            "follows."
        )
        if refused:
            raise CommandError(f"{refused:,} of {len(files):,} files were refused.", returncode=REFUSED)


def _material(path: Path, kind: str, scope: ScopeInput, url: str) -> RawMaterial:
    # What is no UTF-8 is shown as such and costs nothing else.
    content = path.read_bytes().decode("utf-8", "replace")
    source = SourceInput(kind=kind, reference=path.name, url=url)
    return RawMaterial(content=content, kind=kind, scope=scope, sources=(source,))


def _ingester(workspace: Workspace) -> Principal:
    """A built-in bot: what an operator hands over has an origin like anything else, which decides nothing."""
    token = builtin_bot(workspace, INGESTER)
    return principal_of_origin(workspace, token_id=token.pk, user_id=None, via="command")
