"""Drain the inbox and die by SIGKILL at a named moment.

Run by ``test_faults`` in a process of its own (tests/forking.py).
"""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn
from unittest.mock import patch

MOMENTS = {
    "it is leased": "apps.capture.processing.prefilter",
    "it is being read": "tests.capture.doubles.Canned.extract",
    "a part of it is read": "apps.capture.processing.facts_propose",
    "its facts are being proposed": "apps.candidates.services.audit_record",
    "its facts are proposed": "apps.capture.processing.outcome_of",
    "its outcome is written": "apps.capture.processing.event_finish",
}


def die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def main(moment: str) -> None:
    from apps.capture import processing
    from apps.capture.extractors.registry import override
    from apps.capture.tasks import drain
    from apps.memories.providers import registry
    from apps.memories.providers.mem0.provider import Mem0Provider
    from tests.capture.doubles import Canned, a_fact
    from tests.memories.providers.doubles import HashingEmbedder

    finish = processing.event_finish

    def finish_and_die(*arguments: Any, **values: Any) -> None:
        finish(*arguments, **values)
        die()

    facts = [a_fact("Webhooks are retried with jitter."), a_fact("Exports close at ten in the evening.")]
    dies = patch(MOMENTS[moment], finish_and_die if "written" in moment else die)
    with registry.override(Mem0Provider(HashingEmbedder(name="local", dimensions=384))), override(Canned(facts)), dies:
        drain()
    raise AssertionError(f"nobody came by {moment}")
