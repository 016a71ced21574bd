"""``manage.py bench``: measure, and write what was found to docs/benchmarks.md."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from apps.core.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from apps.evals.benchmarks import corpus, report, server
from apps.evals.benchmarks.parts import QUICK_ROWS, Bench, Part, all_parts
from apps.evals.benchmarks.results import Result

ROWS = 100_000


class Command(BaseCommand):
    help = (
        "Measure Firm Memory in a PostgreSQL of its own (or in databases of its own on another server), print what "
        "was found and write it to docs/benchmarks.md. The first run builds the data, which takes some minutes."
    )
    # It starts its own database; the configured one is of no interest.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = ", ".join(name if part.usual else f"{name} (only when named)" for name, part in all_parts().items())
        parser.add_argument("--part", action="append", dest="parts", help=f"Only this part; may repeat: {names}.")
        parser.add_argument("--rows", type=int, help=f"How many memories to measure on ({ROWS:,}).")
        parser.add_argument(
            "--quick", action="store_true", help=f"{QUICK_ROWS:,} memories and few runs; writes nothing."
        )
        parser.add_argument(
            "--database-url", default="", help="Make the databases on this server, not in an embedded one."
        )
        parser.add_argument("--output", type=Path, default=settings.BASE_DIR / "docs" / "benchmarks.md")
        parser.add_argument("--inside", action="store_true", help=SUPPRESS)

    def handle(self, **options: Any) -> None:
        parts = self._parts(options["parts"])
        rows = options["rows"] or (QUICK_ROWS if options["quick"] else ROWS)
        if rows < 1_000:
            raise CommandError("--rows must be at least 1000; with fewer there are no scopes to compare.")
        if options["inside"]:
            self._measure(parts, rows, options["quick"], options["output"])
        else:
            self._start(options["database_url"], rows)

    def _parts(self, names: list[str] | None) -> dict[str, Part]:
        known = all_parts()
        unknown = sorted(set(names or ()) - known.keys())
        if unknown:
            raise CommandError(f"There is no part {', '.join(unknown)}. Use: {', '.join(known)}.")
        return (
            {name: part for name, part in known.items() if name in names}
            if names
            else {name: part for name, part in known.items() if part.usual}
        )

    def _start(self, url: str, rows: int) -> None:
        """Do the work in a process whose every setting says where to work."""
        folder = settings.BASE_DIR / ".data" / "bench"
        if url:
            self._work(url, folder, rows)
            return
        embedded = EmbeddedPostgres(folder, say=self.stderr.write)
        try:
            started = embedded.start()
            try:
                self._work(server.embedded_url(embedded.attach()), folder, rows)
            finally:
                if started:
                    embedded.stop()
        except EmbeddedPostgresError as error:
            raise CommandError(str(error)) from None

    def _work(self, url: str, folder: Path, rows: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = server.data_database(rows, corpus.key())
        server.make_database(url, name)
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *sys.argv[1:], "--inside"]
        environment = server.environment(server.database_url(url, name), data_dir=folder)
        worker = subprocess.Popen(command, env=environment)
        try:
            code = worker.wait()
        except KeyboardInterrupt:
            code = worker.wait()
        if code != 0:
            raise CommandError(f"The measurement ended with {code}.", returncode=code)

    def _measure(self, parts: dict[str, Part], rows: int, quick: bool, output: Path) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        bench = Bench(rows=rows, quick=quick, folder=settings.DATA_DIR, say=self._say)
        order = list(all_parts())
        for name, part in parts.items():
            self._say(f"--- {name}: {part.title}")
            where = report.circumstances(_command(), f"{rows:,} memories.")
            started = time.monotonic()
            result = part.run(bench)
            self._show(name, part, result, where)
            self._say(f"--- {name} took {time.monotonic() - started:.0f} s.")
            if not quick:
                report.write(output, name, part.title, result, where, order=order)

    def _show(self, name: str, part: Part, result: Result, where: report.Circumstances) -> None:
        self.stdout.write("\n".join(report.section(name, part.title, result, where)) + "\n")
        self.stdout.flush()

    def _say(self, sentence: str) -> None:
        self.stderr.write(sentence)


def _command() -> str:
    return shlex.join(["manage.py", *(argument for argument in sys.argv[1:] if argument != "--inside")])
