"""What a search serves and says while a part of it cannot look, and how long that takes.

"Could not look" is never shown as "nothing there"; writes refuse instead, and leave everything as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection

from apps.accounts.models import Role, TokenKind, Workspace
from apps.accounts.principal import Principal
from apps.approvals.services import memory_retire
from apps.candidates.models import Candidate
from apps.core.errors import Unavailable
from apps.memories.generations import ensure_live_generation
from apps.memories.models import Memory, PoolGeneration
from apps.memories.providers import embedding, registry
from apps.memories.providers.base import ProviderError, ProviderTimeout
from apps.memories.providers.embedding import EmbeddingProvider
from apps.memories.providers.mem0 import provider as mem0_provider
from apps.memories.providers.mem0 import slots
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.retrieval import pipeline
from apps.retrieval.ledger import LEDGER_SECONDS
from apps.retrieval.pipeline import STAGES, Search, Shortfall
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import SearchAnswer, search
from apps.retrieval.stages import text
from tests import ledger
from tests.conftest import ApiClient, add_person, issue
from tests.in_time import in_time
from tests.memories.providers.doubles import HashingEmbedder

SEARCH = "/api/v1/memories/search/"
POOL = "fm_pool_g1"
# A question's words are in the first memory alone, and its wording is nearest to it.
REFUNDS = "Refunds are paid out in the currency of the invoice."
BACKUPS = "Backups are encrypted before they leave the machine."
QUESTION = "in which currency are refunds paid out"


class Cast:
    def __init__(self) -> None:
        workspace = Workspace.objects.get(slug="firm")
        self.token = issue(workspace, "cast-bot", TokenKind.BOT)
        self.bot = ledger.of_token(self.token.token)
        self.rita: User = add_person(workspace, "rita", Role.REVIEWER)
        self.reviewer = ledger.of_person(self.rita)
        self.curator = ledger.of_person(add_person(workspace, "cora", Role.CURATOR))

    def remember(self, content: str, **changes: Any) -> Memory:
        return ledger.remember(self.bot, self.reviewer, content, **changes)

    @property
    def rest(self) -> ApiClient:
        return ApiClient(headers={"Authorization": f"Bearer {self.token.secret}"}, raise_request_exception=False)


@pytest.fixture
def cast(pool: Mem0Provider, db: None) -> Cast:
    ensure_live_generation()
    return Cast()


@pytest.fixture
def committed(transactional_db: None, pool: Mem0Provider) -> Cast:
    """For what another connection has to see."""
    ensure_live_generation()
    return Cast()


@pytest.fixture
def searches() -> Iterator[list[Search]]:
    """Every search as its observers are told of it."""
    seen: list[Search] = []
    pipeline.observers.add(seen.append)
    yield seen
    pipeline.observers._observers.remove(seen.append)


def ask(principal: Principal, q: str = QUESTION, **values: Any) -> SearchAnswer:
    """Search, and see to it that the connection is as good afterwards as it was before."""
    answer = search(principal=principal, request=SearchRequest(q=q, **values))
    assert_usable()
    return answer


def assert_usable() -> None:
    settings = ("statement_timeout", "lock_timeout", "hnsw.iterative_scan")
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"current_setting('{name}', true)" for name in settings))
        found = dict(zip(settings, cursor.fetchone(), strict=True))
    assert (found["statement_timeout"], found["lock_timeout"]) == ("0", "0")
    assert found["hnsw.iterative_scan"] in (None, "", "off")
    assert Workspace.objects.exists()


def labels(answer: SearchAnswer) -> list[str]:
    return [result["number"] for result in answer.results]


def stage(answer: SearchAnswer, name: str) -> dict[str, Any]:
    (found,) = (each for each in answer.pipeline_stages if each["name"] == name)
    return found


def assert_accounts_for_every_stage(answer: SearchAnswer) -> None:
    assert [each["name"] for each in answer.pipeline_stages] == list(STAGES)
    assert all(each["detail"] for each in answer.pipeline_stages)


def assert_says_nothing_of_the_machinery(answer: SearchAnswer) -> None:
    """Class names, tables, models and settings are for the log."""
    said = f"{answer.note} {answer.pipeline_stages}"
    for word in (
        "Error",
        "Exception",
        "fm_pool",
        "memories_",
        "FIRM_MEMORY",
        "Query",
        "Undefined",
        "hunter2",
        "psycopg",
    ):
        assert word not in said
    assert "local" not in said


@contextmanager
def locked(table: str) -> Iterator[None]:
    """Somebody else holds the table and lets nobody even read it, as some migrations do."""
    place = connection.settings_dict
    with psycopg.connect(
        host=place["HOST"],
        port=place["PORT"],
        user=place["USER"],
        password=place["PASSWORD"],
        dbname=place["NAME"],
    ) as other:
        other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        other.rollback()


@contextmanager
def nobody_listens() -> Iterator[None]:
    """PostgreSQL is down: there is nothing on its port."""
    place = connection.settings_dict
    host, port = place["HOST"], place["PORT"]
    connection.close()
    place.update(HOST="127.0.0.1", PORT="1")
    try:
        yield
    finally:
        connection.close()
        place.update(HOST=host, PORT=port)


class Failing(HashingEmbedder):
    def __init__(self, error: Exception) -> None:
        super().__init__(name="local", dimensions=384)
        self.error: Exception | None = error

    def embed_documents(self, texts):
        if self.error is not None:
            raise self.error
        return super().embed_documents(texts)

    def embed_query(self, text):
        if self.error is not None:
            raise self.error
        return super().embed_query(text)


class Hanging(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__(name="local", dimensions=384)
        self.gate = threading.Event()

    def embed_documents(self, texts):
        self.gate.wait(30)
        return super().embed_documents(texts)

    def embed_query(self, text):
        self.gate.wait(30)
        return super().embed_query(text)


@pytest.fixture
def hanging() -> Iterator[Mem0Provider]:
    embedder = Hanging()
    with registry.override(Mem0Provider(embedder)) as provider:
        yield provider
    embedder.gate.set()


# --- the embedding model ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "shortfall"),
    [
        (ProviderError("The embedding model openai/x could not be used.", permanent=True), Shortfall.EMBEDDER_FAILED),
        (ProviderTimeout("The embedding model openai/x could not be used."), Shortfall.EMBEDDER_LATE),
        (RuntimeError("key=hunter2 refused 'in which currency'"), Shortfall.EMBEDDER_FAILED),
        (ConnectionResetError("by peer"), Shortfall.EMBEDDER_FAILED),
        (MemoryError(), Shortfall.EMBEDDER_FAILED),
    ],
)
def test_without_the_embedding_model_words_are_looked_for(
    cast: Cast, searches: list[Search], caplog: Any, error: Exception, shortfall: Shortfall
) -> None:
    memory = cast.remember(REFUNDS)
    cast.remember(BACKUPS)
    with registry.override(Mem0Provider(Failing(error))):
        answer = ask(cast.bot)
    assert labels(answer) == [memory.label]
    assert set(answer.results[0]["scores"]) == {"text", "coverage", "fused", "decay"}
    assert answer.degraded is True
    assert "the embedding model does not answer" in answer.note
    assert searches[-1].shortfalls == [shortfall]
    assert_accounts_for_every_stage(answer)
    assert_says_nothing_of_the_machinery(answer)
    assert "hunter2" not in caplog.text
    assert ask(cast.bot).degraded is False


def test_a_model_that_hangs_costs_three_seconds(cast: Cast, hanging: Mem0Provider, searches: list[Search]) -> None:
    with registry.override(Mem0Provider(HashingEmbedder(name="local", dimensions=384))):
        memory = cast.remember(REFUNDS)
    answer = in_time(lambda: ask(cast.bot), above=2.9, below=4.5)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True
    assert stage(answer, "vector")["detail"] == "The embedding model did not answer in time."
    assert stage(answer, "vector")["ms"] > 2_900
    assert searches[-1].shortfalls == [Shortfall.EMBEDDER_LATE]
    assert_says_nothing_of_the_machinery(answer)


@pytest.mark.parametrize("row", [[0.0] * 384, [float("nan")] * 384, [1.0] * 5])
def test_a_vector_without_meaning_is_no_vector(cast: Cast, row: list[float]) -> None:
    class Broken(HashingEmbedder):
        def embed_query(self, text):
            import numpy as np

            return np.array(row, np.float32)

    memory = cast.remember(REFUNDS)
    with registry.override(Mem0Provider(Broken(name="local", dimensions=384))):
        answer = ask(cast.bot)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True


def test_while_the_model_is_down_the_pool_is_still_asked_what_it_holds(cast: Cast, searches: list[Search]) -> None:
    cast.remember(REFUNDS)
    ledger.sql(f"DELETE FROM {POOL}")
    with registry.override(Mem0Provider(Failing(RuntimeError()))):
        answer = ask(cast.bot)
    assert labels(answer) == []
    assert searches[-1].shortfalls == [Shortfall.EMBEDDER_FAILED, Shortfall.NOT_IN_POOL]


def test_rest_and_the_page_say_so(cast: Cast, browser: Callable[..., Any]) -> None:
    memory = cast.remember(REFUNDS)
    with registry.override(Mem0Provider(Failing(RuntimeError("hunter2")))):
        response = cast.rest.get(SEARCH, {"q": QUESTION, "repos": "acme/pay"})
        nothing = cast.rest.get(SEARCH, {"q": "zebra", "repos": "acme/pay"})
        page = browser(cast.rita).get("/memories/", {"q": "zebra"})
    assert response.status_code == nothing.status_code == page.status_code == 200
    assert [result["id"] for result in response.json()["results"]] == [str(memory.pk)]
    for body in (response.json(), nothing.json()):
        assert body["degraded"] is True
        assert body["note"].startswith("Similar wording was not looked for")
    assert nothing.json()["results"] == []
    assert "Not everything could be looked at" in page.content.decode()
    assert "Nothing answers that" not in page.content.decode()
    assert b"hunter2" not in response.content + nothing.content + page.content


# --- the pool -----------------------------------------------------------------------------------------------


def test_without_its_table_words_are_looked_for(cast: Cast, searches: list[Search]) -> None:
    memory = cast.remember(REFUNDS)
    ledger.sql(f"ALTER TABLE {POOL} RENAME TO {POOL}_gone")
    answer = ask(cast.bot)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True
    assert "the pool of embeddings does not answer" in answer.note
    assert stage(answer, "vector")["detail"] == "The pool could not be searched."
    assert searches[-1].shortfalls == [Shortfall.POOL_FAILED]
    assert_accounts_for_every_stage(answer)
    assert_says_nothing_of_the_machinery(answer)


def test_without_a_live_generation_words_are_looked_for(cast: Cast) -> None:
    memory = cast.remember(REFUNDS)
    PoolGeneration.objects.update(state="retired")
    answer = ask(cast.bot)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True
    assert_says_nothing_of_the_machinery(answer)


def test_a_pool_that_moved_on_is_not_searched_with_the_wrong_model(cast: Cast) -> None:
    memory = cast.remember(REFUNDS)
    PoolGeneration.objects.update(embedder="another")
    answer = ask(cast.bot)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True
    assert "another" not in f"{answer.note} {answer.pipeline_stages}"


def test_a_locked_pool_costs_two_seconds_and_is_asked_once(committed: Cast, searches: list[Search]) -> None:
    memory = committed.remember(REFUNDS)
    with locked(POOL):
        answer = in_time(lambda: ask(committed.bot), above=1.9, below=3.5)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True
    assert stage(answer, "vector")["detail"] == "The pool did not answer in time."
    assert searches[-1].shortfalls == [Shortfall.POOL_LATE]
    assert_says_nothing_of_the_machinery(answer)
    assert ask(committed.bot).degraded is False


def test_what_only_words_found_is_served_with_a_word_of_warning_when_the_pool_cannot_be_asked(
    committed: Cast, searches: list[Search]
) -> None:
    memory = committed.remember(REFUNDS)
    with locked(POOL):
        answer = in_time(lambda: ask(committed.curator, recipe="text"), above=1.9, below=3.5)
    assert labels(answer) == [memory.label]
    assert answer.degraded is True
    assert "could not be checked" in answer.note
    assert searches[-1].shortfalls == [Shortfall.CHECK_LATE]
    assert_says_nothing_of_the_machinery(answer)


def test_a_connection_that_breaks_in_the_middle_is_replaced(
    committed: Cast, searches: list[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = committed.remember(REFUNDS)
    with monkeypatch.context() as broken:
        broken.setattr(slots, "exact_statement", lambda *_: ("SELECT pg_terminate_backend(pg_backend_pid())", []))
        answer = ask(committed.bot)
    assert labels(answer) == [memory.label]
    assert searches[-1].shortfalls == [Shortfall.POOL_FAILED]
    assert ask(committed.bot).degraded is False


# --- words --------------------------------------------------------------------------------------------------


def test_locked_words_cost_one_second(committed: Cast, searches: list[Search]) -> None:
    memory = committed.remember(REFUNDS)
    with locked("memories_lexeme"):
        answer = in_time(lambda: ask(committed.bot), above=0.9, below=2)
    assert labels(answer)[0] == memory.label
    assert "text" not in answer.results[0]["scores"]
    assert answer.degraded is True
    assert "Matching words were not looked for" in answer.note
    assert stage(answer, "text")["detail"] == "It was stopped after 1 s."
    assert searches[-1].shortfalls == [Shortfall.WORDS_LATE]
    assert_accounts_for_every_stage(answer)
    assert_says_nothing_of_the_machinery(answer)


def test_the_statements_of_the_text_arm_share_the_second(
    cast: Cast, searches: list[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them takes less than the limit, and together they take more."""
    cast.remember(REFUNDS)
    looked_up, ranked = text.rarest_terms, text._RANK

    def slowly(*args: Any, **options: Any) -> Any:
        ledger.sql("SELECT pg_sleep(0.7)")
        return looked_up(*args, **options)

    monkeypatch.setattr(text, "rarest_terms", slowly)
    slow_rank = ranked.replace("WITH asked", "WITH pause AS MATERIALIZED (SELECT pg_sleep(0.7)), asked")
    monkeypatch.setattr(text, "_RANK", slow_rank.replace("FROM preselected\n", "FROM pause, preselected\n"))
    answer = in_time(lambda: ask(cast.bot), below=1.8)
    assert answer.degraded is True
    assert searches[-1].shortfalls == [Shortfall.WORDS_LATE]


