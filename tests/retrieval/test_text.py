"""The text arm against BM25 computed here, by both of its ways."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from apps.accounts.models import Workspace
from apps.core.clock import now
from apps.memories.models import Corpus, Memory
from apps.retrieval import scope_sizes
from apps.retrieval.filters import Admission
from apps.retrieval.scope_sizes import scope_size
from apps.retrieval.stages import text
from apps.retrieval.stages.text import Way
from apps.retrieval.tasks import lexemes_count
from apps.retrieval.terms import Term, any_of, rarest_terms, within
from apps.scopes.models import Repository
from apps.scopes.selectors import SearchScope
from tests import ledger
from tests.conftest import Issued

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

STATEMENTS = (
    "Payments retry with jitter, because retries without jitter arrive together.",
    "Refunds never retry; a person looks at them.",
    "The retry queue of acme/retry-worker is drained at midnight, and retry means retry.",
    "Invoices are numbered without gaps since 2019.",
    "OMS-123 made the queue of orders durable.",
)
EVERYTHING = SearchScope(everything=True)


@pytest.fixture(autouse=True)
def _fresh_sizes():
    scope_sizes.forget_sizes()
    yield
    scope_sizes.forget_sizes()


@pytest.fixture
def remember(alice: User, robo: Issued):
    def make(content: str, **changes) -> Memory:
        return ledger.remember(ledger.of_token(robo.token), ledger.of_person(alice), content, **changes)

    return make


@pytest.fixture
def memories(remember, workspace) -> list[Memory]:
    rows = [remember(content) for content in STATEMENTS]
    lexemes_count(workspace)
    return rows


def admission(workspace: Workspace, scope: SearchScope = EVERYTHING, **changes) -> Admission:
    return Admission(
        **({"workspace_id": workspace.pk, "scope": scope, "audiences": frozenset(), "now": now()} | changes)
    )


def lexemes(content: str) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT lexeme, cardinality(positions) FROM unnest(fm_search_document(%s))", [content])
        return dict(cursor.fetchall())


def expected(contents: dict[UUID, str], question: str) -> list[tuple[UUID, float]]:
    """Okapi BM25 by its textbook, k1 = 1.2 and b = 0.75."""
    documents = {key: lexemes(content) for key, content in contents.items()}
    holding = Counter(word for document in documents.values() for word in document)
    mean = sum(sum(document.values()) for document in documents.values()) / len(documents)
    scores = {}
    for key, document in documents.items():
        length = sum(document.values()) / mean
        scores[key] = sum(
            math.log(1 + (len(documents) - holding[word] + 0.5) / (holding[word] + 0.5))
            * (2.2 * document[word] / (document[word] + 1.2 * (0.25 + 0.75 * length)))
            for word in lexemes(question)
            if word in document
        )
    return sorted(((key, score) for key, score in scores.items() if score), key=lambda row: (-row[1], row[0]))


@pytest.mark.parametrize("way", ["words", "scope"])
@pytest.mark.parametrize("question", ["why do payments retry", "queue", "OMS-123", "retry-worker queue of orders 2019"])
def test_scores_are_those_of_the_textbook_whichever_way_leads_to_them(memories, workspace, question, way, monkeypatch):
    if way == "scope":
        monkeypatch.setattr(text, "_way", lambda *_: Way())
    found, detail = text.bm25(admission(workspace), question, limit=10)
    wanted = expected({memory.pk: memory.content for memory in memories}, question)
    assert [row[0] for row in found] == [row[0] for row in wanted]
    assert [row[1] for row in found] == pytest.approx([row[1] for row in wanted])
    assert ("by reading the scope" in detail) == (way == "scope")


@pytest.mark.parametrize("question", ["the", "of and with", "( ! :*", "''"])
def test_a_question_without_words_finds_nothing_and_says_why(memories, workspace, question):
    assert text.bm25(admission(workspace), question, limit=10) == ([], "The question holds no word to look for.")


@pytest.mark.parametrize("question", ["支払い", "it's \\ a 'quoted' \"queue\" & | !", "queue " * 1_000, "x" * 8_000])
def test_odd_questions_are_questions(memories, workspace, question):
    found, _ = text.bm25(admission(workspace), question, limit=10)
    assert len(found) == (2 if "queue" in question else 0)


def test_only_what_the_scope_admits_is_found_by_either_way(remember, workspace, monkeypatch):
    inside = remember("The queue is drained.", scope=ledger.ScopeInput(repos=("acme/inside",)))
    firm = remember("The queue is for everybody.", scope=ledger.ScopeInput(firm=True))
    remember("The queue is elsewhere.", scope=ledger.ScopeInput(repos=("acme/outside",)))
    lexemes_count(workspace)
    repository = Repository.objects.get(slug="acme/inside")
    scope = SearchScope(everything=False, repo_ids=(repository.pk,))
    for way in (Way(), Way((Term("queue", 3),))):
        monkeypatch.setattr(text, "_way", lambda *_, way=way: way)
        found, _ = text.bm25(admission(workspace, scope), "queue", limit=10)
        assert {row[0] for row in found} == {inside.pk, firm.pk}


def test_what_is_not_yet_recorded_is_not_found(memories, workspace):
    before = admission(workspace, known_at=memories[0].recorded_at - timedelta(seconds=1))
    assert text.bm25(before, "retry", limit=10)[0] == []


def test_another_workspaces_memories_are_not_found(memories, other_workspace):
    assert text.bm25(admission(other_workspace), "retry", limit=10)[0] == []


# --- which way ----------------------------------------------------------------------------------------------

FEW, MANY, MOST = Term("rare", 40), Term("usual", 4_000), Term("common", 60_000)


@pytest.mark.parametrize(
    ("terms", "size", "way"),
    [
        ([FEW, MANY], 20_001, Way((FEW, MANY))),  # few documents match: no need to know the scope
        ([FEW, MANY, MOST], 9_000, Way()),  # the scope holds fewer than the words match
        ([FEW, MANY, MOST], 20_001, Way((FEW, MANY))),  # both are large: only the rarest words
        ([MOST], 20_001, Way((MOST,))),  # one word at least
        ([MANY, Term("usual too", 4_500)], 9_000, Way((MANY, Term("usual too", 4_500)))),
    ],
)
def test_the_way_that_looks_at_fewer_documents_is_taken(workspace, monkeypatch, terms, size, way):
    monkeypatch.setattr(text, "scope_size", lambda admission, limit: size)
    corpus = Corpus(workspace=workspace, documents=100_000)
    assert text._way(admission(workspace), terms, corpus) == way


def test_words_are_taken_from_the_rarest_on_until_they_match_enough():
    assert within([FEW, MANY, MOST], matches=4_040) == [FEW, MANY]
    assert within([FEW, MANY, MOST], matches=4_039) == [FEW]
    assert within([MOST], matches=1) == [MOST]
    assert within([], matches=1) == []


def test_the_rarest_words_of_a_question_come_first(memories, workspace):
    terms = rarest_terms(workspace.pk, "retry the queue of unheard payments", limit=3)
    assert [(term.word, term.ndoc) for term in terms] == [("unheard", 0), ("payment", 1), ("queue", 2)]


def test_words_are_quoted_whatever_they_hold():
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::tsquery::text", [any_of([Term("o'neil", 1), Term("a\\b", 1)])])
        assert cursor.fetchone() == ("'o''neil' | 'a\\\\b'",)


# --- how large a scope is -----------------------------------------------------------------------------------


def test_a_scope_is_counted_up_to_a_limit_and_remembered(remember, workspace):
    repository = None
    for number in range(4):
        remember(f"Queue {number} is drained.", scope=ledger.ScopeInput(repos=("acme/inside",)))
    repository = Repository.objects.get(slug="acme/inside")
    inside = admission(workspace, SearchScope(everything=False, repo_ids=(repository.pk,)))
    assert scope_size(inside, limit=10) == 4
    assert scope_size(inside, limit=2) == 3
    remember("One more.", scope=ledger.ScopeInput(repos=("acme/inside",)))
    assert scope_size(inside, limit=10) == 4
    scope_sizes.forget_sizes()
    assert scope_size(inside, limit=10) == 5


def test_scopes_and_types_are_remembered_apart(remember, workspace):
    memory = remember("The queue is drained.", type="ownership")
    assert scope_size(admission(workspace, types=(memory.type,)), limit=10) == 1
    assert scope_size(admission(workspace, types=()), limit=10) == 0
    nothing = SearchScope(everything=False, repo_ids=(10**9,))
    assert scope_size(admission(workspace, nothing), limit=10) == 0


def test_the_whole_workspace_is_not_counted_but_known(memories, workspace):
    with connection.execute_wrapper(_refuse_counting):
        assert scope_size(admission(workspace), limit=100) == len(STATEMENTS)
    scope_sizes.forget_sizes()
    assert scope_size(admission(workspace), limit=2) == 3


def _refuse_counting(execute, sql, params, many, context):
    assert "count(" not in sql
    return execute(sql, params, many, context)


def test_sizes_grow_old_and_the_oldest_is_forgotten_first(workspace, monkeypatch):
    made = []
    monkeypatch.setattr(scope_sizes, "_count", lambda admission, limit: made.append(limit) or 1)
    moment = 1_000.0
    monkeypatch.setattr(scope_sizes.time, "monotonic", lambda: moment)
    scope_size(admission(workspace), limit=1)
    moment += 59
    scope_size(admission(workspace), limit=1)
    assert made == [1]
    moment += 1
    scope_size(admission(workspace), limit=1)
    assert made == [1, 1]
    monkeypatch.setattr(scope_sizes, "REMEMBERED", 2)
    for limit in (2, 3, 1):
        scope_size(admission(workspace), limit=limit)
    assert made == [1, 1, 2, 3, 1]


# --- no trace is left ---------------------------------------------------------------------------------------


def settings_now() -> tuple[str, ...]:
    names = ("statement_timeout", "enable_seqscan", "jit", "hnsw.ef_search", "hnsw.iterative_scan")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'current_setting({name!r}, true)' for name in names)}")
        return cursor.fetchone()


def test_what_is_set_for_a_search_holds_for_nothing_after_it(memories, workspace):
    before = settings_now()
    with transaction.atomic():
        text.bm25(admission(workspace), "retry", limit=10)
        assert settings_now() == before
    assert settings_now() == before
