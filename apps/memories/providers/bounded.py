"""Work that may hang, with an end to the waiting.

A thread cannot be stopped from outside. So the caller stops waiting, and the number of threads left behind is
bounded: once all places are taken by work that hangs, new work is refused in time instead of piling up.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from apps.memories.providers.base import ProviderTimeout

T = TypeVar("T")

PLACES = 16


class Bounded:
    """Runs functions in threads of their own and waits for each at most as long as it is told."""

    def __init__(self, what: str, *, places: int = PLACES) -> None:
        self._what = what
        self._places = threading.BoundedSemaphore(places)

    def run(self, work: Callable[[], T], *, seconds: float) -> T:
        """The result of ``work``, or its exception, or a ``ProviderTimeout`` after ``seconds``."""
        deadline = time.monotonic() + seconds
        if not self._places.acquire(timeout=seconds):
            raise self._late(seconds)
        future: Future[T] = Future()
        context = contextvars.copy_context()
        # A daemon, so that work that hangs does not keep the process from ending.
        threading.Thread(
            target=context.run, args=(self._settle, future, work), name="firm-memory-bounded", daemon=True
        ).start()
        try:
            return future.result(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            if future.done():
                # It ended just now, or its own exception is a time-out and speaks for itself.
                return future.result()
            raise self._late(seconds) from None

    def _settle(self, future: Future[T], work: Callable[[], T]) -> None:
        try:
            result = work()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            self._places.release()

    def _late(self, seconds: float) -> ProviderTimeout:
        return ProviderTimeout(f"{self._what} did not answer within {seconds:g} seconds.")
