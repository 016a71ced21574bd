"""Facts by a language model with our own prompt: one call for each part of the material.

What the model says is checked as far as it can be: its types are of the vocabulary, its quotes stand in the material,
and what it wants to supersede is named there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from apps.capture.extractors.chat import Answer, configured_model
from apps.capture.extractors.findings import CUT, PART_TOKENS, Findings
from apps.capture.extractors.prompts import EXAMPLE_CONTENT, extraction_messages
from apps.capture.extractors.quotes import NONE_GIVEN, NOT_THERE, Passages
from apps.capture.extractors.replies import (
    DROPPED,
    ReadFact,
    UnreadableReply,
    keep_one,
    read_facts,
)
from apps.capture.splitting import Part, parts_of
from apps.core.screening import normalise_for_fingerprint, quotable
from apps.core.tokens import estimated_tokens

EXCLUDED: Final = "excluded"
_EXAMPLE: Final = normalise_for_fingerprint(EXAMPLE_CONTENT)
_NO_TYPE: Final = "none"


class LlmExtractor:
    name = "llm"

    def extract(self, material: Material, vocabulary: Vocabulary, *, heartbeat: Heartbeat = no_heartbeat) -> Extraction:
        """Raises ``ExtractorError`` where the model cannot be used, and where none of its replies can be read."""
        found = _Findings(configured_model(), vocabulary, heartbeat)
        for part in parts_of(material.text, material.kind, budget=PART_TOKENS):
            found.read(part, material.kind)
        return found.extraction()


class _Findings(Findings):
    def read(self, part: Part, kind: str) -> None:
        """One call for as much as the model can read at once."""
        for piece, answer in self._answers(
            part, kind, lambda piece: extraction_messages(piece, kind, self._vocabulary)
        ):
            self._read(piece, answer)

    def _read(self, part: Part, answer: Answer) -> None:
        """A reply that cannot be read is held against the part, as long as another part's can."""
        try:
            reply = read_facts(answer.text)
        except UnreadableReply as error:
            self._could_not_read(part, error)
            return
        self._refused += reply.refused
        self._notes += reply.notes
        if answer.cut and not any("cut off" in note for note in reply.notes):
            self._notes.append(CUT)
        passages = Passages(part.text)
        for fact in reply.facts:
            self._take(fact, passages)

    def _take(self, read: ReadFact, passages: Passages) -> None:
        if normalise_for_fingerprint(read.content) == _EXAMPLE:
            self._refused.append(Refused(read.content, DROPPED, "It repeats the example that the model was shown."))
            return
        quote = passages.find(read.quote)
        doubt = "" if quote else NOT_THERE if read.quote else NONE_GIVEN
        named = tuple(reference for reference in read.supersedes if passages.holds(reference))
        if len(named) < len(read.supersedes):
            self._notes.append("Left out what a fact wants to supersede, where the material does not name it.")
        fact = Fact(
            content=read.content,
            type=read.type,
            confidence=read.confidence,
            quote=quote,
            supersedes=named,
            doubt=" ".join(filter(None, (read.doubt, doubt))),
        )
        keep_one(self._facts, fact)

    def _typed(self) -> list[Fact]:
        """Those of an unknown type were asked about again."""
        unknown = [fact for fact in self._facts.values() if self._vocabulary.slug_of(fact.type) is None]
        if unknown:
            self._type_again(unknown)
        facts = self._facts.values()
        return [replace(fact, type=self._vocabulary.slug_of(fact.type) or fact.type) for fact in facts]

    def _type_again(self, unknown: list[Fact]) -> None:
        """One more call for all of them, with the list of types. What it does not settle is refused."""
        asked = within(unknown, PART_TOKENS)
        named = self._types_of([fact.content for fact in asked]) if asked else {}
        for number, fact in enumerate(unknown, start=1):
            key = normalise_for_fingerprint(fact.content)
            verdict = settle_type(named.get(number, ""), self._vocabulary)
            if isinstance(verdict, str):
                self._facts[key] = replace(fact, type=verdict)
                continue
            del self._facts[key]
            reason = f"Its type {quotable(fact.type)!r} is not in use. Asked again: {verdict[1]}"
            self._refused.append(Refused(fact.content, verdict[0], reason))

    def _types_of(self, contents: Sequence[str]) -> dict[int, str]:
        try:
            return {number: name for number, (name, _) in self._types(contents).items()}
        except UnreadableReply as error:
            self._notes.append(error.message)
            return {}


def within(facts: list[Fact], tokens: int) -> list[Fact]:
    """As many of the first as fit into one call."""
    left = tokens
    kept: list[Fact] = []
    for fact in facts:
        left -= estimated_tokens(fact.content) + 20
        if left < 0:
            break
        kept.append(fact)
    return kept


def settle_type(name: str, vocabulary: Vocabulary) -> str | tuple[str, str]:
    """The slug of a type; or the outcome and the sentence with which a fact is refused."""
    slug = vocabulary.slug_of(name)
    if slug is not None:
        return slug
    wanted = name.strip().casefold()
    for exclusion, description in vocabulary.exclusions:
        if wanted == exclusion.casefold():
            return EXCLUDED, f"The model counts it as {exclusion}: {description}"
    if wanted in ("", _NO_TYPE):
        return DROPPED, "The model found no type for it."
    return DROPPED, f"The model named the type {quotable(name)!r}, which is not in use."
