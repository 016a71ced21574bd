"""The page to ask on, as people read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from apps.accounts.principal import Principal
from apps.memories.providers.base import ProviderError
from apps.memories.providers.mem0.provider import Mem0Provider
from tests import ledger
from tests.capture.extractors.model_server import ModelServer
from tests.pages import text, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

REFUNDS = "Refunds are paid out in the currency of the invoice."
QUESTION = "in which currency are refunds paid out"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def member(browser: Callable[..., Client], bob: User) -> Client:
    return browser(bob)


def test_members_ask_and_nobody_else(member: Client, browser: Any, charlie: User, remember: Any) -> None:
    memory = remember(REFUNDS)
    opened = member.get("/ask/")
    assert opened.status_code == 200
    assert "What was found" not in words(opened)
    assert 'href="/ask/" aria-current="page"' in text(opened)
    answer = member.get("/ask/", {"q": QUESTION})
    assert REFUNDS in words(answer)
    assert f'href="/memories/{memory.label}/"' in text(answer)
    assert "These are the words of the memories themselves" in words(answer)
    assert browser().get("/ask/").headers["Location"] == "/accounts/login/?next=/ask/"
    assert "Nothing is known here about this." in words(browser(charlie).get("/ask/", {"q": QUESTION}))
    assert member.post("/ask/", {"q": QUESTION}).status_code == 405


def test_htmx_gets_the_content_alone(member: Client, remember: Any) -> None:
    remember(REFUNDS)
    answer = member.get("/ask/", {"q": QUESTION}, headers={"HX-Request": "true", "HX-Target": "content"})
    assert REFUNDS in words(answer)
    assert "<html" not in text(answer)


def test_nothing_known_leads_to_proposing_it(member: Client) -> None:
    answer = member.get("/ask/", {"q": "who won the world cup"})
    assert answer.status_code == 200
    assert "Nothing is known here about this." in words(answer)
    assert 'href="/propose/"' in text(answer)


def test_a_disputed_memory_and_changed_minds_are_shown(member: Client, remember: Any, bot: Principal) -> None:
    old = remember("Orders are sent by carrier pigeon.")
    new = remember("Orders are sent by parcel drone.", supersedes=(old,))
    ledger.report(bot, new)
    answer = words(member.get("/ask/", {"q": "why are orders sent by parcel drone"}))
    assert "it was: Orders are sent by carrier pigeon." in answer
    assert "it is: Orders are sent by parcel drone." in answer
    assert "Superseded" in answer and "Disputed" in answer


def test_what_could_not_be_looked_at_is_said(
    member: Client, pool: Mem0Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise ProviderError("The model is gone.", permanent=False)

    monkeypatch.setattr(pool, "embed_query", down)
    answer = words(member.get("/ask/", {"q": "zebra"}))
    assert "Nothing was found in what could be looked at." in answer
    assert "Nothing is known" not in answer


def test_a_composed_answer_says_that_a_model_worded_it(member: Client, remember: Any, model: ModelServer) -> None:
    memory = remember(f"{REFUNDS} {HOSTILE}")
    sentence = {"text": REFUNDS, "citations": [memory.label]}
    model.says(json.dumps({"sentences": [sentence, {"text": f"{HOSTILE} It is gold.", "citations": [memory.label]}]}))
    answer = member.get("/ask/", {"q": QUESTION})
    assert "A language model worded this" in words(answer)
    assert "One sentence of the language model was left out" in words(answer)
    assert HOSTILE not in text(answer) and "gold" not in text(answer)


@pytest.mark.parametrize("q", [HOSTILE, "\u202etxt", "支払い", "ما هي العملة؟", "x" * 8_000, '"', "null"])
def test_any_question_is_a_question(member: Client, remember: Any, q: str) -> None:
    remember(f"{HOSTILE} \u202e支払い ما هي العملة")
    answer = member.get("/ask/", {"q": q})
    assert answer.status_code == 200
    assert HOSTILE not in text(answer)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"q": ""}, "This is blank"),
        ({"q": "  "}, "This is blank"),
        ({"q": "x" * 20_001}, "at most 20,000 characters"),
        ({"q": "a\x00b"}, "Null characters are not allowed."),
        ({"q": "x", "repo": "y" * 501}, "at most 500 characters"),
        ({"q": "x", "type": "z"}, "Questions cannot be narrowed by “type”."),
    ],
)
def test_what_will_not_do_is_said(member: Client, query: dict[str, str], says: str) -> None:
    answer = member.get("/ask/", query)
    assert answer.status_code == 422
    assert says in words(answer)


def test_a_secret_is_not_repeated(member: Client, remember: Any) -> None:
    remember(REFUNDS)
    answer = member.get("/ask/", {"q": f"{QUESTION} AKIAIOSFODNN7EXAMPLE"})
    assert "AKIAIOSFODNN7EXAMPLE" not in text(answer)
    assert "were masked" in words(answer)


def test_it_costs_few_queries(member: Client, remember: Any, django_assert_max_num_queries: Any) -> None:
    for _ in range(6):
        remember(f"{ledger.a_statement()} {REFUNDS}")
    with django_assert_max_num_queries(30):
        member.get("/ask/", {"q": QUESTION})


def test_asking_has_a_rate(member: Client, settings: Any) -> None:
    settings.FIRM_MEMORY_RATES = settings.FIRM_MEMORY_RATES | {"search": 1}
    assert member.get("/ask/", {"q": "x"}).status_code == 200
    assert member.get("/ask/").status_code == 200
    assert member.get("/ask/", {"q": "x"}).status_code == 429
