"""Whether a statement looks as if it would replace, or repeats, one that is known. A suggestion, and never more.

Told by cues, each with a sentence that says so: the new text says that it replaces something, and what it says is
replaced is what the old one is about; it names the old one, or the old one names it as its successor; it says the same
with another value or with a "not"; or it goes by the same title with a later number. Talk of replacing that is about a
possibility, a refusal or the future is no cue. A wrong suggestion costs a reviewer's trust and a missed one costs
nothing that was there before, so a pair is left alone unless its cues are plain (docs/benchmarks.md has how often they
are right).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from apps.retrieval.contents import Contents, contents_of, likeness
from apps.retrieval.likeness import say_the_same

LEAST: Final = 0.6
_READ: Final = 6_000  # characters of a text
_MOST_SENTENCES: Final = 60
NAMED: Final = 0.9  # the least of a cue that names the other one


@dataclass(frozen=True, slots=True)
class Statement:
    """``names`` are what others may call it by: its number, the references of its sources."""

    content: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``score`` is in [LEAST, 1]: the strongest cue's, a little more for each further one."""

    what: str  # replaces | repeats
    score: float
    cues: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {"what": self.what, "score": self.score, "cues": list(self.cues)}


def suggest(old_text: str, new_text: str) -> float | None:
    """The score of a suggestion that the new text replaces the old one, or ``None``."""
    found = replacement(Statement(old_text), Statement(new_text))
    return None if found is None else found.score


def replacement(old: Statement, new: Statement) -> Suggestion | None:
    """``None`` where the cues do not suffice."""
    before, after = _Read(old), _Read(new)
    cues = sorted(_cues(before, after), reverse=True)
    if not cues:
        return None
    best = cues[0][0] + 0.05 * (len(cues) - 1)
    return Suggestion("replaces", min(round(best, 2), 1.0), tuple(cue for _, cue in cues)) if best >= LEAST else None


def repetition(old: Statement, new: Statement) -> Suggestion | None:
    """The same said in nearly the same words, of which one of the two has none of its own."""
    before, after = contents_of(old.content[:_READ]), contents_of(new.content[:_READ])
    if not say_the_same(before, after):
        return None
    alike = likeness(before, after)
    cue = f"{alike:.0%} of their words are the same, and {_beyond(before, after)}."
    return Suggestion("repeats", round(alike, 2), (cue,))


def _beyond(before: Contents, after: Contents) -> str:
    """Which of the two says more, of which one says all that the other does."""
    if before.words == after.words:
        return "neither says anything that the other does not"
    return "this says nothing beyond the other" if after.words <= before.words else "this adds to what the other says"


def suggestion(old: Statement, new: Statement) -> Suggestion | None:
    """What a reviewer should be asked about the pair."""
    found = replacement(old, new)
    if found is not None and found.score >= NAMED:
        return found
    return repetition(old, new) or found


Cue = tuple[float, str]


def _cues(old: _Read, new: _Read) -> Iterator[Cue]:
    yield from _said_by_new(old, new)
    yield from _said_by_old(old, new)
    yield from _another_value(old, new)
    yield from _later_number(old, new)


# --- what the texts say of replacing ----------------------------------------------------------------------------

# Behind these stands what gives way …
_GIVES_WAY_BEHIND: Final = re.compile(
    r"\b(?:supersed(?:es?|ing)|replac(?:es?|ed|ing)|obsolet(?:es?|ing)|instead of|rather than|"
    r"no longer (?:\w+(?: (?:in|on|at|by|with|through|to|from|over))?)|"
    r"switch(?:ed|es)? from|(?:moves?|moved|migrat\w+) (?:away )?from|(?:takes?|took) .{0,40}?\bover from)"
    r"\s+(?P<what>(?:[^.,;:!?]|[.,](?=\d)){3,160})",
    re.IGNORECASE,
)
# … and before these.
_GIVES_WAY_BEFORE: Final = re.compile(
    r"(?P<what>(?:[^.,;:!?]|[.,](?=\d)){3,160}?)\s+(?:(?:is|are|was|were|has been|have been) (?:superseded|replaced|"
    r"obsoleted|withdrawn|abandoned|dropped|retired|switched off|discontinued)|no longer (?:holds?|applies|apply)|"
    r"gives? way)\b",
    re.IGNORECASE,
)
_SUPERSEDED_BY: Final = re.compile(r"\b(?:superseded|replaced|obsoleted) (?:by|with)\b", re.IGNORECASE)
_EARLIER: Final = re.compile(
    r"\b(?:earlier|previous|former|old) (?:decision|rule|limit|approach|choice|policy|convention)\b|\bfrom now on\b",
    re.IGNORECASE,
)
_SUPPOSED: Final = re.compile(
    r"\b(?:would|could|may|might|if|should|some ?day|future|eventually|proposal|proposes?|proposed|considered|idea|"
    r"hypothetical\w*|contender|draft|under discussion|will|expect\w*|can(?:'t|not)?|intent|intend\w*)\b",
    re.IGNORECASE,
)
_DENIED: Final = re.compile(
    r"\b(?:(?:does|do|did|is|are|was|were)(?: not|n't)(?: \w+)? (?:supersed\w+|replac\w+|meant)|"
    r"(?:replaces?|supersedes?) nothing|without (?:replacing|superseding)|not (?:to )?(?:replace|supersede))\b",
    re.IGNORECASE,
)
_IN_PART: Final = re.compile(
    r"\b(?:partial(?:ly)?|in part|amends?|extends?|adds? to|in addition|all other|everything else)\b", re.IGNORECASE
)
# Of what is said to give way, so much has to be what the old one is about.
_ABOUT_IT: Final = 0.6
# So many words besides have to be common to both.
_SHARED: Final = 1


