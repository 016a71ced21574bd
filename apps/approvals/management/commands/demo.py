"""``manage.py demo``: propose, decide and ask without a browser, in a workspace of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor

from apps.approvals.demonstration.cast import REVIEWER, WORKSPACE, assemble
from apps.approvals.demonstration.records import DecisionRecord, UnreadableRecord, read_records
from apps.approvals.demonstration.story import Story
from apps.core.database import check_database, embedded_place
from apps.core.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from apps.core.errors import DomainError
from apps.core.management.commands.up import manage
from apps.core.startup import run_startup_checks


class Command(BaseCommand):
    help = "Propose this project's own decisions, decide about them and ask, in the workspace “demo”."
    # They need a database, which may not run yet.
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            records = read_records(settings.BASE_DIR / "docs" / "adr")
            if not records:
                raise CommandError("There are no decision records in docs/adr, so there is nothing to show.")
            with self._database():
                self._prepare()
                self._tell(records)
        except (UnreadableRecord, EmbeddedPostgresError) as error:
            raise CommandError(str(error)) from None
        except DomainError as error:
            raise CommandError(error.detail) from None

    def _say(self, line: str) -> None:
        self.stdout.write(line)

    @contextmanager
    def _database(self) -> Iterator[None]:
        """The embedded PostgreSQL runs for as long as this does, unless somebody else has started it."""
        if settings.DATABASE_URL:
            yield
            return
        server = EmbeddedPostgres(settings.DATA_DIR, say=self.stderr.write)
        started = server.start()
        connections["default"].settings_dict.update(embedded_place(server.attach()))
        try:
            yield
        finally:
            connections.close_all()
            if started:
                server.stop()

    def _prepare(self) -> None:
        check_database()
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            self._migrate()
        run_startup_checks()
        # An installation that starts with this command still gets its first reviewer and tokens.
        call_command("first_start", stdout=self.stdout, stderr=self.stderr)

    def _migrate(self) -> None:
        """In a process of its own, which connects as the owner of the tables, where there is one."""
        migrate = subprocess.run(manage("migrate", "--no-input", "--verbosity", "0"), check=False)
        if migrate.returncode != 0:
            raise CommandError("The migrations failed; nothing was done. What went wrong stands above.")

    def _tell(self, records: Sequence[DecisionRecord]) -> None:
        cast = assemble()
        password = f"password {cast.password}, shown once" if cast.password else "who is known already"
        self._say(f"In the workspace {WORKSPACE}, which shares nothing with others; {REVIEWER} reviews ({password}).")
        Story(cast, records, say=self._say).tell()
        self._say(f"\nSign in as {REVIEWER} to look at it. Forgotten password: `manage.py changepassword {REVIEWER}`.")
