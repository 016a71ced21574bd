"""An approval is all or nothing, whatever fails in the middle of it: the candidate stays open and says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import DatabaseError, connection, transaction

from apps.accounts.models import AuditEvent
from apps.candidates.models import Candidate
from apps.core.errors import Unavailable
from apps.memories.models import Memory, MemoryCounter, Supersession, Verdict
from apps.memories.providers import registry
from apps.memories.providers.base import ProviderError
from apps.memories.providers.mem0.provider import Mem0Provider
from tests.approvals.dying import MOMENTS
from tests.forking import forks
from tests.in_time import in_time
from tests.ledger import approve, fresh, of_person, of_token, propose, remember
from tests.memories.providers.doubles import HashingEmbedder

ROOT = Path(__file__).resolve().parents[2]
URL = "/api/v1/candidates"

in_one_transaction = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]
for_real = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]


def marked(marks):
    def mark(test):
        for each in marks:
            test = each(test)
        return test

    return mark


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


def ledger() -> dict[str, object]:
    """Everything an approval writes, in ledger and pool."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, payload::text FROM fm_pool_g1 ORDER BY id")
        pool = cursor.fetchall()
    return {
        "candidates": list(Candidate.objects.order_by("pk").values_list("pk", "status", "version", "decision")),
        "memories": list(Memory.objects.order_by("pk").values_list("pk", "status", "valid_to", "retired_at")),
        "verdicts": Verdict.objects.count(),
        "edges": list(Supersession.objects.order_by("pk").values_list("pk", "voided_by")),
        "audit": AuditEvent.objects.filter(verb="approve").count(),
        "numbers": list(MemoryCounter.objects.values_list("workspace", "last")),
        "pool": pool,
    }


def approve_over_rest(client, candidate, **headers):
    return client.post(f"{URL}/{candidate.pk}/approve/", {"version": candidate.version}, headers=headers)


# --- the embedder -------------------------------------------------------------------------------------------
@marked(in_one_transaction)
@pytest.mark.parametrize("permanent", [True, False])
def test_an_embedder_that_fails_is_503_and_the_candidate_open(api, alice, proposer, embedder, monkeypatch, permanent):
    candidate = propose(proposer)
    before = ledger()

    def fails(texts):
        raise ProviderError("The embedder refuses the key.", permanent=permanent)

    monkeypatch.setattr(embedder, "embed_documents", fails)

    response = approve_over_rest(api(alice), candidate)

    assert response.status_code == 503
    body = response.json()
    assert body["code"] == "provider_unavailable"
    assert body["detail"] == "The candidate is still open. The embedder refuses the key."
    assert "Retry-After" in response.headers
    assert ledger() == before
    monkeypatch.undo()
    assert approve_over_rest(api(alice), candidate).status_code == 200


@marked(in_one_transaction)
def test_an_embedder_that_hangs_is_waited_for_so_long_and_no_longer(api, alice, proposer):
    candidate = propose(proposer)
    before = ledger()
    let_go = threading.Event()

    class Hanging(HashingEmbedder):
        def embed_documents(self, texts):
            let_go.wait(30)
            return super().embed_documents(texts)

    provider = Mem0Provider(Hanging(name="local", dimensions=384), document_seconds=0.3)
    client = api(alice)
    with registry.override(provider):
        response = in_time(lambda: approve_over_rest(client, candidate), below=3)
    let_go.set()

    assert response.status_code == 503
    assert "did not answer within 0.3 seconds" in response.json()["detail"]
    assert ledger() == before


@marked(in_one_transaction)
def test_an_embedder_that_hangs_holds_no_lock_on_the_candidate(api, alice, proposer, pool, monkeypatch):
    candidate = propose(proposer)
    prepare = pool.prepare
    seen = []

    def looked_at(text):
        seen.append(connection.in_atomic_block and len(connection.savepoint_ids))
        return prepare(text)

    monkeypatch.setattr(pool, "prepare", looked_at)
    depth = len(connection.savepoint_ids)

    approve_over_rest(api(alice), candidate, **{"Idempotency-Key": "k"})

    assert seen == [depth]


