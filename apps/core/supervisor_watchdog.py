"""Cleans up after a supervisor that was killed. Run as a program of its own, with nothing but the library.

It reads lines from its standard input: ``group N`` for a child's process group, ``gone N`` when that child
ended, ``server N`` for a PostgreSQL to stop last. The pipe ends when the supervisor does, however it ended:
what is left is asked to stop, and killed when it does not.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

GRACE_SECONDS = 8.0
SERVER_SECONDS = 20.0


def main() -> None:
    for stopping in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(stopping, signal.SIG_IGN)
    groups: set[int] = set()
    server = 0
    for line in sys.stdin:
        word, _, number = line.partition(" ")
        if word == "group":
            groups.add(int(number))
        elif word == "gone":
            groups.discard(int(number))
        elif word == "server":
            server = int(number)
    end(groups)
    if server and send(server, signal.SIGINT):
        wait_for({server}, SERVER_SECONDS)


def end(groups: set[int]) -> None:
    for leader in groups:
        # The leader alone: it knows in which order its own processes stop.
        send(leader, signal.SIGTERM)
    wait_for(groups, GRACE_SECONDS)
    for group in groups:
        send(-group, signal.SIGKILL)


def wait_for(processes: set[int], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(lives(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.05)


def lives(process: int) -> bool:
    if sys.platform != "linux":
        return send(process, 0)
    try:
        # A zombie that nobody reaps has no command line any more.
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    except OSError:
        return False


def send(process: int, number: int) -> bool:
    """Send a signal; false where nobody is left to get it."""
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
