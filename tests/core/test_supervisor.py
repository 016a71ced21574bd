"""The supervisor with small programs in place of web and worker, and a server that only pretends."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from apps.core.embedded_postgres import EmbeddedPostgresError
from apps.core.processes import program
from apps.core.supervisor import (
    Child,
    Database,
    Program,
    Supervisor,
    SupervisorError,
    Timing,
    Watchdog,
    _ending,
    only_one,
)

ROOT = Path(__file__).resolve().parents[2]
TIMING = "Timing(poll=0.05, stop=2.0, first_delay=0.1, longest_delay=0.4, well_after=60, database_pause=1)"

# Each leaves its process id in a file of its own. `nest` starts a process that outlives it, as qcluster does.
DUMMIES = {
    "steady": "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(600)",
    "stubborn": (
        "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n'); time.sleep(600)"
    ),
    "nest": (
        "import os, subprocess, sys, time; p = subprocess.Popen(['/bin/sleep', '600']);"
        "open(sys.argv[1], 'a').write(f'{os.getpid()}\\n{p.pid}\\n'); time.sleep(600)"
    ),
}


def _hang_up_by_default() -> None:
    """Whoever started the tests may have them ignore it, as ``nohup`` does, and children inherit that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Running:
    """A supervisor in a process of its own, looking after dummies."""

    def __init__(self, folder: Path, *names: str, parent: bool = False) -> None:
        self.folder, self.names = folder, names
        programs = [
            f"Program({name!r}, [sys.executable, '-c', {DUMMIES[name]!r}, {str(self.file(name))!r}])" for name in names
        ]
        code = (
            "import sys; from pathlib import Path; from apps.core.supervisor import *\n"
            "def say(sentence): print(sentence, flush=True)\n"
            f"timing = {TIMING}\n"
            f"with only_one(Path({str(folder / 'up.lock')!r}), wait=5, say=say) as lock:\n"
            "    dog = Watchdog(keep_open=lock)\n"
            f"    children = [Child(p, watchdog=dog, say=say, timing=timing) for p in [{', '.join(programs)}]]\n"
            f"    Supervisor(children, timing=timing, parent={'os.getppid()' if parent else None}).run()\n"
            "    dog.dismiss()\n"
        )
        command = [sys.executable, "-c", code]
        if parent:
            # A shell that stays in between, as make does.
            command = ["/bin/sh", "-c", '"$@"; exit $?', "sh", *command]
        self.output = (folder / "output").open("w+")
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=self.output, stderr=self.output, preexec_fn=_hang_up_by_default
        )

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.pids"

    def pids(self, name: str) -> list[int]:
        return [int(line) for line in self.file(name).read_text().split()] if self.file(name).exists() else []

    def everybody(self) -> list[int]:
        return [pid for name in self.names for pid in self.pids(name)]

    def said(self) -> str:
        return (self.folder / "output").read_text()

    def finish(self) -> float:
        """Wait for its end and say how long that took."""
        began = time.monotonic()
        self.process.wait(15)
        return time.monotonic() - began


@pytest.fixture
def supervise(tmp_path):
    made: list[Running] = []

    def start(*names: str, parent: bool = False) -> Running:
        running = Running(tmp_path, *names, parent=parent)
        made.append(running)
        eventually(lambda: all(running.pids(name) for name in names))
        return running

    yield start
    for running in made:
        running.process.kill()
        running.process.wait()
        eventually(lambda running=running: not any(program(pid) for pid in running.everybody()))
        running.output.close()


