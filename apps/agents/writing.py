"""The tools that bring something in. None of them writes what a search finds: a person decides first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from apps.agents.call import Call, Outcome, joined
from apps.agents.reading import memory_named
from apps.agents.scoping import holding
from apps.agents.telling import as_data, quoted
from apps.candidates.api import proposed_shown
from apps.candidates.corrections import Report
from apps.candidates.corrections import memory_correct as correct
from apps.candidates.proposal import Proposal, ScopeInput
from apps.candidates.services import Proposed, candidate_propose
from apps.capture.inbox import RawMaterial, event_receive
from apps.core.wording import words
from apps.sources.api import sources_from

WAITS: Final = "Nothing is remembered yet: a reviewer decides, and until then no search finds it."
_FOR_THE_FIRM: Final = "No repository was named, so what is found in it is proposed for the whole firm."


def memory_propose(call: Call) -> Outcome:
    given = call.arguments
    scope, where = holding(call.principal, _scope(given), checkout=call.checkout)
    proposed = candidate_propose(
        principal=call.principal,
        proposal=Proposal(
            content=given["content"],
            type=given["type"],
            scope=scope,
            sources=sources_from(given["sources"]),
            confidence=given.get("confidence"),
            supersedes=tuple(given.get("supersedes", ())),
        ),
    )
    shown = proposed_shown(call.principal, proposed)
    near = [f"{each['what']} {each['id']}\n{quoted(each['content'])}" for each in shown["near"] if each["content"]]
    told = joined(_became(proposed), _waits(proposed), where)
    reason = [f"About the earlier one:\n{quoted(proposed.reason)}"] if proposed.reason else []
    text = as_data([*reason, *near], head="What it is near to." if near else "")
    return Outcome([shown], told, text)


def _scope(given: Mapping[str, Any]) -> ScopeInput:
    return ScopeInput(
        firm=given.get("firm", False), domains=tuple(given.get("domains", ())), repos=tuple(given.get("repos", ()))
    )


def _became(proposed: Proposed) -> str:
    if proposed.created:
        return f"Candidate {proposed.candidate.pk} is {proposed.status}."
    return f"The same was said before: candidate {proposed.candidate.pk} is {proposed.status}."


def _waits(proposed: Proposed) -> str:
    return WAITS if proposed.candidate.is_open else ""


def memory_correct(call: Call) -> Outcome:
    given, memory = call.arguments, memory_named(call)
    report = Report(
        kind=given["kind"],
        reason=given["reason"],
        replacement=given.get("replacement", ""),
        sources=sources_from(given["sources"]),
    )
    reported = correct(principal=call.principal, reference=memory.pk, report=report)
    shown = {
        "id": str(reported.candidate.pk),
        "status": reported.status,
        "reason": reported.reason,
        "memory": memory.label,
    }
    made = f"{memory.label} was reported as {words(given['kind'])}." if reported.created else _became(reported)
    decided = "It stays as it is until a reviewer decides." if reported.candidate.is_open else ""
    reason = [f"About the report:\n{quoted(reported.reason)}"] if reported.reason else []
    return Outcome([shown], joined(made, decided), as_data(reason))


def memory_ingest(call: Call) -> Outcome:
    given = call.arguments
    named = ScopeInput(repos=(given["repo"],) if "repo" in given else ())
    scope, where = holding(call.principal, named, checkout=call.checkout)
    if not scope.repos:
        scope, where = ScopeInput(firm=True), _FOR_THE_FIRM
    received = event_receive(
        principal=call.principal,
        material=RawMaterial(
            content=given["content"], kind=given["kind"], scope=scope, sources=sources_from(given["sources"])
        ),
    )
    shown = {"event": str(received.event.pk), "notes": received.event.notes if received.created else []}
    told = f"Handed over as event {received.event.pk}. " + (
        "The worker looks for what is worth remembering; that it finds nothing is normal." if received.created else ""
    )
    return Outcome([shown], joined(told.strip(), received.note, where, *shown["notes"]), "")