def test_words_that_fail_leave_the_vectors(cast: Cast, searches: list[Search], caplog: Any) -> None:
    memory = cast.remember(REFUNDS)
    ledger.sql("ALTER TABLE memories_lexeme RENAME TO memories_lexeme_gone")
    answer = ask(cast.bot, f"{QUESTION} hunter2")
    assert labels(answer)[0] == memory.label
    assert answer.degraded is True
    assert searches[-1].shortfalls == [Shortfall.WORDS_FAILED]
    assert "42P01" in caplog.text
    assert "hunter2" not in caplog.text
    assert_says_nothing_of_the_machinery(answer)


# --- both, and the ledger -----------------------------------------------------------------------------------


def test_when_nothing_could_look_an_empty_answer_says_that_it_means_nothing(
    committed: Cast, searches: list[Search]
) -> None:
    committed.remember(REFUNDS)
    with locked("memories_lexeme"), registry.override(Mem0Provider(Failing(RuntimeError()))):
        response = committed.rest.get(SEARCH, {"q": QUESTION})
    body = response.json()
    assert response.status_code == 200
    assert body["results"] == []
    assert body["degraded"] is True
    assert "an empty answer does not mean that nothing is known" in body["note"]
    assert searches[-1].shortfalls == [Shortfall.EMBEDDER_FAILED, Shortfall.WORDS_LATE]


