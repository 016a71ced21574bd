"""What was acknowledged is brought to its end whatever dies on the way: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import Count
from django.db.models.functions import Now

from apps.candidates.models import Candidate, CandidateEvidence
from apps.capture.extractors.base import ExtractorError
from apps.capture.extractors.registry import override
from apps.capture.models import CaptureEvent, EventOutcome, EventState
from apps.capture.tasks import drain, sweep
from apps.core.errors import TooMany
from tests.capture.doubles import Canned, a_fact, an_event
from tests.capture.dying import MOMENTS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]


@pytest.fixture
def bot(botty, principal):
    return principal(botty)


def work(moment: str) -> subprocess.CompletedProcess[str]:
    settings = connection.settings_dict
    address = f"{settings['USER']}:{settings['PASSWORD']}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    environment = os.environ | {
        "DATABASE_URL": f"postgresql://{address}",
        "FIRM_MEMORY_ENV_FILE": "",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test",
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.capture.dying", moment],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def leases_run_out() -> None:
    CaptureEvent.objects.filter(state=EventState.PROCESSING).update(leased_until=Now() - timedelta(seconds=1))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_killed_at_any_moment_loses_and_doubles_nothing(bot, moment):
    event = an_event(bot)
    ended = work(moment)
    assert ended.returncode == -signal.SIGKILL, ended.stderr

    event.refresh_from_db()
    assert event.state == EventState.PROCESSING
    assert not Candidate.objects.exists()
    leases_run_out()
    with override(
        Canned([a_fact("Webhooks are retried with jitter."), a_fact("Exports close at ten in the evening.")])
    ):
        assert sweep() == "1 events."

    event.refresh_from_db()
    assert (event.state, event.outcome, event.attempts) == (EventState.DONE, EventOutcome.QUEUED, 2)
    assert Candidate.objects.count() == CandidateEvidence.objects.count() == 2
    assert len(event.facts) == 2
    assert event.calls == 1  # what was read before it died was not read again, what was not was read once


def test_many_at_once_by_several_workers_all_come_to_an_end_once(bot):
    for number in range(200):
        an_event(bot, f"lgtm {number % 3}" if number % 2 else f"We decided that rule {number} holds, since it broke.")
    extractor = Canned([a_fact("The same is found in every one of them.")])

    def worker() -> None:
        try:
            drain()
        finally:
            connection.close()

    with override(extractor):
        workers = [threading.Thread(target=worker) for _ in range(3)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
    outcomes = dict(CaptureEvent.objects.order_by().values_list("outcome").annotate(count=Count("pk")))
    assert outcomes == {
        EventOutcome.QUEUED: 1,
        EventOutcome.DUPLICATE: 99,
        EventOutcome.DROPPED_PREFILTER: 100,
    }
    assert not CaptureEvent.objects.exclude(state=EventState.DONE).exists()
    assert len(extractor.asked) == 100
    assert Candidate.objects.get().evidence.count() == 100


def test_a_failure_is_noted_outside_of_any_transaction_too(bot):
    """As the worker does it: what locks a row needs a transaction of its own."""
    failed, full, worn = an_event(bot), an_event(bot), an_event(bot)
    CaptureEvent.objects.exclude(pk=failed.pk).update(next_attempt_at=Now() + timedelta(hours=1))
    with override(Canned(ExtractorError("The model did not answer."), name="llm")):
        assert drain() == "1 events."
    CaptureEvent.objects.filter(pk=full.pk).update(next_attempt_at=Now() - timedelta(seconds=1))
    with pytest.MonkeyPatch.context() as patch, override(Canned([a_fact()])):
        patch.setattr("apps.capture.gate.candidate_propose", _full)
        assert drain() == "1 events."
    CaptureEvent.objects.filter(pk=worn.pk).update(attempts=20, next_attempt_at=Now() - timedelta(seconds=1))
    with override(Canned([a_fact()])):
        assert drain() == "1 events."
    found = dict(CaptureEvent.objects.values_list("pk", "state"))
    assert found == {failed.pk: EventState.FAILED, full.pk: EventState.RECEIVED, worn.pk: EventState.DEAD}
    assert all(CaptureEvent.objects.exclude(reason="").filter(pk=pk).exists() for pk in found)


def _full(**_: object) -> None:
    raise TooMany("200 of your proposals are waiting for review already.", code="queue_full")