def _said_by_new(old: _Read, new: _Read) -> Iterator[Cue]:
    for sentence in new.sentences:
        given_way = [_clause(match["what"]) for match in _gives_way(sentence)]
        speaks = bool(given_way) or _EARLIER.search(sentence) is not None
        if not speaks or _is_unsure(sentence):
            continue
        if old.is_named_in(sentence):
            yield 0.95, f"It says: “{_quoted(sentence)}”, and names it."
            return
        if any(_is_about(old, new, what) for what in given_way):
            yield 0.8, f"It says: “{_quoted(sentence)}”"
            return
        told = words_of(sentence) - _ABOUT_REPLACING
        shared = len(told & old.words)
        if _EARLIER.search(sentence) and shared >= max(2, 0.4 * len(told)) and _same_subject(old, new):
            yield 0.7, f"It says: “{_quoted(sentence)}”"
            return


def _gives_way(sentence: str) -> Iterator[re.Match[str]]:
    yield from _GIVES_WAY_BEHIND.finditer(sentence)
    if not _SUPERSEDED_BY.search(sentence):
        yield from _GIVES_WAY_BEFORE.finditer(sentence)


def _clause(phrase: str) -> str:
    """Without the reason behind it."""
    return _REASON.split(phrase, maxsplit=1)[0]


_REASON: Final = re.compile(r"\b(?:since|because|so that|which|where|when|as it|to|by|with)\b", re.IGNORECASE)


def _is_about(old: _Read, new: _Read, phrase: str) -> bool:
    """What gives way is in the first sentence, most of it is what the old one speaks of, and both share a subject."""
    what = words_of(phrase) - _ABOUT_REPLACING
    telling = {word for word in what if len(word) > 3 or any(map(str.isdigit, word))} - _NUMBER_WORDS.keys()
    return (
        bool(telling & old.first)
        and len(what & old.words) >= _ABOUT_IT * len(what)
        and len(old.words & words_of(new.text.replace(phrase, " "))) >= _SHARED
        and _same_subject(old, new)
    )


def _same_subject(old: _Read, new: _Read) -> bool:
    """What the old one is about is in the new one, and what the new one is about adds nothing to it.

    "Videos are served through Mux instead of CloudFront" says nothing of images, and "certificates for internal hosts"
    are some of all certificates.
    """
    return old.subject <= new.words and new.subject <= old.words


def _said_by_old(old: _Read, new: _Read) -> Iterator[Cue]:
    for sentence in old.sentences:
        if _SUPERSEDED_BY.search(sentence) and not _is_unsure(sentence) and new.is_named_in(sentence):
            yield 0.9, f"What is known says: “{_quoted(sentence)}”, and names it."
            return


def _is_unsure(sentence: str) -> bool:
    """A possibility, a refusal, a question, or only a part."""
    return sentence.rstrip().endswith("?") or any(unsure.search(sentence) for unsure in (_SUPPOSED, _DENIED, _IN_PART))


# --- the same, but otherwise ------------------------------------------------------------------------------------

