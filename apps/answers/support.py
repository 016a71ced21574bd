"""Whether what a model says is said by the memories that it cites.

Told by their words in their order (``wording``), so it costs nothing and asks nobody. Whatever is worded in another
way is dropped: what is shown wrongly costs more. What it lets through and what it drops is measured in tests/answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from apps.answers.wording import says_in_one_of
from apps.retrieval.contents import Contents, contents_of

# A cited memory that has less to do with the sentence than this does not support it.
RELATED: Final = 0.2
MAX_SENTENCE: Final = 1_000


def supports(sentence: str, cited: Sequence[str]) -> bool:
    """Whether the texts together say what the sentence says."""
    said = contents_of(sentence)
    if not said.words or not cited or len(sentence) > MAX_SENTENCE:
        return False
    identifiers = frozenset().union(*(contents_of(text).identifiers for text in cited))
    return said.identifiers <= identifiers and says_in_one_of(cited, sentence)


def related(sentence: str, text: str) -> bool:
    said = contents_of(sentence)
    return _share(said, contents_of(text)) >= RELATED


def _share(one: Contents, other: Contents) -> float:
    return len(one.words & other.words) / len(one.words) if one.words else 0.0
