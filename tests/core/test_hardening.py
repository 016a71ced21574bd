"""A session of a role that owns no table can neither switch triggers off nor put its own tables before the ledger's."""

from __future__ import annotations

import pgtrigger
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import Error, connection, transaction

from apps.core.hardening import TriggersUnfit, check_triggers, triggers_harden, triggers_ready
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


# --- a database without them ---------------------------------------------------------------------------------


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def place_of(model: str, name: str) -> tuple[str, str]:
    ((row, trigger),) = pgtrigger.registered(f"{model}:{name}")
    return row._meta.db_table, trigger.get_pgid(row)


@pytest.fixture
def verdicts_keep() -> tuple[str, str]:
    """The table and the trigger that keeps verdicts as they are."""
    return place_of("memories.Verdict", "verdict_append_only")


def test_a_migrated_database_has_them_all():
    check_triggers()
    assert triggers_ready() == f"All {len(pgtrigger.registered())} are in place."
    assert "apps.core.hardening.check_triggers" in settings.STARTUP_CHECKS


def test_every_single_one_is_missed():
    for model, trigger in pgtrigger.registered():
        with transaction.atomic():
            execute(f"DROP TRIGGER {trigger.get_pgid(model)} ON {model._meta.db_table}")
            with pytest.raises(TriggersUnfit, match=rf"are missing: {trigger.name}\. .+`manage.py migrate`"):
                check_triggers()
            with pytest.raises(TriggersUnfit, match="are missing"):
                triggers_ready()
            transaction.set_rollback(True)


def test_a_database_without_any_is_not_ready_and_says_what_to_do(client):
    call_command("pgtrigger", "uninstall", verbosity=0)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    said = answer.json()["parts"]["triggers"]["detail"]
    assert said.startswith("The gate's triggers are missing: ") and "pgtrigger install" in said
    assert " more. " in said

    call_command("pgtrigger", "install", verbosity=0)
    with pytest.raises(TriggersUnfit, match="not those of this version"):
        check_triggers()  # installed anew they are not hardened
    triggers_harden()
    check_triggers()
    assert client.get("/readyz").json()["parts"]["triggers"]["ok"]


def test_one_that_is_switched_off_is_missed(verdicts_keep):
    table, name = verdicts_keep
    execute(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
    for look in (check_triggers, triggers_ready):
        with pytest.raises(TriggersUnfit, match="switched off: verdict_append_only"):
            look()
    execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}")
    check_triggers()


def test_one_of_another_version_stops_a_start_and_no_running_process(verdicts_keep):
    table, name = verdicts_keep
    execute(f"COMMENT ON TRIGGER {name} ON {table} IS 'made by another version'")
    with pytest.raises(TriggersUnfit, match="not those of this version: verdict_append_only"):
        check_triggers()
    triggers_ready()


def test_a_table_of_another_schema_does_not_count(verdicts_keep):
    table, name = verdicts_keep
    execute("CREATE SCHEMA elsewhere")
    execute(f"CREATE TABLE elsewhere.{table} (LIKE public.{table})")
    execute(f"CREATE TRIGGER {name} BEFORE UPDATE ON elsewhere.{table} FOR EACH ROW EXECUTE FUNCTION {name}()")
    execute(f"DROP TRIGGER {name} ON public.{table}")
    with pytest.raises(TriggersUnfit, match="are missing: verdict_append_only"):
        triggers_ready()
