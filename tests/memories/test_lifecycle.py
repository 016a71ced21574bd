"""How status and end of validity follow from the ledger: one rule, as a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.memories.fingerprints import fingerprint
from apps.memories.lifecycle import _follow_edges, memories_write, status_of
from apps.memories.models import Memory
from apps.scopes.scope import Scope

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEFORE, LATER = NOW - timedelta(days=1), NOW + timedelta(days=1)


@pytest.mark.parametrize(
    ("retired_at", "valid_to", "ends", "disputed", "expected"),
    [
        (None, None, [], False, "active"),
        (None, None, [], True, "disputed"),
        (None, BEFORE, [BEFORE], False, "superseded"),
        (None, BEFORE, [BEFORE], True, "superseded"),
        (None, NOW, [NOW], False, "superseded"),
        (None, LATER, [LATER], False, "active"),
        (None, LATER, [LATER], True, "disputed"),
        (None, BEFORE, [LATER, BEFORE], False, "superseded"),
        (None, BEFORE, [], False, "retired"),
        (None, BEFORE, [], True, "retired"),
        (BEFORE, None, [], False, "retired"),
        (BEFORE, BEFORE, [BEFORE], False, "retired"),
        (BEFORE, LATER, [LATER], True, "retired"),
    ],
)
def test_status_is_a_function_of_edges_reports_and_retirement(retired_at, valid_to, ends, disputed, expected):
    memory = Memory(retired_at=retired_at, valid_to=valid_to)

    assert status_of(memory, ends, disputed=disputed, at=NOW) == expected


@pytest.mark.parametrize(
    ("status", "valid_to", "closed_at", "ends", "expected"),
    [
        ("active", None, None, [], (None, None)),
        ("active", None, None, [LATER], (LATER, NOW)),
        ("active", None, None, [LATER, BEFORE], (BEFORE, NOW)),
        ("active", LATER, BEFORE, [LATER], (LATER, BEFORE)),
        ("superseded", BEFORE, BEFORE, [], (None, None)),
        ("superseded", BEFORE, BEFORE, [LATER], (LATER, NOW)),
        ("retired", BEFORE, BEFORE, [], (BEFORE, BEFORE)),
    ],
)
def test_the_earliest_successor_ends_a_memory_and_when_that_became_known_is_kept(
    status, valid_to, closed_at, ends, expected
):
    memory = Memory(status=status, valid_to=valid_to, closed_at=closed_at)

    _follow_edges(memory, ends, at=NOW)

    assert (memory.valid_to, memory.closed_at) == expected


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
def test_nothing_to_write_is_nothing_written(workspace):
    assert memories_write([], workspace_id=workspace.pk, first_number=1, at=NOW) == []


# --- fingerprints -------------------------------------------------------------------------------------------
HERE = Scope(repo_ids=(3,))


def test_case_spacing_and_a_trailing_stop_make_no_difference():
    first = fingerprint("Deploys happen on Tuesdays.", type_id=1, scope=HERE)

    for said in (
        "deploys happen on tuesdays",
        "  Deploys\thappen \n on Tuesdays ",
        "DEPLOYS HAPPEN ON TUESDAYS.",
        "Deploys happen on Tuesdays...",
    ):
        assert fingerprint(said, type_id=1, scope=HERE) == first


@pytest.mark.parametrize(
    ("content", "type_id", "scope"),
    [
        ("Deploys happen on Tuesday.", 1, HERE),
        ("Deploys happen on Tuesdays?", 1, HERE),
        ("Deploys never happen on Tuesdays.", 1, HERE),
        ("Deploys happen on Tuesdays.", 2, HERE),
        ("Deploys happen on Tuesdays.", 1, Scope(firm=True)),
        ("Deploys happen on Tuesdays.", 1, Scope(repo_ids=(3,), firm=True)),
        ("Deploys happen on Tuesdays.", 1, Scope(domain_ids=(3,))),
        ("Deploys happen on Tuesdays.", 1, Scope(repo_ids=(3, 4))),
    ],
)
def test_other_words_type_or_scope_make_another_statement(content, type_id, scope):
    assert fingerprint(content, type_id=type_id, scope=scope) != fingerprint(
        "Deploys happen on Tuesdays.", type_id=1, scope=HERE
    )
