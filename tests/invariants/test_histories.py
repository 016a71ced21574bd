"""Whatever is done in whatever order, the ledger keeps its rules and the pool says the same as the ledger.

A state machine proposes, joins, decides, undoes, reports and restores at random in a small world, and after every
step everything is looked at again, with the rules written down a second time.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from apps.approvals.services import memory_restore, memory_retire
from apps.candidates.models import OPEN, Candidate
from apps.candidates.revisions import Revision, candidate_revise, candidate_withdraw
from apps.core.clock import now
from apps.core.errors import DomainError
from apps.memories.lifecycle import pool_record
from apps.memories.models import Memory, Supersession, Verdict
from apps.memories.tasks import refresh_ended
from tests.ledger import a_source, approve, propose, reject, reopen, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

TEXTS = [
    f"{subject} {rule}." for subject in ("Payments", "Refunds") for rule in ("retry", "settle at noon", "are final")
]
SOURCES = [f"acme/pay!{number}" for number in range(1, 5)]
MOMENTS = [None, datetime(2025, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)]

texts, sources, moments = st.sampled_from(TEXTS), st.sampled_from(SOURCES), st.sampled_from(MOMENTS)
places = st.integers(min_value=0, max_value=1_000)


def histories(cast: dict[str, Any], pool: Any) -> type[RuleBasedStateMachine]:
    class Histories(RuleBasedStateMachine):
        """``done`` counts what went through, so that a machine that is refused everything is noticed."""

        done: Counter[str] = Counter()

        def __init__(self) -> None:
            super().__init__()
            self.world = transaction.atomic()
            self.world.__enter__()
            self.started = now()

        def teardown(self) -> None:
            transaction.set_rollback(True)
            self.world.__exit__(None, None, None)

        def attempt(self, name: str, work: Any) -> None:
            """A refusal is as good as an answer; what matters is what is true afterwards."""
            try:
                with transaction.atomic():
                    work()
                    # What a commit would look at.
                    connection.check_constraints()
                self.done[name] += 1
            except DomainError:
                pass

        def candidate(self, place: int, *, waiting: bool = False) -> Candidate:
            """Any of them; with ``waiting`` mostly one that can still be decided."""
            rows = Candidate.objects.order_by("created_at", "id")
            if waiting and place % 5 and rows.filter(status__in=OPEN).exists():
                rows = rows.filter(status__in=OPEN)
            return rows[place % rows.count()]

        def memory(self, place: int, **wanted: str) -> Memory:
            rows = Memory.objects.filter(**wanted).order_by("number")
            return rows[place % rows.count()]

        # --- what is done ---------------------------------------------------------------------------------------
        @initialize()
        def something_is_known_and_something_was(self):
            """So that most of a history can be about memories."""
            for text in TEXTS[:2]:
                memory = approve(cast["alice"], propose(cast["robo"], text, sources=(a_source(SOURCES[0]),))).memory
            memory_retire(principal=cast["alice"], reference=memory.pk, reason="Moot.")

        @rule(
            who=st.sampled_from(["robo", "botty"]),
            text=texts,
            source=sources,
            low=st.booleans(),
            moment=moments,
            replaces=st.lists(places, max_size=2),
        )
        def propose(self, who, text, source, low, moment, replaces):
            targets = tuple(self.memory(place).label for place in replaces) if Memory.objects.exists() else ()
            self.attempt(
                "propose",
                lambda: propose(
                    cast[who],
                    text,
                    sources=(a_source(source),),
                    confidence=0.1 if low else None,
                    valid_from=moment,
                    supersedes=targets,
                ),
            )

        @precondition(lambda self: Candidate.objects.exists())
        @rule(who=st.sampled_from(["alice", "carol"]), place=places, text=st.none() | st.none() | texts)
        def approve(self, who, place, text):
            row = self.candidate(place, waiting=True)
            amendment = {"content": text} if text and row.brings_memory else {}
            self.attempt("approve", lambda: approve(cast[who], row, **amendment))

        @precondition(lambda self: Candidate.objects.exists())
        @rule(who=st.sampled_from(["alice", "carol"]), place=places)
        def reject(self, who, place):
            self.attempt("reject", lambda: reject(cast[who], self.candidate(place, waiting=True)))

        @precondition(lambda self: Candidate.objects.exclude(status__in=OPEN).exists())
        @rule(who=st.sampled_from(["alice", "carol"]), place=places)
        def reopen(self, who, place):
            self.attempt("reopen", lambda: reopen(cast[who], self.candidate(place)))

        @precondition(lambda self: Candidate.objects.open().exists())
        @rule(who=st.sampled_from(["robo", "botty"]), place=places, text=texts)
        def revise(self, who, place, text):
            row = self.candidate(place, waiting=True)
            self.attempt(
                "revise",
                lambda: candidate_revise(
                    principal=cast[who],
                    candidate_id=row.pk,
                    version=row.version,
                    revision=Revision(values={"content": text}),
                ),
            )

        @precondition(lambda self: Candidate.objects.open().exists())
        @rule(who=st.sampled_from(["robo", "botty"]), place=places)
        def withdraw(self, who, place):
            row = self.candidate(place)
            self.attempt(
                "withdraw",
                lambda: candidate_withdraw(principal=cast[who], candidate_id=row.pk, version=row.version),
            )

        @precondition(lambda self: Memory.objects.exists())
        @rule(
            who=st.sampled_from(["robo", "botty"]),
            place=places,
            kind=st.sampled_from(["stale", "wrong"]),
            replacement=st.just("") | texts,
            source=sources,
        )
        def report(self, who, place, kind, replacement, source):
            self.attempt(
                "report",
                lambda: report(
                    cast[who], self.memory(place), kind=kind, replacement=replacement, sources=(a_source(source),)
                ),
            )

        @precondition(lambda self: Memory.objects.exists())
        @rule(place=places)
        def retire(self, place):
            self.attempt(
                "retire",
                lambda: memory_retire(principal=cast["alice"], reference=self.memory(place).pk, reason="Moot."),
            )

        @precondition(lambda self: Memory.objects.filter(status="retired").exists())
        @rule(place=places)
        def restore(self, place):
            self.attempt(
                "restore",
                lambda: memory_restore(
                    principal=cast["carol"], reference=self.memory(place, status="retired").pk, reason="Not moot."
                ),
            )

        @rule()
        def time_passes(self):
            refresh_ended()

        # --- what holds -----------------------------------------------------------------------------------------
        @invariant()
        def a_memorys_status_follows_from_the_ledger(self):
            ends: dict[Any, list[datetime]] = {}
            for edge in Supersession.objects.filter(voided_by=None, kind="full"):
                ends.setdefault(edge.old_id, []).append(edge.holds_from)
            reported = set(Candidate.objects.open().exclude(corrects=None).values_list("corrects", flat=True))
            for memory in Memory.objects.all():
                mine = ends.get(memory.pk, [])
                if memory.retired_at is not None:
                    expected = {"retired"}
                elif mine and min(mine) <= now():
                    expected = {"superseded"}
                elif not mine and memory.valid_to is not None:
                    expected = {"retired"}
                else:
                    expected = {"active", "disputed"} if memory.pk in reported else {"active"}
                assert memory.status in expected, (memory, memory.status, expected)
                if mine:
                    assert memory.valid_to == min(mine)
                assert (memory.valid_to is None) == (memory.closed_at is None)

        @invariant()
        def the_pool_says_what_the_ledger_says(self):
            memories = list(Memory.objects.select_related("type"))
            assert {memory.pk: pool.get(memory.pk) for memory in memories} == {
                memory.pk: pool_record(memory) for memory in memories
            }
            assert pool.describe().memories == len(memories)

        @invariant()
        def what_is_decided_was_decided_by_its_newest_verdict(self):
            for candidate in Candidate.objects.select_related("decision"):
                newest = Verdict.objects.filter(subject_id=candidate.pk).order_by("-created_at").first()
                if candidate.status in ("approved", "rejected"):
                    assert candidate.decision == newest
                    assert newest.action == {"approved": "approve", "rejected": "reject"}[candidate.status]
                elif candidate.status == "withdrawn":
                    assert newest.action == "withdraw"
                elif newest is not None and newest.action in ("approve", "withdraw"):
                    raise AssertionError(f"{candidate} is open after {newest.action}")

        @invariant()
        def every_memory_was_approved_by_another_person(self):
            for memory in Memory.objects.select_related("verdict"):
                assert (memory.verdict.action, memory.verdict.second_person) == ("approve", True)
                assert memory.verdict.reviewer_name in ("alice", "carol")
                assert memory.evidence.exists()
            made = Memory.objects.values_list("verdict", flat=True)
            bare = Verdict.objects.filter(action="approve").exclude(pk__in=made)
            reports = Candidate.objects.exclude(corrects=None).filter(has_replacement=False)
            assert set(bare.values_list("subject_id", flat=True)) <= set(reports.values_list("pk", flat=True))

        @invariant()
        def the_queue_holds_nothing_twice_and_nothing_without_a_source(self):
            waiting = Candidate.objects.open()
            fingerprints = list(waiting.values_list("fingerprint", flat=True))
            assert len(fingerprints) == len(set(fingerprints))
            assert not waiting.filter(evidence=None).exists()
            assert not waiting.filter(proposers=None).exists()
            for candidate in Candidate.objects.all():
                assert candidate.version > Verdict.objects.filter(subject_id=candidate.pk).count()

        @invariant()
        def nothing_in_force_says_the_same_twice(self):
            in_force = Memory.objects.filter(status__in=("active", "disputed"))
            counted = Counter(in_force.values_list("fingerprint", flat=True))
            assert set(counted.values()) <= {1}

        @invariant()
        def numbers_follow_each_other(self):
            numbers = list(Memory.objects.order_by("number").values_list("number", flat=True))
            assert numbers == list(range(1, len(numbers) + 1))

        @invariant()
        def an_undone_approval_leaves_no_edge_and_no_memory_in_force(self):
            standing = set(Candidate.objects.filter(status="approved").values_list("decision", flat=True))
            for memory in Memory.objects.all():
                if memory.verdict_id not in standing:
                    assert memory.status == "retired"
                    assert not Supersession.objects.live().filter(new=memory).exists()

    return Histories


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("without_limits")
def test_the_ledger_keeps_its_rules_in_every_history(principal, alice, carol, robo, botty, pool):
    cast = {"alice": principal(alice), "carol": principal(carol), "robo": principal(robo), "botty": principal(botty)}
    machine = histories(cast, pool)

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=30,
            deadline=timedelta(seconds=20),
            suppress_health_check=list(HealthCheck),
            database=None,
            derandomize=True,
        ),
    )

    # Which histories are drawn is settled by `derandomize`.
    assert set(machine.done) >= {"propose", "approve", "reject", "reopen", "revise", "report", "retire", "restore"}


@pytest.fixture
def without_limits(settings):
    settings.FIRM_MEMORY_THROTTLE = False
