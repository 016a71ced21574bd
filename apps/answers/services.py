"""A question and its answer: composed by a model, or the statements themselves; each sentence with its citations."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from apps.accounts.principal import Principal
from apps.answers.composing import Composed, composed
from apps.answers.quoting import changes_of, quoted
from apps.answers.sentences import COMPOSED, Sentence, citations_of
from apps.answers.use import use_record
from apps.capture.budget import seconds_until_affordable
from apps.capture.extractors.base import ExtractorError
from apps.core.screening import masked
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search

FOUND: Final = 10
NOTHING: Final = "Nothing is known here about this."
COULD_NOT_LOOK: Final = "Nothing was found in what could be looked at."
_SHOWN_INSTEAD: Final = ", so these are the statements themselves."
_NO_MODEL: Final = "The language model did not give an answer that can be used, so these are the statements themselves."
_NO_TOKENS: Final = "The tokens that models may cost in a day are used up, so these are the statements themselves."
_NOT_SUPPORTED: Final = (
    "What the language model said is not supported by what it cited, so these are the statements themselves."
)

_NO_ANSWER: Final = "The language model found no answer in what was found, so these are the statements themselves."
_NONE_NEAR: Final = "No statement is near enough to the question to be quoted; the results are what is nearest."

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """``question`` is as it was searched for: with secrets and personal data masked."""

    question: str
    sentences: tuple[Sentence, ...]
    results: list[dict[str, Any]]
    intent: str
    pipeline_stages: list[dict[str, Any]]
    degraded: bool
    note: str
    could_not_look: bool = False

    @property
    def text(self) -> str:
        """The sentences with their citations; those of a model follow one another, quotations stand by themselves."""
        if not self.sentences:
            return COULD_NOT_LOOK if self.could_not_look else NOTHING
        told = " ".join(sentence.marked for sentence in self.composed)
        return "\n".join(filter(None, [told, *(sentence.marked for sentence in self.quotations)]))

    @property
    def composed(self) -> list[Sentence]:
        return [sentence for sentence in self.sentences if sentence.how == COMPOSED]

    @property
    def quotations(self) -> list[Sentence]:
        return [sentence for sentence in self.sentences if sentence.how != COMPOSED]

    def as_dict(self) -> dict[str, Any]:
        return {
            "answer": self.text,
            "citations": citations_of(self.sentences),
            "sentences": [sentence.as_dict() for sentence in self.sentences],
            "results": self.results,
            "intent": self.intent,
            "pipeline_stages": self.pipeline_stages,
            "degraded": self.degraded,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class _Told:
    sentences: tuple[Sentence, ...]
    note: str = ""
    degraded: bool = False


def ask(*, principal: Principal, q: str, repos: tuple[str, ...] | None = None) -> Answer:
    """The answer of what this principal may know.

    Without a configured model, and where it is of no use, the answer is in the words of the memories. Raises as
    ``search`` does.
    """
    found = search(principal=principal, request=SearchRequest(q=q, repos=repos, limit=FOUND))
    question = masked(q.strip())
    told = _told(principal, question, found)
    return Answer(
        question=question,
        sentences=told.sentences,
        results=found.results,
        intent=found.intent,
        pipeline_stages=found.pipeline_stages,
        degraded=found.degraded or told.degraded,
        note=" ".join(filter(None, (found.note, told.note))),
        could_not_look=found.degraded,
    )


def _told(principal: Principal, question: str, found: SearchAnswer) -> _Told:
    if not found.results:
        return _Told(())
    if not settings.FIRM_MEMORY_LLM_MODEL:
        return _quoted(question, found.results)
    if seconds_until_affordable() > 0:
        return _quoted(question, found.results, because=_NO_TOKENS)
    try:
        answer = composed(question, found.results)
    except ExtractorError as error:
        use_record(principal.workspace.pk, error.usage)
        logger.warning("An answer could not be composed: %s", error.message)
        return _quoted(question, found.results, because=_NO_MODEL)
    use_record(principal.workspace.pk, answer.usage)
    return _composed(question, found.results, answer)


def _composed(question: str, results: Sequence[dict[str, Any]], answer: Composed) -> _Told:
    if not answer.sentences:
        # An empty list may be the model's judgement, or that of a statement which told it to say nothing.
        return _quoted(question, results, because=_NOT_SUPPORTED if answer.dropped else _NO_ANSWER)
    note = f"{_counted(answer.dropped)} left out, because what was cited does not say so." if answer.dropped else ""
    return _Told((*answer.sentences, *_changes(question, answer.sentences, results)), note)


def _changes(question: str, sentences: Sequence[Sentence], results: Sequence[dict[str, Any]]) -> list[Sentence]:
    """How minds were changed about what is cited; the model is shown only what holds."""
    cited = set(citations_of(sentences))
    return [each for result in results if result["id"] in cited for each in changes_of(question, result)]


def _quoted(question: str, results: Sequence[dict[str, Any]], *, because: str = "") -> _Told:
    sentences = tuple(quoted(question, results))
    if not sentences:
        # Where the model found nothing either, that is an answer.
        degraded = because not in ("", _NO_ANSWER)
        return _Told((), f"{because.replace(_SHOWN_INSTEAD, '.')} {_NONE_NEAR}".strip(), degraded)
    return _Told(sentences, because, degraded=bool(because))


def _counted(dropped: int) -> str:
    return (
        "One sentence of the language model was" if dropped == 1 else f"{dropped} sentences of the language model were"
    )
