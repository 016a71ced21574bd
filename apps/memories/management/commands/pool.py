"""``manage.py pool status|audit|rebuild``: the pool of embeddings, which can always be made again from the ledger."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from apps.accounts.models import Workspace
from apps.core.errors import DomainError
from apps.core.progress import Progress
from apps.memories.auditing import drifts, repair
from apps.memories.models import GenerationState, Memory, PoolGeneration
from apps.memories.note_auditing import note_drifts, note_repair, notes_audited
from apps.memories.pool import pool_table
from apps.memories.providers.base import MemoryProvider, ProviderError
from apps.memories.providers.registry import get_provider, make_embedder
from apps.memories.rebuild import rebuild, retired_drop

SHOWN = 50


class Disagreement(Protocol):
    """What the pool says otherwise than the tables, about a memory or a note."""

    @property
    def kind(self) -> str: ...

    @property
    def is_repairable(self) -> bool: ...

    def sentence(self) -> str: ...


Found = TypeVar("Found", bound=Disagreement)


class Command(BaseCommand):
    help = "Look at the pool of embeddings, compare it with the ledger, or build it anew."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("status", help="Generations, their embedders and sizes.")
        audit = actions.add_parser("audit", help="Compare memories and notes with the pool; exits with 1 on drift.")
        audit.add_argument("--repair", action="store_true", help="Mend what needs no guessing.")
        audit.add_argument("--workspace", help="Only what belongs to this workspace.")
        build = actions.add_parser("rebuild", help="Build a new generation from the ledger and switch to it.")
        build.add_argument("--embedder", default=settings.FIRM_MEMORY_EMBEDDER)
        build.add_argument("--dimensions", type=int, help="Needed for embedders other than the local one.")
        build.add_argument("--discard", action="store_true", help="Give up an unfinished rebuild for another embedder.")
        build.add_argument("--drop-retired", action="store_true", help="Afterwards remove the tables of old ones.")

    def handle(self, **options: Any) -> None:
        if settings.FIRM_MEMORY_PROVIDER != "mem0":
            raise CommandError(f"The provider {settings.FIRM_MEMORY_PROVIDER} keeps no pool in the database.")
        try:
            getattr(self, f"_{options['action']}")(options)
        except DomainError as error:
            raise CommandError(error.detail) from None
        except ProviderError as error:
            raise CommandError(f"{error.message} What was done stays; run the command again to go on.") from None

    def _status(self, options: dict[str, Any]) -> None:
        for row in PoolGeneration.objects.all():
            rows, memories, size = _sizes(row.number)
            self.stdout.write(
                f"{pool_table(row.number)}  {row.state:<9} {row.embedder}, {row.dimensions} dimensions: "
                f"{memories:,} memories in {rows:,} passages, {size / 2**20:,.1f} MB"
            )
        self.stdout.write(f"The ledger holds {Memory.objects.count():,} memories.")

    def _audit(self, options: dict[str, Any]) -> None:
        workspace_id = _workspace_id(options["workspace"])
        live = PoolGeneration.objects.get(state=GenerationState.LIVE).number
        mend = options["repair"]
        memories = Memory.objects.filter(**({"workspace": workspace_id} if workspace_id else {}))
        found = drifts(generation=live, workspace_id=workspace_id)
        left = self._compare("memories", memories.count(), found, repair if mend else None)
        noted = note_drifts(generation=live, workspace_id=workspace_id)
        left += self._compare("notes", notes_audited(workspace_id).count(), noted, note_repair if mend else None)
        if left:
            sys.exit(1)

    def _compare(
        self,
        what: str,
        total: int,
        items: Iterator[Found | int],
        mender: Callable[[Found, MemoryProvider], bool] | None,
    ) -> int:
        """Report what is found, and mend it where there is something to mend it with; how much is left."""
        progress = Progress(f"{what} compared", self.stderr.write)
        found = mended = 0
        for item in items:
            if isinstance(item, int):
                progress.show(item, max(total, item))
                continue
            found += 1
            was_mended = mender is not None and mender(item, get_provider())
            mended += was_mended
            if found <= SHOWN:
                self.stdout.write(f"{item.sentence()}{_advice(item, was_mended)}")
        self.stdout.write(f"{total:,} {what} compared, {found:,} disagreements, {mended:,} mended.")
        return found - mended

    def _rebuild(self, options: dict[str, Any]) -> None:
        name = options["embedder"]
        same = name == settings.FIRM_MEMORY_EMBEDDER
        dimensions = options["dimensions"] or (settings.FIRM_MEMORY_EMBEDDER_DIMENSIONS if same else 0)
        embedder = make_embedder(name, dimensions)
        progress = Progress("memories embedded", self.stderr.write)
        row = rebuild(embedder, discard=options["discard"], progress=progress.show)
        self.stdout.write(
            f"{pool_table(row.number)} is live: {row.embedder}, {row.dimensions} dimensions. Processes with "
            "another embedder refuse to write and search by words alone until they are restarted with "
            f"FIRM_MEMORY_EMBEDDER={row.embedder}."
        )
        if options["drop_retired"]:
            dropped = ", ".join(map(pool_table, retired_drop()))
            self.stdout.write(f"Removed: {dropped or 'nothing'}.")


def _advice(item: Disagreement, was_mended: bool) -> str:
    if was_mended:
        return " Mended."
    return "" if item.is_repairable or item.kind == "surplus" else " Rebuild the pool to mend it."


def _workspace_id(slug: str | None) -> int | None:
    if slug is None:
        return None
    workspace = Workspace.objects.filter(slug=slug).first()
    if workspace is None:
        raise CommandError(f"There is no workspace {slug}.")
    return workspace.pk


def _sizes(number: int) -> tuple[int, int, int]:
    """Rows, memories and bytes of a generation's table; zeros when it was removed."""
    table = pool_table(number)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s)", [table])
        if cursor.fetchone()[0] is None:
            return 0, 0, 0
        cursor.execute(
            f"SELECT count(*), count(*) FILTER (WHERE passage = 0), pg_total_relation_size(%s::regclass) FROM {table}",
            [table],
        )
        rows, memories, size = cursor.fetchone()
    return rows, memories, size
