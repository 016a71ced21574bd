"""From `make up` in a fresh clone to the first page, and what the processes hold when nobody asks anything."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Result, Table
from apps.evals.benchmarks.web import free_port

PATIENCE: Final = 600.0
SETTLES: Final = 30.0

# By a word of the command line; the first that fits.
_KINDS: Final = {"gunicorn": "web", "qcluster": "worker", "postgres": "PostgreSQL"}


def run(bench: Bench) -> Result:
    clone = bench.folder / "clone"
    shutil.rmtree(clone, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--local", str(settings.BASE_DIR), str(clone)], check=True)
    try:
        first = _first_start(clone, bench)
        again, memory = _second_start(clone, bench)
    finally:
        shutil.rmtree(clone, ignore_errors=True)
    table = Table(("", "measured"))
    table.add("`make up` in a fresh clone, to the first page", f"{first:.0f} s")
    table.add("`make up` once more, to the first page", f"{again:.1f} s")
    for kind, pss in sorted(memory.items(), key=lambda item: -item[1]):
        table.add(f"idle: {kind}", f"{pss / 2**20:.0f} MB")
    table.add("idle: web and worker", f"{(memory.get('web', 0) + memory.get('worker', 0)) / 2**20:.0f} MB")
    return Result(
        [table],
        notes=[
            "The packages were in the cache of pip or uv; otherwise they are fetched first (about 900 MB). Memory is "
            f"the proportional share (PSS), {SETTLES:.0f} seconds after the start: the web process has loaded mem0 and "
            "the embedding model by then, the worker loads them with its first task that needs them."
        ],
    )


def _first_start(clone: Path, bench: Bench) -> float:
    bench.say("Starting in a fresh clone; packages are installed first.")
    with _Up(clone) as up:
        return up.until_first_page()


def _second_start(clone: Path, bench: Bench) -> tuple[float, dict[str, int]]:
    bench.say("Starting once more.")
    with _Up(clone) as up:
        seconds = up.until_first_page()
        time.sleep(5.0 if bench.quick else SETTLES)
        return seconds, up.memory()


class _Up:
    """`make up` as a person runs it, until it is told to stop as by Ctrl-C."""

    def __init__(self, clone: Path) -> None:
        self.clone = clone
        self.port = free_port()

    def __enter__(self) -> _Up:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FIRM_MEMORY_", "DATABASE"))}
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            ["make", "up"],
            cwd=self.clone,
            env=kept | {"FIRM_MEMORY_PORT": str(self.port)},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(60)

    def until_first_page(self) -> float:
        while time.monotonic() - self.started < PATIENCE:
            if self.process.poll() is not None:
                raise RuntimeError(f"`make up` in {self.clone} ended with {self.process.returncode}.")
            if self._shows_a_page():
                return time.monotonic() - self.started
            time.sleep(0.1)
        raise RuntimeError(f"`make up` in {self.clone} showed no page within {PATIENCE:.0f} seconds.")

    def _shows_a_page(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/accounts/login/")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def memory(self) -> dict[str, int]:
        """Bytes of the processes of this start, by what they are."""
        found: dict[str, int] = {}
        for pid, command in _processes_below(self.process.pid):
            kind = next((kind for word, kind in _KINDS.items() if word in command), "supervisor")
            found[kind] = found.get(kind, 0) + _proportional_share(pid)
        return found


def _processes_below(root: int) -> Iterator[tuple[int, str]]:
    """The descendants of a process with their command lines; make itself is not counted."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    waiting = list(children.get(root, []))
    while waiting:
        pid = waiting.pop()
        waiting += children.get(pid, [])
        try:
            yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue


def _proportional_share(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
