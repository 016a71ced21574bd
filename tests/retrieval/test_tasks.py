"""How often words stand in a workspace's memories, kept by the worker."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection

from apps.accounts.models import Workspace
from apps.core.clock import now
from apps.memories.models import Corpus, Lexeme, Memory
from apps.retrieval import tasks
from apps.retrieval.tasks import count_lexemes, lexemes_count
from tests import ledger
from tests.conftest import Issued

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]


@pytest.fixture
def remember(alice: User, robo: Issued):
    def make(content: str) -> Memory:
        return ledger.remember(ledger.of_token(robo.token), ledger.of_person(alice), content)

    return make


def counts(workspace: Workspace) -> dict[str, int]:
    return dict(Lexeme.objects.filter(workspace=workspace).values_list("word", "ndoc"))


def test_words_are_counted_by_memories_and_workspace(remember, workspace, other_workspace):
    remember("Retries retry the retried retry.")
    remember("Retries stop at midnight.")
    lexemes_count(workspace)
    assert counts(workspace)["retri"] == 2
    assert counts(workspace)["midnight"] == 1
    assert counts(other_workspace) == {}
    corpus = Corpus.objects.get(workspace=workspace)
    assert corpus.documents == 2
    assert corpus.lexemes == sum(Memory.objects.values_list("doclen", flat=True))


def test_a_count_writes_only_what_changed(remember, workspace):
    remember("Retries stop at midnight.")
    lexemes_count(workspace)

    def places() -> dict[str, str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT word, ctid::text FROM memories_lexeme")
            return dict(cursor.fetchall())

    before = places()
    remember("Retries go on.")
    lexemes_count(workspace)
    after = places()
    assert {word for word in before if before[word] != after[word]} == {"retri"}


def test_words_that_no_memory_holds_go(remember, workspace, other_workspace):
    remember("Retries stop at midnight.")
    Lexeme.objects.create(workspace=workspace, word="hunter2", ndoc=3)
    Lexeme.objects.create(workspace=other_workspace, word="hunter2", ndoc=3)
    lexemes_count(workspace)
    assert "hunter2" not in counts(workspace)
    assert counts(other_workspace) == {"hunter2": 3}


def test_the_worker_counts_what_changed_and_nothing_else(remember, workspace, other_workspace):
    remember("Retries stop at midnight.")
    assert count_lexemes() == "Counted anew: firm."
    assert count_lexemes() == "Counted anew: nothing had changed."
    remember("Retries go on.")
    assert count_lexemes() == "Counted anew: firm."


def test_a_large_workspace_waits_for_more_than_a_few_or_for_some_hours(remember, workspace, monkeypatch):
    remember("Retries stop at midnight.")
    Corpus.objects.create(workspace=workspace, documents=10_000, lexemes=1, counted_at=now())
    known = Corpus.objects.get(workspace=workspace)
    assert not tasks._is_notable(known, 0)
    assert not tasks._is_notable(known, 100)
    assert tasks._is_notable(known, 101)
    assert tasks._is_notable(known, -101)
    known.counted_at = now() - timedelta(hours=7)
    assert tasks._is_notable(known, 1)
    assert not tasks._is_notable(known, 0)
