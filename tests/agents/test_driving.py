"""The event loop of a request: its work on the database is done in the request's thread, while no loop runs there."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from apps.agents.driving import Driver


def _running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _where() -> tuple[int, bool]:
    return threading.get_ident(), _running()


def test_handed_work_is_done_in_the_thread_of_the_caller_while_the_loop_rests() -> None:
    driver = Driver()

    async def main() -> list[tuple[int, bool]]:
        assert _running()
        return [await driver(_where), await driver(_where)]

    assert driver.run(main()) == [(threading.get_ident(), False)] * 2
    assert not _running()


def test_several_coroutines_hand_work_over_at_the_same_time() -> None:
    driver = Driver()

    async def main() -> list[int]:
        async def one(number: int) -> int:
            await asyncio.sleep(0)
            return await driver(lambda: number * number)

        return await asyncio.gather(*map(one, range(20)))

    assert driver.run(main()) == [number * number for number in range(20)]


def test_a_failure_of_the_work_is_raised_where_it_was_handed_over_and_nowhere_else() -> None:
    driver = Driver()

    def fail() -> Any:
        raise LookupError("not there")

    async def main() -> str:
        try:
            await driver(fail)
        except LookupError as error:
            return f"caught: {error}"
        return "not raised"

    assert driver.run(main()) == "caught: not there"


def test_what_the_coroutine_raises_reaches_the_caller() -> None:
    async def main() -> None:
        await asyncio.sleep(0)
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        Driver().run(main())


def test_work_that_was_given_up_is_not_done() -> None:
    driver, done = Driver(), []

    async def main() -> None:
        task = asyncio.ensure_future(driver(lambda: done.append("done")))
        await asyncio.sleep(0)
        task.cancel()

    driver.run(main())

    assert done == []


def test_a_loop_that_waits_for_something_else_goes_on_by_itself() -> None:
    driver = Driver()

    async def main() -> str:
        first = await driver(lambda: "a")
        await asyncio.sleep(0.01)
        return first + await driver(lambda: "b")

    assert driver.run(main()) == "ab"


def test_whoever_stops_the_process_is_not_held_up() -> None:
    driver = Driver()

    def stop() -> Any:
        raise SystemExit(3)

    async def main() -> None:
        await driver(stop)

    with pytest.raises(SystemExit):
        driver.run(main())
    assert not _running()


def test_nothing_is_left_behind_for_the_next_request() -> None:
    """Tasks that still wait when the coroutine has ended are ended with it."""
    ended: list[str] = []

    async def waiting() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async def main() -> asyncio.Task[None]:
        task = asyncio.ensure_future(waiting())
        await asyncio.sleep(0)
        return task

    assert Driver().run(main()).cancelled()
    assert ended == ["ended"]
