"""What was found so far in the parts of one material by asking a model, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from apps.capture.extractors.base import Extraction, ExtractorError, Fact, Heartbeat, Refused, Usage, Vocabulary
from apps.capture.extractors.chat import Answer, ChatModel
from apps.capture.extractors.prompts import Messages
from apps.capture.extractors.replies import DROPPED, UnreadableReply
from apps.capture.splitting import Part
from apps.core.screening import masked

NOTHING: Final = "The model found nothing durable in it."
CUT: Final = "The model's reply was cut off."
_EXCERPT: Final = 200


class Findings:
    """Each extractor adds how it asks about a part, and how its facts get their types."""

    def __init__(self, model: ChatModel, vocabulary: Vocabulary, heartbeat: Heartbeat) -> None:
        self._model = model
        self._vocabulary = vocabulary
        self._heartbeat = heartbeat
        self._facts: dict[str, Fact] = {}
        self._refused: list[Refused] = []
        self._notes: list[str] = []
        self._unreadable: list[UnreadableReply] = []
        self._usage = Usage()

    def _typed(self) -> Sequence[Fact]:
        """The facts that were found, each of a type of the vocabulary; what has none is refused."""
        raise NotImplementedError

    def extraction(self, parts: Sequence[Part]) -> Extraction:
        """Everything that was found. Raises where none of the replies could be read."""
        if self._unreadable and len(self._unreadable) == len(parts):
            self._unreadable[-1].usage = self._usage
            raise self._unreadable[-1]
        facts = tuple(self._typed())
        notes = self._notes if facts or self._refused else [*self._notes, NOTHING]
        return Extraction(
            facts=facts,
            refused=tuple(replace(refused, content=masked(refused.content)) for refused in self._refused),
            usage=self._usage,
            note=" ".join(dict.fromkeys(notes)),
        )

    def _ask(self, messages: Messages) -> Answer:
        """One call. What was spent before goes along with a failure."""
        self._heartbeat()
        try:
            answer = self._model.ask(messages)
        except ExtractorError as error:
            error.usage += self._usage
            raise
        self._usage += answer.usage
        return answer

    def _could_not_read(self, part: Part, error: UnreadableReply) -> None:
        """Held against the part, as long as another part's reply can be read."""
        self._unreadable.append(error)
        self._refused.append(Refused(part.text[:_EXCERPT], DROPPED, f"{error.message} It was about this part."))