_NUMBER_WORDS: Final = {
    word: str(value)
    for value, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
_NOT: Final = re.compile(r"\b(?:not|never|no|without|don't|doesn't|mustn't|cannot|can't|isn't|aren't)\b", re.IGNORECASE)
_NOT_WORDS: Final = frozenset({"not", "never", "without", "cannot", "don't", "doesn't", "mustn't", "can't", "isn't"})
# A document says much; that two of its sentences are alike says nothing.
_SHORT: Final = 1_000


def _another_value(old: _Read, new: _Read) -> Iterator[Cue]:
    """The first sentences say nearly the same, with other numbers or with a "not" in one of them."""
    if old.length > _SHORT or new.length > _SHORT or not old.sentences or not new.sentences:
        return
    before, after = old.sentences[0], new.sentences[0]
    said, known = words_of(_without_values(after)), words_of(_without_values(before))
    said, known = (words - _ABOUT_REPLACING - _NOT_WORDS for words in (said, known))
    if len(said & known) < 3 or said ^ known or not _same_subject(old, new):
        return
    if _goes_back(old, new):
        return
    if values_of(before) and values_of(after) and values_of(before) != values_of(after):
        yield 0.75, f"“{_quoted(before)}” and “{_quoted(after)}” differ in a value."
    elif bool(_NOT.search(before)) != bool(_NOT.search(after)):
        yield 0.75, f"“{_quoted(before)}” and “{_quoted(after)}” contradict each other."


def values_of(text: str) -> frozenset[str]:
    """Numbers, in digits or words."""
    named = (_NUMBER_WORDS.get(word, word) for word in re.findall(r"[a-z]+|\d+(?:[.,]\d+)*", text.lower()))
    return frozenset(value for value in named if value[0].isdigit())


def _without_values(text: str) -> str:
    return re.sub(rf"\b(?:{'|'.join(_NUMBER_WORDS)}|\d[\d.,]*)\b", " ", text, flags=re.IGNORECASE)


def _later_number(old: _Read, new: _Read) -> Iterator[Cue]:
    """The same title with a higher version or a later year behind it."""
    before, after = _NUMBERED.fullmatch(old.title), _NUMBERED.fullmatch(new.title)
    if before is None or after is None or not _number(before) < _number(after):
        return
    if words_of(before["title"]) == words_of(after["title"]) and len(words_of(after["title"])) >= 2:
        yield 0.75, f"“{_quoted(old.title)}” goes by the same title as “{_quoted(new.title)}”, with an earlier number."


def _goes_back(old: _Read, new: _Read) -> bool:
    """An earlier version does not replace a later one."""
    before, after = _NUMBERED.fullmatch(old.title), _NUMBERED.fullmatch(new.title)
    return before is not None and after is not None and _number(after) < _number(before)


_NUMBERED: Final = re.compile(r"(?P<title>.*?[^\d.])(?P<number>\d{1,4}(?:\.\d{1,3})?)\W*")


def _number(match: re.Match[str]) -> float:
    return float(match["number"])


# --- reading ----------------------------------------------------------------------------------------------------


class _Read:
    """A statement taken apart once. ``first`` are the words of its first line or sentence, ``subject`` what it says
    something of: those before the verb."""

    def __init__(self, statement: Statement) -> None:
        text = statement.content[:_READ]
        self.text = text
        self.length = len(statement.content)
        self.title, _, rest = (part.strip() for part in text.partition("\n"))
        self.sentences = sentences_of(text)
        self.words = words_of(text)
        self.first = words_of(self.sentences[0]) if self.sentences else frozenset()
        self.subject = subject_of(self.sentences[0]) if self.sentences else frozenset()
        # A statement of one line has no title that others would call it by.
        titled = (self.title.lower(),) if rest and len(words_of(self.title)) >= 3 else ()
        self._names = tuple(name.lower() for name in statement.names if len(name) >= 3) + titled

    def is_named_in(self, sentence: str) -> bool:
        """As a whole: M-1 is not named where M-12 is."""
        lowered = sentence.lower()
        return any(re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", lowered) for name in self._names)


_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|must|may|should|shall|can|will|does|do|did|needs?|uses?|runs?|goes|go|ends?|"
    r"owns?|keeps?|retry|retries|expires?|times? out|never|no longer|rounds?|calls?|carry|carries|comes?|lives?|"
    r"stands?|takes?|took|moves?|moved|reads?|writes?|sends?|gets?|stays?|stops?|starts?|holds?|begins?|waits?|now)\b",
    re.IGNORECASE,
)


def subject_of(sentence: str) -> frozenset[str]:
    """Its words before the verb, as far as the commonest verbs tell; else its first two words that mean something."""
    verb = _VERB.search(sentence, 1)
    if verb is not None:
        before = words_of(sentence[: verb.start()]) - _ABOUT_REPLACING
        if before and len(before) <= 5:
            return before
        if not before:
            return before  # "We moved away from …"
    telling = words_of(sentence)
    ahead = [word for word in map(_stem, map(str.lower, _WORD.findall(sentence))) if word in telling]
    return frozenset(list(dict.fromkeys(ahead))[:2])


_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n{2,}|\n(?=[-*•>] )")
_WORD: Final = re.compile(r"\w+(?:['’]\w+)?")
_STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be been but by do does for from had has have how if in into is it its may more no not of "
        "on or our out over so such than that the their them then there these they this those to up was we were what "
        "when which while who why will with you your",
    )
)
# These tell that something is replaced, and nothing about what.
_ABOUT_REPLACING: Final = frozenset(
    re.findall(
        r"\w+",
        "supersed replac obsolet instead longer favour favor switch withdrawn abandon drop retir now earlier previou "
        "former old decision rule choice approach policy move migrat take took away any anymore discontinu use limit",
    )
)


def sentences_of(text: str) -> list[str]:
    return [" ".join(part.split()) for part in _SENTENCE.split(text) if part.strip()][:_MOST_SENTENCES]


def words_of(text: str) -> frozenset[str]:
    """Words that carry meaning, without their commonest endings."""
    return frozenset(_stem(word) for word in map(str.lower, _WORD.findall(text)) if word not in _STOP_WORDS)


def _stem(word: str) -> str:
    for ending in ("ing", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def dice(first: frozenset[str], second: frozenset[str]) -> float:
    """Sørensen–Dice, in [0, 1]."""
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


def _quoted(sentence: str) -> str:
    return sentence if len(sentence) <= 160 else f"{sentence[:159].rstrip()}…"
