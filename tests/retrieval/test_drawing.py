"""Chains as pictures: lines lead downwards, forks part and merges meet."""

from __future__ import annotations

from uuid import UUID

from apps.retrieval.drawing import FIRST, LANE, MOST_LANES, drawn


def a_member(number: int) -> UUID:
    return UUID(int=number)


A, B, C, D, E = (a_member(number) for number in range(5))


def test_a_plain_chain_is_one_line() -> None:
    order, rows = drawn([A, B, C], [(A, B, True), (B, C, True)])
    assert order == [A, B, C]
    assert {row.at for row in rows.values()} == {FIRST}
    assert not rows[A].arriving
    assert not rows[C].leaving
    assert [line.end for line in rows[B].arriving] == [FIRST]


def test_a_fork_parts_and_a_merge_meets() -> None:
    order, rows = drawn([A, B, C, D], [(A, B, True), (A, C, False), (B, D, True), (C, D, True)])
    assert order == [A, B, C, D]
    assert [(line.end, line.full) for line in rows[A].leaving] == [(FIRST, True), (FIRST + LANE, False)]
    assert rows[C].at == FIRST + LANE
    assert [(line.start, line.end) for line in rows[D].arriving] == [(FIRST, FIRST), (FIRST + LANE, FIRST)]
    assert rows[C].passing[0].start == FIRST


def test_what_replaced_comes_below_whatever_its_date() -> None:
    order, _ = drawn([B, A], [(A, B, True)])
    assert order == [A, B]


def test_nothing_is_drawn_of_one_alone_or_of_too_many_lines() -> None:
    assert drawn([A], []) == ([A], {})
    many = [a_member(number) for number in range(1, MOST_LANES + 3)]
    order, rows = drawn([A, *many], [(A, other, True) for other in many])
    assert len(order) == len(many) + 1
    assert rows == {}


def test_a_ring_that_cannot_be_is_still_listed() -> None:
    order, _ = drawn([A, B], [(A, B, True), (B, A, True)])
    assert sorted(order) == [A, B]