def eventually(condition, seconds: float = 12.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        time.sleep(0.05)


# --- with real processes --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_its_children_in_good_order(supervise, number):
    running = supervise("steady", "nest")

    running.process.send_signal(number)

    assert running.finish() < 2
    assert running.process.returncode == 0
    assert not any(program(pid) for pid in running.everybody())


def test_a_terminal_that_is_gone_stops_it_though_nobody_tells_it():
    """A session's leader alone gets the signal, and make is one where it is all that a terminal runs."""
    ours, theirs = pty.openpty()
    supervisor = Supervisor([], terminal=theirs, timing=Timing(poll=0.01))
    working = threading.Thread(target=supervisor.run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signal, "signal", lambda number, handler: signal.SIG_DFL)  # this is not the main thread
        working.start()
        working.join(0.2)
        assert working.is_alive()
        os.close(ours)
        working.join(5)
    assert not working.is_alive()
    os.close(theirs)


@pytest.mark.slow
def test_a_child_that_ends_is_started_again_and_leaves_nothing_behind(supervise):
    running = supervise("steady", "nest")
    master, left_behind = running.pids("nest")

    os.kill(master, signal.SIGKILL)

    eventually(lambda: len(running.pids("nest")) == 4)
    assert not program(left_behind)
    assert len(running.pids("steady")) == 1
    assert running.process.poll() is None
    assert "The nest was ended by SIGKILL; starting it again in 0.1 s." in running.said()


@pytest.mark.slow
def test_a_child_that_will_not_stop_is_killed(supervise):
    running = supervise("stubborn")

    running.process.send_signal(signal.SIGTERM)

    assert 1.5 < running.finish() < 4
    assert not program(running.pids("stubborn")[0])


@pytest.mark.slow
def test_asked_twice_it_waits_no_longer(supervise):
    running = supervise("stubborn")

    running.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    running.process.send_signal(signal.SIGINT)

    assert running.finish() < 1.5
    assert not program(running.pids("stubborn")[0])


@pytest.mark.slow
def test_when_it_is_killed_its_children_end_too(supervise):
    running = supervise("steady", "nest")

    running.process.kill()

    eventually(lambda: not any(program(pid) for pid in running.everybody()))


@pytest.mark.slow
def test_the_next_one_waits_until_a_killed_one_is_cleaned_up(supervise, tmp_path):
    first = supervise("nest")
    first.process.kill()
    first.process.wait()
    said = []

    with only_one(tmp_path / "up.lock", wait=12, say=said.append):
        assert not any(program(pid) for pid in first.everybody())

    assert said in ([], ["An earlier `up` was killed and is being cleaned up; waiting for that."])


@pytest.mark.slow
def test_a_second_one_on_the_same_folder_is_refused(supervise, tmp_path):
    running = supervise("steady")

    with (
        pytest.raises(SupervisorError, match=rf"runs on {tmp_path} \(process {running.process.pid}\). Stop it"),
        only_one(tmp_path / "up.lock", wait=12, say=print),
    ):
        pass


@pytest.mark.slow
def test_it_ends_with_its_parent_when_told_so(supervise):
    running = supervise("steady", parent=True)

    running.process.kill()

    eventually(lambda: not program(running.pids("steady")[0]))


# --- step by step ---------------------------------------------------------------------------------------


class Dog:
    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def tell(self, word: str, process: int) -> None:
        self.told.append((word, process))


def test_a_child_that_keeps_ending_is_started_later_each_time():
    said: list[str] = []
    timing = Timing(first_delay=1, longest_delay=5, well_after=60)
    child = Child(
        Program("web", [sys.executable, "-S", "-c", "raise SystemExit(3)"]),
        watchdog=Dog(),
        say=said.append,
        timing=timing,
    )

    now = 0.0
    for _ in range(5):
        child.tend(now)
        child._process.wait()
        child.tend(now)
        now += 10
    # It ran for long enough to be called well, so its next start is not held against it.
    child.tend(now)
    child._process.wait()
    child.tend(now + 100)

    delays = [line.removeprefix("The web ended with exit code 3; starting it again in ") for line in said]
    assert delays == ["1 s.", "2 s.", "4 s.", "5 s.", "5 s.", "1 s."]
    child.remove()


def test_a_child_is_not_started_before_its_delay_is_over():
    child = Child(Program("web", [sys.executable, "-S", "-c", ""]), watchdog=Dog(), say=lambda _: None, timing=Timing())
    child.tend(0.0)
    child._process.wait()
    child.tend(0.0)

    child.tend(0.9)
    assert child.pid is None
    child.tend(1.1)
    assert child.pid is not None

    child.remove()


class Server:
    """Does what it is told, in place of PostgreSQL."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.stopped, self.port, self.next_port = True, 1, 1
        self.fails = 0

    def start(self) -> bool:
        if self.fails:
            self.fails -= 1
            raise EmbeddedPostgresError("The disk is full.")
        if self.pid is not None:
            return False
        self.pid, self.port = (self.pid or 100) + self.next_port, self.next_port
        return True

    def stop(self) -> bool:
        was, self.pid, self.stopped = self.pid, None, True
        return was is not None

    def crash(self) -> None:
        self.pid, self.stopped = None, False

    def postmaster_pid(self) -> int | None:
        return self.pid

    def was_stopped(self) -> bool:
        return self.stopped

    def last_known(self) -> int:
        return self.port


@pytest.fixture
def database():
    database = Database(
        Server(),
        watchdog=Dog(),
        say=(said := []).append,
        moved=lambda: said.append("moved"),
        timing=Timing(first_delay=1, longest_delay=5, database_pause=15),
    )
    database.said = said
    return database


def test_a_crashed_database_is_started_at_once(database):
    database.start()
    database._server.crash()

    database.tend(10.0)
    database.tend(10.2)
    database.tend(10.4)

    assert database._server.pid is not None
    assert database.said == ["PostgreSQL ended unexpectedly; starting it again.", "PostgreSQL is back."]


def test_a_database_that_somebody_stopped_is_left_alone_for_a_moment(database):
    database.start()
    database._server.stop()

    database.tend(10.0)
    database.tend(24.9)
    assert database._server.pid is None
    database.tend(25.1)
    database.tend(25.3)

    assert database._server.pid is not None
    assert database.said == [
        "PostgreSQL was stopped; it is started again in 15 s. `manage.py postgres start` does it at once.",
        "PostgreSQL is back.",
    ]


def test_a_database_that_somebody_started_again_is_taken_back(database):
    database.start()
    database._server.stop()
    database.tend(10.0)
    database._server.start()

    database.tend(10.2)

    assert database.said[-1] == "PostgreSQL is back."


def test_a_database_that_does_not_start_is_tried_later_each_time(database):
    database.start()
    database._server.crash()
    database._server.fails = 3
    for now in (10.0, 10.1, 11.0, 11.2, 13.0, 13.3, 17.2, 17.4, 17.6):
        database.tend(now)

    assert database._server.pid is not None
    assert [line.rpartition("\n")[2] for line in database.said] == [
        "PostgreSQL ended unexpectedly; starting it again.",
        "Trying again in 1 s.",
        "Trying again in 2 s.",
        "Trying again in 4 s.",
        "PostgreSQL is back.",
    ]


def test_clients_are_told_when_the_port_was_taken_meanwhile(database):
    database.start()
    database._server.crash()
    database._server.next_port = 2

    database.tend(10.0)
    database.tend(10.2)

    assert "moved" in database.said


def test_only_what_it_started_is_stopped():
    server = Server()
    server.start()
    attached = Database(server, watchdog=(dog := Dog()), say=print, moved=lambda: None, timing=Timing())

    attached.start()
    attached.stop()

    assert server.pid is not None
    assert dog.told == []


def test_the_watchdog_knows_which_server_to_stop(database):
    database.start()
    first = database._server.pid
    database._server.crash()
    database._server.next_port = 7
    for now in (10.0, 10.2, 10.4):
        database.tend(now)
    second = database._server.pid
    database.stop()

    assert database._watchdog.told == [("server", first), ("server", second), ("server", 0)]


def test_a_dismissed_watchdog_ends_and_touches_nobody_that_is_gone():
    bystander = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True)
    dog = Watchdog()
    dog.tell("group", bystander.pid)
    dog.tell("gone", bystander.pid)

    dog.dismiss()

    assert dog._process.returncode == 0
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_supervisor_outlives_its_watchdog():
    dog = Watchdog()
    dog._process.kill()
    dog._process.wait()

    dog.tell("group", os.getpid())
    dog.dismiss()


def test_an_ending_reads_as_a_person_would_say_it():
    assert _ending(-signal.SIGKILL) == "was ended by SIGKILL"
    assert _ending(1) == "ended with exit code 1"
