"""From an event to an outcome with a reason, whatever happens on the way."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now
from django.test import override_settings

from apps.candidates.models import Candidate, CandidateStatus
from apps.capture import processing, reading
from apps.capture.extractors.base import Extraction, ExtractorError, Refused, Usage
from apps.capture.extractors.registry import override
from apps.capture.leasing import MAX_ATTEMPTS, lease_due
from apps.capture.models import CaptureEvent, EventOutcome, EventState
from apps.capture.processing import event_process
from apps.capture.tasks import PAYLOADS_KEPT, drain, forget_payloads, sweep
from apps.core.errors import TooMany
from tests import ledger
from tests.capture.doubles import DECISION, Canned, a_fact, an_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def bot(botty, principal):
    return principal(botty)


def later() -> float:
    return time.monotonic() + 60


def run(extractor: Any) -> None:
    """Everything that is due, once."""
    with override(extractor):
        lease, events = lease_due(100)
        if not events:
            lease, events = lease_due(100, fresh=False)
        for event_id in events:
            event_process(lease, event_id, deadline=later())


def read(event: CaptureEvent) -> CaptureEvent:
    return CaptureEvent.objects.defer(None).get(pk=event.pk)


def make_due(event: CaptureEvent) -> None:
    CaptureEvent.objects.filter(pk=event.pk).update(next_attempt_at=Now() - timedelta(seconds=1))


def test_facts_become_candidates_with_their_source_and_quote(pool, bot):
    event = an_event(bot)
    run(Canned([a_fact(quote=DECISION)]))
    found, candidate = read(event), Candidate.objects.get()
    assert (found.state, found.outcome, found.reason) == (
        EventState.DONE,
        EventOutcome.QUEUED,
        "Queued for review: 1.",
    )
    assert found.payload == ""
    assert [fact["candidate"] for fact in found.facts] == [str(candidate.pk)]
    assert (candidate.status, candidate.origin_name) == (CandidateStatus.PENDING, "botty")
    evidence = candidate.evidence.get()
    assert (evidence.source.reference, evidence.quote) == (event.sources[0]["reference"], DECISION)
    assert (found.extractor, found.calls, found.prompt_tokens, found.completion_tokens) == ("rules", 1, 100, 10)


def test_noise_costs_no_call_and_stays_to_be_overruled(bot):
    event = an_event(bot, "LGTM, thanks!")
    extractor = Canned([a_fact()])
    run(extractor)
    found = read(event)
    assert found.outcome == EventOutcome.DROPPED_PREFILTER
    assert found.reason
    assert found.payload == "LGTM, thanks!"
    assert extractor.asked == []


def test_nothing_found_is_an_outcome_and_is_not_tried_again(bot):
    event = an_event(bot)
    run(Canned([]))
    found = read(event)
    assert (found.state, found.outcome) == (EventState.DONE, EventOutcome.DROPPED_CLASSIFIER)
    assert found.reason == "Nothing durable was found in it."
    assert found.payload == DECISION


def test_without_an_extractor_nothing_is_lost_and_it_says_so(bot):
    event = an_event(bot)
    run(None)
    found = read(event)
    assert found.outcome == EventOutcome.DROPPED_CLASSIFIER
    assert "FIRM_MEMORY_EXTRACTOR" in found.reason
    assert found.payload == DECISION


@pytest.mark.parametrize(
    ("facts", "outcome"),
    [
        ([a_fact("One holds."), a_fact("Two holds.", confidence=0.2)], EventOutcome.QUEUED),
        ([a_fact("One holds.", confidence=0.2)], EventOutcome.QUARANTINED),
        ([a_fact("One holds.", doubt="Its quote is not in the material.")], EventOutcome.QUARANTINED),
        ([a_fact("One holds.", type="gossip")], EventOutcome.DROPPED_CLASSIFIER),
        ([a_fact("The key is AKIAIOSFODNN7EXAMPLA.")], EventOutcome.EXCLUDED),
        (
            [a_fact("The key is AKIAIOSFODNN7EXAMPLA."), a_fact("One holds.", confidence=0.1)],
            EventOutcome.QUARANTINED,
        ),
    ],
)
def test_the_outcome_is_the_best_of_the_facts(pool, bot, facts, outcome):
    event = an_event(bot)
    run(Canned(facts))
    found = read(event)
    assert found.outcome == outcome
    assert len(found.facts) == len(facts)
    assert all(fact["reason"] for fact in found.facts)
    assert "AKIAIOSFODNN7EXAMPLA" not in f"{found.facts} {found.reason}"


def test_a_doubt_is_said_to_the_reviewer_and_confidence_does_not_lift_it(pool, bot):
    an_event(bot)
    run(Canned([a_fact(confidence=1.0, doubt="Its quote is not in the material.")]))
    candidate = Candidate.objects.get()
    assert candidate.status == CandidateStatus.QUARANTINED
    assert candidate.status_reason == "Its quote is not in the material."
    an_event(bot)
    run(Canned([a_fact(confidence=1.0, doubt="Its quote is not in the material.")]))
    candidate.refresh_from_db()
    assert candidate.status == CandidateStatus.QUARANTINED


def test_what_the_extractor_refused_is_told_with_its_reason(pool, bot):
    event = an_event(bot)
    refused = Refused("Anna is slow.", "excluded", "It is about an individual engineer.")
    run(Canned(Extraction(refused=(refused,), usage=Usage(1, 5, 5))))
    found = read(event)
    assert (found.outcome, found.facts[0]["reason"]) == (EventOutcome.EXCLUDED, "It is about an individual engineer.")
    assert not Candidate.objects.exists()


def test_the_same_fact_from_two_events_is_one_candidate_with_two_sources(pool, bot):
    an_event(bot)
    run(Canned([a_fact()]))
    second = an_event(bot)
    run(Canned([a_fact()]))
    candidate = Candidate.objects.get()
    assert candidate.evidence.count() == 2
    assert read(second).outcome == EventOutcome.DUPLICATE
    assert read(second).facts[0]["candidate"] == str(candidate.pk)


def test_what_was_rejected_is_known_and_stays_rejected(pool, bot, alice, principal):
    an_event(bot, sources=_source("acme/pay!1"))
    run(Canned([a_fact()]))
    candidate = Candidate.objects.get()
    ledger.reject(principal(alice), candidate, "Not true.")
    event = an_event(bot, sources=_source("acme/pay!1"))
    run(Canned([a_fact()]))
    assert read(event).outcome == EventOutcome.DUPLICATE
    assert "Not true." in read(event).facts[0]["reason"]
    assert not Candidate.objects.open().exists()


def test_a_replaced_memory_does_not_come_back_from_the_material_it_came_from(pool, bot, alice, principal):
    reviewer = principal(alice)
    an_event(bot)
    run(Canned([a_fact()]))
    first = ledger.approve(reviewer, Candidate.objects.get()).memory
    ledger.remember(bot, reviewer, "Webhooks are retried by the queue alone.", supersedes=(first.label,))
    again = an_event(bot)
    run(Canned([a_fact()]))
    assert read(again).outcome == EventOutcome.DUPLICATE
    assert not Candidate.objects.open().exists()
    first.refresh_from_db()
    assert first.status == "superseded"


def test_a_transcript_that_quotes_an_answer_of_ours_teaches_nothing(pool, bot, alice, principal):
    content = "Exports to the tax office close at ten in the evening, because its gateway is serviced after that."
    memory = ledger.remember(bot, principal(alice), content)
    quoting = f'user: why?\nassistant: memory_search says: {{"number": "{memory.label}", "content": "{content}"}}'
    event = an_event(bot, quoting, kind="transcript")
    facts = [
        a_fact(content, type="business_rules"),
        a_fact("Exports to the tax office close at ten in the evening: its gateway is serviced after."),
    ]
    run(Canned(facts))
    found = read(event)
    assert [fact["outcome"] for fact in found.facts] == [EventOutcome.DUPLICATE] * 2
    assert all(memory.label in fact["reason"] for fact in found.facts)
    assert not Candidate.objects.open().exists()


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ('According to the firm memory (M-1): "Refunds go out weekly." So we decided to keep going like that.', True),
        ("As recorded in M-12, we decided to pay refunds weekly.", True),
        ("Per the firm memory, refunds are paid out weekly because of the auditors.", True),
        ("M-12 says that refunds are paid out weekly.", True),
        ("The firm memory says refunds are paid out weekly, so we keep it.", True),
        ('{"number": "M-12", "content": "Refunds are paid out weekly.", "status": "active"}', True),
        (r"{\"number\": \"M-12\", \"content\": \"Refunds are paid out weekly.\"}", True),
        ("M-12 says weekly, but from now on refunds are paid out daily.", False),
        ("According to the firm memory refunds are weekly; that is outdated, they are daily.", False),
        ("Refunds are paid out daily, which replaces M-12.", False),
        ("According to the auditors, refunds are paid out weekly.", False),
        ("The firm memory is backed up every night by the platform team.", False),
    ],
)
def test_what_says_that_it_repeats_us_is_no_candidate(pool, bot, said, known):
    event = an_event(bot, f"{DECISION} {said}")
    run(Canned([a_fact(said, type="business_rules")]))
    (fact,) = read(event).facts
    assert ("It quotes the firm memory" in fact["reason"]) is known, fact
    assert Candidate.objects.open().exists() is not known


def test_every_sentence_of_an_answer_of_ours_is_known_whoever_gave_it(pool, bot):
    answer = (
        '{"results": [{"number": "M-77", "content": "We decided to use Kafka. Replays need it, so never drop it."}]}'
    )
    event = an_event(bot, f"user: why Kafka?\n\ntool: {answer}\n\nuser: thanks", kind="transcript")
    run(Canned([a_fact("Replays need it, so never drop it."), a_fact("Refunds are paid out weekly by finance.")]))
    assert [fact["outcome"] for fact in read(event).facts] == [EventOutcome.DUPLICATE, EventOutcome.QUEUED]


def test_words_of_ours_are_known_without_their_number_too(pool, bot, alice, principal):
    content = "Exports to the tax office close at ten in the evening, because its gateway is serviced after that."
    ledger.remember(bot, principal(alice), content)
    event = an_event(bot, f"assistant: {content}", kind="transcript")
    run(Canned([a_fact(content, type="business_rules"), a_fact("Imports of the tax office open at six.")]))
    assert [fact["outcome"] for fact in read(event).facts] == [EventOutcome.DUPLICATE, EventOutcome.QUEUED]


def test_what_a_fact_says_it_replaces_is_a_wish_that_a_reviewer_sees(pool, bot, alice, principal):
    memory = ledger.remember(bot, principal(alice), "Refunds are paid out weekly.")
    an_event(bot)
    run(Canned([a_fact("Payouts happen daily.", supersedes=(memory.label, "M-9999"))], name="llm"))
    assert Candidate.objects.open().get().supersedes == [memory.pk]
    memory.refresh_from_db()
    assert memory.status == "active"


def test_a_number_that_is_merely_mentioned_is_replaced_by_nothing(pool, bot, alice, principal):
    memory = ledger.remember(bot, principal(alice), "Refunds are paid out weekly.")
    an_event(bot)
    run(Canned([a_fact(f"We will not replace {memory.label}.", supersedes=(memory.label,))]))
    assert Candidate.objects.open().get().supersedes == []


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("Refunds are paid out weekly by the finance team, and never through the gateway.", True),
        ("refunds are paid out WEEKLY by the finance team", True),
        (
            '"content": "Refunds are paid out weekly by the finance team, and never through the gateway. '
            'The auditors asked for it.", "status": "active"',
            True,
        ),
        ("Refunds are never paid out weekly by the finance team, but through the gateway.", False),
        ("Refunds are not paid out weekly by the finance team, and never through the gateway.", False),
        ("Refunds go through the gateway, and never weekly by the finance team.", False),
        ("Refunds are paid.", False),
    ],
)
def test_what_denies_a_memory_is_no_quotation_of_it(pool, bot, alice, principal, said, known):
    content = "Refunds are paid out weekly by the finance team, and never through the gateway."
    memory = ledger.remember(bot, principal(alice), f"{content} The auditors asked for it.")
    for text in (said, f"{memory.label} is about this. {said}"):
        event = an_event(bot, f"{DECISION} {text}")
        run(Canned([a_fact(said, type="business_rules")]))
        (fact,) = read(event).facts
        assert ("quotes" in fact["reason"]) is known, fact


def test_facts_beyond_what_one_event_brings_leave_a_row_each(pool, bot, monkeypatch):
    monkeypatch.setattr(reading, "MAX_FACTS", 3)
    event = an_event(bot)
    run(Canned([a_fact(f"Rule {at} holds since the audit of that year.") for at in range(5)]))
    found = read(event)
    assert [fact["outcome"] for fact in found.facts].count(EventOutcome.DROPPED_CLASSIFIER) == 2
    assert Candidate.objects.count() == 3


def test_what_an_extractor_makes_readable_is_not_stored_in_between_either(pool, bot, monkeypatch):
    monkeypatch.setattr(reading, "STRETCH", 40)
    paragraphs = [f"We decided that rule {at} holds, because the auditors asked for it." for at in range(4)]
    event = an_event(bot, "\n\n".join(paragraphs), kind="document")
    decoded = a_fact("The key is AKIAIOSFODNN7EXAMPLA.")
    run(Canned([decoded, a_fact("Rule one holds.")], ExtractorError("The model went away."), name="llm"))
    found = read(event)
    assert found.work["read"] == 1
    assert "Rule one holds." in str(found.work)
    assert "AKIAIOSFODNN7EXAMPLA" not in str(found.work)


def test_what_costs_no_call_is_written_down_when_it_is_worth_it(bot, monkeypatch):
    monkeypatch.setattr(reading, "STRETCH", 40)
    paragraphs = [f"We decided that rule {at} holds, because the auditors asked for it." for at in range(40)]
    an_event(bot, "\n\n".join(paragraphs), kind="document")
    kept = []
    monkeypatch.setattr(reading, "_keep", lambda *arguments: kept.append(arguments))
    extractor = Canned(Extraction())
    run(extractor)
    assert len(extractor.asked) >= 10
    assert len(kept) == 1


def test_what_must_not_be_kept_is_not_kept_for_overruling_either(pool, bot):
    event = an_event(bot)
    run(Canned([a_fact("The key is AKIAIOSFODNN7EXAMPLA.")]))
    assert (read(event).outcome, read(event).payload) == (EventOutcome.EXCLUDED, "")


def test_a_failure_of_the_model_is_tried_again_and_never_an_empty_success(pool, bot):
    event = an_event(bot)
    run(Canned(ExtractorError("The model did not answer within 60 s.", retry_after=45), name="llm"))
    found = read(event)
    assert (found.state, found.outcome) == (EventState.FAILED, "")
    assert found.last_error == "The model did not answer within 60 s."
    assert found.payload == DECISION
    make_due(event)
    run(Canned([a_fact()], name="llm"))
    assert read(event).outcome == EventOutcome.QUEUED
    assert read(event).last_error == ""


def test_a_permanent_failure_is_given_up_with_its_reason_and_its_material(bot):
    event = an_event(bot)
    run(Canned(ExtractorError("The model refuses the key.", permanent=True), name="llm"))
    found = read(event)
    assert found.state == EventState.DEAD
    assert "The model refuses the key." in found.reason
    assert found.payload == DECISION


def test_an_unexpected_fault_is_noted_without_what_it_was_about(bot, caplog):
    event = an_event(bot)
    run(Canned(KeyError(DECISION)))
    found = read(event)
    assert found.state == EventState.FAILED
    assert found.last_error == "It failed unexpectedly: KeyError."
    assert DECISION not in caplog.text


def test_one_event_costs_the_others_nothing(pool, bot):
    bad, good = an_event(bot), an_event(bot)
    run(Canned(RuntimeError("boom"), [a_fact()]))
    states = {read(event).state for event in (bad, good)}
    assert states == {EventState.FAILED, EventState.DONE}


def test_an_event_that_ends_its_worker_each_time_is_given_up(bot):
    event = an_event(bot)
    for attempt in range(MAX_ATTEMPTS + 1):
        lease, taken = lease_due(1, fresh=attempt == 0)
        assert taken == [event.pk]
        if attempt < MAX_ATTEMPTS:
            CaptureEvent.objects.filter(pk=event.pk).update(leased_until=Now() - timedelta(seconds=1))
    event_process(lease, event.pk, deadline=later())
    assert read(event).state == EventState.DEAD
    assert "ended again and again" in read(event).reason


def test_whoever_lost_the_lease_writes_nothing(pool, bot):
    event, extractor = an_event(bot), Canned([a_fact()])

    def taken_over() -> None:
        CaptureEvent.objects.filter(pk=event.pk).update(leased_until=Now() - timedelta(seconds=1))
        lease_due(1, fresh=False)

    extractor.before = taken_over
    run(extractor)
    assert not Candidate.objects.exists()
    assert read(event).state == EventState.PROCESSING


def test_candidates_and_outcome_are_one(pool, bot, monkeypatch):
    event = an_event(bot)
    real = processing.event_finish

    def fail(*args: Any, **values: Any) -> None:
        real(*args, **values)
        raise DatabaseError("gone")

    monkeypatch.setattr(processing, "event_finish", fail)
    run(Canned([a_fact()]))
    assert not Candidate.objects.exists()
    assert read(event).state == EventState.FAILED
    monkeypatch.undo()
    make_due(event)
    extractor = Canned([a_fact("Something else is said the second time.")])
    run(extractor)
    assert extractor.asked == []  # what was read is not read again
    assert Candidate.objects.get().content == "Webhooks are retried with jitter."


def test_at_the_cap_an_event_waits_with_its_facts(pool, bot, monkeypatch):
    event = an_event(bot)

    def full(*args: Any, **values: Any) -> None:
        raise TooMany("200 of your proposals are waiting for review already.", code="queue_full")

    monkeypatch.setattr("apps.capture.gate.candidate_propose", full)
    run(Canned([a_fact()], name="llm"))
    found = read(event)
    assert (found.state, found.attempts, found.outcome) == (EventState.RECEIVED, 0, "")
    assert "waiting for review" in found.reason
    monkeypatch.undo()
    make_due(event)
    extractor = Canned([], name="llm")
    run(extractor)
    assert extractor.asked == []
    assert read(event).outcome == EventOutcome.QUEUED


def test_a_budget_that_is_used_up_waits_for_the_next_day(pool, bot):
    an_event(bot)
    with override_settings(FIRM_MEMORY_LLM_DAILY_TOKENS=110):
        run(Canned([a_fact()], name="llm"))
        second = an_event(bot)
        extractor = Canned([a_fact("Another.")], name="llm")
        run(extractor)
    found = read(second)
    assert extractor.asked == []
    assert found.state == EventState.FAILED
    assert "FIRM_MEMORY_LLM_DAILY_TOKENS" in found.last_error
    assert found.next_attempt_at > CaptureEvent.objects.values_list(Now(), flat=True)[0]


def test_long_material_is_read_in_stretches_and_goes_on_where_it_was(pool, bot, monkeypatch):
    monkeypatch.setattr(reading, "STRETCH", 40)
    paragraphs = [f"We decided that rule {at} holds, because the auditors asked for it." for at in range(8)]
    event = an_event(bot, "\n\n".join(paragraphs), kind="document")
    extractor = Canned([a_fact("First.")], ExtractorError("The model went away."), name="llm")
    run(extractor)
    assert read(event).state == EventState.FAILED
    assert read(event).work["read"] == 1
    make_due(event)
    second = Canned([a_fact("Second.")], name="llm")
    run(second)
    found = read(event)
    assert found.outcome == EventOutcome.QUEUED
    assert {fact["content"] for fact in found.facts} == {"First.", "Second."}
    assert extractor.asked[0].text not in [material.text for material in second.asked]
    seen = extractor.asked[0].text + " ".join(material.text for material in second.asked)
    assert all(paragraph in seen for paragraph in paragraphs)


def test_what_takes_longer_than_a_task_is_handed_on(pool, bot, monkeypatch):
    monkeypatch.setattr(reading, "STRETCH", 40)
    paragraphs = [f"We decided that rule {at} holds, because the auditors asked for it." for at in range(8)]
    event = an_event(bot, "\n\n".join(paragraphs), kind="document")
    with override(Canned([a_fact("First.")])):
        lease, (event_id,) = lease_due(1)
        event_process(lease, event_id, deadline=0.0)
        found = read(event)
        assert (found.state, found.attempts) == (EventState.RECEIVED, 0)
        assert found.reason.startswith("1 of ")
        drain()
    assert read(event).outcome == EventOutcome.QUEUED


def test_draining_takes_up_all_that_is_due_and_the_sweep_what_no_message_told_of(pool, bot):
    events = [an_event(bot, "lgtm") for _ in range(45)]
    with override(Canned([])):
        assert drain() == "45 events."
        assert drain() == "0 events."
        lost = an_event(bot, "thanks!")
        assert sweep() == "1 events."
        assert sweep() == "Nothing was due."
    assert {read(event).outcome for event in (*events, lost)} == {EventOutcome.DROPPED_PREFILTER}


def test_what_was_dropped_is_kept_for_two_weeks(bot):
    old, young = an_event(bot, "lgtm"), an_event(bot, "thanks!")
    run(Canned([]))
    CaptureEvent.objects.filter(pk=old.pk).update(finished_at=Now() - PAYLOADS_KEPT - timedelta(minutes=1))
    assert forget_payloads() == "1 payloads were cleared."
    assert (read(old).payload, read(young).payload) == ("", "thanks!")
    assert forget_payloads() == "0 payloads were cleared."


def test_an_outcome_stands(bot):
    event = an_event(bot, "lgtm")
    run(Canned([]))
    for change in ({"state": EventState.RECEIVED}, {"outcome": EventOutcome.QUEUED}):
        with pytest.raises(Exception, match="an outcome stands"), _savepoint():
            CaptureEvent.objects.filter(pk=event.pk).update(**change)


def _savepoint() -> Any:
    from django.db import transaction

    assert connection.in_atomic_block
    return transaction.atomic()


def _source(reference: str) -> Any:
    from apps.sources.services import SourceInput

    return (SourceInput(kind="merge_request", reference=reference),)


# --- noise, many at a time ----------------------------------------------------------------------------------
def test_noise_is_dropped_together_and_the_rest_by_itself(bot, django_assert_max_num_queries):
    noise = [an_event(bot, said) for said in ("lgtm", "thanks!", "+1", "https://git.example.com/acme/pay") * 5]
    with override(Canned([a_fact()])), django_assert_max_num_queries(12):
        assert drain() == "20 events."
    rows = CaptureEvent.objects.filter(pk__in=[event.pk for event in noise])
    assert set(rows.values_list("state", "outcome")) == {(EventState.DONE, EventOutcome.DROPPED_PREFILTER)}
    assert rows.exclude(payload="").count() == 20  # kept for a while, so that a wrong drop can be overruled
    reasons = {event.payload: event.reason for event in rows.defer(None)}
    assert len(set(reasons.values())) >= 2
    assert reasons["lgtm"] == "The whole message only acknowledges another one."


def test_a_text_that_the_prefilter_fails_of_takes_no_other_along(bot, monkeypatch):
    poison, noise = an_event(bot, "poison"), an_event(bot, "lgtm")
    known = processing.prefilter

    def fails(text, **options):
        if text == "poison":
            raise RuntimeError("a bug")
        return known(text, **options)

    monkeypatch.setattr(processing, "prefilter", fails)
    with override(Canned([a_fact()])):
        drain()
    assert CaptureEvent.objects.get(pk=noise.pk).state == EventState.DONE
    failed = CaptureEvent.objects.get(pk=poison.pk)
    assert (failed.state, failed.last_error) == (EventState.FAILED, "It failed unexpectedly: RuntimeError.")


def test_noise_whose_lease_was_lost_is_left_to_whoever_has_it_now(bot):
    events = [an_event(bot, "lgtm").pk for _ in range(2)]
    lease, leased_ids = lease_due(2)
    CaptureEvent.objects.filter(pk=events[0]).update(lease=uuid4())
    processing.noise_drop(lease, leased_ids)
    found = dict(CaptureEvent.objects.values_list("pk", "state"))
    assert found == {events[0]: EventState.PROCESSING, events[1]: EventState.DONE}
