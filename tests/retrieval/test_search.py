"""What a search admits, ranks and says, through the service and through REST."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.accounts.models import Audience, TokenKind, Workspace
from apps.accounts.principal import Principal
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_retire
from apps.candidates.proposal import ScopeInput
from apps.core.clock import now
from apps.core.errors import Forbidden, Invalid
from apps.memories.models import Memory
from apps.retrieval.pipeline import STAGES
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search
from apps.scopes.models import Domain, Repository
from tests import ledger
from tests.conftest import Issued, issue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

SEARCH = "/api/v1/memories/search/"


def ask(principal: Principal, q: str, **values: Any) -> SearchAnswer:
    return search(principal=principal, request=SearchRequest(q=q, **values))


def labels(answer: SearchAnswer) -> list[str]:
    return [result["number"] for result in answer.results]


def test_the_answer_tells_what_was_found_and_how(remember: Callable[..., Memory], api: Any, robo: Issued) -> None:
    memory = remember("Refunds are paid out in the currency of the invoice.", type="business_rules")
    response = api(robo).get(SEARCH, {"q": "refund currency", "repos": "acme/pay"})
    body = response.json()
    assert response.status_code == 200
    (result,) = body["results"]
    assert result["id"] == str(memory.pk)
    assert result["number"] == memory.label
    assert result["type"] == "business_rules"
    assert result["category"] == "project"
    assert result["scope"] == {"firm": False, "domains": [], "repos": ["acme/pay"]}
    assert result["sources"][0]["kind"] == "merge_request"
    assert set(result["scores"]) >= {"vector", "text", "fused"}
    assert [stage["name"] for stage in body["pipeline_stages"]] == list(STAGES)
    assert all(stage["detail"] for stage in body["pipeline_stages"])
    assert body["degraded"] is False
    assert body["note"] == ""


def test_without_a_scope_the_whole_workspace_is_searched_and_that_is_said(
    remember: Callable[..., Memory], bot: Principal
) -> None:
    memory = remember("Refunds are paid out in the currency of the invoice.")
    answer = ask(bot, "refund currency")
    assert labels(answer) == [memory.label]
    assert "whole workspace" in answer.note


def test_a_repository_brings_its_domains_and_the_firm(remember: Callable[..., Memory], bot: Principal) -> None:
    firm = remember("Logs are written in JSON everywhere.", scope=ScopeInput(firm=True))
    domain = remember("Logs of payments are kept for ten years.", scope=ScopeInput(domains=("payments",)))
    remember("Logs of the shop are kept for a week.", scope=ScopeInput(domains=("shop",)))
    own = remember("Logs of the ledger go to a file of their own.", scope=ScopeInput(repos=("acme/ledger",)))
    remember("Logs of the basket are sampled.", scope=ScopeInput(repos=("acme/basket",)))
    Repository.objects.filter(slug="acme/ledger").update(domain_ids=[Domain.objects.get(slug="payments").pk])
    assert set(labels(ask(bot, "logs", repos=("acme/ledger",)))) == {firm.label, domain.label, own.label}
    assert set(labels(ask(bot, "logs", domains=("payments",)))) == {firm.label, domain.label}


def test_an_unknown_repository_matches_nothing_of_its_own_and_is_said(
    remember: Callable[..., Memory], bot: Principal
) -> None:
    remember("Logs of the ledger go to a file of their own.", scope=ScopeInput(repos=("acme/ledger",)))
    firm = remember("Logs are written in JSON everywhere.", scope=ScopeInput(firm=True))
    answer = ask(bot, "logs", repos=("acme/lodger",))
    assert labels(answer) == [firm.label]
    assert "acme/lodger" in answer.note


@pytest.mark.parametrize(
    "remote",
    [
        "git@git.example:acme/Ledger.git",
        "https://git.example/acme/ledger",
        "ssh://git@git.example:2222/acme/ledger.git",
        "https://someone@git.example:8443/acme/ledger.git/",
    ],
)
def test_a_remote_is_as_good_as_a_name(remember: Callable[..., Memory], bot: Principal, remote: str) -> None:
    memory = remember("Logs of the ledger go to a file of their own.", scope=ScopeInput(repos=("acme/ledger",)))
    remember("Logs of the basket are sampled.", scope=ScopeInput(repos=("acme/basket",)))
    assert labels(ask(bot, "logs", repos=(remote,))) == [memory.label]


def test_types_and_tiers_narrow_both_arms(remember: Callable[..., Memory], bot: Principal) -> None:
    rule = remember("Invoices carry the tax number of the customer.", type="business_rules")
    card = remember("Invoices: the issue about tax numbers was closed.", type="bug_fixes", tier="index")
    assert labels(ask(bot, "tax number invoices", types=("BUSINESS_RULE",))) == [rule.label]
    assert labels(ask(bot, "tax number invoices", tiers=("index",))) == [card.label]
    assert labels(ask(bot, "tax number invoices", types=("ownership",))) == []


def test_as_of_is_what_held_then(remember: Callable[..., Memory], bot: Principal) -> None:
    start, change = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 6, 1, tzinfo=UTC)
    old = remember("Orders are sent by carrier pigeon.", valid_from=start)
    new = remember("Orders are sent by parcel drone.", valid_from=change, supersedes=(old,))
    assert labels(ask(bot, "orders are sent by")) == [new.label]
    assert labels(ask(bot, "orders are sent by", as_of=change - timedelta(seconds=1))) == [old.label]
    assert labels(ask(bot, "orders are sent by", as_of=change)) == [new.label]
    assert labels(ask(bot, "orders are sent by", as_of=start - timedelta(days=1))) == []


def test_a_successor_without_a_date_holds_from_its_approval(remember: Callable[..., Memory], bot: Principal) -> None:
    old = remember("Orders are sent by carrier pigeon.")
    before = now()
    new = remember("Orders are sent by parcel drone.", supersedes=(old,))
    assert labels(ask(bot, "orders are sent by", as_of=before)) == [old.label]
    assert labels(ask(bot, "orders are sent by", as_of=now())) == [new.label]


def test_known_at_is_what_was_believed_then(
    remember: Callable[..., Memory], bot: Principal, reviewer: Principal
) -> None:
    memory = remember("The warehouse closes at six.")
    recorded = now()
    memory_retire(principal=reviewer, reference=memory.pk, reason="It was never so.")
    assert labels(ask(bot, "warehouse closes")) == []
    assert labels(ask(bot, "warehouse closes", known_at=recorded)) == [memory.label]
    assert labels(ask(bot, "warehouse closes", known_at=recorded - timedelta(days=1))) == []


def test_a_successor_that_takes_effect_later_leaves_its_predecessor_in_force(
    remember: Callable[..., Memory], bot: Principal
) -> None:
    old = remember("Passwords expire after a year.")
    later = now() + timedelta(days=30)
    new = remember("Passwords never expire.", valid_from=later, supersedes=(old,))
    assert labels(ask(bot, "passwords expire")) == [old.label]
    assert labels(ask(bot, "passwords expire", as_of=later)) == [new.label]


def test_a_report_demotes_mildly_and_says_so(remember: Callable[..., Memory], bot: Principal, robo: Issued) -> None:
    memory = remember("The build takes nine minutes.")
    before = ask(bot, "how long does the build take").results[0]["score"]
    ledger.report(ledger.of_token(robo.token), memory)
    (result,) = ask(bot, "how long does the build take").results
    assert result["status"] == "disputed"
    assert before * 0.8 < result["score"] < before


def test_what_came_from_a_restricted_source_is_for_its_audience(
    remember: Callable[..., Memory], bot: Principal, carol: User, workspace: Workspace, robo: Issued
) -> None:
    memory = remember("The merger closes in spring.")
    audience = Audience.objects.create(workspace=workspace, name="board")
    source = memory.evidence.get().source
    source_restrict(principal=ledger.of_person(carol), source_id=source.pk, audience_id=audience.pk)
    assert labels(ask(bot, "merger spring")) == []
    assert labels(ask(bot, "merger spring", known_at=now())) == []
    audience.tokens.add(robo.token)
    assert labels(ask(ledger.of_token(robo.token), "merger spring")) == [memory.label]


def test_a_limited_token_never_sees_beyond_its_repositories(
    remember: Callable[..., Memory], workspace: Workspace
) -> None:
    own = remember("Logs of the ledger go to a file of their own.", scope=ScopeInput(repos=("acme/ledger",)))
    other = remember("Logs of the basket are sampled.", scope=ScopeInput(repos=("acme/basket",)))
    repository = Repository.objects.get(slug="acme/ledger")
    limited = ledger.of_token(issue(workspace, "narrow", TokenKind.AGENT, repository_ids=[repository.pk]).token)
    assert labels(ask(limited, "logs")) == [own.label]
    with pytest.raises(Forbidden):
        ask(limited, "logs", repos=("acme/basket",))
    assert other.label not in labels(ask(limited, "logs", repos=("acme/ledger",)))


def test_a_recipe_is_for_curators(remember: Callable[..., Memory], reviewer: Principal, carol: User) -> None:
    remember("The build takes nine minutes.")
    with pytest.raises(Forbidden):
        ask(reviewer, "build", recipe="text")
    curator = ledger.of_person(carol)
    answer = ask(curator, "build minutes", recipe="text")
    assert set(answer.results[0]["scores"]) == {"text", "coverage", "fused"}
    with pytest.raises(Invalid):
        ask(curator, "build", recipe="secret sauce")


@pytest.mark.parametrize(
    "question",
    [
        "`foo`",
        "the",
        "a/b-c",
        '"',
        ":*",
        "!",
        "(",
        "\\",
        "'",
        "&|!()<->",
        "%",
        "_",
        "null",
        "x" * 8000,
        "支払い",
        "👩‍👩‍👧",
    ],
)
def test_any_question_gets_an_answer(remember: Callable[..., Memory], api: Any, robo: Issued, question: str) -> None:
    remember("The function `foo` lives in a/b-c and handles 支払いサービス.")
    response = api(robo).get(SEARCH, {"q": question})
    assert response.status_code == 200
    assert response.json()["degraded"] is False


@pytest.mark.parametrize(("question", "found"), [("支払い", True), ("b-c", True), ("OMS-123", True), ("oms 123", True)])
def test_parts_of_identifiers_and_ideographs_are_found_by_words(
    remember: Callable[..., Memory], carol: User, question: str, found: bool
) -> None:
    memory = remember("The ticket OMS-123 moved 支払いサービス to a/b-c.")
    remember("Nothing of the kind.")
    answer = ask(ledger.of_person(carol), question, recipe="text")
    assert (memory.label in labels(answer)) is found


@pytest.mark.parametrize(
    ("parameters", "status", "named"),
    [
        ("q=x&repo=acme/pay", 400, "repo"),
        ("q=x&repos=", 422, "repos"),
        ("q=x&repos=[]", 422, "repos"),
        ("q=x&types=", 422, "types"),
        ("q=x&types=null", 422, "types"),
        ("q=x&types=foo", 422, "types"),
        ("q=x&limit=0", 422, "limit"),
        ("q=x&limit=101", 422, "limit"),
        ("q=x&limit=ten", 422, "limit"),
        ("q=x&as_of=yesterday", 422, "as_of"),
        ("q=x&tiers=episodic", 422, "tiers"),
        ("q=x&intent=guess", 422, "intent"),
        ("q=%20%20", 422, "q"),
        ("q=a%00b", 422, "q"),
        ("limit=5", 422, "q"),
    ],
)
def test_a_value_that_will_not_do_is_named(api: Any, robo: Issued, parameters: str, status: int, named: str) -> None:
    response = api(robo).get(f"{SEARCH}?{parameters}")
    assert response.status_code == status
    assert any(error["field"].startswith(named) for error in response.json()["errors"])


def test_a_blank_question_never_reaches_the_embedder(api: Any, robo: Issued, embedder: Any) -> None:
    before = list(embedder.queries)
    assert api(robo).get(SEARCH, {"q": "   "}).status_code == 422
    assert embedder.queries == before


def test_one_type_as_one_text_is_one_type(remember: Callable[..., Memory], api: Any, robo: Issued) -> None:
    memory = remember("Team Harbour owns the basket.", type="ownership")
    response = api(robo).get(f"{SEARCH}?q=who owns the basket&types=ownership")
    assert [result["number"] for result in response.json()["results"]] == [memory.label]


def test_thirty_among_many_are_all_found(remember: Callable[..., Memory], bot: Principal) -> None:
    """A scope of few rows is searched exactly, whatever stands in other repositories."""
    for number in range(60):
        remember(f"Deploy step {number} of the fleet waits for the canary.", scope=ScopeInput(repos=("acme/fleet",)))
    small = {
        remember(f"Deploy step {number} of the isle waits for the tide.", scope=ScopeInput(repos=("acme/isle",))).label
        for number in range(12)
    }
    answer = ask(bot, "deploy step waits for the canary", repos=("acme/isle",), limit=20)
    assert set(labels(answer)) == small


def test_the_nearest_memory_is_no_answer_where_nothing_is_near(
    remember: Callable[..., Memory], bot: Principal, embedder: Any
) -> None:
    embedder.unrelated_below = 0.5
    remember("Refunds are paid out in the currency of the invoice.")
    answer = ask(bot, "Which guitar strings last longest?")
    assert labels(answer) == []
    assert not answer.degraded
    assert answer.note.endswith("Nothing that is known here answers this.")
    (fuse,) = (stage for stage in answer.pipeline_stages if stage["name"] == "fuse")
    assert fuse["detail"].endswith("1 of them have too little in common with the question.")


def test_what_the_model_cannot_read_is_looked_for_by_words_alone_and_it_says_so(
    remember: Callable[..., Memory], bot: Principal, embedder: Any
) -> None:
    embedder.readable = False
    memory = remember("支払いは月末の営業日に締める。")
    remember("日志保留三十天。")
    answer = ask(bot, "支払いはいつ")
    assert labels(answer) == [memory.label]
    assert not answer.degraded
    assert "Meanings were not compared, because the embedding model does not know this script." in answer.note
    assert embedder.queries == []
    assert labels(ask(bot, "🚀")) == []


def test_rare_words_make_an_answer_of_what_is_not_near_in_meaning(
    remember: Callable[..., Memory], bot: Principal, embedder: Any
) -> None:
    memory = remember("FM_LEDGER_LAG is logged by the payout worker whenever the nightly settlement file is late.")
    embedder.unrelated_below = 1.0
    assert labels(ask(bot, "FM_LEDGER_LAG")) == [memory.label]
    assert labels(ask(bot, "Why do guitars and pianos sound late?")) == []


def test_without_the_vector_arm_whatever_shares_a_word_is_shown(
    remember: Callable[..., Memory], reviewer: Principal, carol: User, embedder: Any
) -> None:
    memory = remember("Refunds are paid out in the currency of the invoice.")
    embedder.unrelated_below = 1.0
    assert labels(ask(ledger.of_person(carol), "invoice guitar strings piano", recipe="text")) == [memory.label]
