"""Work that hangs must not hang its caller."""

from __future__ import annotations

import contextvars
import threading

import pytest

from apps.memories.providers.base import ProviderError
from apps.memories.providers.bounded import Bounded
from tests.in_time import in_time


@pytest.fixture
def gate():
    """What hanging work waits for; opened at the end, so that no thread outlives its test."""
    gate = threading.Event()
    yield gate
    gate.set()


def test_the_result_comes_back():
    assert Bounded("The model").run(lambda: 42, seconds=1) == 42


def test_the_works_own_exception_comes_back():
    with pytest.raises(ZeroDivisionError):
        Bounded("The model").run(lambda: 1 / 0, seconds=1)


def test_a_timeout_of_the_work_itself_comes_back_as_it_is():
    def work():
        raise TimeoutError("the server's own words")

    with pytest.raises(TimeoutError, match="own words"):
        Bounded("The model").run(work, seconds=1)


def test_work_that_hangs_is_left_behind(gate):
    def left_behind():
        with pytest.raises(ProviderError, match=r"The model did not answer within 0.05 seconds\.") as caught:
            Bounded("The model").run(gate.wait, seconds=0.05)
        return caught.value

    assert not in_time(left_behind, below=1).permanent


def test_hanging_work_cannot_pile_up(gate):
    bounded = Bounded("The model", places=2)
    for _ in range(2):
        with pytest.raises(ProviderError):
            bounded.run(gate.wait, seconds=0.01)
    before = threading.active_count()
    with pytest.raises(ProviderError, match="did not answer"):
        bounded.run(lambda: 42, seconds=0.05)
    assert threading.active_count() == before


def test_a_place_is_free_again_once_the_work_ends(gate):
    bounded = Bounded("The model", places=1)
    with pytest.raises(ProviderError):
        bounded.run(gate.wait, seconds=0.01)
    gate.set()
    assert bounded.run(lambda: 42, seconds=5) == 42


def test_work_sees_the_callers_context():
    request_id = contextvars.ContextVar("request_id", default="none")
    request_id.set("r-1")
    assert Bounded("The model").run(request_id.get, seconds=1) == "r-1"
