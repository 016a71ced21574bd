from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connection

from apps.core import database, embedded_postgres
from apps.core.checks import database_will_do
from apps.core.database import (
    DatabaseUnfit,
    _check_pgvector,
    check_database,
    database_settings,
    down_sentence,
    is_owner_command,
)

ROOT = Path(__file__).resolve().parents[2]


# --- the URL --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_url_becomes_settings(scheme, tmp_path):
    found = database_settings(
        f"{scheme}://ann:p%40ss%2Fword@db.example.com:6432/firm%20memory?sslmode=require", data_dir=tmp_path
    )

    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert (found["NAME"], found["USER"], found["PASSWORD"]) == ("firm memory", "ann", "p@ss/word")
    assert (found["HOST"], found["PORT"]) == ("db.example.com", "6432")
    assert found["OPTIONS"]["sslmode"] == "require"
    assert found["CONN_MAX_AGE"] == 60
    assert found["CONN_HEALTH_CHECKS"] is True
    assert found["DISABLE_SERVER_SIDE_CURSORS"] is True


def test_connecting_gives_up_soon_unless_the_url_says_otherwise(tmp_path):
    ours = database_settings("postgres://h/d", data_dir=tmp_path)["OPTIONS"]
    theirs = database_settings("postgres://h/d?connect_timeout=10&application_name=x", data_dir=tmp_path)["OPTIONS"]

    assert ours == {"connect_timeout": 3, "application_name": "firm-memory"}
    assert theirs == {"connect_timeout": "10", "application_name": "x"}


def test_a_socket_and_several_hosts_work_as_libpq_writes_them(tmp_path):
    local = database_settings("postgresql:///d?host=/run/postgresql", data_dir=tmp_path)
    several = database_settings("postgresql://u@a:5432,b:5433/d?target_session_attrs=any", data_dir=tmp_path)

    assert (local["HOST"], local["PORT"]) == ("/run/postgresql", "")
    assert (several["HOST"], several["PORT"]) == ("a,b", "5432,5433")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://u:hunter2@h/d", r"starts with mysql://, which Firm Memory does not speak.+postgresql://user"),
        ("sqlite:///hunter2.db", r"starts with sqlite://"),
        ("postgresql+psycopg://u:hunter2@h/d", r"starts with postgresql\+psycopg://"),
        ("POSTGRES://u:hunter2@h/d", r"starts with POSTGRES://"),
        ("hunter2", r"is not a URL"),
        ("u:hunter2://x", r"is not a URL"),
        ("postgresql://u:hunter2%zz@h/d", r"cannot be read.+percent-encoded"),
        ("postgresql://u:hunter2@h/d?nonsense=1", r"cannot be read.+parameters that libpq knows"),
        ("postgresql://u:hunter2@h/", r"names no database"),
        ("postgresql://u:hunter2@h:99999/d", r"names a port that is no number from 1 to 65535"),
        ("postgresql://u:hunter2@h:no/d", r"names a port that is no number from 1 to 65535"),
    ],
)
def test_a_url_that_will_not_do_is_refused_without_its_password(url, said, tmp_path):
    with pytest.raises(ImproperlyConfigured, match=r"^THE_VARIABLE " + said) as refused:
        database_settings(url, data_dir=tmp_path, variable="THE_VARIABLE")

    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_without_a_url_and_before_the_first_start_nothing_can_be_reached(tmp_path):
    found = database_settings("", data_dir=tmp_path)

    with pytest.raises(psycopg.OperationalError, match="invalid port number"):
        psycopg.connect(host=found["HOST"], port=found["PORT"], user=found["USER"], dbname=found["NAME"])
    assert list(tmp_path.iterdir()) == []


def test_without_a_url_the_files_of_the_data_folder_say_where(tmp_path):
    home = tmp_path / "postgres"
    home.mkdir()
    (home / "port").write_text("23456\n")
    (home / "password").write_text("hunter2")

    found = database_settings("", data_dir=tmp_path)

    assert (found["HOST"], found["PORT"], found["PASSWORD"]) == ("127.0.0.1", "23456", "hunter2")
    assert found["NAME"] == embedded_postgres.DATABASE


@pytest.mark.parametrize(
    ("argv", "owner"),
    [
        (["manage.py", "migrate"], True),
        (["manage.py", "migrate", "memories", "0001"], True),
        (["manage.py", "pool", "rebuild"], True),
        (["manage.py", "pgtrigger", "install"], True),
        (["manage.py", "pgtrigger", "ls"], False),
        (["manage.py", "pool", "status"], False),
        (["manage.py", "up"], False),
        (["manage.py", "shell"], False),
        (["gunicorn"], False),
    ],
)
def test_only_commands_that_alter_tables_connect_as_their_owner(argv, owner):
    assert is_owner_command(argv) is owner


