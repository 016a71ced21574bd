"""Values that must not be taken for "everything", and records that no pool could keep."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from apps.memories.providers.base import (
    UNSET,
    Passage,
    PayloadPatch,
    PoolQuery,
    Prepared,
)

from .doubles import NOW, a_record


def query(**changes) -> PoolQuery:
    return PoolQuery(**({"vector": (1.0, 0.0), "workspace": 1, "now": NOW} | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tiers": frozenset()}, "tiers must not be empty"),
        ({"statuses": frozenset()}, "statuses must not be empty"),
        ({"types": frozenset()}, "types must not be empty"),
        ({"types": "ownership"}, "types must be a set"),
        ({"tiers": "durable"}, "tiers must be a set"),
        ({"tiers": frozenset({"episodic"})}, "tiers must be among: durable, index"),
        ({"statuses": frozenset({"pending"})}, "statuses must be among"),
        ({"limit": 0}, "limit must be between"),
        ({"limit": 1_001}, "limit must be between"),
        ({"vector": ()}, "vector must"),
        ({"vector": (float("nan"), 1.0)}, "vector must"),
        ({"vector": (0.0, 0.0)}, "vector must"),
        ({"as_of": datetime(2026, 1, 1)}, "as_of must carry its time zone"),
        ({"known_at": datetime(2026, 1, 1)}, "known_at must carry its time zone"),
        ({"now": datetime(2026, 1, 1)}, "now must carry its time zone"),
    ],
)
def test_a_query_that_says_nothing_useful_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        query(**changes)


def test_both_clocks_stand_at_now_unless_set():
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert (query().valid_instant, query().known_instant) == (NOW, NOW)
    assert (query(as_of=past).valid_instant, query(as_of=past).known_instant) == (past, NOW)
    assert (query(known_at=past).valid_instant, query(known_at=past).known_instant) == (NOW, past)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": " \n "}, "content must hold text"),
        ({"content": "a\x00b"}, "NUL"),
        ({"content": "\ud800"}, "lone surrogates"),
        ({"content": "x" * 20_001}, "at most 20,000"),
        ({"tier": "episodic"}, "tier must be among: durable, index"),
        ({"status": "pending"}, "status must be among"),
        ({"type": ""}, "type must name"),
        ({"confidence": 1.01}, "confidence must be between"),
        ({"confidence": float("nan")}, "confidence must be between"),
        ({"recorded_at": datetime(2026, 1, 1)}, "recorded_at must carry"),
        ({"valid_to": datetime(2026, 1, 1)}, "valid_to must carry"),
    ],
)
def test_a_record_that_no_pool_could_keep_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        a_record(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": "gone"}, "status must be among"),
        ({"confidence": -0.1}, "confidence must be between"),
        ({"retired_at": datetime(2026, 1, 1)}, "retired_at must carry"),
    ],
)
def test_a_patch_is_checked_like_a_record(changes, message):
    with pytest.raises(ValueError, match=message):
        PayloadPatch(**changes)


def test_a_patch_tells_none_from_unset():
    assert PayloadPatch().changes() == {}
    assert PayloadPatch(valid_to=None, status="active").changes() == {"valid_to": None, "status": "active"}
    assert PayloadPatch().valid_to is UNSET


def test_prepared_texts_have_passages_of_the_right_length():
    with pytest.raises(ValueError, match="at least one passage"):
        Prepared((), "local", 2)
    with pytest.raises(ValueError, match="2 dimensions"):
        Prepared((Passage("x", (1.0, 0.0, 0.0)),), "local", 2)
