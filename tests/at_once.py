"""Several things at the same moment, each on a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection

PATIENCE = 60


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Start all together; what each returned or raised, in their order."""
    barrier = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)

    def run(position: int, work: Callable[[], Any]) -> None:
        try:
            connection.ensure_connection()
            barrier.wait(PATIENCE)
            results[position] = work()
        except BaseException as error:
            results[position] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "It hangs."
    return results


def in_background(work: Callable[[], Any]) -> Callable[[], Any]:
    """Start it now; the returned function waits for it and gives back what it returned, or what it raised."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def wait() -> Any:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "It hangs."
        return outcome[0]

    return wait


def kinds(results: Sequence[Any]) -> list[str]:
    """How each ended: the name of what it raised, the status it answered, or ``done``."""
    return sorted(
        type(result).__name__ if isinstance(result, BaseException) else str(getattr(result, "status_code", "done"))
        for result in results
    )
