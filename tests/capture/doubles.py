"""An extractor that finds what a test says, and material for it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from apps.accounts.principal import Principal
from apps.candidates.proposal import ScopeInput
from apps.capture.extractors.base import Extraction, Fact, Heartbeat, Material, Usage, Vocabulary, no_heartbeat
from apps.capture.inbox import RawMaterial, event_receive
from apps.capture.models import CaptureEvent
from apps.sources.services import SourceInput

_numbers = itertools.count(1)

DECISION = "We decided to retry webhooks with jitter, because the partner's gateway drops bursts."


def a_material(content: str = DECISION, **changes: Any) -> RawMaterial:
    number = next(_numbers)
    values: dict[str, Any] = {
        "content": content,
        "kind": "merge_request",
        "scope": ScopeInput(repos=("acme/pay",)),
        "sources": (SourceInput(kind="merge_request", reference=f"acme/pay!{number}"),),
        "external_id": f"acme/pay!{number}",
    }
    return RawMaterial(**(values | changes))


def an_event(principal: Principal, content: str = DECISION, **changes: Any) -> CaptureEvent:
    return event_receive(principal=principal, material=a_material(content, **changes)).event


def a_fact(content: str = "Webhooks are retried with jitter.", **changes: Any) -> Fact:
    return Fact(**({"content": content, "type": "tooling_setup", "confidence": 0.9, "quote": ""} | changes))


class Canned:
    """Answers each call with what it was given, the last one again and again; an exception is raised instead."""

    def __init__(self, *answers: Sequence[Fact] | Exception | Extraction, name: str = "rules") -> None:
        self.name = name
        self.answers = list(answers) or [[]]
        self.asked: list[Material] = []
        self.vocabulary: Vocabulary | None = None
        self.before: Callable[[], None] | None = None

    def extract(self, material: Material, vocabulary: Vocabulary, *, heartbeat: Heartbeat = no_heartbeat) -> Extraction:
        self.asked.append(material)
        self.vocabulary = vocabulary
        if self.before is not None:
            self.before()
        heartbeat()
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Extraction):
            return answer
        return Extraction(facts=tuple(answer), usage=Usage(calls=1, prompt_tokens=100, completion_tokens=10))
