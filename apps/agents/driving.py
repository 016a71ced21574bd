"""An event loop in the thread of a request, which rests while that thread works.

Whatever uses the database must do so in the thread that its connection belongs to, and Django refuses that while a loop
runs there. Hopping to a loop in another thread and back costs more than all that the SDK does for a call. So the
coroutine hands its work over, the loop stops, the work is done, and the loop goes on with what came of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Driver:
    """Runs one coroutine to its end, in the thread that calls ``run``. Not to be used twice."""

    def __init__(self) -> None:
        self._handed: list[Callable[[], None]] = []
        self._rest: asyncio.Future[None] | None = None

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """What ``main`` returns or raises."""
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            task = loop.create_task(main)
            while True:
                self._rest = rest = loop.create_future()
                loop.run_until_complete(asyncio.wait({task, rest}, return_when=asyncio.FIRST_COMPLETED))
                if task.done():
                    return task.result()
                while self._handed:
                    self._handed.pop()()

    async def __call__(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises, done while the loop rests; for coroutines that ``run`` drives."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._handed.append(lambda: _settle(done, work))
        if self._rest is not None and not self._rest.done():
            self._rest.set_result(None)
        return await done


def _settle(done: asyncio.Future[T], work: Callable[[], T]) -> None:
    if done.cancelled():
        return
    try:
        done.set_result(work())
    except Exception as error:
        done.set_exception(error)
