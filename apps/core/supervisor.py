"""Keeps programs and the embedded PostgreSQL running until it is told to stop.

A program that ends is started again, later each time. Every program leads a process group of its own, so that
what it leaves behind can be removed and Ctrl-C in the terminal reaches the supervisor alone, which stops the
programs before their database. Should the supervisor itself be killed, a watchdog does the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol

from apps.core import supervisor_watchdog
from apps.core.embedded_postgres import EmbeddedPostgres, EmbeddedPostgresError
from apps.core.processes import program

Say = Callable[[str], None]


class SupervisorError(Exception):
    """The supervisor cannot start; the message is for the person at the terminal."""


@dataclass(frozen=True, slots=True)
class Timing:
    """All in seconds."""

    poll: float = 0.2
    stop: float = 10.0
    first_delay: float = 1.0
    longest_delay: float = 30.0
    # A program that ran this long was well: its next start is not delayed for earlier failures.
    well_after: float = 60.0
    # Somebody stopped the database on purpose and may want it to be down for a moment.
    database_pause: float = 15.0


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Watchdog:
    """The process that outlives us for a moment when we are killed, and cleans up."""

    def __init__(self, *, keep_open: int | None = None) -> None:
        """``keep_open`` is a descriptor it holds too: a lock on it is free only when all is cleaned up."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor_watchdog.__file__],
            stdin=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            pass_fds=() if keep_open is None else (keep_open,),
            text=True,
            bufsize=1,
        )

    def tell(self, word: str, process: int) -> None:
        # Without its watchdog a supervisor still does its work; only its own sudden death is not covered.
        with contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None  # noqa: S101
            self._process.stdin.write(f"{word} {process}\n")

    def dismiss(self) -> None:
        """End it; what was not reported gone is stopped by it first."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


class Service(Protocol):
    """Something the supervisor looks after."""

    def tend(self, now: float) -> None: ...


class Child:
    """One program, started again whenever it ends."""

    def __init__(self, program: Program, *, watchdog: Watchdog, say: Say, timing: Timing) -> None:
        self.program = program
        self._watchdog, self._say, self._timing = watchdog, say, timing
        self._process: subprocess.Popen[bytes] | None = None
        self._started = self._start_at = 0.0
        self._failures = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def tend(self, now: float) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._ended(now)
        if self._process is None and now >= self._start_at:
            self._start(now)

    def ask_to_stop(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def remove(self) -> None:
        """Kill what is left of it and of the processes it started."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._watchdog.tell("gone", self._process.pid)
        self._process = None

    def start_over(self) -> None:
        """Stop it now, to be started with fresh settings."""
        self.ask_to_stop()
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._timing.stop)
        self.remove()
        self._start_at = 0.0

    def _start(self, now: float) -> None:
        self._process = subprocess.Popen(
            self.program.command,
            env={**os.environ, **self.program.environment},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._watchdog.tell("group", self._process.pid)
        self._started = now

    def _ended(self, now: float) -> None:
        assert self._process is not None  # noqa: S101
        how = _ending(self._process.returncode)
        self.remove()
        self._failures = 0 if now - self._started >= self._timing.well_after else self._failures
        delay = min(self._timing.first_delay * 2**self._failures, self._timing.longest_delay)
        self._failures += 1
        self._start_at = now + delay
        self._say(f"The {self.program.name} {how}; starting it again in {delay:g} s.")


class Database:
    """The embedded PostgreSQL, started again on its port whenever it ends."""

    def __init__(
        self,
        server: EmbeddedPostgres,
        *,
        watchdog: Watchdog,
        say: Say,
        moved: Callable[[], None],
        timing: Timing,
    ) -> None:
        """``moved`` is called when the port was taken meanwhile and clients must read the new one."""
        self._server, self._watchdog, self._say, self._moved = server, watchdog, say, moved
        self._timing = timing
        self._pid: int | None = None
        self._start_at: float | None = None
        self._failures = 0
        self.is_ours = False

    def start(self) -> None:
        self.is_ours = self._server.start()
        self._found(self._server.postmaster_pid())

    def stop(self) -> None:
        if self.is_ours:
            self._server.stop()
            self._watchdog.tell("server", 0)

    def tend(self, now: float) -> None:
        pid = self._server.postmaster_pid()
        if pid is not None:
            self._found(pid)
        elif self._start_at is None:
            self._start_at = now + self._pause()
        elif now >= self._start_at:
            self._start_again(now)

    def _pause(self) -> float:
        if not self._server.was_stopped():
            self._say("PostgreSQL ended unexpectedly; starting it again.")
            return 0.0
        self._say(
            f"PostgreSQL was stopped; it is started again in {self._timing.database_pause:g} s. "
            "`manage.py postgres start` does it at once."
        )
        return self._timing.database_pause

    def _start_again(self, now: float) -> None:
        before = self._server.last_known()
        try:
            self.is_ours = self._server.start() or self.is_ours
        except EmbeddedPostgresError as error:
            delay = min(self._timing.first_delay * 2**self._failures, self._timing.longest_delay)
            self._failures += 1
            self._start_at = now + delay
            self._say(f"{error}\nTrying again in {delay:g} s.")
            return
        self._found(self._server.postmaster_pid())
        if self._server.last_known() != before:
            self._moved()

    def _found(self, pid: int | None) -> None:
        if pid is not None and pid != self._pid and self.is_ours:
            self._watchdog.tell("server", pid)
        if self._start_at is not None:
            self._say("PostgreSQL is back.")
        self._pid, self._start_at, self._failures = pid, None, 0


class Supervisor:
    def __init__(
        self,
        children: Sequence[Child],
        *,
        database: Database | None = None,
        answers: Callable[[], bool] | None = None,
        on_ready: Callable[[], None] | None = None,
        parent: int | None = None,
        terminal: int | None = None,
        timing: Timing,
    ) -> None:
        """``answers`` is asked until it is true, then ``on_ready`` is called once.

        ``parent`` is the process whose end stops the supervisor, too; ``terminal`` a descriptor of the terminal whose
        end does.
        """
        self._children, self._database = children, database
        self._answers, self._on_ready = answers, on_ready
        self._parent, self._timing = parent, timing
        # Only a session's leader is told that its terminal is gone, and that may be somebody who waits for us.
        self._terminal = terminal
        self._stops = 0

    def run(self) -> None:
        """Look after everything until SIGINT, SIGTERM or SIGHUP; then stop the children."""
        services: list[Service] = [*([self._database] if self._database else []), *self._children]
        ready = self._answers is None
        with self._signals():
            try:
                while not self._should_stop():
                    now = time.monotonic()
                    for service in services:
                        service.tend(now)
                    if not ready and self._answers is not None and self._answers():
                        ready = True
                        if self._on_ready is not None:
                            self._on_ready()
                    time.sleep(self._timing.poll)
            finally:
                self._stop_children()

    def _should_stop(self) -> bool:
        orphaned = self._parent is not None and os.getppid() != self._parent
        return self._stops > 0 or orphaned or (self._terminal is not None and hung_up(self._terminal))

    def _stop_children(self) -> None:
        for child in self._children:
            child.ask_to_stop()
        deadline, stops = time.monotonic() + self._timing.stop, self._stops
        # A second Ctrl-C means: now.
        while time.monotonic() < deadline and self._stops == stops:
            if not any(child.running() for child in self._children):
                break
            time.sleep(0.05)
        for child in self._children:
            child.remove()

    def _count_stop(self, number: int, frame: FrameType | None) -> None:
        self._stops += 1

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            # Started by nohup. (SIGINT is ignored, too, in what a script starts by `&`; asked to, we end.)
            numbers.discard(signal.SIGHUP)
        before = {number: signal.signal(number, self._count_stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def hung_up(terminal: int) -> bool:
    """Whether the other end of a terminal is gone. Nothing is read from it."""
    poll = select.poll()
    poll.register(terminal, 0)
    return any(events & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, events in poll.poll(0))


@contextlib.contextmanager
def only_one(path: Path, *, wait: float, say: Say) -> Iterator[int]:
    """Hold the lock file ``path`` and yield its descriptor, or raise when another supervisor holds it.

    The watchdog of a killed supervisor holds the lock until it is done; that is waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:
        raise SupervisorError(
            f"{path} belongs to another user. Run as that user, or set FIRM_MEMORY_DATA_DIR to a folder of your own."
        ) from None
    try:
        _lock(descriptor, path.parent, wait=wait, say=say)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path, *, wait: float, say: Say) -> None:
    deadline, told = time.monotonic() + wait, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
            if time.monotonic() > deadline or (holder.isdecimal() and program(int(holder))):
                raise SupervisorError(
                    f"`up` already runs on {folder} (process {holder}). Stop it first, or set "
                    "FIRM_MEMORY_DATA_DIR to another folder."
                ) from None
            if not told:
                say("An earlier `up` was killed and is being cleaned up; waiting for that.")
                told = True
            time.sleep(0.2)
        else:
            return


def _ending(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
