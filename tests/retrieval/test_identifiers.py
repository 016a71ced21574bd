"""Names that are meant letter by letter: which they are, and that they lead to what holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.memories.models import Memory
from apps.retrieval.identifiers import MAX_IDENTIFIERS, identifiers_in
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search
from apps.retrieval.stages import identifier
from apps.retrieval.tasks import lexemes_count
from tests import ledger
from tests.conftest import Issued


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("what is `foo` for", ["foo"]),
        ("why does a/b-c exist", ["a/b-c"]),
        ("HTTP 504 from the gateway", ["HTTP 504"]),
        ("HTTP/502 after OMS-123", ["HTTP/502", "OMS-123"]),
        ("see acme/payments!4821 and #17", ["acme/payments!4821", "#17"]),
        ("M-1042 says", ["M-1042"]),
        ("oms-123 and m-7 after http 504", ["oms-123", "m-7", "http 504"]),
        ("MAX_RETRY_COUNT in settings.prod and retryPolicy of RetryQueue", None),
        ("the error E1042 or 0xDEADBEEF", ["E1042", "0xDEADBEEF"]),
        ("what does CBE stand for", ["CBE"]),
        ("the API of the HTTP server over TLS", []),
        ("Why do we do it? And/or not.", ["And/or"]),
        ("支払いサービスはなぜ", []),
        ("   ", []),
        ("", []),
        ("`` ` ```", []),
        ("....///---!!!###", []),
    ],
)
def test_which_words_are_identifiers(text: str, names: list[str] | None) -> None:
    if names is None:
        names = ["MAX_RETRY_COUNT", "settings.prod", "retryPolicy", "RetryQueue"]
    assert identifiers_in(text) == names


def test_no_more_than_a_few_are_looked_for() -> None:
    assert len(identifiers_in(" ".join(f"AB-{number}" for number in range(500)))) == MAX_IDENTIFIERS


@pytest.mark.parametrize("text", ["a." * 40_000, "a/" * 40_000, "a_" * 40_000, "Ab" * 40_000, "`" * 80_000])
def test_no_text_takes_long(text: str) -> None:
    # Would not end within the test's time if a pattern went back over what it has read.
    assert len(identifiers_in(text)) <= MAX_IDENTIFIERS


pool = pytest.mark.usefixtures("pool")


def ask(principal: Principal, q: str, **values: Any) -> SearchAnswer:
    return search(principal=principal, request=SearchRequest(q=q, **values))


@pool
@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("`chunk_size` must stay below the proxy's limit.", "anything about `chunk_size`?"),
        ("The reader a/b-c is frozen.", "what about a/b-c"),
        ("The gateway answers HTTP 504 when the pool is exhausted.", "HTTP 504"),
        ("OMS-123 was closed as a duplicate, since carts are idempotent.", "OMS-123"),
        ("`retryPolicy` is set in one place.", "who sets retryPolicy"),
        ("Keep E1042 out of dashboards; it is noise.", "E1042 everywhere"),
        ("CBE is the customer billing engine.", "what does CBE stand for"),
    ],
)
def test_a_name_leads_to_what_holds_it(
    remember: Callable[..., Memory], bot: Principal, workspace: Workspace, content: str, question: str
) -> None:
    memory = remember(content)
    for number in range(5):
        remember(f"The gateway is watched by the pool of carts, dashboard {number}, set in one place.")
    lexemes_count(workspace)
    answer = ask(bot, question)
    assert answer.results[0]["number"] == memory.label
    assert answer.results[0]["scores"]["identifier"] == pytest.approx(1.0)


@pool
@pytest.mark.django_db
def test_the_words_of_a_name_in_another_order_are_not_that_name(
    remember: Callable[..., Memory], bot: Principal
) -> None:
    memory = remember("Port 504 is closed, and HTTP is not spoken there.")
    answer = ask(bot, "HTTP 504")
    assert "identifier" not in answer.results[0]["scores"]
    assert answer.results[0]["number"] == memory.label


@pool
@pytest.mark.django_db
def test_a_merge_request_leads_to_what_came_from_it(remember: Callable[..., Memory], bot: Principal) -> None:
    source = ledger.a_source("acme/pay!4821")
    memory = remember("Coupons are checked twice.", sources=(source,))
    remember("Coupons are printed on paper.")
    assert ask(bot, "what came of acme/pay!4821").results[0]["number"] == memory.label
    assert ask(bot, "what came of !4821", repos=("acme/pay",)).results[0]["number"] == memory.label
    # Without a repository a short reference is nobody's.
    assert "identifier" not in {name for row in ask(bot, "what came of !4821").results for name in row["scores"]}


@pool
@pytest.mark.django_db
def test_a_memory_is_found_by_its_number_and_a_replaced_one_leads_on(
    remember: Callable[..., Memory], bot: Principal
) -> None:
    old = remember("Coupons are printed on paper.")
    assert ask(bot, old.label).results[0]["number"] == old.label
    assert ask(bot, old.label.lower()).results[0]["scores"]["called"] == 1.0
    new = remember("Vouchers exist in the app alone.", supersedes=(old,))
    assert ask(bot, old.label).results[0]["number"] == new.label


@pool
@pytest.mark.django_db
def test_a_short_reference_is_no_number_in_a_text(remember: Callable[..., Memory], bot: Principal) -> None:
    remember("The runtime is pinned to v20.12.")
    assert all("identifier" not in row["scores"] for row in ask(bot, "what about #12").results)


@pool
@pytest.mark.django_db
def test_another_workspaces_and_another_scopes_names_stay_theirs(
    remember: Callable[..., Memory], bot: Principal, robo: Issued
) -> None:
    memory = remember("`chunk_size` must stay below the limit.")
    assert [row["number"] for row in ask(bot, "`chunk_size`", repos=("acme/elsewhere",)).results] == []
    assert ask(bot, "`chunk_size`", repos=("acme/pay",)).results[0]["number"] == memory.label


@pool
@pytest.mark.django_db
def test_when_it_cannot_look_the_answer_says_so(
    remember: Callable[..., Memory], bot: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("`chunk_size` must stay below the limit.")

    def fail(*_: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr(identifier, "_by_words", fail)
    answer = ask(bot, "`chunk_size`")
    assert answer.degraded is True
    assert "letter by letter" in answer.note
    assert len(answer.results) == 1
