"""What makes the triggers hold against a session of the application's own role.

pgtrigger lets any session switch triggers off by a setting, and PostgreSQL looks names up in a session's temporary
tables first. Both are closed here after every migration: only the owner's role may ignore a trigger, and what a trigger
looks up is the schema's own.

A database that was restored without its triggers, or made by an earlier version, would let through what they refuse.
So their presence is checked at start and by `/readyz`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import pgtrigger
from django.db import OperationalError, connection
from django.db.models import Model

from apps.core.database import DatabaseDown, down_sentence, is_down
from apps.core.errors import Unavailable

_OWNER_ONLY = """
CREATE OR REPLACE FUNCTION {schema}._pgtrigger_should_ignore(trigger_name name) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    ignored text[] := nullif(current_setting('pgtrigger.ignore', true), '');
BEGIN
    RETURN coalesce(trigger_name = ANY(ignored), false) AND pg_catalog.pg_has_role(
        current_user,
        (SELECT proowner FROM pg_catalog.pg_proc WHERE oid = '{schema}._pgtrigger_should_ignore(name)'::regprocedure),
        'MEMBER'
    );
END
$$
"""

_FUNCTIONS = """
SELECT p.oid::regprocedure::text, n.nspname
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = current_schema() AND (p.proname LIKE 'pgtrigger\\_%%' OR p.proname = '_pgtrigger_should_ignore')
  AND pg_catalog.pg_has_role(current_user, p.proowner, 'MEMBER')
"""


def triggers_harden() -> None:
    """Idempotent. Functions of another owner are left alone."""
    with connection.cursor() as cursor:
        cursor.execute(_FUNCTIONS)
        functions = cursor.fetchall()
        for function, schema in functions:
            quoted = connection.ops.quote_name(schema)
            if "_pgtrigger_should_ignore" in function:
                cursor.execute(_OWNER_ONLY.replace("{schema}", quoted))
            cursor.execute(f"ALTER FUNCTION {function} SET search_path = pg_catalog, {quoted}, pg_temp")


class TriggersUnfit(Unavailable):
    """The database would let through what the gate refuses; the message says what to do."""

    code = "triggers_unfit"


class _Installed(NamedTuple):
    enabled: str
    version: str | None
    hardened: bool


_INSTALLED = """
SELECT c.relname, t.tgname, t.tgenabled::text, pg_catalog.obj_description(t.oid, 'pg_trigger'),
       coalesce(p.proconfig::text LIKE '%pg_temp%', false)
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND pg_catalog.pg_table_is_visible(c.oid)
"""
_FIRES = ("O", "A")  # what `ENABLE` and `ENABLE ALWAYS` leave behind
_NAMED_AT_MOST = 5
_REMEDY = (
    "Nothing may be served from this database as it is: run `manage.py migrate`. Where nothing is left to migrate, as "
    "after a restore without triggers, run `manage.py pgtrigger install` and then `manage.py migrate` again."
)


def check_triggers() -> None:
    """For the start: raise ``TriggersUnfit`` unless every trigger of the models is there as this version has it."""
    installed = _look_up()
    _require_all(installed)
    if odd := list(_different(installed)):
        raise TriggersUnfit(f"The gate's triggers are not those of this version: {_named(odd)}. {_REMEDY}")


def triggers_ready() -> str:
    """For probes: raise ``TriggersUnfit`` where a trigger is missing or switched off.

    One of another version is nothing to take a running process away for: while a new version is brought in, the
    processes of the old one go on for a moment.
    """
    installed = _look_up()
    _require_all(installed)
    return f"All {len(_declared())} are in place."


def _require_all(installed: dict[tuple[str, str], _Installed]) -> None:
    missing = [name for name, key, _ in _declared() if key not in installed]
    if missing:
        raise TriggersUnfit(f"The gate's triggers are missing: {_named(missing)}. {_REMEDY}")
    off = [name for name, key, _ in _declared() if installed[key].enabled not in _FIRES]
    if off:
        raise TriggersUnfit(
            f"The gate's triggers are switched off: {_named(off)}. Switch them on with `manage.py pgtrigger enable`."
        )


def _different(installed: dict[tuple[str, str], _Installed]) -> Iterator[str]:
    for name, key, version in _declared():
        if installed[key].version != version or not installed[key].hardened:
            yield name


@cache
def _declared() -> tuple[tuple[str, tuple[str, str], str], ...]:
    """Name, place and version of each trigger that a model declares. Rendering them takes a while."""
    return tuple(sorted(_describe(model, trigger) for model, trigger in pgtrigger.registered()))


def _describe(model: type[Model], trigger: pgtrigger.Trigger) -> tuple[str, tuple[str, str], str]:
    place = (model._meta.db_table, trigger.get_pgid(model))
    return str(trigger.name), place, trigger.compile(model).hash


def _look_up() -> dict[tuple[str, str], _Installed]:
    try:
        with connection.cursor() as cursor:
            cursor.execute(_INSTALLED)
            return {(table, name): _Installed(*rest) for table, name, *rest in cursor.fetchall()}
    except OperationalError as error:
        if is_down(error):
            raise DatabaseDown(down_sentence(error) or "The database does not answer.") from error
        raise


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_AT_MOST
    return ", ".join(names[:_NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
