"""Which PostgreSQL to use, and whether it will do.

``DATABASE_URL`` names a server of your own; without it the embedded one of the data folder is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import Error as PsycopgError
from psycopg.conninfo import conninfo_to_dict

from apps.core import embedded_postgres

SCHEMES = ("postgresql", "postgres")
# libpq takes 0 for no port at all, so that nothing else that listens here can be reached by accident.
NO_PORT = "0"
OWNER_COMMANDS = {("migrate",)}
EXAMPLE = "postgresql://user:password@host:5432/name"


def database_settings(url: str, *, data_dir: Path) -> dict[str, Any]:
    """Django's settings of the database at ``url``, or of the embedded server of ``data_dir`` without one.

    Never connects: whether a server answers is found out by the first query, and by ``check_database``.
    """
    place = _from_url(url) if url else _embedded(data_dir)
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


def url_for_command(argv: Sequence[str], *, url: str, owner_url: str) -> str:
    """Commands that create or alter tables connect as the role that owns them, where one is named."""
    return owner_url if owner_url and tuple(argv[1:2]) in OWNER_COMMANDS else url


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
    server = embedded_postgres.last_known(data_dir)
    if server is None:
        return {"NAME": "firm_memory", "USER": "postgres", "PASSWORD": "", "HOST": "127.0.0.1", "PORT": NO_PORT}
    return embedded_place(server)


def _from_url(url: str) -> dict[str, Any]:
    scheme, separator, _ = url.partition("://")
    if not separator or not re.fullmatch(r"[a-z][a-z0-9+.-]{0,30}", scheme, re.IGNORECASE):
        raise ImproperlyConfigured(f"DATABASE_URL is not a URL. Write it as {EXAMPLE}.")
    if scheme not in SCHEMES:
        raise ImproperlyConfigured(
            f"DATABASE_URL starts with {scheme}://, which Firm Memory does not speak: it needs PostgreSQL with "
            f"pgvector. Write it as {EXAMPLE}, or leave it out to use the embedded PostgreSQL."
        )
    try:
        parts: dict[str, Any] = dict(conninfo_to_dict(url))
    except PsycopgError:
        # libpq's own message may quote the URL, and with it the password.
        raise ImproperlyConfigured(
            f"DATABASE_URL cannot be read. Write it as {EXAMPLE}, with every special character in the password "
            "percent-encoded, and only parameters that libpq knows after the question mark."
        ) from None
    if not parts.get("dbname"):
        raise ImproperlyConfigured(f"DATABASE_URL names no database. Write it as {EXAMPLE}.")
    return {
        "NAME": parts.pop("dbname"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        "OPTIONS": parts,
    }
