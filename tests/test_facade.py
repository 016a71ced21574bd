"""Firm Memory from Python, in the process: what the other doors hold, this one holds, too."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import subprocess
import sys

import pytest
from django.conf import settings
from django.db import OperationalError

from apps.accounts import selectors
from apps.accounts.models import TokenKind
from apps.accounts.services import token_revoke
from apps.candidates.models import Candidate
from apps.capture.models import CaptureEvent
from apps.core.errors import (
    DomainError,
    Excluded,
    Forbidden,
    Invalid,
    Malformed,
    NotAuthenticated,
    NotFound,
    Unavailable,
)
from apps.memories.models import Memory
from apps.retrieval.models import Served
from apps.scopes.models import Repository
from firmmemory import FirmMemory
from tests import ledger
from tests.agents.calling import environment
from tests.conftest import issue

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

WHY = "Payment retries back off exponentially, because the bank blocks a merchant who retries at once."
SOURCE = {"kind": "merge_request", "reference": "acme/pay!128"}


@pytest.fixture
def memory(robo):
    return FirmMemory(robo.secret)


def propose(memory: FirmMemory, content: str = WHY, **changes):
    return memory.propose(
        content, **{"type": "architecture_decisions", "sources": [SOURCE], "repos": ["acme/pay"]} | changes
    )


def test_from_a_proposal_to_a_cited_answer(memory, reviewer):
    first, again = propose(memory), propose(memory)
    assert (first.status, first.created, again.created, again.id) == ("pending", True, False, first.id)
    assert len(memory.search("why do payment retries back off?")) == 0
    ledger.approve(reviewer, Candidate.objects.get())
    (found,) = memory.search("why do payment retries back off?", repos=["acme/pay"], limit=3)
    assert (found.content, found.repos, found.sources[0]["reference"]) == (WHY, ("acme/pay",), "acme/pay!128")
    assert memory.get(found.number).id == found.id
    context = memory.context("acme/pay", budget_tokens=900)
    assert (context.items[0].number, WHY in context.text, context.degraded) == (found.number, True, False)
    assert memory.ask("why do payment retries back off?").citations == (found.id,)
    report = memory.correct(found.number, kind="stale", reason="It is six now.", sources=[SOURCE])
    assert (report.status, memory.get(found.number).status) == ("pending", "disputed")
    assert set(Served.objects.values_list("via", flat=True)) == {"python"}


def test_material_waits_for_the_worker(memory):
    handed, again = (
        memory.ingest("We never retry.", kind="chat", sources=[SOURCE], firm=True, external_id="1") for _ in "ab"
    )
    assert (handed.created, again.created, again.event) == (True, False, handed.event)
    assert CaptureEvent.objects.get().state == "received"


def test_nothing_here_decides(memory, alice_token):
    words = ("approve", "reject", "reopen", "retire", "restore", "bulk", "redact", "delete", "remember", "write")
    assert not [name for name in dir(memory) if any(word in name for word in words)]
    propose(FirmMemory(alice_token.secret), WHY)
    assert not Memory.objects.exists()


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"type": "nonsense"}, Invalid, "type"),
        ({"sources": []}, Invalid, "sources"),
        ({"sources": [SOURCE | {"reviewer": "alice"}]}, Malformed, "sources[0].reviewer"),
        ({"repos": []}, Invalid, "scope"),
        ({"repos": "acme/pay"}, Invalid, "scope.repos"),
        ({"content": "a\x00b"}, Invalid, "content"),
        ({"content": "\ud800"}, Invalid, "content"),
        ({"content": 7}, Invalid, "content"),
        ({"content": "x" * 8001}, Invalid, "content"),
        ({"content": f"The key is AKIA{'ABCDEFGH23456789'}."}, Excluded, "content"),
        ({"confidence": 2}, Invalid, "confidence"),
        ({"supersedes": ["M-99"]}, Invalid, "supersedes"),
        ({"valid_from": "yesterday"}, Invalid, "valid_from"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_will_not_do_is_named_and_stored_nowhere(changes, error, field, memory):
    with pytest.raises(error) as caught:
        propose(memory, **{"content": WHY} | changes) if "content" not in changes else propose(memory, **changes)
    assert any(each.field.startswith(field) for each in caught.value.errors), caught.value.errors
    assert "AKIA" not in str(caught.value.as_dict())
    assert not Candidate.objects.exists()


@pytest.mark.parametrize(
    "given", [{"repos": []}, {"repos": "acme"}, {"limit": 0}, {"limit": "3"}, {"types": ["x"]}, {"as_of": "soon"}]
)
def test_a_question_that_will_not_do_raises_whatever_is_asked(given, memory):
    with pytest.raises(Invalid) as caught:
        memory.search("why?", **given)
    assert {each.field.split("[")[0] for each in caught.value.errors} == set(given)


def test_walls(memory, remember, workspace, other_workspace, robo):
    here, shop = remember(WHY), remember(WHY.replace("Payment", "Order"), scope=ledger.ScopeInput(repos=("acme/shop",)))
    outsider = FirmMemory(issue(other_workspace, "outsider", TokenKind.AGENT).secret)
    assert len(outsider.search("why do retries back off?")) == 0
    with pytest.raises(NotFound):
        outsider.get(str(here.pk))
    with pytest.raises(NotFound):
        outsider.correct(str(here.pk), kind="stale", reason="x", sources=[SOURCE])
    reader = FirmMemory(issue(workspace, "reader", TokenKind.AGENT, read_only=True).secret)
    assert reader.get(here.label).content == WHY
    for write in (lambda: propose(reader), lambda: reader.ingest("x", kind="chat", sources=[SOURCE], firm=True)):
        with pytest.raises(Forbidden, match="read-only"):
            write()
    pay = Repository.objects.get(slug="acme/pay")
    limited = FirmMemory(issue(workspace, "limited", TokenKind.AGENT, repository_ids=[pay.pk]).secret)
    assert [each.number for each in limited.search("why do retries back off?")] == [here.label]
    with pytest.raises(NotFound):
        limited.get(shop.label)


def test_a_token_counts_at_each_call(memory, robo, dave, principal):
    memory.search("why?")
    token_revoke(principal=principal(dave), token=robo.token)
    with pytest.raises(NotAuthenticated, match="revoked"):
        memory.search("why?")
    with pytest.raises(NotAuthenticated):
        FirmMemory("fm_agent_nobody").search("why?")


def test_a_database_that_is_down_fails_no_job_unless_asked(memory, monkeypatch):
    def down(*_: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(selectors, "principal_for_token", down)
    found, context, answer = memory.search("why?"), memory.context("acme/pay"), memory.ask("why?")
    assert [each.degraded for each in (found, context, answer)] == [True] * 3
    assert found.note.startswith("Nothing could be looked at.")
    for call in (lambda: memory.search("why?", strict=True), lambda: propose(memory), lambda: memory.get("M-1")):
        with pytest.raises(Unavailable):
            call()


def test_the_token_shows_nowhere(memory, robo, monkeypatch):
    assert robo.secret not in f"{memory!r}{memory!s}{vars(memory)}"
    monkeypatch.setenv("FIRM_MEMORY_TOKEN", robo.secret)
    assert len(FirmMemory().search("why?")) == 0
    monkeypatch.delenv("FIRM_MEMORY_TOKEN")
    with pytest.raises(ValueError, match="no token"):
        FirmMemory()


def test_the_results_need_no_django(memory, reviewer):
    propose(memory)
    ledger.approve(reviewer, Candidate.objects.get())
    found = memory.search("why do payment retries back off?")
    assert pickle.loads(pickle.dumps(found)).results[0].content == WHY  # noqa: S301 - our own


def test_importing_it_sets_nothing_up():
    code = (
        "import sys, firmmemory, firmmemory.settings; assert 'django' not in sys.modules; print(firmmemory.FirmMemory)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
    )
    assert "firmmemory.facade.FirmMemory" in done.stdout


@pytest.mark.django_db(transaction=True)
def test_in_a_process_of_its_own(robo, remember):
    known = remember(WHY)
    code = f"from firmmemory import FirmMemory; print(FirmMemory().get({known.label!r}).content)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env=environment(robo.secret) | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"{WHY}\n", done.stderr


def test_every_error_is_one(memory):
    with pytest.raises(DomainError):
        memory.get("M-99")
    with pytest.raises(Invalid):
        memory.get(7)


# --- values of wrong types ------------------------------------------------------------------------------------------
GOOD = {
    "search": {"q": "why?"},
    "context": {"repo": "acme/pay"},
    "ask": {"q": "why?"},
    "get": {"reference": "M-1"},
    "propose": {"content": WHY, "type": "tooling_setup", "sources": [SOURCE], "repos": ["acme/pay"]},
    "correct": {"reference": "M-1", "kind": "stale", "reason": "It is six now.", "sources": [SOURCE]},
    "ingest": {"content": WHY, "kind": "chat", "sources": [SOURCE], "repos": ["acme/pay"]},
}
TEXTS = ("q", "content", "type", "kind", "reason", "reference", "repo", "path", "task", "as_of", "known_at", "intent")
TEXTS += ("replacement", "external_id", "valid_from")
LISTS = ("repos", "domains", "types", "tiers", "supersedes", "sources")


class Anything:
    """What has nothing in common with any value that is taken."""

    def __repr__(self) -> str:
        return "anything"


def wrong_values(name: str) -> list[object]:
    """Of each type that is not the argument's own, and of its own what holds such."""
    others = [5, 5.5, True, float("nan"), b"abc", {}, {"a": 1}, [5], [None], [[]], [Anything()], (5,), Anything()]
    others += [Anything, iter([5]), 10**400, {5}]
    if name in TEXTS:
        return others if name == "reference" else [*others, "\ud800"]
    if name in LISTS:
        return [*others, "abc", [{}] if name == "sources" else [""], [b"abc"], [{1: 2}]]
    if name == "firm":
        return [each for each in others if each is not True] + ["abc", 1, 0, None]
    numbers = [each for each in others if each != 5 and each is not True]
    return [*numbers, "abc", True, [1], -1]


