"""Facts without a model: decisive sentences by lexicon and structure, typed by rule.

It reads what people say outright and misses what they imply, so nothing it finds is surer than 0.5 and all of it waits
in quarantine. Sentences that point back take what they point at along, names of people are left out, and what is about
a person or will not be true next week is refused.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from apps.capture.extractors.base import (
    Extraction,
    Fact,
    Heartbeat,
    Material,
    Refused,
    Vocabulary,
    no_heartbeat,
)
from apps.capture.extractors.decisiveness import (
    FORBIDS,
    HEADING_SCORE,
    HEADINGS,
    NOW,
    ORDER,
    THRESHOLD,
    is_transient,
    score_of,
    without_description,
)
from apps.capture.extractors.rule_types import types_for
from apps.capture.prefilter import acknowledges
from apps.capture.splitting import parts_of, readable
from apps.capture.statements import Statement, statements_of
from apps.core.screening import exclusions
from apps.core.screening.people import People, impersonal, is_about_a_person
from apps.core.screening.signals import Meaning, meanings_of
from apps.core.screening.text import normalise_for_fingerprint

MAX_FACTS: Final = 20
MAX_REFUSED: Final = 40
MAX_CONFIDENCE: Final = 0.5
MAX_QUOTE: Final = 500
MAX_CONTENT: Final = 1000
PART_TOKENS: Final = 4000

_EXCLUDED: Final = "excluded"
_DROPPED: Final = "dropped_classifier"

ABOUT_A_PERSON: Final = exclusions.REASONS[exclusions.INDIVIDUALS]
TRANSIENT: Final = exclusions.REASONS[exclusions.TRANSIENT]
POINTS_BACK: Final = "It points back to something that the material does not say."
NO_TYPE: Final = "None of the types in use fits it."
NOT_AMONG_THE_FIRST: Final = f"It is decisive, but {MAX_FACTS} sentences of this text are more so."
NOTHING_FOUND: Final = (
    "No sentence in it states a decision, a rule, a cause, an owner or a term outright; what is only implied is not"
    " found by rules without a model."
)

# --- Sentences that point back ------------------------------------------------------------------------------

# "It was decided to …", "it is forbidden to …": this it stands for nothing that was said before.
_DANGLING: Final = re.compile(
    r"(?!(?:it|il) (?:(?:was|is|has been|had been|a été|est) )(?:\w+ ){0,2}?(?:decided|agreed|settled|concluded"
    r"|resolved|determined"
    r"|forbidden|prohibited|mandatory|required|allowed|not allowed|recommended|possible|necessary|important"
    r"|impossible|décidé"
    r"|convenu|interdit|obligatoire|nécessaire) (?:to|that|not to|in|by|with|at|on|de|que|d'|qu')(?![\w-]))"
    r"(?:it|its|it's|this|that|that's|these|those|they|their|them|he|she|so|then|therefore|hence|thus|otherwise"
    r"|because|but|and|or|also|which|same|both|neither|such|here|hence|instead|still|however|consequently"
    r"|as a result|either way|for that|one of|the (?:same|latter|former|second|first|other|others) (?:one|ones|is"
    r"|are|was|does|do|has|have)|the (?:latter|former)|all (?:three|two|four|of (?:them|these|those))|as such"
    r"|if (?:so|not|unavoidable|unavailable|needed)|nor|yet|too|true|since then|after that|only that|until then|das"
    r"|dies|diese[rs]?|er|sie|daher|deshalb|sonst|aber|und|damit|dann|cela|ça|c'est|ce|il|elle|ils|donc|mais|et"
    r"|sinon|esto|eso|ese|esta|pero|y|así|entonces|isso|isto|ele|ela|mas|e|então|assim|questo|quello|ma|quindi|dit"
    r"|dat|maar|en|dus)(?![\w'’-])|これ|それ|その|この|だから|しかし|这|那|它|但|所以|因此|否则",
    re.IGNORECASE,
)
_THIS_CHANGE: Final = re.compile(r"This (?!is\b|was\b|has\b|needs\b|works\b|does\b)(?=[a-z]{2,}s\b)")
_POINTS_BACK_LATER: Final = re.compile(
    r"\b(?:(?:see|the|as|from) above|this one|that one|do that|does that|did that|(?:these|those) (?:\w+ )?[a-z]+s"
    r"|(?:edit|use|change|of|in|on|to|for|with) that (?!is\b|the\b|it\b|we\b|you\b|all\b|no\b)[a-z]+)\b",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(
    r"^[(\[\"'“‘]{0,3}(?:(?:lgtm|ok|okay|yes|yep|no|nope|yeah|hi|hey|thanks(?: for \w+)?|thank you|fyi(?: for \w+)?"
    r"|nit|heads up|heads-up|tl;dr|true|right|sure|well|btw|by the way|found it|great|nice|small thing|one thing"
    r"|minor|same (?:remark|comment|thing)[\w ]{0,30})[ ]?[,:;!.–—-]+ *(?:(?:but|and|then)\b[, ]*)?){0,5}",
    re.IGNORECASE,
)
_NUMBERED: Final = re.compile(r"^(?:ADR[- ]?)?\d{1,5}[.:] ")
_MIN_LETTERS: Final = 8
_MIN_WORDS: Final = 3
_INLINE_CODE: Final = re.compile(r"`[^`\n]+`")
_WIDE: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_LOOK_BACK: Final = 2


@dataclass(frozen=True, slots=True)
class _Found:
    score: int
    position: int
    fact: Fact


@dataclass(slots=True)
class _Findings:
    """The most decisive facts so far, each once, and what was refused."""

    best: list[_Found] = field(default_factory=list)
    refused: dict[str, Refused] = field(default_factory=dict)
    left_out: int = 0
    _known: dict[str, int] = field(default_factory=dict)

    def add(self, found: _Found) -> None:
        key = normalise_for_fingerprint(found.fact.content)
        if key in self._known:
            return
        self._known[key] = found.position
        self.best.append(found)
        if len(self.best) > MAX_FACTS:
            self.best.sort(key=lambda one: (-one.score, one.position))
            last = self.best.pop()
            self.left_out += 1
            self.refuse(last.fact.content, _DROPPED, NOT_AMONG_THE_FIRST)

    def replace(self, old: _Found, new: _Found) -> bool:
        if old not in self.best:
            return False
        self.best[self.best.index(old)] = new
        self._known[normalise_for_fingerprint(new.fact.content)] = new.position
        return True

    def refuse(self, content: str, outcome: str, reason: str) -> None:
        key = normalise_for_fingerprint(content)
        if len(self.refused) < MAX_REFUSED:
            self.refused.setdefault(key, Refused(content[:MAX_CONTENT], outcome, reason))

    def extraction(self) -> Extraction:
        facts = tuple(one.fact for one in sorted(self.best, key=lambda one: one.position))
        note = "" if facts else NOTHING_FOUND
        if self.left_out:
            note = f"{self.left_out} further sentences were decisive; the {MAX_FACTS} most decisive are proposed."
        return Extraction(facts=facts, refused=tuple(self.refused.values()), note=note)


class RulesExtractor:
    """Needs no model and no key. Fails for no text; what it cannot read it does not find."""

    name = "rules"

    def extract(self, material: Material, vocabulary: Vocabulary, *, heartbeat: Heartbeat = no_heartbeat) -> Extraction:
        text = readable(material.text, material.kind)
        findings = _Findings()
        people = People()
        for part in parts_of(text, material.kind, budget=PART_TOKENS):
            heartbeat()
            reading = _Reading(material, vocabulary, people, findings, part.text, part.start)
            for statement in statements_of(part.text, material.kind):
                reading.judge(statement)
        return findings.extraction()


class _Reading:
    """Judges the sentences of one part in their order."""

    def __init__(
        self, material: Material, vocabulary: Vocabulary, people: People, findings: _Findings, text: str, offset: int
    ) -> None:
        self._material = material
        self._vocabulary = vocabulary
        self._people = people
        self._findings = findings
        self._text = text
        self._offset = offset
        self._before: deque[Statement] = deque(maxlen=_LOOK_BACK + 1)
        self._intro: Statement | None = None
        self._section: tuple[Statement, _Found] | None = None

    def judge(self, statement: Statement) -> None:
        self._people.hear(statement.speaker)
        if statement.text.endswith((":", "：")):
            self._intro = statement
        elif not statement.quoted and not statement.is_question and _is_sentence(statement.text):
            self._judge(statement)
        if not statement.bullet and not statement.text.endswith((":", "：")):
            self._intro = None
        self._before.append(statement)

    def _judge(self, statement: Statement) -> None:
        if self._words_over(statement) and self._before and self._before[-1].block == statement.block:
            self._append(statement)
            return
        said = replace(statement, text=without_description(_INLINE_CODE.sub("``", statement.text)))
        meanings = meanings_of(said.text, self._material.hints)
        heading = HEADINGS.get(statement.heading)
        if heading:
            meanings |= {heading[0]}
        over = self._forbidden_by(statement)
        if over:
            meanings |= {Meaning.RULE}
        score = (HEADING_SCORE if over else 0) + score_of(said, meanings, self._material.kind, self._material.hints)
        marked = self._people.marked(statement.text)
        if is_about_a_person(marked):
            self._findings.refuse(impersonal(marked), _EXCLUDED, ABOUT_A_PERSON)
            return
        if is_transient(said.text, meanings, score):
            self._findings.refuse(impersonal(marked), _EXCLUDED, TRANSIENT)
            return
        if score < THRESHOLD:
            return
        taken = self._with_what_it_points_at(statement)
        if not taken:
            self._findings.refuse(impersonal(marked), _DROPPED, POINTS_BACK)
            return
        content = self._content(taken)
        slug = self._slug(types_for(said, meanings, self._material.kind, content))
        if slug is None:
            self._findings.refuse(content, _DROPPED, NO_TYPE)
            return
        fact = Fact(
            content=content[:MAX_CONTENT],
            type=slug,
            confidence=min(MAX_CONFIDENCE, round(0.26 + 0.04 * score, 2)),
            quote=self._quote(taken),
            supersedes=_supersedes(statement.text, meanings),
        )
        found = _Found(score, self._offset + statement.start, fact)
        if heading and score - HEADING_SCORE < THRESHOLD and self._joined(statement, found):
            return
        self._section = (statement, found)
        self._findings.add(found)

    def _joined(self, statement: Statement, found: _Found) -> bool:
        """Whether a sentence that is decisive only by its heading became part of the fact before it."""
        if statement.bullet or not self._section:
            return False
        first, _ = self._section
        same = first.heading == statement.heading and first.title == statement.title and not first.bullet
        return same and self._append(statement)

    def _append(self, statement: Statement) -> bool:
        """Lengthen the last fact by ``statement``, if it is of the same section or list item and not too long then."""
        if not self._section:
            return False
        first, before = self._section
        quote = self._text[first.start : statement.end]
        if (statement.bullet and first.block != statement.block) or len(quote) > MAX_QUOTE:
            return False
        if before.fact.quote not in quote:
            return False
        content = f"{before.fact.content} {self._content([statement])}"
        whole = replace(before, fact=replace(before.fact, content=content[:MAX_CONTENT], quote=quote))
        self._section = (first, whole)
        return self._findings.replace(before, whole)

    def _with_what_it_points_at(self, statement: Statement) -> list[Statement]:
        """The sentence behind those that it needs, or nothing where these are missing."""
        taken = [statement]
        if statement.bullet and self._intro and (statement.text[:1].islower() or FORBIDS.match(self._intro.text)):
            return [self._intro, statement]
        earlier = list(self._before)
        while _points_back(taken[0].text) and not (len(taken) == 1 and self._opens_with_the_change(statement)):
            while earlier and acknowledges(earlier[-1].text):
                earlier.pop()
            if not earlier or len(taken) > _LOOK_BACK or (statement.bullet and earlier[-1].block != statement.block):
                return []
            before = earlier.pop()
            if NOW.search(before.text) or is_about_a_person(self._people.marked(before.text)):
                return []
            taken.insert(0, before)
        if over := self._forbidden_by(statement):
            return [Statement(f"{over[:1].upper()}{over[1:]}:", statement.start, statement.start, 0), *taken]
        if statement.title and HEADINGS.get(statement.heading, ("",))[0] == Meaning.DECISION and len(taken) == 1:
            title = Statement(f"{statement.title.rstrip('.')}:", statement.start, statement.start, 0)
            taken.insert(0, title)
        return taken

    def _forbidden_by(self, statement: Statement) -> str:
        """The words that must go before a list item lest it say the opposite; one that says so itself needs none."""
        return "" if ORDER.match(statement.text) else self._words_over(statement)

    def _words_over(self, statement: Statement) -> str:
        """The words over a list that make its items things not to do. They turn the first sentence of an item only."""
        if not statement.bullet:
            return ""
        over = self._intro.text if self._intro else statement.heading
        return over.rstrip(" :：") if FORBIDS.match(over) else ""

    def _opens_with_the_change(self, statement: Statement) -> bool:
        """ "This replaces …" at the beginning of a merge request or commit speaks of the change itself."""
        return (
            not self._before
            and self._material.kind in ("merge_request", "commit")
            and bool(_THIS_CHANGE.match(statement.text))
        )

    def _quote(self, taken: list[Statement]) -> str:
        start, end = min(one.start for one in taken), taken[-1].end
        if end - start > MAX_QUOTE:
            start = taken[-1].start
        return self._text[start : min(end, start + MAX_QUOTE)].strip()

    def _content(self, taken: list[Statement]) -> str:
        sentences = [impersonal(self._people.marked(_without_lead(one.text))) for one in taken]
        return _THIS_CHANGE.sub("This change ", _NUMBERED.sub("", " ".join(filter(None, sentences))))

    def _slug(self, wanted: Iterable[str]) -> str | None:
        return next((slug for name in wanted if (slug := self._vocabulary.slug_of(name))), None)


def _is_sentence(text: str) -> bool:
    begin = text[:200]
    wide = len(_WIDE.findall(begin))
    return sum(map(str.isalnum, begin)) + 2 * wide >= _MIN_LETTERS and (wide > 0 or len(begin.split()) >= _MIN_WORDS)


def _without_lead(text: str) -> str:
    return _LEAD.sub("", text) or text


def _points_back(text: str) -> bool:
    return bool(_DANGLING.match(_without_lead(text)) or _POINTS_BACK_LATER.search(text))


def _supersedes(text: str, meanings: frozenset[Meaning]) -> tuple[str, ...]:
    if Meaning.REPLACEMENT not in meanings:
        return ()
    return tuple(dict.fromkeys(re.findall(r"\bM-[1-9]\d{0,9}\b", text)))
