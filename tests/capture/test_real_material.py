"""Texts of real repositories, chats and sessions go through everything that reads material without a model.

They lie in a folder that is not part of the project: the variable FIRM_MEMORY_EVAL_DATA names it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.capture.extractors.base import Material, TypeChoice, Vocabulary
from apps.capture.extractors.rules import RulesExtractor
from apps.capture.prefilter import prefilter
from apps.capture.splitting import parts_of, readable
from apps.core.tokens import estimated_tokens
from apps.taxonomy.seed import EXCLUSIONS, TYPES

VOCABULARY = Vocabulary(tuple(TypeChoice(row.name, row.slug, row.description) for row in TYPES), EXCLUSIONS)
BUDGET = 500


@pytest.fixture(scope="module")
def folder() -> Path:
    named = os.environ.get("FIRM_MEMORY_EVAL_DATA")
    if not named:
        pytest.skip("Set FIRM_MEMORY_EVAL_DATA to a folder with payloads, transcripts_real and rules_files.")
    return Path(named)


def strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from strings_in(inside)


def texts_of(path: Path) -> Iterator[str]:
    """A file as a whole and, of a JSON document, every text in it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    yield text
    if path.suffix == ".json":
        yield from strings_in(json.loads(text))


def read(text: str, kind: str) -> int:
    """Everything that reads without a model; the number of facts."""
    drop = prefilter(text)
    assert drop is None or (drop.rule and drop.reason.endswith("."))
    shown = readable(text, kind)
    assert readable(shown, kind) == shown
    reached, rest = 0, []
    for part in parts_of(text, kind, budget=BUDGET):
        assert part.text == shown[part.start : part.end]
        assert estimated_tokens(part.text) <= BUDGET
        rest.append(shown[reached : max(reached, part.start)])
        reached = max(reached, part.end)
    assert not "".join([*rest, shown[reached:]]).strip()
    extraction = RulesExtractor().extract(Material(text, kind), VOCABULARY)
    assert extraction.facts or extraction.note
    for fact in extraction.facts:
        assert fact.quote in shown
        assert fact.content
    return len(extraction.facts)


@pytest.mark.parametrize(
    ("under", "kind", "files"),
    [
        ("payloads/github_webhooks", "merge_request", 20),
        ("payloads/github_api", "merge_request", 1),
        ("payloads/gitlab_hooks", "merge_request", 10),
        ("payloads/jira_webhooks", "issue", 10),
        ("payloads/slack_events", "chat", 10),
        ("payloads/slack_export", "chat", 10),
        ("payloads/other_forges", "merge_request", 3),
        ("payloads/adf_docs", "document", 10),
        ("payloads/transcripts", "transcript", 5),
        ("transcripts_real", "transcript", 3),
        ("rules_files", "rules_file", 5),
    ],
)
def test_every_real_text_is_read(folder, under, kind, files):
    paths = [path for path in sorted((folder / under).rglob("*")) if path.is_file()]

    facts = sum(read(text, kind) for path in paths for text in texts_of(path))

    assert len(paths) >= files
    assert facts or kind != "rules_file"