def arguments() -> list[tuple[str, str]]:
    return [
        (method, name)
        for method in GOOD
        for name in inspect.signature(getattr(FirmMemory, method)).parameters
        if name not in ("self", "strict")
    ]


@pytest.mark.parametrize(("method", "name"), arguments(), ids=lambda value: value)
def test_a_value_of_a_wrong_type_is_refused_by_its_name(method, name, memory, remember):
    remember(WHY)
    required = name in GOOD[method] and name != "repos"
    for value in [*wrong_values(name), *([None] if required else [])]:
        with pytest.raises(DomainError) as caught:
            getattr(memory, method)(**GOOD[method] | {name: value})
        fields = {re.split(r"[.\[]", each.field.removeprefix("scope."))[0] for each in caught.value.errors}
        assert fields == {name}, (value, caught.value.as_dict())
    assert (Candidate.objects.count(), CaptureEvent.objects.count()) == (1, 0)


def test_a_token_that_is_none_is_refused():
    for value in (5, b"fm_agent_x", "", " ", [], object()):
        with pytest.raises(ValueError, match="no token"):
            FirmMemory(value)
    for value in ("fm_agent_\ud800", "fm_agent_\0", "ä" * 10_000):
        with pytest.raises(NotAuthenticated):
            FirmMemory(value).search("why?")
