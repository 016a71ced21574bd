from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.evals.benchmarks import server
from apps.evals.benchmarks.parts import all_parts


def test_an_unknown_part_is_refused_with_those_there_are():
    with pytest.raises(CommandError, match=r"no part nonsense\. Use: data, pool, recall"):
        call_command("bench", parts=["nonsense"])


def test_too_few_rows_are_refused():
    with pytest.raises(CommandError, match="at least 1000"):
        call_command("bench", rows=10)


def test_the_longest_parts_run_only_when_they_are_named():
    assert {name for name, part in all_parts().items() if not part.usual} == {"growth", "start"}


def test_another_database_of_the_same_server():
    url = "postgresql://me:a%2Fb@db.example.com:6543/live?sslmode=require"
    assert server.database_url(url, "bench") == "postgresql://me:a%2Fb@db.example.com:6543/bench?sslmode=require"


def test_nothing_but_its_own_databases_is_dropped():
    with pytest.raises(ValueError, match="firm_memory is no database of the benchmarks"):
        server.drop_database("firm_memory")


def test_what_is_measured_gets_nothing_from_the_environment_of_whoever_measures(monkeypatch):
    monkeypatch.setenv("FIRM_MEMORY_EMBEDDER", "litellm:somebody/else")
    monkeypatch.setenv("FIRM_MEMORY_OWNER_DATABASE_URL", "postgresql://owner@elsewhere/live")
    monkeypatch.setenv("FIRM_MEMORY_EVAL_DATA", "/somewhere")
    monkeypatch.setenv("FIRM_MEMORY_POSTGRES_VERSION", "16")
    given = server.environment("postgresql://x/y", data_dir=Path("/data"), FIRM_MEMORY_WEB_THREADS="2")
    assert given["DATABASE_URL"] == "postgresql://x/y"
    assert {name for name in given if name.startswith("FIRM_MEMORY_")} == {
        *("FIRM_MEMORY_ENV_FILE", "FIRM_MEMORY_DATA_DIR", "FIRM_MEMORY_THROTTLE"),
        *("FIRM_MEMORY_EVAL_DATA", "FIRM_MEMORY_POSTGRES_VERSION", "FIRM_MEMORY_WEB_THREADS"),
    }
