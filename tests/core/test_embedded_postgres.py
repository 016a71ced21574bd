"""Real servers in folders of their own. Started by root, they run as an ordinary account."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from apps.core import embedded_postgres
from apps.core.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError, NotRunning

ROOT = Path(__file__).resolve().parents[2]
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root becomes another account to run PostgreSQL")
pytestmark = pytest.mark.slow


@pytest.fixture
def base(monkeypatch):
    """A data folder that every account may enter, and a server in it that ends with the test."""
    monkeypatch.delenv("FIRM_MEMORY_POSTGRES_VERSION", raising=False)
    folder = Path(tempfile.mkdtemp(prefix="firm-memory-"))
    folder.chmod(0o711)
    yield folder / ".data"
    remove(folder / ".data")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def shared():
    """One server for the tests that only look."""
    folder = Path(tempfile.mkdtemp(prefix="firm-memory-"))
    folder.chmod(0o711)
    yield EmbeddedPostgres(folder / ".data"), embedded_postgres.ensure_running(folder / ".data")
    remove(folder / ".data")
    shutil.rmtree(folder)


def remove(base: Path) -> None:
    if base.exists():
        EmbeddedPostgres(base).stop()
        shutil.rmtree((base / "postgres").resolve(), ignore_errors=True)


def account_of(server: EmbeddedPostgres) -> dict[str, int]:
    owner = server.pgdata.stat()
    return {"user": owner.st_uid, "group": owner.st_gid} if AS_ROOT else {}


def count_rows(base: Path) -> int:
    with embedded_postgres.attach(base).connect() as connection:
        return connection.execute("SELECT count(*) FROM kept").fetchone()[0]


def write_a_row(base: Path) -> None:
    with embedded_postgres.attach(base).connect() as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS x")


# --- what a running server is like ----------------------------------------------------------------------


def test_the_password_is_private_and_needed(shared):
    server, info = shared

    assert stat.S_IMODE((server.home / "password").stat().st_mode) == 0o600
    assert info.password not in repr(info)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host=info.host, port=info.port, user=info.user, password="wrong", dbname=info.dbname)


def test_it_listens_on_loopback_alone(shared):
    _, info = shared

    with info.connect() as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
        assert connection.execute("SHOW unix_socket_directories").fetchone() == ("",)


def test_pgvector_is_there_and_case_folding_knows_every_script(shared):
    _, info = shared

    with info.connect() as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        assert connection.execute("SELECT '[1,2]'::vector <=> '[1,2]'").fetchone() == (0.0,)
        assert connection.execute("SELECT lower('ÄÉЖ')").fetchone() == ("äéж",)


def test_it_waits_for_the_disk(shared):
    _, info = shared

    with info.connect() as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)


def test_starting_a_running_server_attaches_to_it(shared):
    server, info = shared
    pid = server.postmaster_pid()

    assert server.start() is False
    assert embedded_postgres.ensure_running(server.base) == info
    assert embedded_postgres.attach(server.base) == info
    assert server.postmaster_pid() == pid


def test_another_server_on_the_port_is_not_taken_for_ours(shared, base):
    running, _ = shared
    server = EmbeddedPostgres(base)
    server.start()
    server.stop()
    for name in ("port", "password"):
        (server.home / name).write_text((running.home / name).read_text())

    assert server.answers() is False
    with pytest.raises(NotRunning):
        server.attach()


def test_status_says_where_it_is(shared):
    server, info = shared

    status = embedded_postgres.status(server.base)

    version = int(os.environ.get("FIRM_MEMORY_POSTGRES_VERSION") or embedded_postgres.DEFAULT_VERSION)
    assert (status.running, status.port, status.version) == (True, info.port, version)
    assert status.home == server.base / "postgres"
    assert status.pid == server.postmaster_pid()


# --- before, between and after --------------------------------------------------------------------------


def test_attaching_to_nothing_says_how_to_start_it(base):
    with pytest.raises(NotRunning, match=r"is not running. Start it with `make up`"):
        embedded_postgres.attach(base)
    assert embedded_postgres.last_known(base) is None
    assert embedded_postgres.stop(base) is False


def test_data_and_port_survive_a_restart(base):
    before = embedded_postgres.ensure_running(base)
    write_a_row(base)
    assert embedded_postgres.stop(base) is True
    assert embedded_postgres.stop(base) is False
    assert embedded_postgres.status(base).running is False

    after = embedded_postgres.ensure_running(base)

    assert after == before
    assert count_rows(base) == 1


def test_a_taken_port_is_given_up(base):
    before = embedded_postgres.ensure_running(base)
    embedded_postgres.stop(base)
    with socket.socket() as squatter:
        # What was connected a moment ago keeps the port from a plain bind for a minute.
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", before.port))
        squatter.listen()

        after = embedded_postgres.ensure_running(base)

    assert after.port != before.port
    assert embedded_postgres.attach(base) == after
    with after.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_stopping_does_not_wait_for_clients(base):
    info = embedded_postgres.ensure_running(base)
    connection = info.connect()
    connection.autocommit = False
    connection.execute("SELECT 1")

    assert embedded_postgres.stop(base) is True
    connection.close()


def test_starters_at_the_same_moment_start_one_server(base):
    code = (
        "import json, sys; from pathlib import Path; from apps.core import embedded_postgres as e;"
        "b = Path(sys.argv[1]); i = e.ensure_running(b); print(json.dumps([i.port, e.status(b).pid]))"
    )
    command = [sys.executable, "-c", code, str(base)]
    starters = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]

    found = [json.loads(starter.communicate(timeout=60)[0]) for starter in starters]

    assert found == [found[0]] * 4
    assert EmbeddedPostgres(base).postmaster_pid() == found[0][1]


def test_the_last_of_its_borrowers_stops_it(base):
    code = (
        "import os, sys; from pathlib import Path; from apps.core import embedded_postgres as e;"
        "e.borrow(Path(sys.argv[1]), durable=False);"
        "os.fork() or sys.exit(); print('there', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(base)]
    first, second, third = (
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    )
    for borrower in (first, second, third):
        assert borrower.stdout.readline() == "there\n"

    with embedded_postgres.attach(base).connect() as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("off",)
    first.communicate()
    assert EmbeddedPostgres(base).answers()
    second.kill()
    second.communicate()
    assert EmbeddedPostgres(base).answers()
    third.communicate()
    assert embedded_postgres.status(base).running is False


def test_the_starter_can_be_killed_while_it_holds_the_lock(base):
    code = (
        "import os, signal, sys; from pathlib import Path; from apps.core.embedded_postgres import *;"
        "EmbeddedPostgres._launch = lambda *a: os.kill(os.getpid(), signal.SIGKILL);"
        "EmbeddedPostgres(Path(sys.argv[1])).start()"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(base)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL

    embedded_postgres.ensure_running(base)

    assert embedded_postgres.status(base).running


def test_a_half_made_database_is_made_anew(base):
    server = EmbeddedPostgres(base)
    server.link.mkdir(parents=True)
    (server.home / "pgdata.new").mkdir()
    (server.home / "pgdata.new" / "PG_VERSION").write_text("18\n")

    embedded_postgres.ensure_running(base)

    assert not (server.home / "pgdata.new").exists()


# --- after a crash --------------------------------------------------------------------------------------


def test_a_killed_server_starts_again_on_its_port_with_its_data(base):
    before = embedded_postgres.ensure_running(base)
    write_a_row(base)
    server = EmbeddedPostgres(base)
    os.kill(server.postmaster_pid(), signal.SIGKILL)
    assert embedded_postgres._wait_until(lambda: server.postmaster_pid() is None, 5)
    assert server.was_stopped() is False

    after = embedded_postgres.ensure_running(base)

    assert after == before
    assert count_rows(base) == 1


@pytest.mark.parametrize("kind", ["zombie", "stranger"])
def test_a_pid_file_that_names_somebody_else_does_not_matter(base, kind):
    server = EmbeddedPostgres(base)
    embedded_postgres.ensure_running(base)
    text = (server.pgdata / "postmaster.pid").read_text()
    write_a_row(base)
    embedded_postgres.stop(base)
    # The same account, since PostgreSQL takes only its own account's processes for a living server.
    command = ["/bin/true"] if kind == "zombie" else ["/bin/sleep", "60"]
    other = subprocess.Popen(command, cwd="/", **account_of(server))
    if kind == "zombie":
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    pid_file = server.pgdata / "postmaster.pid"
    pid_file.write_text(f"{other.pid}\n{text.partition(chr(10))[2]}")
    if AS_ROOT:
        shutil.chown(pid_file, *account_of(server).values())

    try:
        assert server.postmaster_pid() is None
        embedded_postgres.ensure_running(base)
        assert count_rows(base) == 1
        assert server.stop() is True
        if kind == "stranger":
            assert other.poll() is None, "a process that is not ours was touched"
    finally:
        other.kill()
        other.wait()


# --- versions -------------------------------------------------------------------------------------------


def test_version_16_works_and_its_data_is_not_opened_by_18(base, monkeypatch):
    monkeypatch.setenv("FIRM_MEMORY_POSTGRES_VERSION", "16")
    info = embedded_postgres.ensure_running(base)
    with info.connect() as connection:
        assert connection.execute("SHOW server_version_num").fetchone()[0].startswith("16")
        connection.execute("CREATE EXTENSION vector")
        assert connection.execute("SELECT lower('ÄÉЖ')").fetchone() == ("äéж",)
    embedded_postgres.stop(base)
    monkeypatch.setenv("FIRM_MEMORY_POSTGRES_VERSION", "18")

    with pytest.raises(EmbeddedPostgresError, match=r"made by PostgreSQL 16.+Set it to 16, or move the data"):
        embedded_postgres.ensure_running(base)


def test_an_unknown_version_is_refused(base, monkeypatch):
    monkeypatch.setenv("FIRM_MEMORY_POSTGRES_VERSION", "17")

    with pytest.raises(EmbeddedPostgresError, match=r"FIRM_MEMORY_POSTGRES_VERSION is '17'. It may be 16 or 18."):
        embedded_postgres.ensure_running(base)


# --- folders and accounts -------------------------------------------------------------------------------


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedPostgresError, match=r"The data folder .+/file/data cannot be made"):
        embedded_postgres.ensure_running(tmp_path / "file" / "data")


@needs_root
def test_the_owner_of_the_data_stays_its_account(base):
    server = EmbeddedPostgres(base)
    embedded_postgres.ensure_running(base)
    embedded_postgres.stop(base)
    nobody = pwd.getpwnam("nobody")
    for path in [server.home, *server.home.rglob("*")]:
        os.chown(path, nobody.pw_uid, nobody.pw_gid)

    embedded_postgres.ensure_running(base)

    assert Path(f"/proc/{server.postmaster_pid()}").stat().st_uid == nobody.pw_uid


@pytest.fixture
def shared_place(monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="firm-memory-place-"))
    folder.chmod(0o711)
    monkeypatch.setattr(embedded_postgres, "SHARED_PLACE", folder / "place")
    yield folder / "place"
    shutil.rmtree(folder)


@pytest.fixture
def closed(shared_place):
    """A folder that root alone may enter, as its home often is."""
    folder = Path(tempfile.mkdtemp(prefix="firm-memory-closed-"))
    yield folder
    remove(folder / ".data")
    shutil.rmtree(folder)


@needs_root
def test_below_a_closed_folder_the_data_goes_elsewhere_and_says_where(closed, shared_place):
    said = []

    embedded_postgres.ensure_running(closed / ".data", say=said.append)
    write_a_row(closed / ".data")

    home = (closed / ".data" / "postgres").resolve()
    assert home.parent == shared_place
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert said == [
        f"PostgreSQL runs as {pwd.getpwuid(home.stat().st_uid).pw_name}, which cannot enter {closed}: its data "
        f"is in {home}."
    ]
    embedded_postgres.stop(closed / ".data")
    embedded_postgres.ensure_running(closed / ".data", say=said.append)
    assert count_rows(closed / ".data") == 1
    assert len(said) == 1


@needs_root
def test_removing_a_closed_data_folder_starts_afresh_and_names_what_is_left(closed, shared_place):
    embedded_postgres.ensure_running(closed / ".data", say=lambda _: None)
    embedded_postgres.stop(closed / ".data")
    first = (closed / ".data" / "postgres").resolve()
    shutil.rmtree(closed / ".data")
    said = []

    embedded_postgres.ensure_running(closed / ".data", say=said.append)

    assert (closed / ".data" / "postgres").resolve() != first
    assert said[0] == (f"{first} holds the database of an earlier {closed / '.data'}; remove it if nobody needs it.")


@needs_root
def test_programs_below_a_closed_folder_are_copied(closed, base, shared_place, monkeypatch):
    package = closed / embedded_postgres.PACKAGE
    real = embedded_postgres._package_folder()
    package.symlink_to(real)
    package.with_name(f"{package.name}.libs").symlink_to(real.with_name(f"{real.name}.libs"))
    monkeypatch.setattr(embedded_postgres, "_package_folder", lambda: package)
    said = []

    embedded_postgres.ensure_running(base, say=said.append)

    server = EmbeddedPostgres(base)
    program = Path(f"/proc/{server.postmaster_pid()}/exe").readlink()
    assert program.is_relative_to(shared_place / "programs")
    assert len(said) == 1
    assert f"cannot enter {package}: its programs are in {shared_place}/programs/" in said[0]


@needs_root
def test_a_folder_that_was_closed_later_is_named(closed, base):
    embedded_postgres.ensure_running(base)
    embedded_postgres.stop(base)
    base.parent.chmod(0o700)

    with pytest.raises(EmbeddedPostgresError, match=rf"which cannot enter {base.parent}\. Open that folder"):
        embedded_postgres.ensure_running(base)


@needs_root
def test_an_ordinary_user_is_told_that_the_data_belongs_to_another(base):
    embedded_postgres.ensure_running(base)
    nobody = pwd.getpwnam("nobody")
    script = (
        "import os, sys; from pathlib import Path; from apps.core.embedded_postgres import *\n"
        f"os.setgroups([]); os.setgid({nobody.pw_gid}); os.setuid({nobody.pw_uid})\n"
        "try: last_known(Path(sys.argv[1]))\n"
        "except EmbeddedPostgresError as error: print(error)\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", script, str(base)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert f"The embedded PostgreSQL in {base}/postgres belongs to another user." in said.stdout
