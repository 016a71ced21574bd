"""A session of a role that owns no table can neither switch triggers off nor put its own tables before the ledger's."""

from __future__ import annotations

import pytest
from django.db import Error, connection, transaction

from apps.core.hardening import triggers_harden
from tests import ledger

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

ROLE = "fm_hardening_probe"


@pytest.fixture
def memory(botty, alice):
    return ledger.remember(ledger.of_token(botty.token), ledger.of_person(alice))


@pytest.fixture
def as_application(memory):
    """Run statements as a role with every right on the rows and none on the tables."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {ROLE}")
        cursor.execute(f"GRANT USAGE ON SCHEMA public TO {ROLE}")
        cursor.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE}")
        cursor.execute(f"GRANT TEMPORARY ON DATABASE {connection.settings_dict['NAME']} TO {ROLE}")
        cursor.execute(f"SET LOCAL ROLE {ROLE}")
        yield cursor


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories_memory SET content = 'Other words.'",
        "DELETE FROM memories_memoryevidence",
        "UPDATE memories_verdict SET reviewer_name = 'somebody'",
        "DELETE FROM sources_source",
    ],
)
def test_a_setting_does_not_switch_triggers_off(as_application, statement):
    cursor = as_application
    cursor.execute(
        "SELECT set_config('pgtrigger.ignore',"
        " '{' || (SELECT string_agg(tgname, ',') FROM pg_trigger WHERE NOT tgisinternal) || '}', true)"
    )
    with pytest.raises(Error, match="Cannot"), transaction.atomic():
        cursor.execute(statement)


def test_a_temporary_table_does_not_stand_in_for_a_real_one(as_application, bob, memory):
    cursor = as_application
    cursor.execute(
        "CREATE TEMPORARY TABLE accounts_membership ON COMMIT DROP AS"
        " SELECT workspace_id, user_id, 'admin'::text AS role FROM public.accounts_membership"
    )
    with pytest.raises(Error, match="only a reviewer"), transaction.atomic():
        cursor.execute(
            "INSERT INTO memories_verdict (id, workspace_id, subject_kind, subject_id, action, reviewer_id,"
            " reviewer_name, reason, before, after, via, second_person, request_id, created_at)"
            " VALUES (gen_random_uuid(), %s, 'memory', %s, 'retire', %s, 'bob', '', '{}', '{}', 'x', true, '', now())",
            [memory.workspace_id, memory.pk, bob.pk],
        )


def test_hardening_again_changes_nothing(memory):
    triggers_harden()
    triggers_harden()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(*) FILTER (WHERE proconfig::text LIKE '%pg_temp%') FROM pg_proc"
            " WHERE proname LIKE 'pgtrigger\\_%'"
        )
        functions, hardened = cursor.fetchone()
    assert functions == hardened > 20
