"""What holds instead of what was replaced: found by the old wording, through chains, forks and merges."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from apps.accounts.models import Audience, Workspace
from apps.accounts.principal import Principal
from apps.approvals.restrictions import source_restrict
from apps.approvals.services import memory_retire
from apps.candidates.proposal import ScopeInput
from apps.core.clock import now
from apps.memories.models import EdgeKind, Memory, Supersession
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search
from tests import ledger

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

PIGEONS = "Orders leave the warehouse by carrier pigeon."


def ask(principal: Principal, q: str, **values: Any) -> SearchAnswer:
    return search(principal=principal, request=SearchRequest(q=q, **values))


def labels(answer: SearchAnswer) -> list[str]:
    return [result["number"] for result in answer.results]


def detail(answer: SearchAnswer, stage: str) -> str:
    (found,) = [each["detail"] for each in answer.pipeline_stages if each["name"] == stage]
    return str(found)


def test_the_old_wording_finds_what_holds_instead(remember: Callable[..., Memory], bot: Principal) -> None:
    old = remember(PIGEONS)
    new = remember("Freight is handed to an airship operator every morning.", supersedes=(old,))
    remember("Invoices are numbered without gaps.")
    answer = ask(bot, PIGEONS)
    assert labels(answer)[0] == new.label
    assert old.label not in labels(answer)
    assert answer.results[0]["instead_of"] == [old.label]
    assert answer.results[0]["scores"]["replaced"] > 0.9
    assert "1 replaced ones gave way" in detail(answer, "collapse")


def test_a_chain_is_followed_to_its_end(remember: Callable[..., Memory], bot: Principal) -> None:
    first = remember(PIGEONS)
    second = remember("Freight is handed to an airship operator.", supersedes=(first,))
    third = remember("Parcels go by rail at night.", supersedes=(second,))
    answer = ask(bot, PIGEONS)
    assert labels(answer)[0] == third.label
    assert not {first.label, second.label} & set(labels(answer))


def test_of_a_fork_every_branch_is_served_and_a_merge_once(remember: Callable[..., Memory], bot: Principal) -> None:
    old = remember(PIGEONS)
    other = remember("Orders within the city leave by bicycle.")
    merged = remember("Freight is handed to an airship operator.", supersedes=(old, other))
    forked = remember("Letters are sent as e-mail.", valid_from=datetime(2020, 1, 1, tzinfo=UTC))
    # The second successor is an edge of its own, as two records of one import bring it.
    Supersession.objects.create(
        workspace=old.workspace, old=old, new=forked, holds_from=now(), verdict=forked.verdict, kind=EdgeKind.FULL
    )
    answer = ask(bot, PIGEONS)
    assert set(labels(answer)[:2]) == {merged.label, forked.label}
    assert labels(answer).count(merged.label) == 1


def test_of_several_that_lead_to_one_the_most_relevant_counts(remember: Callable[..., Memory], bot: Principal) -> None:
    near = remember(PIGEONS)
    farther = [remember(f"Orders are counted in the warehouse, shelf {number}.") for number in range(3)]
    merged = remember("Freight is handed to an airship operator.", supersedes=(farther[0], near, *farther[1:]))
    (result,) = ask(bot, PIGEONS).results
    assert result["number"] == merged.label
    assert set(result["instead_of"]) >= {near.label}
    alone = max(score for name, score in result["scores"].items() if name == "replaced")
    assert alone == result["score"] > 0.9


def test_nothing_comes_instead_of_what_was_replaced_by_something_retired(
    remember: Callable[..., Memory], bot: Principal, reviewer: Principal
) -> None:
    old = remember(PIGEONS)
    new = remember("Freight is handed to an airship operator.", supersedes=(old,))
    memory_retire(principal=reviewer, reference=new.pk, reason="The operator is bankrupt.")
    assert labels(ask(bot, PIGEONS)) == []


def test_a_proposal_that_nobody_approved_replaces_nothing(remember: Callable[..., Memory], bot: Principal) -> None:
    old = remember(PIGEONS)
    ledger.propose(bot, "Freight is handed to an airship operator.", supersedes=(str(old.pk),))
    answer = ask(bot, PIGEONS)
    assert labels(answer) == [old.label]
    assert answer.results[0]["instead_of"] == []


def test_at_each_moment_the_member_of_the_chain_that_held_then(remember: Callable[..., Memory], bot: Principal) -> None:
    moments = [datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2022, 2024)]
    first = remember(PIGEONS, valid_from=moments[0])
    second = remember("Freight is handed to an airship operator.", valid_from=moments[1], supersedes=(first,))
    third = remember("Parcels go by rail at night.", valid_from=moments[2], supersedes=(second,))
    for held, moment in zip((first, second, third), moments, strict=True):
        answer = ask(bot, PIGEONS, as_of=moment + timedelta(days=1))
        assert labels(answer)[0] == held.label
        assert len({first.label, second.label, third.label} & set(labels(answer))) == 1
    assert labels(ask(bot, PIGEONS, as_of=moments[0] - timedelta(days=1))) == []


def test_what_was_not_known_yet_comes_instead_of_nothing(remember: Callable[..., Memory], bot: Principal) -> None:
    old = remember(PIGEONS, valid_from=datetime(2020, 1, 1, tzinfo=UTC))
    believed = now()
    new = remember(
        "Freight is handed to an airship operator.", valid_from=datetime(2021, 1, 1, tzinfo=UTC), supersedes=(old,)
    )
    assert labels(ask(bot, PIGEONS, known_at=believed)) == [old.label]
    assert labels(ask(bot, PIGEONS, known_at=believed, as_of=datetime(2021, 6, 1, tzinfo=UTC))) == [old.label]
    assert labels(ask(bot, PIGEONS, as_of=datetime(2021, 6, 1, tzinfo=UTC)))[0] == new.label


def test_a_successor_out_of_scope_or_out_of_sight_is_not_served(
    remember: Callable[..., Memory], bot: Principal, carol: User, workspace: Workspace
) -> None:
    old = remember(PIGEONS, scope=ScopeInput(repos=("acme/depot",)))
    elsewhere = remember("Freight goes by airship.", scope=ScopeInput(repos=("acme/air",)), supersedes=(old,))
    answer = ask(bot, PIGEONS, repos=("acme/depot",))
    assert labels(answer) == []
    assert "For 1 of them nothing within the scope does." in detail(answer, "collapse")
    assert labels(ask(bot, PIGEONS)) == [elsewhere.label]
    board = Audience.objects.create(workspace=workspace, name="board")
    source = elsewhere.evidence.get().source
    source_restrict(principal=ledger.of_person(carol), source_id=source.pk, audience_id=board.pk)
    assert labels(ask(bot, PIGEONS)) == []


@pytest.mark.parametrize("kind", [EdgeKind.PARTIAL, EdgeKind.AMENDS])
def test_what_is_replaced_in_part_or_amended_stays_and_says_so(
    remember: Callable[..., Memory], bot: Principal, kind: EdgeKind
) -> None:
    old = remember(PIGEONS)
    new = remember("Within the city freight goes by bicycle.")
    Supersession.objects.create(
        workspace=old.workspace, old=old, new=new, holds_from=now(), verdict=new.verdict, kind=kind
    )
    answer = ask(bot, PIGEONS)
    assert labels(answer)[0] == old.label
    assert answer.results[0]["amended_by"] == [
        {"id": str(new.pk), "number": new.label, "kind": kind.value, "content": new.content}
    ]
    past = ask(bot, PIGEONS, known_at=old.recorded_at)
    assert past.results[0]["amended_by"] == []


@pytest.mark.parametrize(
    ("question", "intent", "comes"),
    [
        ("Why do orders leave the warehouse by carrier pigeon?", "explain-why", True),
        ("What did we use before for orders that leave the warehouse?", "history", True),
        ("How do orders leave the warehouse, by carrier pigeon?", "look-up", False),
    ],
)
def test_who_asks_why_gets_the_chain(
    remember: Callable[..., Memory], bot: Principal, question: str, intent: str, comes: bool
) -> None:
    old = remember(PIGEONS)
    new = remember("Orders leave the warehouse by airship.", supersedes=(old,))
    answer = ask(bot, question)
    assert answer.intent == intent
    (result,) = answer.results
    assert result["number"] == new.label
    assert ("chain" in result) is comes
    if comes:
        assert [(entry["number"], entry["status"]) for entry in result["chain"]] == [
            (old.label, "superseded"),
            (new.label, "active"),
        ]


def test_a_chain_of_the_past_ends_there(remember: Callable[..., Memory], bot: Principal) -> None:
    old = remember(PIGEONS, valid_from=datetime(2020, 1, 1, tzinfo=UTC))
    new = remember(
        "Orders leave the warehouse by airship.", valid_from=datetime(2022, 1, 1, tzinfo=UTC), supersedes=(old,)
    )
    then = ask(bot, "Why do orders leave the warehouse?", as_of=datetime(2021, 1, 1, tzinfo=UTC))
    assert [entry["number"] for entry in then.results[0]["chain"]] == [old.label]
    today = ask(bot, "Why do orders leave the warehouse?")
    assert [entry["number"] for entry in today.results[0]["chain"]] == [old.label, new.label]


def test_a_chain_shows_only_what_the_reader_may_see(
    remember: Callable[..., Memory], bot: Principal, carol: User, workspace: Workspace
) -> None:
    old = remember(PIGEONS)
    new = remember("Orders leave the warehouse by airship.", supersedes=(old,))
    board = Audience.objects.create(workspace=workspace, name="board")
    source_restrict(principal=ledger.of_person(carol), source_id=old.evidence.get().source.pk, audience_id=board.pk)
    (result,) = ask(bot, "Why do orders leave the warehouse by airship?").results
    assert [entry["number"] for entry in result["chain"]] == [new.label]
    assert result["instead_of"] == []
