"""What was found so far in the parts of one material by asking a model, and what that cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from apps.capture.extractors.base import (
    Extraction,
    ExtractorError,
    Fact,
    Heartbeat,
    Refused,
    TooLong,
    Usage,
    Vocabulary,
)
from apps.capture.extractors.chat import Answer, ChatModel
from apps.capture.extractors.prompts import Messages, typing_messages
from apps.capture.extractors.replies import DROPPED, UnreadableReply, read_items
from apps.capture.splitting import Part, parts_of
from apps.core.screening import masked
from apps.core.tokens import estimated_tokens

NOTHING: Final = "The model found nothing durable in it."
CUT: Final = "The model's reply was cut off."
_EXCERPT: Final = 200
# The estimated tokens of one part, at most; and as little as it is worth asking a model with a short context about.
PART_TOKENS: Final = 6_000
SMALLEST_PART: Final = 350
# How much a model can read, as its errors have taught: not to be learned anew with each part.
_REMEMBERED_SECONDS: Final = 3_600.0
_room: dict[str, tuple[int, float]] = {}


def room_of(model: str) -> int:
    """How many tokens of material it is asked about at once."""
    tokens, until = _room.get(model, (PART_TOKENS, 0.0))
    return tokens if time.monotonic() < until else PART_TOKENS


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
        self._answered = 0
        self._usage = Usage()

    def _typed(self) -> Sequence[Fact]:
        """The facts that were found, each of a type of the vocabulary; what has none is refused."""
        raise NotImplementedError

    def extraction(self) -> Extraction:
        """Everything that was found. Raises where none of the replies could be read."""
        if self._unreadable and len(self._unreadable) == self._answered:
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

    def _answers(self, part: Part, kind: str, messages: Callable[[Part], Messages]) -> Iterator[tuple[Part, Answer]]:
        """What the model says of a part: in halves, and halves of these, where it cannot read as much at once."""
        for piece in _pieces(part, kind, room_of(self._model.model)):
            try:
                answer = self._ask(messages(piece))
            except TooLong as error:
                self._less_at_once(estimated_tokens(piece.text), error)
                yield from self._answers(piece, kind, messages)
            else:
                self._answered += 1
                yield piece, answer

    def _less_at_once(self, tokens: int, error: TooLong) -> None:
        half = min(tokens, room_of(self._model.model)) // 2
        if half < SMALLEST_PART:
            raise TooLong(
                f"The language model {self._model.model} cannot read even {tokens:,} tokens of the material beside its "
                "instructions. Use one with a longer context.",
                permanent=True,
                usage=error.usage,
            ) from None
        _room[self._model.model] = half, time.monotonic() + _REMEMBERED_SECONDS

    def _types(self, contents: Sequence[str]) -> dict[int, tuple[str, object]]:
        """Type and confidence by number, from 1 on. Raises ``UnreadableReply``."""
        try:
            answer = self._ask(typing_messages(contents, self._vocabulary))
        except TooLong:
            if len(contents) == 1:
                raise
            middle = len(contents) // 2
            later = self._types(contents[middle:])
            return self._types(contents[:middle]) | {middle + number: named for number, named in later.items()}
        return _read_types(answer.text, most=len(contents))

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


def _pieces(part: Part, kind: str, room: int) -> list[Part]:
    """The part itself, or as many as it takes to ask about no more than there is room for."""
    if estimated_tokens(part.text) <= room:
        return [part]
    pieces = parts_of(part.text, kind, budget=room)
    return [replace(piece, heading=" > ".join(filter(None, (part.heading, piece.heading)))) for piece in pieces]


def _read_types(text: str, *, most: int) -> dict[int, tuple[str, object]]:
    """As the model wrote them. Raises ``UnreadableReply``."""
    found: dict[int, tuple[str, object]] = {}
    for item in read_items(text, key="facts", mark="number").items:
        value = item.value if isinstance(item.value, dict) else {}
        number, name = value.get("number"), value.get("type")
        if isinstance(number, str) and number.strip().isdecimal() and len(number) < 6:
            number = float(number)
        if isinstance(number, float) and number.is_integer() and 1 <= number <= most and isinstance(name, str):
            found.setdefault(int(number), (name, value.get("confidence")))
    return found