# --- whether the server will do -------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_suites_own_server_will_do():
    check_database()


@pytest.mark.django_db
def test_an_old_server_is_refused(monkeypatch):
    monkeypatch.setattr(database, "MINIMUM_SERVER", 99)

    with pytest.raises(DatabaseUnfit, match=r"is version \d\d; Firm Memory needs PostgreSQL 99 or later"):
        check_database()


@pytest.mark.parametrize("installed", [None, "0.8.0", "0.10.1", "1.0"])
def test_a_recent_pgvector_will_do(installed):
    _check_pgvector("The server", installed, "0.8.5")


@pytest.mark.parametrize(
    ("installed", "available", "said"),
    [
        (None, None, r"The server has no pgvector. Install pgvector 0.8 or later"),
        (None, "0.7.4", r"The server has pgvector 0.7.4; .+Upgrade it on the server"),
        ("0.5.1", "0.5.1", r"The server has pgvector 0.5.1; .+Upgrade it on the server"),
        ("0.7.0", "0.8.1", r"The database uses pgvector 0.7.0; .+run `ALTER EXTENSION vector UPDATE` in it"),
    ],
)
def test_a_missing_or_old_pgvector_is_refused_with_what_to_do(installed, available, said):
    with pytest.raises(DatabaseUnfit, match=said):
        _check_pgvector("The server", installed, available)


@pytest.mark.django_db
def test_the_system_check_that_migrate_runs_says_it_too(monkeypatch):
    assert database_will_do(databases=["default"]) == []
    monkeypatch.setattr(database, "MINIMUM_SERVER", 99)

    (found,) = database_will_do(databases=["default"])

    assert found.id == "core.E001"
    assert "Firm Memory needs PostgreSQL 99 or later" in found.msg
    assert database_will_do(databases=None) == []


@pytest.mark.django_db
def test_a_statement_that_fails_is_not_a_database_that_is_down():
    with pytest.raises(OperationalError) as failed, connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 1")
        cursor.execute("SELECT pg_sleep(5)")

    assert down_sentence(failed.value) is None


# --- the command line -----------------------------------------------------------------------------------


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("FIRM_MEMORY_", "DATABASE_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**clean, "FIRM_MEMORY_ENV_FILE": "", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_command_without_its_database_says_in_a_sentence_how_to_start_it(tmp_path):
    ended = manage("showmigrations", FIRM_MEMORY_DATA_DIR=str(tmp_path))

    assert ended.returncode == 1
    assert ended.stderr == (
        f"The embedded PostgreSQL of {tmp_path} is not running. Start it with `make up`, or alone with "
        "`manage.py postgres start`.\n"
    )


def test_a_command_whose_server_is_down_names_it_and_not_its_password():
    ended = manage("showmigrations", DATABASE_URL="postgresql://ann:hunter2@127.0.0.1:1/d")

    assert ended.returncode == 1
    assert ended.stderr.startswith("PostgreSQL at 127.0.0.1:1 does not answer: ")
    assert ended.stderr.endswith("Check that it runs and that DATABASE_URL is right.\n")
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stdout + ended.stderr


def test_up_refuses_a_server_that_is_down(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    ended = manage(
        "up",
        DATABASE_URL="postgresql://ann:hunter2@127.0.0.1:1/d",
        FIRM_MEMORY_DATA_DIR=str(tmp_path),
        FIRM_MEMORY_PORT=str(free),
    )

    assert ended.returncode == 1
    assert "PostgreSQL at 127.0.0.1:1 does not answer" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "hunter2" not in ended.stdout + ended.stderr


def test_an_unknown_scheme_is_refused_in_a_sentence():
    ended = manage("migrate", DATABASE_URL="mysql://ann:hunter2@h/d")

    assert ended.returncode == 1
    assert ended.stderr.startswith("DATABASE_URL starts with mysql://")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [["check"], ["makemigrations", "--check", "--dry-run"], ["up", "--help"]])
def test_what_needs_no_database_works_without_one(command, tmp_path):
    ended = manage(*command, FIRM_MEMORY_DATA_DIR=str(tmp_path))

    assert ended.returncode == 0, ended.stderr


def test_migrations_and_only_they_use_the_owners_url(tmp_path):
    urls = {
        "DATABASE_URL": "postgresql://app@127.0.0.1:1/d",
        "FIRM_MEMORY_OWNER_DATABASE_URL": "postgresql://owner@127.0.0.1:2/d",
        "FIRM_MEMORY_DATA_DIR": str(tmp_path),
    }

    assert "127.0.0.1:2 does not answer" in manage("migrate", **urls).stderr
    assert "127.0.0.1:1 does not answer" in manage("showmigrations", **urls).stderr
