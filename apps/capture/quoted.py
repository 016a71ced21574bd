"""Our own words, coming back: a transcript that quotes an answer of ours is no new evidence for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Final

from apps.accounts.principal import Principal
from apps.capture.extractors.base import Fact
from apps.core.screening.text import normalise_for_fingerprint
from apps.memories.models import Memory
from apps.retrieval.terms import any_of, rarest_terms, within

OURS: Final = "the firm memory"
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
# An answer of ours as a tool or an API gives it, also escaped within another string.
_OUR_NUMBER: Final = re.compile(
    r"\\{0,3}[\"'](?:number|label|memory)\\{0,3}[\"']\s{0,4}:\s{0,4}\\{0,3}[\"']M-[1-9]\d{0,8}\b"
)
_OUR_CONTENT: Final = re.compile(r"\\{0,3}\"content\\{0,3}\"\s{0,4}:\s{0,4}\\{0,3}\"(?P<said>(?:[^\"\\]|\\.){1,4000})")
# So far from its number stands what an answer says.
_REACH: Final = 4000
_SAYS: Final = (
    r"(?:says?|states?|tells?|holds?|reads?|records?|notes?|has it|contains?|confirms?|answers?|answered|said|stated"
    r"|sagt|besagt|steht|dit|indique|dice)"
)
_OURS: Final = (
    r"(?:(?:the|our|your|die|der|das|la|le|el) )?(?:firm[ -]?memory(?: server| tool| search)?|memory_search"
    r"|\[?M-[1-9]\d{0,8}\]?)"
)
_ATTRIBUTED: Final = re.compile(
    rf"\b(?:according to|as per|per|as (?:stated|recorded|noted|written|remembered|said) in|quoting|citing|laut|gemäß"
    rf"|selon|d'après|según|segundo|secondo|volgens) {_OURS}(?!\w)"
    rf"|(?<!\w){_OURS}(?: \([^()]{{0,40}}\))?(?: (?:also )?{_SAYS}\b|: ?[\"“'«])",
    re.IGNORECASE,
)
# What is said against a memory is news, whoever is quoted on the way to it.
_BREAKS: Final = re.compile(
    r"\b(?:but|however|no longer|not any ?more|outdated|wrong|obsolete|stale|instead|replaces?|replaced|supersed\w+"
    r"|changed|contradicts?|unlike|although|contrary|from now on|aber|jedoch|nicht mehr|veraltet|falsch|statt|mais|pero"
    r"|mas|ma)\b",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"\bM-([1-9][0-9]{0,8})\b")
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Quoted:
    """The memories that some material may be quoting, looked up for whoever handed it over."""

    principal: Principal
    named: tuple[Memory, ...] = field(default=())
    answered: tuple[tuple[str, ...], ...] = field(default=())

    @classmethod
    def in_material(cls, principal: Principal, text: str) -> Quoted:
        numbers = list(dict.fromkeys(int(found[1]) for found in _NUMBER.finditer(text)))[:_MOST_NAMED]
        rows = Memory.objects.of(principal.workspace).filter(number__in=numbers) if numbers else ()
        return cls(principal, tuple(rows), tuple(answers_in(text)))

    def memory_of(self, fact: Fact) -> str | None:
        """What the memory is called whose words these are, or ``None``."""
        texts = [words_of(text) for text in (fact.content, fact.quote) if text.strip()]
        for memories, enough in ((self.named, NAMED), (self._like(fact.content), VERBATIM)):
            for memory in memories:
                theirs = words_of(memory.content)
                if any(repeats(mine, theirs, enough=enough) for mine in texts):
                    return self._called(memory)
        if any(repeats(mine, theirs, enough=NAMED) for mine in texts for theirs in self.answered):
            return OURS
        return OURS if any(is_ours(text) for text in (fact.content, fact.quote)) else None

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


def answers_in(text: str) -> Iterator[tuple[str, ...]]:
    """What the answers of ours say that stand in some material, word by word."""
    reached = count = 0
    for number in _OUR_NUMBER.finditer(text):
        for content in _OUR_CONTENT.finditer(text, max(reached, number.start() - _REACH), number.end() + _REACH):
            reached = content.end()
            count += 1
            if count > _MOST_NAMED:
                return
            yield words_of(content["said"].replace("\\n", " ").replace("\\", ""))


def is_ours(text: str) -> bool:
    """Whether a text is an answer of ours as it came, or says of itself that it repeats one."""
    if _OUR_NUMBER.search(text):
        return True
    return bool(_ATTRIBUTED.search(text)) and not _BREAKS.search(text)


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
