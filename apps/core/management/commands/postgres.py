"""Look after the embedded PostgreSQL without starting anything else."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError


class Command(BaseCommand):
    help = "Start, stop or describe the embedded PostgreSQL, or run one of its programs (psql, pg_dump …) on it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["start", "stop", "status", "run"])
        parser.add_argument(
            "program", nargs="*", help="with `run`: the program and, after `--`, its arguments", default=[]
        )

    def handle(self, *args: Any, action: str, program: list[str], **options: Any) -> None:
        if settings.DATABASE_URL:
            raise CommandError("DATABASE_URL is set, so the embedded PostgreSQL is not used.")
        server = EmbeddedPostgres(settings.DATA_DIR, say=self.stderr.write)
        try:
            if action == "run":
                self._run(server, program)
            else:
                getattr(self, f"_{action}")(server)
        except EmbeddedPostgresError as error:
            raise CommandError(str(error)) from None

    def _start(self, server: EmbeddedPostgres) -> None:
        started = server.start()
        self.stdout.write("PostgreSQL was started." if started else "PostgreSQL runs already.")
        self._status(server)

    def _stop(self, server: EmbeddedPostgres) -> None:
        stopped = server.stop()
        self.stdout.write("PostgreSQL was stopped." if stopped else "PostgreSQL does not run.")

    def _status(self, server: EmbeddedPostgres) -> None:
        found = server.status()
        if found.running:
            self.stdout.write(
                f"PostgreSQL {found.version} runs on 127.0.0.1:{found.port} as process {found.pid}, "
                f"data in {found.home}."
            )
        elif found.version is None:
            self.stdout.write(f"There is no database in {found.home} yet.")
        else:
            self.stdout.write(f"PostgreSQL {found.version} does not run; its data is in {found.home}.")

    def _run(self, server: EmbeddedPostgres, program: list[str]) -> None:
        """Become the program: it then owns the terminal, the exit code and Ctrl-C."""
        if not program:
            raise CommandError("Name the program: `manage.py postgres run psql`.")
        info, path = server.attach(), server.program(program[0])
        environment = {
            **os.environ,
            "PGHOST": info.host,
            "PGPORT": str(info.port),
            "PGUSER": info.user,
            "PGPASSWORD": info.password,
            "PGDATABASE": info.dbname,
        }
        os.execve(path, [str(path), *program[1:]], environment)  # noqa: S606
