"""What to know before working in a repository or at a path, within a number of tokens.

A question, or the words of a path or task, are searched for as any question is; for somebody who implements, what else
holds there follows. Without a question what holds in the repository is put in order by category, confidence and age.
Both go through the same stages and gates as a search.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from apps.accounts.principal import Principal
from apps.core.errors import FieldError, Invalid
from apps.core.screening import check_text
from apps.retrieval import services
from apps.retrieval.packing import Form, Pack, Piece, packed
from apps.retrieval.pipeline import Search
from apps.retrieval.request import MAX_QUESTION, SearchRequest
from apps.retrieval.services import SearchAnswer
from apps.retrieval.stages import listing

LEAST_TOKENS: Final = 200
MOST_TOKENS: Final = 20_000
DEFAULT_TOKENS: Final = 2_000
MAX_NAME: Final = 1_000
# So many of the best are weighed against one another; a budget holds more than that only if they are very short.
LOOKED_AT: Final = 200
IMPLEMENT: Final = "implement"
# Whatever their category weighs: what the code must keep to.
RULES: Final = frozenset({"coding_conventions", "business_rules"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRequest:
    """``path`` is one in the repository, ``task`` what a task is called; ``q`` is a question in plain words."""

    repo: str
    path: str | None = None
    task: str | None = None
    q: str | None = None
    intent: str | None = None
    budget_tokens: int = DEFAULT_TOKENS

    @property
    def question(self) -> str:
        named = (words_of(name) for name in (self.path, self.task) if name is not None)
        return " ".join(filter(None, (self.q, *named)))[:MAX_QUESTION]

    def search_request(self) -> SearchRequest:
        intent = self.intent or (None if self.q is not None else IMPLEMENT)
        return SearchRequest(q=self.question, repos=(self.repo,), limit=LOOKED_AT, intent=intent)

    def check(self) -> None:
        """Raise ``Invalid`` naming every parameter whose value will not do, with the limit where there is one."""
        errors: list[FieldError] = []
        for name in ("path", "task"):
            if (value := getattr(self, name)) is not None:
                errors += check_text(value, field=name, max_length=MAX_NAME, multiline=False)
        if not LEAST_TOKENS <= self.budget_tokens <= MOST_TOKENS:
            errors.append(FieldError("budget_tokens", f"Ask for {LEAST_TOKENS:,} to {MOST_TOKENS:,} tokens."))
        try:
            SearchRequest(q="?" if self.q is None else self.q, repos=(self.repo,), intent=self.intent).check()
        except Invalid as invalid:
            errors += [
                FieldError("repo" if each.field == "repos" else each.field, each.message) for each in invalid.errors
            ]
        if errors:
            raise Invalid("The context cannot be put together like that.", errors=errors)


# Folders and endings that every repository has, and that say nothing of what is in them.
_NAMED_EVERYWHERE: Final = """
src lib libs app apps main test tests spec init index java python go ts tsx js jsx py rb rs cpp hpp cs php kt swift
com org net io www pkg internal cmd mod dev feature feat fix bugfix hotfix chore md txt html css json yaml yml toml
"""
_EVERYWHERE: Final = frozenset(_NAMED_EVERYWHERE.split())
_WORD: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W_A-Za-z]+")


def words_of(name: str) -> str:
    """What a path or the name of a task is about: ``src/payments/retryPolicy.py`` about “payments retry policy”."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(name))
    return " ".join(word for word in words if word not in _EVERYWHERE)


@dataclass(frozen=True, slots=True)
class Context:
    request: ContextRequest
    pack: Pack
    answer: SearchAnswer
    packing: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {
            "repo": self.request.repo,
            "budget_tokens": self.request.budget_tokens,
            "used_tokens": self.pack.used_tokens,
            "text": self.pack.text,
            "items": [_item(piece, self.answer.intent) for piece in self.pack.pieces],
            "left_out": [left.as_dict() for left in self.pack.left_out],
            "intent": self.answer.intent,
            "note": _note(self.answer.note, self.pack),
            "degraded": self.answer.degraded,
            "pipeline_stages": [*self.answer.pipeline_stages, self.packing],
        }


@dataclass(frozen=True, slots=True)
class Sent:
    """How items are sent beside the text, for a form that has to fit as well: what is around them, and one of them."""

    around: str
    item: Callable[[dict[str, Any]], str]


def context(
    *, principal: Principal, request: ContextRequest, sent: Callable[[SearchAnswer], Sent] | None = None
) -> Context:
    """What fits, the most useful first, and what was left out.

    Whoever sends the items beside the text says by ``sent`` how, and neither of both takes more than the budget.

    Raises ``Invalid`` for values that will not do, ``Forbidden`` outside the token's limits and ``Unavailable`` when
    the ledger does not answer.
    """
    request.check()
    answer = services.served(principal, request.search_request(), look=_look)
    started = time.perf_counter()
    pieces = [Piece(result, _comes_first(result, answer.intent)) for result in answer.results]
    form = _form(sent(answer), answer.intent) if sent else None
    pack = packed(pieces, budget=request.budget_tokens, form=form)
    packing = {"name": "pack", "ms": round((time.perf_counter() - started) * 1000, 2), "detail": _told(pack, request)}
    return Context(request, pack, answer, packing)


def _form(sent: Sent, intent: str) -> Form:
    return Form(sent.around, lambda piece: sent.item(_item(piece, intent)))


def _look(search: Search) -> None:
    if search.question:
        services.look(search)
    else:
        for name in ("vector", "text", "identifier", "fuse"):
            search.skip(name, "Nothing was asked.")
    if not search.question or search.intent == IMPLEMENT:
        listing.run(search)


def _comes_first(result: dict[str, Any], intent: str) -> bool:
    """What the taxonomy weighs more for the intent, and for somebody who implements the rules of whatever weight."""
    return result["scores"].get("weight", 1.0) > 1 or (intent == IMPLEMENT and result["type"] in RULES)


_ITEM: Final = (
    *("id", "number", "content", "type", "category", "status", "scope", "sources", "confidence", "valid_from"),
    "amended_by",
)


def _item(piece: Piece, intent: str) -> dict[str, Any]:
    item = {name: piece.result[name] for name in _ITEM} | {"why_here": _why(piece, intent)}
    return item | ({"chain": piece.result["chain"]} if "chain" in piece.result else {})


def _why(piece: Piece, intent: str) -> str:
    result = piece.result
    found = (
        "It was found for what was asked" if set(result["scores"]) & _ARMS else f"It holds {_where(result['scope'])}"
    )
    first = f", and {result['type'].replace('_', ' ')} come first for {intent}" if piece.first else ""
    disputed = " It is disputed and stands lower for that." if result["status"] == "disputed" else ""
    return f"{found}{first}.{disputed}"


_ARMS: Final = frozenset({"vector", "text", "identifier", "replaced"})


def _where(scope: dict[str, Any]) -> str:
    names = [*scope["repos"], *scope["domains"]]
    return f"for {', '.join(names[:3])}" if names else "for the whole firm"


def _told(pack: Pack, request: ContextRequest) -> str:
    left = len(pack.left_out)
    told = f"{len(pack.pieces)} in {pack.used_tokens:,} of {request.budget_tokens:,} tokens."
    if not left:
        return told
    return f"{told} {left} left out, {pack.alike} of them because they say nearly the same as another."


def _note(note: str, pack: Pack) -> str:
    left = len(pack.left_out)
    if not left:
        return note
    return f"{note} {left} {'statement was' if left == 1 else 'statements were'} left out; each says why.".strip()