@marked(in_one_transaction)
def test_a_text_prepared_by_another_embedder_is_not_stored(proposer, reviewer):
    """What is embedded while the pool moves to another model must not get in."""
    from apps.approvals.amendments import Amendment
    from apps.approvals.services import approval_prepare, candidate_approve

    candidate = propose(proposer)
    with registry.override(Mem0Provider(HashingEmbedder(name="another", dimensions=64))):
        prepared = approval_prepare(principal=reviewer, candidate_id=candidate.pk, version=1, amendment=Amendment())

    with pytest.raises(Unavailable, match="prepared by the embedder another"):
        candidate_approve(principal=reviewer, candidate_id=candidate.pk, version=1, prepared=prepared)

    assert fresh(candidate).status == "pending"


# --- the pool -----------------------------------------------------------------------------------------------
@marked(in_one_transaction)
@pytest.mark.parametrize("method", ["insert_many", "update"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_pool_that_fails_leaves_nothing_half_done(api, alice, proposer, reviewer, pool, monkeypatch, method, when):
    old = remember(proposer, reviewer)
    candidate = propose(proposer, supersedes=(old.label,))
    before = ledger()
    work = getattr(pool, method)

    def fails(*arguments):
        if when == "after":
            work(*arguments)
        raise ProviderError("The pool could not be written (OperationalError).", permanent=False)

    monkeypatch.setattr(pool, method, fails)

    response = approve_over_rest(api(alice), candidate)

    assert response.status_code == 503
    assert response.json()["detail"].startswith("The candidate is still open.")
    assert ledger() == before


@marked(in_one_transaction)
def test_a_pool_whose_table_is_gone_is_503(api, alice, proposer):
    candidate = propose(proposer)
    before = ledger()
    client = api(alice)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE fm_pool_g1 RENAME TO elsewhere")
        response = approve_over_rest(client, candidate)
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO fm_pool_g1")

    assert response.status_code == 503
    assert ledger() == before


@marked(in_one_transaction)
@pytest.mark.parametrize("action", ["reopen", "retire", "restore"])
def test_what_else_changes_the_pool_is_all_or_nothing_too(api, alice, proposer, reviewer, pool, monkeypatch, action):
    from apps.approvals.services import memory_retire

    old = remember(proposer, reviewer)
    memory = remember(proposer, reviewer, supersedes=[old])
    if action == "restore":
        memory_retire(principal=reviewer, reference=memory.pk, reason="Moot.")
    before = ledger()
    update, calls = pool.update, []

    def fails_at_the_last(*arguments):
        update(*arguments)
        calls.append(arguments)
        if action != "reopen" or len(calls) == 2:
            raise ProviderError("The pool could not be written (OperationalError).", permanent=False)

    monkeypatch.setattr(pool, "update", fails_at_the_last)
    path = (
        f"{URL}/{memory.verdict.subject_id}/reopen/"
        if action == "reopen"
        else f"/api/v1/memories/{memory.pk}/{action}/"
    )
    body = {"reason": "r"} | ({"version": 2} if action == "reopen" else {})

    response = api(alice).post(path, body)

    assert response.status_code == 503
    assert response.json()["detail"].startswith("Nothing was changed.")
    assert ledger() == before


@marked(in_one_transaction)
@pytest.mark.parametrize("action", ["report", "reject", "withdraw", "reopen"])
def test_what_a_report_changes_is_all_or_nothing_too(api, alice, robo, proposer, reviewer, pool, monkeypatch, action):
    from tests.ledger import reject, report

    memory = remember(proposer, reviewer)
    path, body = (
        f"/api/v1/memories/{memory.pk}/corrections/",
        {
            "kind": "stale",
            "reason": "It ended.",
            "sources": [{"kind": "chat", "reference": "#pay/1"}],
        },
    )
    if action != "report":
        reported = report(proposer, memory)
        if action == "reopen":
            reject(reviewer, reported)
        path = f"{URL}/{reported.pk}/{action}/"
        body = {"version": fresh(reported).version} | ({} if action == "withdraw" else {"reason": "r"})
    before = ledger()

    def refuses(*_):
        raise ProviderError("The pool could not be written (OperationalError).", permanent=False)

    monkeypatch.setattr(pool, "update", refuses)

    response = api(robo if action in ("report", "withdraw") else alice).post(path, body)

    assert response.status_code == 503, response.json()
    assert response.json()["code"] == "provider_unavailable"
    assert ledger() == before


@marked(in_one_transaction)
def test_a_fault_of_ours_is_500_and_leaves_nothing_either(api, alice, proposer, pool, monkeypatch, caplog):
    candidate = propose(proposer, "A text that must not be in the log.")
    before = ledger()

    def faulty(records):
        raise RuntimeError("a bug")

    monkeypatch.setattr(pool, "insert_many", faulty)
    client = api(alice, raise_request_exception=False)

    response = approve_over_rest(client, candidate)

    assert response.status_code == 500
    assert response.json()["code"] == "internal_error"
    assert "a bug" not in response.content.decode()
    assert ledger() == before


@marked(in_one_transaction)
def test_a_failed_approval_with_a_key_may_be_tried_again_with_it(api, alice, proposer, pool, monkeypatch):
    candidate, client = propose(proposer), api(alice)

    def fails(records):
        raise ProviderError("The pool could not be written (OperationalError).", permanent=False)

    with monkeypatch.context() as patched:
        patched.setattr(pool, "insert_many", fails)
        assert approve_over_rest(client, candidate, **{"Idempotency-Key": "k"}).status_code == 503

    assert approve_over_rest(client, candidate, **{"Idempotency-Key": "k"}).status_code == 200


# --- the database -------------------------------------------------------------------------------------------
def terminate_own_backend() -> None:
    """As an operator would, from another connection."""
    pid = connection.connection.info.backend_pid
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 30000)", [pid])
    finally:
        other.close()


@marked(for_real)
@pytest.mark.parametrize("when", ["before the pool", "after the pool"])
def test_a_connection_lost_in_the_middle_is_503_and_leaves_nothing(api, alice, proposer, pool, monkeypatch, when):
    candidate, client = propose(proposer), api(alice)
    before = ledger()
    insert_many = pool.insert_many

    def cut_off(records):
        if when == "before the pool":
            terminate_own_backend()
        insert_many(records)
        terminate_own_backend()

    with monkeypatch.context() as patched:
        patched.setattr(pool, "insert_many", cut_off)
        response = approve_over_rest(client, candidate)
    connection.close()

    assert response.status_code == 503, response.json()
    assert ledger() == before
    assert approve_over_rest(client, candidate).status_code == 200


@marked(for_real)
def test_a_constraint_that_is_checked_at_the_commit_takes_everything_with_it(proposer, reviewer, monkeypatch):
    """The last thing that can fail is the commit itself."""
    from apps.memories import lifecycle

    candidate = propose(proposer)
    before = ledger()
    monkeypatch.setattr(lifecycle.MemoryEvidence.objects, "bulk_create", lambda rows: list(rows))

    with pytest.raises(DatabaseError, match="has no source"):
        approve(reviewer, candidate)

    assert ledger() == before


# --- SIGKILL ------------------------------------------------------------------------------------------------
def child_environment() -> dict[str, str]:
    found = connection.settings_dict
    url = (
        f"postgresql://{quote(found['USER'])}:{quote(found['PASSWORD'], safe='')}@{found['HOST']}:{found['PORT']}"
        f"/{found['NAME']}"
    )
    return os.environ | {
        "DATABASE_URL": url,
        "FIRM_MEMORY_ENV_FILE": "",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test",
    }


def lock_is_free(candidate: Candidate, seconds: float = 5.0) -> bool:
    """PostgreSQL notices that the process is gone and gives its locks back."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with transaction.atomic():
                Candidate.objects.select_for_update(nowait=True).get(pk=candidate.pk)
            return True
        except DatabaseError:
            time.sleep(0.02)
    return False


@pytest.fixture(scope="module")
def dying(django_db_setup):
    with forks("tests.approvals.dying", child_environment()) as found:
        yield found


@marked(for_real)
@pytest.mark.slow
@pytest.mark.parametrize("moment", [*MOMENTS, "it is committed"])
def test_a_process_killed_at_any_moment_leaves_all_or_nothing(proposer, reviewer, pool, dying, moment):
    old = remember(proposer, reviewer)
    candidate = propose(proposer, supersedes=(old.label,))
    before = ledger()

    code, said = dying.run(moment, str(candidate.pk), "alice")

    assert code == -signal.SIGKILL, said
    assert lock_is_free(candidate)
    if moment != "it is committed":
        assert ledger() == before
        memory = approve(reviewer, candidate).memory
        assert memory.label == "M-2"
    memory = Memory.objects.get(number=2)
    assert fresh(candidate).decision == memory.verdict
    assert fresh(old).status == "superseded"
    assert pool.statuses([old.pk, memory.pk]) == {old.pk: "superseded", memory.pk: "active"}
    assert pool.describe().memories == 2


# --- the server ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_server_killed_in_the_middle_of_many_approvals_loses_and_doubles_none(own_postgres):
    server = own_postgres
    info = server.attach()
    url = f"postgresql://{info.user}:{quote(info.password, safe='')}@{info.host}:{info.port}/{info.dbname}"
    environment = os.environ | {
        "DATABASE_URL": url,
        "FIRM_MEMORY_ENV_FILE": "",
        "DJANGO_SETTINGS_MODULE": "firmmemory.settings.test",
    }
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, cwd=ROOT, env=environment, check=True, timeout=120)
    count = 60
    command = [sys.executable, "-m", "tests.approvals.approving", str(count)]
    lines = []
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as working:
        try:
            for line in working.stdout:
                lines.append(line.split())
                if [each[0] for each in lines].count("approved") in (12, 30) and lines[-1][0] == "approved":
                    os.kill(server.postmaster_pid(), signal.SIGKILL)
                    time.sleep(0.3)
                    server.start()
            assert working.wait(30) == 0
        finally:
            working.kill()

    told = [line[1] for line in lines if line[0] == "approved"]
    assert any(line[0] == "failed" for line in lines), "the server was not missed"
    with info.connect() as found:
        memories = found.execute("SELECT id, number, status FROM memories_memory ORDER BY number").fetchall()
        pool = found.execute("SELECT memory_id, status FROM fm_pool_g1 WHERE passage = 0").fetchall()
        open_ones = found.execute("SELECT count(*) FROM candidates_candidate WHERE status <> 'approved'").fetchone()
        verdicts = found.execute("SELECT count(*), count(DISTINCT subject_id) FROM memories_verdict").fetchone()
        without_source = found.execute(
            "SELECT count(*) FROM memories_memory m"
            " WHERE NOT EXISTS (SELECT 1 FROM memories_memoryevidence e WHERE e.memory_id = m.id)"
        ).fetchone()
    assert [number for _, number, _ in memories] == list(range(1, count + 1))
    assert dict(pool) == {memory_id: status for memory_id, _, status in memories}
    assert open_ones == without_source == (0,)
    assert verdicts == (count, count)
    # An answer may be lost with the connection, never the other way round: what was told is there.
    assert set(told) <= {f"M-{number}" for _, number, _ in memories}
    assert len(told) >= count - 2
