"""The tools that read. Each asks the service that REST asks, and shows what it answers as data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from uuid import UUID

from apps.agents.call import Call, Outcome, joined
from apps.agents.fitting import context_outcome, context_sent
from apps.agents.scoping import looking
from apps.agents.telling import memories_told, trust_of
from apps.core.errors import FieldError, Invalid, NotFound
from apps.core.serializers import utc_note
from apps.memories.models import EPISODIC, Memory, Tier
from apps.memories.selectors import memories_visible, memory_for, memory_shown
from apps.retrieval.context import ContextRequest, context
from apps.retrieval.receipts import served_record
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search

DECISIONS: Final = 10
_LOOKED_AT: Final = 30
_DECISION: Final = "decision"
_WHY: Final = "explain-why"


def memory_search(call: Call) -> Outcome:
    asked = call.arguments
    repo, domains = asked.get("repo"), call.listed("domains")
    where = looking(call.principal, repo=repo, checkout=call.checkout, domains=domains)
    answer = search(
        principal=call.principal,
        request=SearchRequest(
            q=asked["query"],
            repos=where.repos,
            domains=domains,
            types=call.listed("types"),
            limit=asked["limit"],
            as_of=asked.get("as_of"),
            task=asked.get("task"),
            # An agent asks by one word: notes come beside what is known, and only for the task that it names.
            tiers=(*Tier.values, EPISODIC) if "task" in asked else None,
        ),
    )
    results = [_without_itself(result) | {"trust": trust_of(result)} for result in answer.results]
    served_record(call.principal, "search", results=results, question=asked["query"])
    return Outcome(results, joined(where.note(answer.scope), answer.note), memories_told(results), _beside(answer))


def _without_itself(result: dict[str, Any]) -> dict[str, Any]:
    """A chain of one would say the same statement twice to an agent."""
    return {name: value for name, value in result.items() if name != "chain" or len(value) > 1}


def _beside(answer: SearchAnswer) -> dict[str, Any]:
    return {"intent": answer.intent, "degraded": answer.degraded}


def memory_get(call: Call) -> Outcome:
    memory = memory_named(call)
    shown = memory_shown(call.principal, memory)
    shown["trust"] = trust_of(shown)
    served_record(call.principal, "get", results=[shown])
    return Outcome([shown], "", memories_told([shown]))


def memory_named(call: Call) -> Memory:
    """The memory that ``id`` names."""
    try:
        return memory_for(call.principal, call.arguments["id"].strip())
    except NotFound as error:
        raise NotFound(
            error.detail, errors=[FieldError("id", "No memory that you may see has this id or number.")]
        ) from None


def memory_context(call: Call) -> Outcome:
    asked = call.arguments
    repo = asked.get("repo") or call.checkout
    if repo is None:
        raise Invalid.field("repo", "This is missing: name the repository that you work in.")
    where = looking(call.principal, repo=asked.get("repo"), checkout=call.checkout)
    request = ContextRequest(repo=repo, path=asked.get("path"), budget_tokens=asked["budget_tokens"])
    found = context(principal=call.principal, request=request, sent=partial(context_sent, where))
    outcome = context_outcome(where, found)
    served_record(call.principal, "context", results=outcome.results, question=request.question)
    return outcome


def memory_decisions(call: Call) -> Outcome:
    """What was decided about a subject, what each of it replaced, and why."""
    where = looking(call.principal, repo=call.arguments.get("repo"), checkout=call.checkout)
    request = SearchRequest(q=call.arguments["subject"], repos=where.repos, limit=_LOOKED_AT, intent=_WHY)
    answer = search(principal=call.principal, request=request)
    decisions = [result for result in answer.results if result["category"] == _DECISION or len(result["chain"]) > 1]
    reasons = _reasons(call, [result["id"] for result in decisions[:DECISIONS]])
    results = [_decision(result, reasons) for result in decisions[:DECISIONS]]
    served_record(call.principal, "decisions", results=results, question=call.arguments["subject"])
    note = "" if results or not answer.results else "What was found is no decision; memory_search shows it."
    return Outcome(
        results, joined(where.note(answer.scope), answer.note, note), memories_told(results), _beside(answer)
    )


def _decision(result: dict[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    return result | {
        "trust": trust_of(result),
        "holds_now": result["status"] in ("active", "disputed"),
        "replaced": [each for each in result["chain"] if each["status"] == "superseded" and each["id"] != result["id"]],
        "why": {
            "reason": reasons.get(result["id"], ""),
            "quotes": [source["quote"] for source in result["sources"] if source["quote"]],
        },
    }


def _reasons(call: Call, ids: list[str]) -> dict[str, str]:
    """What the reviewers wrote who approved them."""
    rows = memories_visible(call.principal).filter(pk__in=[UUID(each) for each in ids])
    return {str(pk): reason for pk, reason in rows.values_list("pk", "verdict__reason")}


def read_as_utc(arguments: Mapping[str, Any]) -> str:
    return utc_note(arguments, "as_of")
