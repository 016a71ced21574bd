"""What a question is after, and what that changes about its answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.core.clock import now
from apps.memories.models import Memory
from apps.retrieval.intents import detected
from apps.retrieval.ledger import Weighting
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search
from apps.taxonomy.intents import INTENTS
from apps.taxonomy.models import Category


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Why do we pin the proxy?", "explain-why"),
        ("what is the rationale behind the outbox", "explain-why"),
        ("How come refunds are paid out at night?", "explain-why"),
        ("Warum benutzen wir kein Redis?", "explain-why"),
        ("Why did the outage happen?", "explain-why"),
        ("What did we use for queues before?", "history"),
        ("since when do we sign webhooks", "history"),
        ("history of the retry policy", "history"),
        ("Who owns the ledger export?", "ownership"),
        ("which team maintains acme/storefront", "ownership"),
        ("why does the owner of the ledger change", "ownership"),
        ("What does CBE mean?", "terminology"),
        ("definition of settlement", "terminology"),
        ("Was bedeutet CBE?", "terminology"),
        ("payments went down with HTTP 504", "incident"),
        ("root cause of the double charge", "incident"),
        ("How should I name a migration?", "implement"),
        ("add a new payment method", "implement"),
        ("conventions for log messages", "implement"),
        ("refund currency", "look-up"),
        ("支払いサービス", "look-up"),
        ("whyte paper", "look-up"),
        ("", "look-up"),
    ],
)
def test_the_wording_tells_what_is_asked_for(question: str, intent: str) -> None:
    found = detected(question)
    assert (found.intent, found.intent in INTENTS) == (intent, True)
    assert found.because.endswith(".")


@pytest.mark.parametrize("question", ["what does " * 9_000, "how did " + "x" * 80_000, "was " * 20_000])
def test_no_question_takes_long(question: str) -> None:
    assert detected(question).intent in INTENTS


def ask(principal: Principal, q: str, tried: dict[str, Weighting] | None = None, **values: Any) -> SearchAnswer:
    return search(principal=principal, request=SearchRequest(q=q, **values), tried=tried)


def scores(answer: SearchAnswer) -> dict[str, float]:
    return {row["number"]: row["score"] for row in answer.results}


pool = pytest.mark.usefixtures("pool")


@pool
@pytest.mark.django_db
def test_a_category_counts_by_intent_as_the_taxonomy_says(
    remember: Callable[..., Memory], bot: Principal, workspace: Workspace
) -> None:
    convention = remember("Log messages carry the request id.", type="review_feedback")
    plain = scores(ask(bot, "log messages request id", intent="look-up"))[convention.label]
    weighed = ask(bot, "log messages request id", intent="implement")
    assert scores(weighed)[convention.label] == pytest.approx(1.15 * plain, rel=1e-4)
    assert weighed.results[0]["scores"]["weight"] == 1.15
    Category.objects.filter(workspace=workspace, slug="convention").update(weights={"implement": 2})
    doubled = scores(ask(bot, "log messages request id", intent="implement"))
    assert doubled[convention.label] == pytest.approx(2 * plain, rel=1e-4)


@pool
@pytest.mark.django_db
def test_freshness_halves_with_each_half_life_and_costs_a_fifth_at_most(
    remember: Callable[..., Memory], bot: Principal, workspace: Workspace
) -> None:
    Category.objects.filter(workspace=workspace, slug="project").update(half_life_days=100)
    old = remember("The build takes nine minutes.", valid_from=now() - timedelta(days=200))
    (result,) = ask(bot, "how long does the build take").results
    assert result["scores"]["decay"] == pytest.approx(0.25, rel=0.01)
    assert result["score"] == pytest.approx(result["scores"]["fused"] * (0.8 + 0.2 * 0.25), rel=0.01)
    then = ask(bot, "how long does the build take", as_of=now() - timedelta(days=100)).results[0]
    assert then["scores"]["decay"] == pytest.approx(0.5, rel=0.01)
    ageless = ask(bot, "history of how long the build takes")
    assert ageless.intent == "history"
    assert "decay" not in ageless.results[0]["scores"]
    assert ageless.results[0]["number"] == old.label


@pool
@pytest.mark.django_db
def test_of_two_alike_the_newer_comes_first_and_the_only_answer_is_the_answer(
    remember: Callable[..., Memory], bot: Principal
) -> None:
    old = remember("The nightly build takes nine minutes on two cores.", valid_from=now() - timedelta(days=4_000))
    remember("Invoices are numbered without gaps.", valid_from=now() - timedelta(days=1))
    question = "how long does the nightly build take"
    assert [*scores(ask(bot, question))][0:1] == [old.label]
    new = remember("The nightly build takes eight minutes on two cores.", valid_from=now() - timedelta(days=10))
    assert [*scores(ask(bot, question))][0:2] == [new.label, old.label]


@pool
@pytest.mark.django_db
def test_decisions_and_conventions_do_not_fade(remember: Callable[..., Memory], bot: Principal) -> None:
    remember("Libraries are vendored.", type="dependency_decisions", valid_from=now() - timedelta(days=4_000))
    assert "decay" not in ask(bot, "libraries vendored").results[0]["scores"]


@pool
@pytest.mark.django_db
def test_a_weighting_can_be_tried_without_being_kept(remember: Callable[..., Memory], bot: Principal) -> None:
    memory = remember("The build takes nine minutes.", valid_from=now() - timedelta(days=200))
    kept = scores(ask(bot, "build minutes", intent="look-up"))[memory.label]
    tried = {"project": Weighting(half_life_days=None, weights={"look-up": 3})}
    shown = ask(bot, "build minutes", tried, intent="look-up").results[0]
    assert shown["scores"]["weight"] == 3
    assert "decay" not in shown["scores"]
    assert scores(ask(bot, "build minutes", intent="look-up"))[memory.label] == pytest.approx(kept, rel=1e-3)
