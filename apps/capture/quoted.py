"""Our own words, coming back: a transcript that quotes an answer of ours is no new evidence for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from apps.accounts.principal import Principal
from apps.capture.extractors.base import Fact
from apps.core.screening.text import normalise_for_fingerprint
from apps.memories.models import Memory
from apps.retrieval.terms import any_of, rarest_terms, within

# Share of the words of both that stand in the same order. What shares as much with a memory that the material names by
# its number repeats it; of one that is not named, nearly every word has to be the same.
NAMED: Final = 0.75
VERBATIM: Final = 0.9
# A passage of fewer words is in many texts without being quoted from any.
_LEAST_WORDS: Final = 5
# How much of a fact must be the memory's words, where it holds all of them and more (a line of an answer in JSON).
_MOSTLY: Final = 0.6
_MOST_NAMED: Final = 200
_TERMS: Final = 12
_MATCHES: Final = 500
_COMPARED: Final = 20
_NUMBER: Final = re.compile(r"\bM-([1-9][0-9]{0,8})\b")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Quoted:
    """The memories that some material may be quoting, looked up for whoever handed it over."""

    principal: Principal
    named: tuple[Memory, ...] = field(default=())

    @classmethod
    def in_material(cls, principal: Principal, text: str) -> Quoted:
        numbers = list(dict.fromkeys(int(found[1]) for found in _NUMBER.finditer(text)))[:_MOST_NAMED]
        rows = Memory.objects.of(principal.workspace).filter(number__in=numbers) if numbers else ()
        return cls(principal, tuple(rows))

    def memory_of(self, fact: Fact) -> str | None:
        """What the memory is called whose words these are, or ``None``."""
        texts = [words_of(text) for text in (fact.content, fact.quote) if text.strip()]
        for memories, enough in ((self.named, NAMED), (self._like(fact.content), VERBATIM)):
            for memory in memories:
                theirs = words_of(memory.content)
                if any(repeats(mine, theirs, enough=enough) for mine in texts):
                    return self._called(memory)
        return None

    def _like(self, content: str) -> Iterable[Memory]:
        workspace = self.principal.workspace
        terms = within(rarest_terms(workspace.pk, content, limit=_TERMS), matches=_MATCHES)
        if not terms:
            return ()
        rows = Memory.objects.of(workspace).extra(where=["search_vector @@ %s::tsquery"], params=[any_of(terms)])
        return rows.extra(
            select={"alike": "ts_rank(search_vector, %s::tsquery)"}, select_params=[any_of(terms)], order_by=["-alike"]
        )[:_COMPARED]

    def _called(self, memory: Memory) -> str:
        return memory.label if set(memory.audience_ids) <= self.principal.audience_ids else "a memory"


def words_of(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(normalise_for_fingerprint(text)))


_DENIALS: Final = frozenset(
    [
        *("not", "no", "never", "none", "without", "nor", "wrong", "longer", "instead", "neither", "cannot", "t"),
        *("nicht", "kein", "keine", "nie", "ohne", "ne", "pas", "jamais", "sans", "nunca", "sin", "não", "sem"),
    ]
)


def repeats(mine: tuple[str, ...], theirs: tuple[str, ...], *, enough: float) -> bool:
    """Whether one says what the other says, word for word or nearly so, and denies none of it.

    The order counts: "jitter, never fixed waits" has the words of its opposite.
    """
    if _stands_in(mine, theirs):
        return True
    if _denials(mine) != _denials(theirs):
        return False
    if _stands_in(theirs, mine) and len(theirs) >= _MOSTLY * len(mine):
        return True
    return SequenceMatcher(None, mine, theirs, autojunk=False).ratio() >= enough


def _stands_in(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return len(part) >= _LEAST_WORDS and f" {' '.join(part)} " in f" {' '.join(whole)} "


def _denials(words: tuple[str, ...]) -> int:
    return sum(word in _DENIALS for word in words)
