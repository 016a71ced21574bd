"""The figures that docs/screening.md states, held on the labelled corpus."""

from __future__ import annotations

import pytest

from apps.core.screening import find_secrets, mask
from tests.core.screening import corpus

SECRET, HARMLESS = corpus.read("secret"), corpus.read("harmless")


def test_corpus_is_large_and_balanced() -> None:
    assert len(SECRET) >= 200
    assert len(HARMLESS) >= 180


def test_recall_and_false_positives() -> None:
    found = [line for line in SECRET if any(f.start < line.end and line.start < f.end for f in find_secrets(line.text))]
    alarms = [line.text for line in HARMLESS if find_secrets(line.text)]
    assert len(found) / len(SECRET) >= 0.97, [str(line) for line in SECRET if line not in found]
    assert len(alarms) / len(HARMLESS) <= 0.02, alarms


@pytest.mark.parametrize("line", SECRET, ids=str)
def test_the_whole_value_is_masked(line: corpus.Line) -> None:
    masked = mask(line.text, find_secrets(line.text))
    assert line.value not in masked
    assert "[secret: " in masked


@pytest.mark.parametrize("line", SECRET, ids=str)
def test_the_value_is_found_with_prose_around_it(line: corpus.Line) -> None:
    before = "We moved the worker on Monday, see the ticket.\n\n"
    text = f"{before}{line.text}\n\nThe rest of the team was told, and nothing else changed."
    start, end = line.start + len(before), line.end + len(before)
    assert any(f.start <= start and end <= f.end for f in find_secrets(text))
