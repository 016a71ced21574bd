"""What happens in the demonstration, in order, through the services that every door uses.

It can be told again: what is known already is said to be, and nothing is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from textwrap import fill
from typing import Any, Final

from apps.approvals.amendments import Amendment
from apps.approvals.demonstration.cast import Cast
from apps.approvals.demonstration.records import REPOSITORY, DecisionRecord
from apps.approvals.services import candidate_approve, candidate_reject
from apps.candidates.corrections import Report, memory_correct
from apps.candidates.models import CandidateStatus
from apps.candidates.services import Proposed, candidate_propose
from apps.core.errors import Conflict
from apps.memories.models import Memory
from apps.memories.selectors import memory_for
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from apps.retrieval.tasks import lexemes_count
from apps.sources.services import SourceInput

Say = Callable[[str], None]

WIDTH: Final = 100
UNDECIDED: Final = "Nobody has decided this yet. Propose it again once the record is accepted."
# By number of the record: what the reviewer changes, and why.
AMENDED: Final = {4: ("dependency_decisions", "It says why a library is used, so it is a dependency decision.")}
REPORTED: Final = 11
REPORT: Final = (
    "An agent that finds the code at odds with a memory says so like this. This report is part of a demonstration: the "
    "code still agrees."
)
QUESTIONS: Final = (
    "Why do web and worker not run under honcho any more?",
    "Why does the pool write on Django's connection?",
    "What happens when a client sends a parameter that we do not know?",
)
# About the record that is still a proposal.
QUESTION_ABOUT_THE_REJECTED: Final = "Is text overwritten for an erasure request?"


class Story:
    """``memories`` holds what the records have become, by their numbers."""

    def __init__(self, cast: Cast, records: Sequence[DecisionRecord], *, say: Say) -> None:
        self.cast = cast
        self.records = records
        self.say = say
        self.memories: dict[int, Memory] = {}

    def tell(self) -> None:
        self.propose_and_decide(
            "CI proposes the decisions in docs/adr, and the reviewer decides",
            [record for record in self.records if not record.supersedes],
        )
        self.propose_and_decide(
            "CI proposes the decisions that replace earlier ones",
            [record for record in self.records if record.supersedes],
        )
        # The worker counts words now and then; the questions should not have to wait for it.
        lexemes_count(self.cast.workspace)
        self.report_one()
        self.ask_all()

    # --- proposing and deciding ---
    def propose_and_decide(self, heading: str, records: Sequence[DecisionRecord]) -> None:
        self._heading(heading)
        proposed = [(record, self._propose(record)) for record in records]
        for record, answer in proposed:
            self._decide(record, answer)

    def _propose(self, record: DecisionRecord) -> Proposed:
        replaces = tuple(self.memories[number].label for number in record.supersedes if number in self.memories)
        return candidate_propose(principal=self.cast.bot, proposal=record.proposal(replaces))

    def _decide(self, record: DecisionRecord, answer: Proposed) -> None:
        if answer.status not in (CandidateStatus.PENDING, CandidateStatus.QUARANTINED):
            self._known(record, answer)
        elif record.status == "proposed":
            self._reject(record, answer)
        else:
            self._approve(record, answer)

    def _known(self, record: DecisionRecord, answer: Proposed) -> None:
        self._line("known", f"{record.label} — {answer.reason}")
        if answer.duplicate_of is not None and answer.duplicate_of.what == "memory":
            self.memories[record.number] = memory_for(self.cast.reviewer, answer.duplicate_of.id)

    def _reject(self, record: DecisionRecord, answer: Proposed) -> None:
        candidate = answer.candidate
        candidate_reject(
            principal=self.cast.reviewer, candidate_id=candidate.pk, version=candidate.version, reason=UNDECIDED
        )
        self._line("rejected", f"{record.label} — {UNDECIDED}")

    def _approve(self, record: DecisionRecord, answer: Proposed) -> None:
        type_, note = AMENDED.get(record.number, (None, ""))
        candidate = answer.candidate
        memory = candidate_approve(
            principal=self.cast.reviewer,
            candidate_id=candidate.pk,
            version=candidate.version,
            amendment=Amendment({"type": type_} if type_ else {}),
            note=note,
        ).memory
        self.memories[record.number] = memory
        replaced = [self.memories[number].label for number in record.supersedes if number in self.memories]
        tail = f" — as {type_}: {note}" if type_ else f" — replaces {', '.join(replaced)}" if replaced else ""
        self._line("amended" if type_ else "approved", f"{memory.label}  {record.title}{tail}")

    # --- a report ---
    def report_one(self) -> None:
        memory = self.memories.get(REPORTED)
        if memory is None:
            return
        self._heading("An agent reports a memory as stale")
        source = SourceInput(kind="agent", reference="manage.py demo")
        try:
            answer = memory_correct(
                principal=self.cast.agent,
                reference=memory.pk,
                report=Report(kind="stale", reason=REPORT, sources=(source,)),
            )
        except Conflict as decided:
            self._line("known", decided.detail)
            return
        status = memory_for(self.cast.agent, memory.pk).status
        self._line(
            "reported" if answer.created else "known",
            f"{memory.label} is {status}, and still served until a reviewer decides."
            if answer.created
            else answer.reason,
        )

    # --- questions ---
    def ask_all(self) -> None:
        self._heading(f"Questions from a checkout of {REPOSITORY}")
        for question in QUESTIONS:
            self._ask(question)
        undecided = next((record for record in self.records if record.status == "proposed"), None)
        if undecided is not None:
            self._ask(QUESTION_ABOUT_THE_REJECTED)
            self.say(f"      ({undecided.label} was rejected: no search returns it.)")
        replaced = next((record for record in self.records if record.status == "superseded"), None)
        if replaced is not None:
            moment = replaced.decided_at + timedelta(hours=12)
            self._ask(f"How were words ranked on {moment:%d %B %Y}?", as_of=moment)

    def _ask(self, question: str, *, as_of: datetime | None = None) -> None:
        request = SearchRequest(q=question, repos=(REPOSITORY,), limit=1, as_of=as_of)
        answer = search(principal=self.cast.agent, request=request)
        self.say(f"  {question}")
        for result in answer.results:
            self._answer(result)
        if not answer.results:
            self.say("      Nothing is known about this.")
        if answer.note:
            self.say(f"      ({answer.note})")

    def _answer(self, result: dict[str, Any]) -> None:
        title, *paragraphs = result["content"].split("\n\n")
        why = next((paragraph for paragraph in paragraphs if paragraph.startswith("Why: ")), "")
        source = result["sources"][0]["reference"] if result["sources"] else "unknown"
        self.say(f"      {result['number']} ({result['status']}, score {result['score']:.2f}, {source})")
        for text in (title, why):
            self.say(fill(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6))

    def _heading(self, text: str) -> None:
        self.say(f"\n{text}")

    def _line(self, what: str, text: str) -> None:
        self.say(fill(text, WIDTH, initial_indent=f"  {what:<9} ", subsequent_indent=" " * 12))
