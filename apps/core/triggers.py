"""Trigger shapes that several rooms share.

Errors carry a constraint name, so that callers tell them apart by ``error.__cause__.diag.constraint_name``
and never by their wording.
"""

from __future__ import annotations

import pgtrigger


def append_only(name: str) -> pgtrigger.Trigger:
    """Rows may be added and never changed or removed."""
    return pgtrigger.Protect(name=name, operation=pgtrigger.Update | pgtrigger.Delete)


def no_delete(name: str) -> pgtrigger.Trigger:
    return pgtrigger.Protect(name=name, operation=pgtrigger.Delete)


def read_only_except(name: str, *fields: str) -> pgtrigger.Trigger:
    """List what may change, not what may not: a field added later is protected without thinking of it."""
    return pgtrigger.ReadOnly(name=name, exclude=list(fields))


def keeps_workspace(name: str) -> pgtrigger.Trigger:
    """For rows that others name by id: what may change about them, but never where they belong."""
    return pgtrigger.ReadOnly(name=name, fields=["workspace"])


def raise_violation(message: str, *arguments: str, constraint: str) -> str:
    """PL/pgSQL that refuses the statement as a constraint violation (Django: ``IntegrityError``)."""
    listed = "".join(f", {argument}" for argument in arguments)
    return (
        f"RAISE EXCEPTION '{message}'{listed} USING ERRCODE = 'integrity_constraint_violation', "
        f"CONSTRAINT = '{constraint}';"
    )


def same_workspace(name: str, *parents: tuple[str, str], arrays: tuple[tuple[str, str], ...] = ()) -> pgtrigger.Trigger:
    """Refuse a row whose parents belong to another workspace.

    ``parents`` are pairs (foreign key column, table); ``arrays`` are pairs (bigint[] column, table).
    """
    checks = []
    for column, table in parents:
        checks.append(
            f"""
            IF NEW.{column} IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM {table} parent WHERE parent.id = NEW.{column} AND parent.workspace_id = NEW.workspace_id
            ) THEN
                {raise_violation("% is of another workspace", f"'{column}'", constraint=name)}
            END IF;"""
        )
    for column, table in arrays:
        checks.append(
            f"""
            IF EXISTS (
                SELECT 1 FROM unnest(NEW.{column}) AS listed(id)
                LEFT JOIN {table} parent ON parent.id = listed.id AND parent.workspace_id = NEW.workspace_id
                WHERE parent.id IS NULL
            ) THEN
                {raise_violation("% lists a row of another workspace", f"'{column}'", constraint=name)}
            END IF;"""
        )
    return pgtrigger.Trigger(
        name=name,
        when=pgtrigger.Before,
        operation=pgtrigger.Insert | pgtrigger.Update,
        func="".join(checks) + "\nRETURN NEW;",
    )
