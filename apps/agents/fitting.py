"""A context within its budget, whichever of its two forms an agent is shown.

Some clients show their model the text of an answer, others its structured content instead. So neither takes more tokens
than were asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from apps.agents.call import Outcome, joined
from apps.agents.scoping import Looking
from apps.agents.telling import STRUCTURED_DATA, harmless, trust_of
from apps.core.tokens import estimated_tokens
from apps.retrieval.context import MOST_TOKENS, Context, Sent
from apps.retrieval.services import SearchAnswer

_SOURCES: Final = 5
# The longest that there is, for the room that is kept for it.
_LONGEST: Final = "200 statements were left out; left_out says why for 200 of them."


def context_sent(where: Looking, answer: SearchAnswer) -> Sent:
    around = _structured(answer, [], joined(where.note(answer.scope), answer.note, _LONGEST), MOST_TOKENS, MOST_TOKENS)
    return Sent(written(around), lambda item: f"{written(_told(item))},")


def context_outcome(where: Looking, found: Context) -> Outcome:
    """With as much of what was left out, and why, as there is room for."""
    answer, budget = found.answer, found.request.budget_tokens
    results = [_told(item) for item in found.as_dict()["items"]]
    left_out = [each.as_dict() for each in found.pack.left_out]
    fixed = _structured(answer, results, joined(where.note(answer.scope), answer.note, _LONGEST), budget, budget)
    used, named = estimated_tokens(written(fixed)), 0
    for each in left_out:
        used += estimated_tokens(f"{written(each)},")
        if used > budget:
            break
        named += 1
    note = joined(where.note(answer.scope), answer.note, _left_out(len(left_out), named))
    whole = _structured(answer, results, note, budget, budget) | {"left_out": left_out[:named]}
    # Where nothing is known there is no context, and what the note says of that takes none of its room.
    whole["used_tokens"] = max(found.pack.used_tokens, estimated_tokens(written(whole))) if results else 0
    beside = {name: value for name, value in whole.items() if name not in ("results", "note")}
    return Outcome(results, note, found.pack.text, beside)


def written(value: Any) -> str:
    """As it is sent: compact, and what is special to models defused."""
    return json.dumps(harmless(value), ensure_ascii=False, separators=(",", ":"))


def _structured(
    answer: SearchAnswer, results: list[dict[str, Any]], note: str, used: int, budget: int
) -> dict[str, Any]:
    return {
        "results": results,
        "note": joined(note, STRUCTURED_DATA),
        "intent": answer.intent,
        "degraded": answer.degraded,
        "used_tokens": used,
        "budget_tokens": budget,
        "left_out": [],
    }


def _told(item: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: item[name] for name in ("id", "number", "content", "type", "status")}
    told |= {name: item[name] for name in ("valid_from", "amended_by") if item[name]}
    sources = [{name: source[name] for name in ("kind", "reference")} for source in item["sources"][:_SOURCES]]
    return told | {"sources": sources, "trust": trust_of(item), "why_here": item["why_here"]}


def _left_out(number: int, named: int) -> str:
    if not number:
        return ""
    told = f"{number} {'statement was' if number == 1 else 'statements were'} left out"
    if named == number:
        return f"{told}; left_out says why."
    return f"{told}; left_out says why for {named} of them." if named else f"{told}, for want of room or as repetition."
