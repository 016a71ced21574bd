"""Small suites, and results without an evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apps.evals.quality.figures import Figure
from apps.evals.quality.results import ArmResult, Evaluation, SuiteResult

RECORDS = (
    {"id": "old", "repo": "acme/pay", "date": "2020-01-01", "title": "Retry three times", "text": "Retries are three."},
    {"id": "new", "repo": "acme/pay", "date": "2022-01-01", "title": "Retry with a budget", "text": "Retries are few."},
    {"id": "else", "date": "2021-01-01", "title": "Log JSON", "text": "Lines of logs are JSON objects."},
)
QUERIES = (
    {"_id": "q1", "text": "How are retries bounded?", "metadata": {"repo": "acme/pay"}},
    {"_id": "q2", "text": "What do logs look like?", "metadata": {}},
)
QRELS = "query-id\tcorpus-id\tscore\nq1\tnew\t1\nq2\telse\t1\n"
EDGES = ({"old": "old", "new": "new", "kind": "supersedes", "effective": True, "stated_in": {"date": "2022-01-01"}},)
CASES = (
    {"query": "Retry three times", "about": "old", "as_of": "2021-12-31", "expect_live": ["old"]},
    {"query": "Retry", "about": "old", "as_of": "2022-01-01", "expect_live": ["new"], "must_not_serve": ["old"]},
)
SENTENCES = ({"record": "new", "sentence": "This replaces three retries.", "label": "edge", "detail": "old"},)


def a_folder(folder: Path, **files: Any) -> Path:
    """A suite in ``folder``; ``files`` by name without ending are rows, text, or ``None`` for no such file."""
    given = {
        "corpus": RECORDS,
        "queries": QUERIES,
        "qrels": QRELS,
        "edges": EDGES,
        "asof_cases": CASES,
        "supersession_language": SENTENCES,
        "suite": {"scope": {"repo": "repo"}},
    } | files
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in given.items():
        if content is not None:
            ending = {"qrels": "tsv", "suite": "json"}.get(name, "jsonl")
            (folder / f"{name}.{ending}").write_text(_text(content))
    return folder


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return json.dumps(content)
    return "\n".join(json.dumps(row) for row in content)


def an_evaluation(**figures: float) -> Evaluation:
    """One suite with one arm, of 40 questions."""
    found = {
        name.replace("_at_", "@"): Figure(value, value - 0.05, min(1.0, value + 0.05), 40)
        for name, value in figures.items()
    }
    arm = ArmResult(figures=found or {"hit@5": Figure(0.9, 0.8, 0.95, 40)}, stages={"total": {"p50": 3.0, "p95": 5.0}})
    suite = SuiteResult("sample", "A firm", "both", records=100, queries=40, corpus="abc", arms={"default": arm})
    about = {"at": "2026-11-30T12:00:00+00:00", "command": "manage.py evaluate", "version": "0.1.0", "commit": "abc"}
    return Evaluation(about, {"sample": suite})
