"""Whether what a model says is said by the memories that it cites.

Told by words, numbers, names and negations, so it costs nothing and asks nobody. It cannot see who does what to whom:
“A calls B” supports “B calls A”. What it lets through and what it wrongly drops is measured in tests/answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apps.retrieval.contents import Contents, clauses_of, contents_of, denials_apart

# Of the words of a sentence that mean something, so many must stand in what it cites.
ENOUGH: Final = 0.9
# A cited memory that has less to do with the sentence than this does not support it.
RELATED: Final = 0.2
MAX_SENTENCE: Final = 1_000
_OPPOSITES: Final = (
    ("befor", "after"),
    ("increas", "decreas"),
    ("allow", "forbid"),
    ("enabl", "disabl"),
    ("min", "max"),
    ("minimum", "maximum"),
    ("synchronou", "asynchronou"),
    ("first", "last"),
    ("always", "rar"),
    ("accept", "reject"),
    ("public", "privat"),
    ("old", "new"),
    ("manual", "automatic"),
    ("more", "les"),
)
_OPPOSITE: Final = {word: other for pair in _OPPOSITES for word, other in (pair, pair[::-1])}


def supports(sentence: str, cited: Sequence[str]) -> bool:
    """Whether the texts together say what the sentence says."""
    said = contents_of(sentence)
    if not said.words or not cited or len(sentence) > MAX_SENTENCE:
        return False
    texts = [contents_of(text) for text in cited]
    words = frozenset().union(*(text.words for text in texts))
    numbers = frozenset().union(*(text.numbers for text in texts))
    identifiers = frozenset().union(*(text.identifiers for text in texts))
    return (
        said.numbers <= numbers
        and said.names <= words
        and said.identifiers <= identifiers
        and not any(_OPPOSITE.get(word) in words and word not in words for word in said.words)
        and _said_by_one(sentence, texts)
        and _denies_alike(sentence, cited)
    )


def related(sentence: str, text: str) -> bool:
    said = contents_of(sentence)
    return _share(said, contents_of(text)) >= RELATED


def _said_by_one(sentence: str, texts: Sequence[Contents]) -> bool:
    """Each clause by one of the texts alone: from two, something else can be put together."""
    clauses = [contents_of(clause) for clause in clauses_of(sentence)]
    return all(max(_share(clause, text) for text in texts) >= ENOUGH for clause in clauses if clause.words)


def _denies_alike(sentence: str, cited: Sequence[str]) -> bool:
    """What the texts only deny, the sentence denies where it speaks of it, and it denies nothing else."""
    theirs = [contents_of(scope) for text in cited for scope in denials_apart(text)]
    affirmed = frozenset().union(*(each.words for each in theirs if not each.denies))
    denied = frozenset().union(*(each.words for each in theirs if each.denies)) - affirmed
    ours = [contents_of(clause) for clause in clauses_of(sentence)]
    return all(clause.denies == bool(clause.words & denied) for clause in ours)


def _share(one: Contents, other: Contents) -> float:
    return len(one.words & other.words) / len(one.words) if one.words else 0.0
