"""The plug point for a reranker: it sees what may be served, and changes the order of that alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.candidates.proposal import ScopeInput
from apps.memories.models import Memory
from apps.retrieval.recipes import DEFAULT, RECIPES
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search
from apps.retrieval.stages.rerank import RERANKERS
from tests import ledger

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

Seen = list[tuple[str, list[str]]]


@pytest.fixture
def shortest_first(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """What the reranker was shown: it takes the shorter text for the better answer."""
    seen: Seen = []

    def score(question: str, texts: Sequence[str]) -> list[float]:
        seen.append((question, list(texts)))
        return [-float(len(text)) for text in texts]

    monkeypatch.setitem(RERANKERS, "shortest", score)
    monkeypatch.setitem(RECIPES, "shortest", replace(DEFAULT, name="shortest", reranker="shortest"))
    return seen


def ask(curator: User, **values: Any) -> SearchAnswer:
    request = SearchRequest(q="How long do retries of payments wait?", recipe="shortest", **values)
    return search(principal=ledger.of_person(curator), request=request)


def test_it_puts_in_order_what_may_be_served_and_sees_nothing_else(
    remember: Callable[..., Memory], carol: User, shortest_first: Seen
) -> None:
    long = remember("Retries of payments wait for ten seconds, then twenty, then forty, since the bank asks for it.")
    short = remember("Retries of payments wait.")
    remember("Retries of payments wait.", scope=ScopeInput(repos=("acme/shop",)))

    answer = ask(carol, repos=("acme/pay",))

    assert [result["number"] for result in answer.results] == [short.label, long.label]
    ((question, texts),) = shortest_first
    assert question == "How long do retries of payments wait?"
    assert sorted(texts) == sorted([long.content, short.content])
    assert answer.results[0]["scores"]["rerank"] == -float(len(short.content))
    told = {stage["name"]: stage["detail"] for stage in answer.pipeline_stages}
    assert told["rerank"] == "shortest put 2 in order."


def test_it_sees_more_than_is_shown(remember: Callable[..., Memory], carol: User, shortest_first: Seen) -> None:
    """Else it could only order what the fused score had chosen already."""
    for more in range(4):
        remember(f"Retries of payments wait for a number of seconds{' and longer' * more}.")

    (result,) = ask(carol, limit=1).results

    ((_, texts),) = shortest_first
    assert len(texts) == 4
    assert result["content"] == min(texts, key=len)
