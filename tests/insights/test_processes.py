"""Several web processes answer `/metrics` as one, and each start of the web begins with empty counts."""

from __future__ import annotations

import logging
import os
import runpy
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings

ROOT = Path(settings.BASE_DIR)

COUNT = """
import django
django.setup()
from apps.insights import meters
from apps.memories.providers.embedding import Embedding
from apps.retrieval.pipeline import Shortfall

for _ in range({searches}):
    meters.SEARCHES.labels("complete").inc()
    meters.SEARCH_SECONDS.observe(0.003)
meters.SHORTFALLS.labels("text", "timeout").inc()
meters.embedding_is_over(Embedding("local", "question", {outcome!r}, 0.01))
"""
TELL = """
import django
django.setup()
from prometheus_client import generate_latest, CollectorRegistry
from apps.insights import meters

registry = CollectorRegistry()
registry.register(meters.counted())
print(generate_latest(registry).decode())
"""


def run(code: str, folder: Path) -> str:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_any_process_tells_what_all_have_counted(tmp_path: Path) -> None:
    run(COUNT.format(searches=3, outcome="done"), tmp_path)
    run(COUNT.format(searches=4, outcome="error"), tmp_path)
    told = run(TELL, tmp_path).splitlines()
    assert 'firm_memory_searches_total{outcome="complete"} 7.0' in told
    assert 'firm_memory_searches_total{outcome="failed"} 0.0' in told
    assert "firm_memory_search_seconds_count 7.0" in told
    assert 'firm_memory_search_seconds_bucket{le="0.005"} 7.0' in told
    assert 'firm_memory_search_degraded_total{reason="timeout",stage="text"} 2.0' in told
    # The last word counts, whoever had it.
    assert 'firm_memory_embedder_up{embedder="local"} 0.0' in told
    assert not any("pid=" in line for line in told)


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("FIRM_MEMORY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("FIRM_MEMORY_ENV_FILE", "")
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "set for this test, so that it is put back")
    return runpy.run_path(str(ROOT / "gunicorn.conf.py"))


def a_server() -> Any:
    return SimpleNamespace(log=logging.getLogger("tests.server"))


def test_a_start_of_the_web_empties_the_counts_of_the_last_one(configuration: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "data" / "metrics"
    folder.mkdir(parents=True)
    (folder / "counter_17.db").write_bytes(b"old")
    (folder / "notes.txt").write_text("not ours")
    configuration["on_starting"](a_server())
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_without_a_folder_each_process_counts_for_itself(
    configuration: dict[str, Any], tmp_path: Path, caplog: Any
) -> None:
    (tmp_path / "data").write_text("A file where the folder should be.")
    configuration["on_starting"](a_server())
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
    assert "counts for itself" in caplog.text


@pytest.mark.parametrize(("patience", "done"), [(10, ["warm", "frozen"]), (0.01, [])])
def test_a_web_process_takes_no_request_before_it_has_loaded_what_requests_need(
    configuration: dict[str, Any], monkeypatch: pytest.MonkeyPatch, patience: float, done: list[str]
) -> None:
    """Unless that takes too long: then it goes on beside the requests."""
    known, go_on, happened = configuration["load"].__globals__, threading.Event(), []
    if done:
        go_on.set()

    def warm_up() -> None:
        assert go_on.wait(10)
        happened.append("warm")

    monkeypatch.setitem(known, "warm_up", warm_up)
    monkeypatch.setitem(known, "LOADING_SECONDS", patience)
    monkeypatch.setattr("apps.core.startup.run_startup_checks", lambda: None)
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)
    monkeypatch.setattr("gc.freeze", lambda: happened.append("frozen"))
    configuration["post_worker_init"](SimpleNamespace())
    assert happened == done
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "warm-up":
            thread.join(10)
    assert happened == ["warm", "frozen"]
