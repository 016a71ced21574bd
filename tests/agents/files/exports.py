"""Whole exports as files: written, forged so that their sums fit, and brought in."""

from __future__ import annotations

import hashlib
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from apps.accounts.principal import operator
from apps.agents.files.whole.writing import export_lines
from apps.candidates.models import Candidate
from apps.memories.models import Memory, Verdict


def lines_of(workspace) -> list[dict]:
    return [json.loads(line) for line in export_lines(operator(workspace))]


def exported(workspace, path) -> str:
    call_command("export_all", str(path), "--workspace", workspace.slug, stdout=StringIO(), stderr=StringIO())
    return path.read_text()


def brought_in(path, workspace="elsewhere", reviewer="dora") -> str:
    out = StringIO()
    call_command(
        "import_export", str(path), "--reviewer", reviewer, "--workspace", workspace, stdout=out, stderr=StringIO()
    )
    return out.getvalue()


def forget_everything() -> None:
    """As if it were another installation: triggers would not let go of a ledger."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE tablename ~ '^(memories|candidates|sources|scopes)_'")
        tables = ", ".join(name for (name,) in cursor.fetchall() if name != "memories_poolgeneration")
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"TRUNCATE {tables}, fm_pool_g1, accounts_audience_members, accounts_audience CASCADE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def resealed(file, change) -> None:
    """The file with its records changed, and with counts and a sum that fit them: by whoever means it."""
    records = [json.loads(line) for line in file.read_text().splitlines()][:-1]
    records = change(records) or records
    for record in records[0]["counts"]:
        records[0]["counts"][record] = sum(each["record"] == record for each in records)
    text = "".join(json.dumps(record) + "\n" for record in records)
    trailer = {"record": "trailer", "lines": len(records), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    file.write_text(text + json.dumps(trailer) + "\n")


def refused(file, match: str, **options) -> None:
    with pytest.raises(CommandError, match=match):
        brought_in(file, **options)
    assert not Memory.objects.exists()
    assert not Candidate.objects.exists()
    assert not Verdict.objects.exists()


def memory_of(records):
    return next(record for record in records if record["record"] == "memory")
