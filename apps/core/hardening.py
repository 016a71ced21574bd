"""What makes the triggers hold against a session of the application's own role.

pgtrigger lets any session switch triggers off by a setting, and PostgreSQL looks names up in a session's temporary
tables first. Both are closed here after every migration: only the owner's role may ignore a trigger, and what a trigger
looks up is the schema's own.
"""

from __future__ import annotations

from django.db import connection

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