def test_everything_at_once_stays_within_the_sum_of_the_limits(
    committed: Cast, hanging: Mem0Provider, searches: list[Search]
) -> None:
    with registry.override(Mem0Provider(HashingEmbedder(name="local", dimensions=384))):
        committed.remember(REFUNDS)
    with locked("memories_lexeme"):
        answer = in_time(lambda: ask(committed.bot), above=3.9, below=6)
    assert answer.degraded is True
    assert len(searches[-1].shortfalls) == 2


def test_a_ledger_that_cannot_be_asked_is_no_empty_answer(committed: Cast, searches: list[Search]) -> None:
    """The pool found something, and nothing is served that the ledger has not let through."""
    committed.remember(REFUNDS)
    with locked("memories_memory"):
        response = in_time(lambda: committed.rest.get(SEARCH, {"q": QUESTION}), below=5)
    assert response.status_code == 503
    assert response.json()["code"] == "ledger_timeout"
    assert "results" not in response.json()
    assert searches[-1].failed is True
    assert_usable()
    assert ask(committed.bot).degraded is False


def test_a_database_that_is_down_is_503(committed: Cast) -> None:
    committed.remember(REFUNDS)
    with nobody_listens():
        response = in_time(lambda: committed.rest.get(SEARCH, {"q": QUESTION}), below=4)
    assert response.status_code == 503
    assert response.json()["code"] == "database_down"
    assert "results" not in response.json()
    assert ask(committed.bot).degraded is False


