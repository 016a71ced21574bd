"""What was acknowledged is brought to its end whatever dies on the way: nothing is lost, and nothing is there twice."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.db import connection
from django.db.models import Count
from django.db.models.functions import Now

from apps.candidates.models import Candidate, CandidateEvidence
from apps.capture.extractors.base import ExtractorError
from apps.capture.extractors.registry import override
from apps.capture.models import CaptureEvent, EventOutcome, EventState
from apps.capture.tasks import drain, sweep
from apps.core.embedded_postgres import EmbeddedPostgres
from apps.core.errors import TooMany
from tests.at_once import at_once
from tests.capture.doubles import Canned, a_fact, an_event
from tests.capture.dying import MOMENTS
from tests.forking import forks

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]


@pytest.fixture
def bot(botty, principal):
    return principal(botty)


@pytest.fixture(scope="module")
def dying(django_db_setup):
    settings = connection.settings_dict
    address = f"{settings['USER']}:{settings['PASSWORD']}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
    environment = os.environ | {
        "DATABASE_URL": f"postgresql://{address}",
        "FIRM_MEMORY_ENV_FILE": "",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test",
    }
    with forks("tests.capture.dying", environment) as found:
        yield found


def leases_run_out() -> None:
    CaptureEvent.objects.filter(state=EventState.PROCESSING).update(leased_until=Now() - timedelta(seconds=1))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_worker_killed_at_any_moment_loses_and_doubles_nothing(bot, dying, moment):
    event = an_event(bot)
    code, said = dying.run(moment)
    assert code == -signal.SIGKILL, said

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


# --- many at once -------------------------------------------------------------------------------------------
BATCHES, LINES, SINGLE = 5, 900, 500
NOISE = ("LGTM!", "thanks, merging", "+1", "done", "ok", "fixed, thanks!")


def noise(name: str, number: int) -> dict[str, Any]:
    return {
        "content": NOISE[number % len(NOISE)],
        "kind": "chat",
        "scope": {"firm": True},
        "sources": [{"kind": "chat", "reference": f"{name}/{number}"}],
        "external_id": f"{name}/{number}",
    }


def test_five_thousand_handed_over_at_once_are_accepted_and_each_comes_to_one_end(api, botty, settings):
    """As JSON lines and one by one, from several clients; a batch that was sent twice is there once."""
    settings.FIRM_MEMORY_THROTTLE = False

    def batch(number: int) -> list[str]:
        body = "\n".join(json.dumps(noise(f"batch {number}", at)) for at in range(LINES))
        answer = api(botty).post("/api/v1/ingest/", body, content_type="application/x-ndjson")
        assert answer.status_code == 202, answer.content
        return answer.json()["events"]

    def one_by_one(number: int) -> list[str]:
        client = api(botty)
        answers = [client.post("/api/v1/ingest/", noise("one", at)) for at in range(number, SINGLE, 2)]
        assert {answer.status_code for answer in answers} == {202}
        return [answer.json()["event"] for answer in answers]

    works = [partial(batch, number) for number in (*range(BATCHES), 0)] + [partial(one_by_one, n) for n in (0, 1)]
    accepted = at_once(*works)
    assert not [each for each in accepted if isinstance(each, BaseException)]
    events = set(itertools.chain.from_iterable(accepted))
    assert len(events) == CaptureEvent.objects.count() == BATCHES * LINES + SINGLE == 5_000
    assert accepted[0] == accepted[BATCHES]

    assert not [each for each in at_once(drain, drain) if isinstance(each, BaseException)]
    rows = CaptureEvent.objects.order_by().values_list("state", "outcome", "attempts").annotate(count=Count("pk"))
    assert list(rows) == [(EventState.DONE, EventOutcome.DROPPED_PREFILTER, 1, 5_000)]
    assert set(map(str, CaptureEvent.objects.exclude(reason="").values_list("pk", flat=True))) == events


# --- the server ---------------------------------------------------------------------------------------------
def kill_all_of(server: EmbeddedPostgres) -> None:
    """The server and every process that it has started, at once."""
    postmaster = server.postmaster_pid()
    assert postmaster is not None
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for process in (postmaster, *map(int, children)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.mark.timeout(300)
def test_a_server_killed_while_workers_drain_loses_and_doubles_nothing(own_postgres):
    """Twice, once while material is still being handed over. What was acknowledged has exactly one outcome after it."""
    info = own_postgres.attach()
    url = f"postgresql://{info.user}:{quote(info.password, safe='')}@{info.host}:{info.port}/{info.dbname}"
    environment = os.environ | {
        "DATABASE_URL": url,
        "FIRM_MEMORY_ENV_FILE": "",
        "FIRM_MEMORY_THROTTLE": "off",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test",
    }
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env=environment, check=True, timeout=120)
    count = 100
    command = [sys.executable, "-m", "tests.capture.working"]
    options: dict[str, Any] = {"cwd": ROOT, "env": environment, "stdout": subprocess.PIPE, "text": True}
    told = []
    with subprocess.Popen([*command, "drain"], **options) as draining:
        try:
            with subprocess.Popen([*command, "hand", str(count)], **options) as handing:
                try:
                    for line in handing.stdout:
                        told.append(line.split())
                        if told[-1] in (["accepted", "40"], ["accepted", str(count - 1)]):
                            kill_all_of(own_postgres)
                            own_postgres.start()
                    assert handing.wait(120) == 0
                finally:
                    handing.kill()
        finally:
            draining.kill()

    assert any(line[0] == "missed" for line in told), "the server was not missed"
    accepted = [line[1] for line in told if line[0] == "accepted"]
    with info.connect() as found:
        rows = found.execute("SELECT external_id, state, outcome, facts FROM capture_captureevent").fetchall()
        evidence = found.execute(
            "SELECT c.id::text, c.content, count(e.id) FROM candidates_candidate c"
            " LEFT JOIN candidates_candidateevidence e ON e.candidate_id = c.id GROUP BY c.id"
        ).fetchall()
    assert sorted(row[0] for row in rows) == sorted(accepted)
    assert {row[1] for row in rows} == {"done"}
    outcomes = {row[0]: row[2] for row in rows}
    assert {outcomes[str(number)] for number in range(1, count, 2)} == {"dropped_prefilter"}
    assert {outcomes[str(number)] for number in range(0, count, 2)} == {"quarantined"}
    # Each decision became one candidate, with one piece of evidence, and each candidate stands with one event.
    brought = [fact["candidate"] for row in rows for fact in row[3]]
    assert sorted(brought) == sorted(row[0] for row in evidence)
    assert len(set(brought)) == len({row[1] for row in evidence}) == count // 2
    assert {row[2] for row in evidence} == {1}


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
