"""Run everything on one machine until Ctrl-C."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from apps.core.database import check_database, embedded_place
from apps.core.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from apps.core.errors import DomainError
from apps.core.startup import run_startup_checks
from apps.core.supervisor import (
    Child,
    Database,
    Program,
    Supervisor,
    SupervisorError,
    Timing,
    Watchdog,
    only_one,
)


class Command(BaseCommand):
    help = "Start PostgreSQL (unless DATABASE_URL is set), migrate, and serve web and worker until Ctrl-C."
    # `migrate` checks everything, when there is a database to check.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--stop-with-parent",
            action="store_true",
            help="stop when the process that started this one ends, however it ends",
        )

    def handle(self, *args: Any, stop_with_parent: bool, **options: Any) -> None:
        parent = os.getppid() if stop_with_parent else None
        try:
            with (
                only_one(settings.DATA_DIR / "up.lock", wait=40.0, say=self.say) as lock,
                watchdog(lock) as dog,
            ):
                self._up(dog, parent)
        except (SupervisorError, EmbeddedPostgresError) as error:
            raise CommandError(str(error)) from None
        except DomainError as error:
            raise CommandError(error.detail) from None
        except KeyboardInterrupt:
            self.say("Stopped.")

    def say(self, sentence: str) -> None:
        self.stdout.write(sentence)
        self.stdout.flush()

    def _up(self, dog: Watchdog, parent: int | None) -> None:
        refuse_taken_port(settings.FIRM_MEMORY_BIND, settings.FIRM_MEMORY_PORT)
        timing = Timing()
        children = [Child(program, watchdog=dog, say=self.say, timing=timing) for program in programs()]
        database = None if settings.DATABASE_URL else self._database(children, dog, timing)
        with interruptible():
            try:
                if database is not None:
                    self._start(database)
                self._prepare()
                supervisor = Supervisor(
                    children,
                    database=database,
                    answers=answers,
                    on_ready=self._ready,
                    parent=parent,
                    terminal=_terminal() if parent is not None else None,
                    timing=timing,
                )
                supervisor.run()
                self.say("Stopped.")
            finally:
                if database is not None:
                    database.stop()

    def _database(self, children: list[Child], dog: Watchdog, timing: Timing) -> Database:
        def moved() -> None:
            self.say("PostgreSQL has a new port, as the old one was taken; web and worker start over.")
            for child in children:
                child.start_over()

        server = EmbeddedPostgres(settings.DATA_DIR, say=self.say)
        return Database(server, watchdog=dog, say=self.say, moved=moved, timing=timing)

    def _start(self, database: Database) -> None:
        database.start()
        info = EmbeddedPostgres(settings.DATA_DIR).attach()
        # The settings were read before the server had a port.
        connections["default"].settings_dict.update(embedded_place(info))
        self.say(f"PostgreSQL runs on {info.host}:{info.port}.")

    def _prepare(self) -> None:
        check_database()
        self._migrate()
        run_startup_checks()
        call_command("first_start", stdout=self.stdout, stderr=self.stderr)
        # What follows forks nothing that may inherit a connection, and keeps none idle for days.
        connections.close_all()

    def _migrate(self) -> None:
        if not settings.OWNER_DATABASE_URL:
            call_command("migrate", interactive=False, verbosity=0, skip_checks=False)
            return
        # Only a command of its own connects as the owner of the tables (docs/operate.md).
        migrate = subprocess.run(manage("migrate", "--no-input", "--verbosity", "0"), check=False)
        if migrate.returncode != 0:
            raise CommandError("The migrations failed, see above; nothing was started.")

    def _ready(self) -> None:
        bind = settings.FIRM_MEMORY_BIND
        if not is_loopback(bind):
            self.say(
                f"FIRM_MEMORY_BIND is {bind}: whoever reaches this machine reaches Firm Memory, without "
                "encryption. Put a proxy with TLS in front, or bind to 127.0.0.1. ALLOWED_HOSTS names the hosts "
                "it answers to."
            )
        self.say(f"Firm Memory is ready at {url()} - Ctrl-C stops it.")


def programs() -> list[Program]:
    bind = f"{bracketed(settings.FIRM_MEMORY_BIND)}:{settings.FIRM_MEMORY_PORT}"
    configuration = str(settings.BASE_DIR / "gunicorn.conf.py")
    gunicorn = [sys.executable, "-m", "gunicorn", "--config", configuration, "--bind", bind]
    return [
        Program("web", [*gunicorn, "--chdir", str(settings.BASE_DIR), "firmmemory.wsgi"]),
        Program("worker", manage("qcluster")),
    ]


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]


@contextlib.contextmanager
def watchdog(lock: int) -> Iterator[Watchdog]:
    dog = Watchdog(keep_open=lock)
    try:
        yield dog
    finally:
        dog.dismiss()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Until the supervisor handles signals itself, SIGTERM stops us the way Ctrl-C does."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def refuse_taken_port(bind: str, port: int) -> None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror:
        raise CommandError(f"FIRM_MEMORY_BIND is {bind!r}, which is no address of this machine.") from None
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            raise CommandError(
                f"Port {port} on {bind} cannot be used ({error.strerror}). Stop what uses it, or set "
                "FIRM_MEMORY_PORT and FIRM_MEMORY_BIND to another place."
            ) from None


def answers() -> bool:
    """Whether the web answers at all; a refusal of our host name is an answer, too."""
    connection = http.client.HTTPConnection(reachable_host(), settings.FIRM_MEMORY_PORT, timeout=1)
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def url() -> str:
    return f"http://{bracketed(reachable_host())}:{settings.FIRM_MEMORY_PORT}/"


def reachable_host() -> str:
    """An address that leads to us from this machine."""
    wide = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104
    return wide.get(settings.FIRM_MEMORY_BIND, settings.FIRM_MEMORY_BIND)


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _terminal() -> int | None:
    """Standard input, where that is the terminal that we run in front of; what runs behind one may outlive it."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return None
    try:
        return 0 if os.tcgetpgrp(0) == os.getpgrp() else None
    except OSError:
        return None