def test_a_database_that_goes_down_in_the_middle_is_503(
    committed: Cast, searches: list[Search], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both arms degrade one after the other, and still that is not taken for an answer."""
    committed.remember(REFUNDS)
    with monkeypatch.context() as patched, takes_the_database_away() as embed_query:
        patched.setattr(EmbeddingProvider, "embed_query", embed_query)
        response = committed.rest.get(SEARCH, {"q": QUESTION})
    assert response.status_code == 503
    assert response.json()["code"] == "database_down"
    assert searches[-1].failed is True
    assert ask(committed.bot).degraded is False


@contextmanager
def takes_the_database_away() -> Iterator[Callable[..., Any]]:
    """For the place of the embedding, which comes first in a search."""
    down = nobody_listens()

    def embed_query(provider: Any, question: str) -> Any:
        down.__enter__()
        return tuple(provider.embedder.embed_query(question).tolist())

    try:
        yield embed_query
    finally:
        down.__exit__(None, None, None)


# --- ledger and pool disagree -------------------------------------------------------------------------------


def test_a_memory_that_the_pool_lacks_is_left_out_and_that_is_said(
    cast: Cast, searches: list[Search], caplog: Any
) -> None:
    lost, kept = cast.remember(REFUNDS), cast.remember(f"{BACKUPS} Refunds too.")
    ledger.sql(f"DELETE FROM {POOL} WHERE memory_id = %s", lost.pk)
    answer = ask(cast.bot)
    assert labels(answer) == [kept.label]
    assert answer.degraded is True
    assert "One match was left out, because ledger and pool disagree about it." in answer.note
    assert (searches[-1].not_in_pool, searches[-1].refused) == (1, 0)
    assert "does not hold them as the ledger does" in caplog.text
    assert_says_nothing_of_the_machinery(answer)


def test_a_status_of_the_pools_own_is_not_served(cast: Cast, searches: list[Search]) -> None:
    memory = cast.remember(REFUNDS)
    ledger.sql(f'UPDATE {POOL} SET payload = payload || \'{{"status": "retired"}}\' WHERE memory_id = %s', memory.pk)
    answer = ask(cast.bot)
    assert labels(answer) == []
    assert answer.degraded is True
    assert "disagree" in answer.note
    assert searches[-1].shortfalls == [Shortfall.NOT_IN_POOL]


def test_what_the_ledger_retired_is_not_served_whatever_the_pool_says(cast: Cast, searches: list[Search]) -> None:
    memory = cast.remember(REFUNDS)
    memory_retire(principal=cast.reviewer, reference=memory.pk, reason="It was never so.")
    ledger.sql(
        f'UPDATE {POOL} SET payload = payload || \'{{"status": "active", "retired_at": null}}\' WHERE memory_id = %s',
        memory.pk,
    )
    answer = ask(cast.bot)
    assert labels(answer) == []
    # Nothing that holds is missing, so the answer is complete; that there is a fault is for the operator.
    assert answer.degraded is False
    assert "disagree" not in answer.note
    assert searches[-1].refused == 1


def test_what_only_the_pool_knows_is_not_served(cast: Cast, searches: list[Search]) -> None:
    kept = cast.remember(REFUNDS)
    ledger.sql(
        f"INSERT INTO {POOL} (id, vector, payload) SELECT %s::uuid, vector, payload ||"
        f' \'{{"memory_id": "00000000-0000-4000-8000-000000000001"}}\' FROM {POOL}',
        "00000000-0000-4000-8000-000000000001",
    )
    answer = ask(cast.bot)
    assert labels(answer) == [kept.label]
    assert answer.degraded is False
    assert searches[-1].refused == 1


def test_another_workspaces_row_in_the_pool_is_not_served(
    cast: Cast, other_workspace: Workspace, searches: list[Search]
) -> None:
    kept = cast.remember(REFUNDS)
    theirs = ledger.remember(
        ledger.of_token(issue(other_workspace, "their-bot", TokenKind.BOT).token),
        ledger.of_person(add_person(other_workspace, "olga", Role.REVIEWER)),
        REFUNDS,
    )
    ledger.sql(
        f"UPDATE {POOL} SET payload = payload || jsonb_build_object('workspace', %s::bigint) WHERE memory_id = %s",
        kept.workspace_id,
        theirs.pk,
    )
    assert labels(ask(cast.bot)) == [kept.label]
    assert searches[-1].refused == 1


# --- observers ----------------------------------------------------------------------------------------------


def test_an_observer_that_fails_costs_nothing(cast: Cast, caplog: Any) -> None:
    secret = "hunter2"

    def fails(_: Any) -> None:
        raise RuntimeError(secret)

    memory = cast.remember(REFUNDS)
    pipeline.observers.add(fails)
    embedding.observers.add(fails)
    try:
        answer = ask(cast.bot)
    finally:
        pipeline.observers._observers.remove(fails)
        embedding.observers._observers.remove(fails)
    assert labels(answer) == [memory.label]
    assert answer.degraded is False
    assert caplog.text.count("An observer failed") == 2
    assert "hunter2" not in caplog.text


# --- writes refuse ------------------------------------------------------------------------------------------


def assert_still_open(candidate: Candidate) -> None:
    again = ledger.fresh(candidate)
    assert again.is_open
    assert again.version == candidate.version
    assert not Memory.objects.exists()
    assert ledger.sql(f"SELECT count(*) FROM {POOL}") == [(0,)]
    assert_usable()


def approve(cast: Cast, candidate: Candidate, api: Callable[..., ApiClient]) -> Any:
    return api(cast.rita).post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": candidate.version})


@pytest.mark.parametrize(
    "error", [ProviderError("It is down.", permanent=False), RuntimeError("hunter2"), ConnectionResetError()]
)
def test_an_approval_without_the_model_is_503_and_the_candidate_open(
    cast: Cast, api: Callable[..., ApiClient], error: Exception, caplog: Any
) -> None:
    candidate = ledger.propose(cast.bot, REFUNDS)
    with registry.override(Mem0Provider(Failing(error))):
        response = approve(cast, candidate, api)
    assert response.status_code == 503
    assert response.json()["detail"].startswith("The candidate is still open.")
    assert "hunter2" not in response.content.decode() + caplog.text
    assert_still_open(candidate)
    assert approve(cast, candidate, api).status_code == 200


def test_an_approval_with_a_model_that_hangs_is_503_in_time(
    cast: Cast, hanging: Mem0Provider, api: Callable[..., ApiClient]
) -> None:
    hanging._document_seconds = 0.2
    candidate = ledger.propose(cast.bot, REFUNDS)
    response = approve(cast, candidate, api)
    assert response.status_code == 503
    assert_still_open(candidate)


def test_an_approval_without_the_pools_table_is_503(committed: Cast, api: Callable[..., ApiClient]) -> None:
    candidate = ledger.propose(committed.bot, REFUNDS)
    ledger.sql(f"ALTER TABLE {POOL} RENAME TO {POOL}_gone")
    try:
        response = approve(committed, candidate, api)
    finally:
        ledger.sql(f"ALTER TABLE {POOL}_gone RENAME TO {POOL}")
    assert response.status_code == 503
    assert_still_open(candidate)
    assert approve(committed, candidate, api).status_code == 200


def test_an_approval_waits_for_a_locked_pool_and_then_says_503(
    committed: Cast, api: Callable[..., ApiClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mem0_provider, "LOCK_SECONDS", 0.5)
    candidate = ledger.propose(committed.bot, REFUNDS)
    with locked(POOL):
        response = in_time(lambda: approve(committed, candidate, api), above=0.4, below=3)
    assert response.status_code == 503
    assert response.json()["code"] == "provider_unavailable"
    assert_still_open(candidate)
    assert approve(committed, candidate, api).status_code == 200
    assert_usable()


def test_a_retirement_that_the_pool_cannot_be_told_is_503_and_changes_nothing(
    committed: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mem0_provider, "LOCK_SECONDS", 0.3)
    memory = committed.remember(REFUNDS)
    with locked(POOL), pytest.raises(Unavailable, match="Nothing was changed"):
        memory_retire(principal=committed.reviewer, reference=memory.pk, reason="It was never so.")
    assert ledger.fresh(memory).status == "active"
    assert labels(ask(committed.bot)) == [memory.label]


def test_a_proposal_needs_neither_model_nor_pool(committed: Cast) -> None:
    with locked(POOL), registry.override(Mem0Provider(Failing(RuntimeError()))):
        response = committed.rest.post("/api/v1/candidates/", ledger.a_body(REFUNDS))
    assert response.status_code == 201


def test_with_the_database_down_an_approval_is_503(committed: Cast, api: Callable[..., ApiClient]) -> None:
    candidate = ledger.propose(committed.bot, REFUNDS)
    reviewer = api(committed.rita)
    reviewer.raise_request_exception = False
    with nobody_listens():
        response = reviewer.post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": candidate.version})
    assert response.status_code == 503
    assert_still_open(candidate)


def test_the_ledgers_time_is_that_of_one_look_up() -> None:
    """Model, pool, words and ledger together: what a caller may have to wait when everything hangs at once."""
    limits = embedding.QUERY_SECONDS, slots.POOL_SECONDS, text.SECONDS, LEDGER_SECONDS
    assert limits == (3.0, 2.0, 1.0, 2.0)
