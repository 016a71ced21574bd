"""Which PostgreSQL to use, and whether it will do.

``DATABASE_URL`` names a server of your own; without it the embedded one of the data folder is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.utils import NotSupportedError
from psycopg import Error as PsycopgError
from psycopg.conninfo import conninfo_to_dict

from apps.core import embedded_postgres
from apps.core.errors import Unavailable

SCHEMES = ("postgresql", "postgres")
# libpq takes 0 for no port at all, so that nothing else that listens here can be reached by accident.
NO_PORT = "0"
MINIMUM_SERVER = 16
MINIMUM_PGVECTOR = (0, 8)
# What PostgreSQL answers when it starts, stops, is full, or lets nobody in; without a code nothing answered.
DOWN_STATES = ("08", "28", "3D", "53", "57P")
OWNER_COMMANDS = {("migrate",), ("pool", "rebuild"), ("pgtrigger", "install"), ("pgtrigger", "enable")}
EXAMPLE = "postgresql://user:password@host:5432/name"


def database_settings(url: str, *, data_dir: Path, variable: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's settings of the database at ``url``, or of the embedded server of ``data_dir`` without one.

    ``variable`` is where ``url`` came from, for messages, which never repeat the URL: it holds a password.

    Connects to nothing: whether a server answers is found out by the first query, and by ``check_database``.
    """
    place = _from_url(url, variable) if url else _embedded(data_dir)
    options = {"connect_timeout": 3, "application_name": "firm-memory"} | place.pop("OPTIONS", {})
    return {
        "ENGINE": "django.db.backends.postgresql",
        **place,
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        # Behind a pooler that pools transactions, a cursor of one statement is gone at the next.
        "DISABLE_SERVER_SIDE_CURSORS": True,
        "OPTIONS": options,
    }


def is_owner_command(argv: Sequence[str]) -> bool:
    """Whether this command creates or alters tables, and so connects as the role that owns them."""
    return tuple(argv[1:2]) in OWNER_COMMANDS or tuple(argv[1:3]) in OWNER_COMMANDS


def embedded_place(server: embedded_postgres.ConnectionInfo) -> dict[str, Any]:
    """The part of the settings that says where the embedded server is."""
    return {
        "NAME": server.dbname,
        "USER": server.user,
        "PASSWORD": server.password,
        "HOST": server.host,
        "PORT": str(server.port),
    }


def _embedded(data_dir: Path) -> dict[str, Any]:
    try:
        server = embedded_postgres.last_known(data_dir)
    except embedded_postgres.EmbeddedPostgresError as error:
        raise ImproperlyConfigured(str(error)) from None
    if server is None:
        return {
            "NAME": "firm_memory",
            "USER": "postgres",
            "PASSWORD": "",
            "HOST": "127.0.0.1",
            "PORT": NO_PORT,
        }
    return embedded_place(server)


def _from_url(url: str, variable: str) -> dict[str, Any]:
    scheme, separator, _ = url.partition("://")
    if not separator or not re.fullmatch(r"[a-z][a-z0-9+.-]{0,30}", scheme, re.IGNORECASE):
        raise ImproperlyConfigured(f"{variable} is not a URL. Write it as {EXAMPLE}.")
    if scheme not in SCHEMES:
        raise ImproperlyConfigured(
            f"{variable} starts with {scheme}://, which Firm Memory does not speak: it needs PostgreSQL "
            f"with pgvector. Write it as {EXAMPLE}, or leave it out to use the embedded PostgreSQL."
        )
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
    except PsycopgError:
        # libpq's own message may quote the URL, and with it the password.
        raise ImproperlyConfigured(
            f"{variable} cannot be read. Write it as {EXAMPLE}, with every special character in the "
            "password percent-encoded, and only parameters that libpq knows after the question mark."
        ) from None
    ports = str(parts.get("port", "")).split(",")
    if not all(port == "" or (port.isdecimal() and 0 < int(port) < 65_536) for port in ports):
        raise ImproperlyConfigured(f"{variable} names a port that is no number from 1 to 65535.")
    if not parts.get("dbname"):
        raise ImproperlyConfigured(f"{variable} names no database. Write it as {EXAMPLE}.")
    return {
        "NAME": parts.pop("dbname"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": parts,
    }


class DatabaseDown(Unavailable):
    """No server answers."""

    code = "database_down"


class DatabaseUnfit(Unavailable):
    """A server answers and cannot be used; the message says what to change."""

    code = "database_unfit"


def check_database(alias: str = DEFAULT_DB_ALIAS) -> None:
    """Raise ``DatabaseDown`` or ``DatabaseUnfit`` unless PostgreSQL 16 with pgvector 0.8 or later answers."""
    connection = connections[alias]
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
            (server,) = cursor.fetchone()
            cursor.execute(
                "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'"
            )
            extension = cursor.fetchone()
    except OperationalError as error:
        raise DatabaseDown(down_sentence(error) or str(error)) from error
    except NotSupportedError as error:
        # Django itself refuses what is older still.
        raise DatabaseUnfit(f"{error}. Firm Memory needs {MINIMUM_SERVER} or later.") from error
    where = _place()
    if server < MINIMUM_SERVER:
        raise DatabaseUnfit(
            f"{where} is version {server}; Firm Memory needs PostgreSQL {MINIMUM_SERVER} or later. "
            "Upgrade the server or point DATABASE_URL at another."
        )
    _check_pgvector(where, *(extension or (None, None)))


def _check_pgvector(where: str, installed: str | None, available: str | None) -> None:
    least = ".".join(map(str, MINIMUM_PGVECTOR))
    if installed is None and available is None:
        raise DatabaseUnfit(
            f"{where} has no pgvector. Install pgvector {least} or later on the server (the package is often "
            "called postgresql-<version>-pgvector), or point DATABASE_URL at a server that has it."
        )
    if _version(installed or available or "") >= MINIMUM_PGVECTOR:
        return
    if _version(available or "") >= MINIMUM_PGVECTOR:
        raise DatabaseUnfit(
            f"The database uses pgvector {installed}; Firm Memory needs {least} or later, which {where} has: "
            "run `ALTER EXTENSION vector UPDATE` in it as its owner."
        )
    raise DatabaseUnfit(
        f"{where} has pgvector {installed or available}; Firm Memory needs {least} or later. Upgrade it on "
        "the server, then run `ALTER EXTENSION vector UPDATE`."
    )


def is_down(error: OperationalError) -> bool:
    """Whether ``error`` means that no server lets us in, rather than that a statement failed."""
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(DOWN_STATES)


def down_sentence(error: OperationalError) -> str | None:
    """What to tell the person at the terminal when the database is down; ``None`` for any other error."""
    if not is_down(error):
        return None
    if not settings.DATABASE_URL:
        try:
            embedded_postgres.attach(settings.DATA_DIR)
        except embedded_postgres.EmbeddedPostgresError as not_running:
            return str(not_running)
    reason = next(iter(str(error).splitlines()), "no reason given")
    return f"{_place()} does not answer: {reason}. Check that it runs and that DATABASE_URL is right."


def _place() -> str:
    used = connections[DEFAULT_DB_ALIAS].settings_dict
    return f"PostgreSQL at {used['HOST'] or 'the local socket'}:{used['PORT'] or '5432'}"


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
