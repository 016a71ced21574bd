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

GRACE_SECONDS = 8.0


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
    if server:
        send(server, signal.SIGINT)


def end(groups: set[int]) -> None:
    for leader in groups:
        # The leader alone: it knows in which order its own processes stop.
        send(leader, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while any(send(leader, 0) for leader in groups) and time.monotonic() < deadline:
        time.sleep(0.05)
    for group in groups:
        send(-group, signal.SIGKILL)


def send(process: int, number: int) -> bool:
    """Send a signal; false where nobody is left to get it. Signal 0 only asks."""
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
