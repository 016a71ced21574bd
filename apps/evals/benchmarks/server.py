"""The PostgreSQL that is measured on, and its databases: ``firm_memory_bench…`` and ``firm_memory_eval…``.

Nothing is measured in a database that somebody uses: the command starts an embedded server in a data folder of its
own, or is given a server, and in both makes databases of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg import sql

from apps.core.embedded_postgres import ConnectionInfo
from apps.memories.providers import registry

PREFIX: Final = "firm_memory_bench"
EVALUATION: Final = "firm_memory_eval"
SCRATCH: Final = f"{PREFIX}_scratch"
GROWTH: Final = f"{PREFIX}_growth"


def data_database(rows: int, corpus_key: str) -> str:
    """Data is kept for the next run, so that what was made otherwise has another name."""
    return f"{PREFIX}_{rows}_{corpus_key}"


def embedded_url(server: ConnectionInfo) -> str:
    """Through the server's own database, from where the others are made."""
    return f"postgresql://{server.user}:{quote(server.password)}@{server.host}:{server.port}/postgres"


def database_url(url: str, name: str) -> str:
    """The same server, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def environment(url: str, *, data_dir: Path, **more: str) -> dict[str, str]:
    """For processes that are measured: their database, the local embedder, and nothing from ``.env``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FIRM_MEMORY_")}
    return kept | {
        "DATABASE_URL": url,
        "FIRM_MEMORY_ENV_FILE": "",
        "FIRM_MEMORY_DATA_DIR": str(data_dir),
        "FIRM_MEMORY_THROTTLE": "off",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.dev",
        **{name: value for name, value in os.environ.items() if name in _KEPT},
        **more,
    }


_KEPT = frozenset({"FIRM_MEMORY_EVAL_DATA", "FIRM_MEMORY_POSTGRES_VERSION"})


def make_database(url: str, name: str) -> bool:
    """False when it was there. ``url`` is any database of the server."""
    with psycopg.connect(url, autocommit=True) as server:
        if server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            return False
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return True


def drop_database(name: str) -> None:
    _require_own(name)
    with _apart() as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def databases(beginning: str) -> list[str]:
    """Those whose names begin like this."""
    with _apart() as server:
        rows = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [beginning])
        return sorted(str(name) for (name,) in rows)


@contextmanager
def moved_to(name: str) -> Iterator[None]:
    """Look into another database of the server, as it is."""
    _require_own(name)
    before = connection.settings_dict["NAME"]
    _move_to(name)
    try:
        yield
    finally:
        _move_to(before)


@contextmanager
def using(name: str, *, fresh: bool = False) -> Iterator[str]:
    """Work in another database of the server, migrated; answers its URL. ``fresh`` empties it before."""
    _require_own(name)
    if fresh:
        drop_database(name)
    make_database(settings.DATABASE_URL, name)
    with moved_to(name):
        call_command("migrate", interactive=False, verbosity=0)
        yield database_url(settings.DATABASE_URL, name)


def _move_to(name: str) -> None:
    connection.close()
    connection.settings_dict["NAME"] = name
    # What a provider remembers about its pool, it remembers of another database.
    registry.reset()


def _apart() -> psycopg.Connection[tuple[object, ...]]:
    """A connection to the database that the settings name, from where the others are made and dropped."""
    return psycopg.connect(settings.DATABASE_URL, autocommit=True)


def _require_own(name: str) -> None:
    if not name.startswith((PREFIX, EVALUATION)):
        raise ValueError(f"{name} is no database of the benchmarks.")
