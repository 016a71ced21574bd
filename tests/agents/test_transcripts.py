"""Sessions of real agents are handed over by an agent, and each comes to an end with a reason.

They lie in a folder that is not part of the project: the variable FIRM_MEMORY_EVAL_DATA names it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apps.capture.models import CaptureEvent, EventState
from apps.capture.tasks import drain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

FOLDERS = ("payloads/transcripts", "transcripts_real")


def sessions() -> list[Path]:
    named = os.environ.get("FIRM_MEMORY_EVAL_DATA", "")
    return [path for folder in FOLDERS for path in sorted((Path(named) / folder).glob("*.json*"))] if named else []


@pytest.mark.skipif(not sessions(), reason="FIRM_MEMORY_EVAL_DATA names no folder with transcripts.")
def test_every_real_session_comes_to_an_end_with_a_reason(agent, robo):
    robot = agent(robo)
    handed_over = {}
    for path in sessions():
        answer = robot.call(
            "memory_ingest",
            content=path.read_text(encoding="utf-8"),
            kind="transcript",
            sources=[{"kind": "transcript", "reference": path.name}],
            repo="acme/pay",
        )
        assert not answer.is_error, (path, answer.text)
        handed_over[path.name] = answer.results[0]["event"]
    drain()
    for name, pk in handed_over.items():
        event = CaptureEvent.objects.get(pk=pk)
        assert event.state == EventState.DONE, (name, event.last_error)
        assert event.outcome and event.reason.endswith("."), name
