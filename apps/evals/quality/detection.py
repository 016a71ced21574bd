"""Suggestions that one statement may replace another: how many are right, and how many there should have been.

Suggested should be every pair that a full edge joins, and every one that a sentence states. Not suggested should be
what a sentence that merely talks of superseding is near to, nor what a successor is near to without replacing it. How
many of these there are moves the precision, so that it can be compared on one suite and not between two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from apps.evals.quality.arms.base import Arm, Question
from apps.evals.quality.corpora import Corpus
from apps.evals.quality.measures import Values
from apps.evals.quality.suites import Suite
from apps.evals.quality.supersession import Graph

# Has ``Statement(content, names)`` and ``replacement(old, new)``, which answers ``None`` where the new one does not
# look like a replacement of the old one. Looked up when it is needed: there are versions without it.
DETECTOR: Final = "apps.candidates.detection"

NEAREST: Final = 3
PRECISION: Final = "precision of suggestions"
RECALL: Final = "recall of suggestions"
MISSING: Final = "Suggestions of supersessions were not measured: nothing makes any yet."


@dataclass(frozen=True, slots=True)
class Told:
    """A statement, and the reference that others may call it by."""

    text: str
    reference: str


@dataclass(frozen=True, slots=True)
class Pair:
    name: str
    old: Told
    new: Told
    replaces: bool


Suggest = Callable[[Told, Told], bool]


def detector() -> Suggest | None:
    """Whether a replacement is suggested, if this version suggests any."""
    try:
        module: Any = import_module(DETECTOR)
    except ImportError:
        return None

    def suggests(old: Told, new: Told) -> bool:
        first, second = (module.Statement(content=one.text, names=(one.reference,)) for one in (old, new))
        return module.replacement(first, second) is not None

    return suggests


def suggestions(suite: Suite, corpus: Corpus, graph: Graph, arm: Arm, suggest: Suggest) -> dict[str, Values]:
    """Precision over what was suggested, recall over what should have been. ``arm`` finds what is near."""
    precision: Values = {}
    recall: Values = {}
    for pair in pairs(suite, corpus, graph, arm):
        suggested = suggest(pair.old, pair.new)
        if suggested:
            precision[pair.name] = float(pair.replaces)
        if pair.replaces:
            recall[pair.name] = float(suggested)
    return {PRECISION: precision, RECALL: recall}


def pairs(suite: Suite, corpus: Corpus, graph: Graph, arm: Arm) -> Iterator[Pair]:
    texts = {one.reference: Told(one.content, one.reference) for one in corpus.documents}
    joined = {(claim.old, claim.new) for claim in suite.claims if claim.effective and not claim.needs_review}
    full = {
        (claim.old, claim.new)
        for claim in suite.claims
        if claim.effective and not claim.needs_review and claim.kind == "supersedes"
    }
    for old, new in sorted(full):
        if old in texts and new in texts:
            yield Pair(f"{old} → {new}", texts[old], texts[new], True)
            for other in _near(new, suite, arm, graph, joined)[:1]:
                yield Pair(f"{other} ≠ {new}", texts[other], texts[new], False)
    for at, sentence in enumerate(suite.sentences):
        if sentence.record not in texts or sentence.label == "status_only":
            continue
        said = Told(f"{texts[sentence.record].text}\n\n{sentence.text}", sentence.record)
        if sentence.label == "none":
            for other in _near(sentence.record, suite, arm, graph, joined):
                yield Pair(f"sentence {at}, {other}", texts[other], said, False)
        elif (sentence.detail, sentence.record) in joined and sentence.detail in texts:
            yield Pair(f"sentence {at}", texts[sentence.detail], said, True)


def _near(reference: str, suite: Suite, arm: Arm, graph: Graph, joined: set[tuple[str, str]]) -> list[str]:
    """What stands in the same place and about the same, and is not of the same chain."""
    entry = suite.entries[reference]
    if not entry.title.strip():
        return []
    asked = Question(entry.title, repos=(entry.repo,) if entry.repo else ())
    found = arm.search(asked, limit=2 * NEAREST + 2).references
    heads = graph.heads(reference)
    return [
        other
        for other in found
        if other != reference
        and not {(other, reference), (reference, other)} & joined
        and not graph.heads(other) & heads
    ][:NEAREST]
