"""The figures that docs/screening.md states, held on the labelled corpus."""

from __future__ import annotations

import pytest

from apps.core.screening import Finding, find_personal, find_secrets, mask, masked
from tests.core.screening import corpus

SECRET, PERSONAL, HARMLESS = corpus.read("secret"), corpus.read("personal"), corpus.read("harmless")


def found(text: str) -> list[Finding]:
    return [*find_secrets(text), *find_personal(text)]


def hits(line: corpus.Line) -> bool:
    return any(finding.start < line.end and line.start < finding.end for finding in found(line.text))


def test_corpus_is_large_and_balanced() -> None:
    assert len(SECRET) >= 310
    assert len(PERSONAL) >= 40
    assert len(HARMLESS) >= 300


@pytest.mark.parametrize("lines", [SECRET, PERSONAL], ids=["secrets", "personal data"])
def test_recall(lines: list[corpus.Line]) -> None:
    missed = [line.text for line in lines if not hits(line)]
    assert 1 - len(missed) / len(lines) >= 0.97, missed


def test_false_positives() -> None:
    """Of either search: what is harmless is no secret and nobody's data."""
    alarms = [line.text for line in HARMLESS if found(line.text)]
    assert len(alarms) / len(HARMLESS) <= 0.02, alarms


@pytest.mark.parametrize("line", [*SECRET, *PERSONAL], ids=str)
def test_the_whole_value_is_masked(line: corpus.Line) -> None:
    hidden = mask(line.text, found(line.text))
    assert line.value not in hidden
    assert "[secret: " in hidden
    # Nothing of it is left beside the mark, such as the end of an entity or of an escape.
    last = max(finding.end for finding in found(line.text))
    assert last > line.end or hidden.endswith(f"]{line.text[line.end :]}")


@pytest.mark.parametrize("line", [*SECRET, *PERSONAL], ids=str)
def test_masking_twice_changes_nothing(line: corpus.Line) -> None:
    once = masked(line.text)
    assert masked(once) == once


@pytest.mark.parametrize("line", [*SECRET, *PERSONAL], ids=str)
def test_the_value_is_found_with_prose_around_it(line: corpus.Line) -> None:
    before = "We moved the worker on Monday, see the ticket.\n\n"
    text = f"{before}{line.text}\n\nThe rest of the team was told, and nothing else changed."
    start, end = line.start + len(before), line.end + len(before)
    assert any(f.start <= start and end <= f.end for f in found(text))
