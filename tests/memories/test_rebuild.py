"""Building a new generation of the pool beside the live one, while approvals go on, and comparing pool and ledger."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection

from apps.accounts.models import Role, TokenKind, Workspace
from apps.accounts.services import workspace_add
from apps.approvals.services import memory_retire
from apps.core.errors import Conflict, Unavailable
from apps.memories import rebuild as rebuilding
from apps.memories.auditing import Drift, drifts, repair
from apps.memories.generations import ensure_live_generation
from apps.memories.models import GenerationState, Memory, PoolGeneration, TaskNote
from apps.memories.notes import notes_delete, notes_embed
from apps.memories.pool import drop_pool, pool_table
from apps.memories.providers import registry
from apps.memories.providers.base import NoteQuery, ProviderError
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.memories.providers.registry import get_provider
from apps.memories.rebuild import rebuild, retired_drop
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from tests import ledger
from tests.conftest import add_person, issue
from tests.memories.providers.doubles import HashingEmbedder

pytestmark = pytest.mark.django_db(transaction=True)


class Cast:
    """A bot and a reviewer, made anew for each test since what is committed is flushed."""

    def __init__(self) -> None:
        workspace = Workspace.objects.get(slug="firm")
        self.bot = ledger.of_token(issue(workspace, "bot", TokenKind.BOT).token)
        self.reviewer = ledger.of_person(add_person(workspace, "rita", Role.REVIEWER))

    def remember(self, content: str | None = None, **changes: Any) -> Memory:
        return ledger.remember(self.bot, self.reviewer, content, **changes)


@pytest.fixture
def cast(pool: Mem0Provider) -> Cast:
    ensure_live_generation()
    return Cast()


@pytest.fixture(autouse=True)
def _drop_new_generations(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for number in range(2, 8):
            drop_pool(cursor, number=number)


@pytest.fixture
def wider() -> HashingEmbedder:
    return HashingEmbedder(name="wider", dimensions=768)


def live() -> PoolGeneration:
    return PoolGeneration.objects.get(state=GenerationState.LIVE)


def found(item: Any) -> list[Drift]:
    return [each for each in item if isinstance(each, Drift)]


def rows_of(table: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id::text, vector::text, payload::text FROM {table} ORDER BY id")
        return list(cursor.fetchall())


def test_a_rebuild_moves_everything_to_other_dimensions(cast: Cast, wider: HashingEmbedder) -> None:
    memories = [cast.remember() for _ in range(5)]
    memory_retire(principal=cast.reviewer, reference=memories[0].pk, reason="It was never so.")
    seen: list[tuple[int, int]] = []
    row = rebuild(wider, progress=lambda done, total: seen.append((done, total)))
    assert (live().number, live().dimensions, live().embedder) == (row.number, 768, "wider")
    assert seen[-1] == (5, 5)
    assert found(drifts(generation=row.number)) == []
    with registry.override(Mem0Provider(wider)):
        answer = search(principal=cast.bot, request=SearchRequest(q=memories[1].content, recipe=None))
    assert answer.results[0]["number"] == memories[1].label
    assert "vector" in answer.results[0]["scores"]
    assert answer.degraded is False


def test_a_process_with_the_old_embedder_refuses_to_write_and_says_what_to_do(
    cast: Cast, wider: HashingEmbedder
) -> None:
    memory = cast.remember("Invoices are numbered without gaps.")
    rebuild(wider)
    candidate = ledger.propose(cast.bot)
    with pytest.raises(Unavailable, match="restart"):
        ledger.approve(cast.reviewer, candidate)
    assert ledger.fresh(candidate).is_open
    answer = search(principal=cast.bot, request=SearchRequest(q="invoices numbered"))
    assert answer.degraded is True
    assert [result["number"] for result in answer.results] == [memory.label]


def test_approvals_go_on_during_a_rebuild_and_none_is_lost(
    cast: Cast, wider: HashingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each batch of the copy somebody approves, retires and supersedes through the live pool."""
    monkeypatch.setattr(rebuilding, "BATCH", 3)
    monkeypatch.setattr(rebuilding, "LAST", 2)
    first = [cast.remember() for _ in range(8)]
    late: list[Memory] = []

    def meanwhile(done: int, total: int) -> None:
        if len(late) < 6:
            late.append(cast.remember())
            late.append(cast.remember(supersedes=(first[len(late)],)))

    row = rebuild(wider, progress=meanwhile)
    assert len(late) >= 4
    assert found(drifts(generation=row.number)) == []
    assert Memory.objects.count() == len(first) + len(late)
    assert Mem0Provider(wider).describe().memories == Memory.objects.count()


def test_the_switch_waits_for_an_approval_in_progress(cast: Cast, wider: HashingEmbedder) -> None:
    """An approval that holds the live generation commits first, and its memory is in the new one."""
    cast.remember()
    embedded, switched = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def approve_slowly() -> None:
        from django.db import transaction

        try:
            candidate = ledger.propose(cast.bot)
            with transaction.atomic():
                ledger.approve(cast.reviewer, candidate)
                embedded.set()
                assert not switched.wait(0.5), "the switch did not wait"
        except BaseException as error:
            failures.append(error)
            embedded.set()
        finally:
            connection.close()

    thread = threading.Thread(target=approve_slowly)
    thread.start()
    embedded.wait(20)
    row = rebuild(wider)
    switched.set()
    thread.join(20)
    assert failures == []
    assert found(drifts(generation=row.number)) == []
    assert Mem0Provider(wider).describe().memories == 2


def test_a_rebuild_that_was_stopped_goes_on_where_it_was(
    cast: Cast, wider: HashingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "BATCH", 2)
    for _ in range(5):
        cast.remember()

    def dies(done: int, total: int) -> None:
        if done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(wider, progress=dies)
    assert live().embedder == "local"
    embedded = len(wider.documents)
    row = rebuild(wider)
    assert len(wider.documents) - embedded == 3
    assert PoolGeneration.objects.filter(state=GenerationState.BUILDING).count() == 0
    assert live() == row


def test_an_unfinished_rebuild_for_another_embedder_is_not_thrown_away_unasked(
    cast: Cast, wider: HashingEmbedder
) -> None:
    cast.remember()

    def dies(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(wider, progress=dies)
    other = HashingEmbedder(name="other", dimensions=96)
    with pytest.raises(Conflict, match="discard"):
        rebuild(other)
    row = rebuild(other, discard=True)
    assert live() == row
    assert retired_drop()
    assert PoolGeneration.objects.filter(state=GenerationState.LIVE).count() == 1


def test_an_embedder_that_fails_leaves_the_live_pool_alone(cast: Cast, wider: HashingEmbedder) -> None:
    cast.remember()

    def fails(texts: list[str]) -> Any:
        raise ProviderError("The embedding model did not answer.", permanent=False)

    wider.embed_documents = fails  # type: ignore[method-assign]
    with pytest.raises(ProviderError):
        rebuild(wider)
    assert live().embedder == "local"
    assert found(drifts(generation=live().number)) == []


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ('payload || \'{"status": "retired"}\'', ("status",)),
        ("payload || '{\"audience_ids\": [7]}'", ("audience_ids",)),
        ('payload || \'{"valid_to": 12.5, "closed_at": 13}\'', ("valid_to", "closed_at")),
        ("payload || '{\"confidence\": 0.125}'", ("confidence",)),
        ('payload || \'{"data": "Other words."}\'', ("content",)),
        ("payload || '{\"firm\": true}'", ("firm",)),
        ('payload || \'{"type": "ownership"}\'', ("type",)),
    ],
)
def test_an_audit_names_what_differs_and_mends_what_needs_no_guessing(
    cast: Cast, pool: Mem0Provider, change: str, fields: tuple[str, ...]
) -> None:
    cast.remember()
    memory = cast.remember()
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE fm_pool_g1 SET payload = {change} WHERE memory_id = %s", [memory.pk])
    (drift,) = found(drifts(generation=1))
    assert (drift.kind, drift.label, set(drift.fields)) == ("differs", memory.label, set(fields))
    patchable = set(fields) <= {"status", "audience_ids", "valid_to", "closed_at", "confidence"}
    assert repair(drift, pool) is patchable
    assert bool(found(drifts(generation=1))) is not patchable


def test_an_audit_finds_missing_and_surplus_rows(cast: Cast, pool: Mem0Provider) -> None:
    missing, kept = cast.remember(), cast.remember()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM fm_pool_g1 WHERE memory_id = %s", [missing.pk])
        cursor.execute(
            "INSERT INTO fm_pool_g1 (id, vector, payload) SELECT %s::uuid, vector,"
            ' payload || \'{"memory_id": "00000000-0000-4000-8000-000000000001"}\' FROM fm_pool_g1 WHERE id = %s',
            ["00000000-0000-4000-8000-000000000001", kept.pk],
        )
    kinds = {drift.kind: drift for drift in found(drifts(generation=1))}
    assert set(kinds) == {"missing", "surplus"}
    assert repair(kinds["missing"], pool) is True
    assert repair(kinds["surplus"], pool) is False
    assert [drift.kind for drift in found(drifts(generation=1))] == ["surplus"]
    answer = search(principal=cast.bot, request=SearchRequest(q=kept.content))
    assert [result["number"] for result in answer.results].count(kept.label) == 1


def test_an_audit_sees_a_lost_passage(cast: Cast) -> None:
    memory = cast.remember(" ".join(f"word{number} stays" for number in range(300)))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM fm_pool_g1 WHERE memory_id = %s AND passage = 1", [memory.pk])
    assert [drift.kind for drift in found(drifts(generation=1))] == ["passages"]


def test_an_audit_in_batches_looks_at_everything(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.memories.auditing.BATCH", 2)
    for _ in range(5):
        cast.remember()
    with connection.cursor() as cursor:
        cursor.execute('UPDATE fm_pool_g1 SET payload = payload || \'{"status": "retired"}\'')
    assert len(found(drifts(generation=1))) == 5


def test_mending_one_workspace_leaves_another_byte_for_byte(cast: Cast, pool: Mem0Provider) -> None:
    other = workspace_add(slug="other")
    theirs = Cast.__new__(Cast)
    theirs.bot = ledger.of_token(issue(other, "their-bot", TokenKind.BOT).token)
    theirs.reviewer = ledger.of_person(add_person(other, "olga", Role.REVIEWER))
    cast.remember()
    memory = theirs.remember()
    with connection.cursor() as cursor:
        cursor.execute('UPDATE fm_pool_g1 SET payload = payload || \'{"status": "retired"}\'')
        cursor.execute("SELECT vector::text, payload::text FROM fm_pool_g1 WHERE memory_id = %s", [memory.pk])
        before = cursor.fetchall()
    with pytest.raises(SystemExit):
        call_command("pool", "audit", "--workspace", "firm", stdout=StringIO(), stderr=StringIO())
    call_command("pool", "audit", "--repair", "--workspace", "firm", stdout=StringIO(), stderr=StringIO())
    with connection.cursor() as cursor:
        cursor.execute("SELECT vector::text, payload::text FROM fm_pool_g1 WHERE memory_id = %s", [memory.pk])
        assert cursor.fetchall() == before
    assert [drift.workspace_id for drift in found(drifts(generation=1))] == [other.pk]


def test_the_command_says_what_there_is(cast: Cast) -> None:
    cast.remember()
    out = StringIO()
    call_command("pool", "status", stdout=out)
    assert "fm_pool_g1  live" in out.getvalue()
    assert "The ledger holds 1 memories." in out.getvalue()


def test_the_command_refuses_an_embedder_it_does_not_know(cast: Cast) -> None:
    with pytest.raises(CommandError, match="FIRM_MEMORY_EMBEDDER"):
        call_command("pool", "rebuild", "--embedder", "word2vec")


def test_the_command_rebuilds_with_the_configured_embedder(
    cast: Cast, embedder: HashingEmbedder, monkeypatch: pytest.MonkeyPatch, alice: User
) -> None:
    memory = cast.remember()
    monkeypatch.setattr("apps.memories.management.commands.pool.make_embedder", lambda name, dimensions: embedder)
    out = StringIO()
    call_command("pool", "rebuild", "--drop-retired", stdout=out, stderr=StringIO())
    assert f"{pool_table(live().number)} is live" in out.getvalue()
    assert "Removed: fm_pool_g1" in out.getvalue()
    assert [row[0] for row in rows_of(pool_table(live().number))] == [str(memory.pk)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('fm_pool_g1')")
        assert cursor.fetchone()[0] is None


# --- working notes ------------------------------------------------------------------------------------------------
def noted(provider: Mem0Provider, note: TaskNote) -> list[UUID]:
    vector = provider.embed_query(note.content)
    query = NoteQuery(vector=vector, workspace=note.workspace_id, task=note.task)
    return [hit.note_id for hit in provider.search_notes(query)]


def test_a_rebuild_takes_the_notes_along_and_leaves_none_behind(
    cast: Cast, wider: HashingEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is written and one deleted after the copy; one was never embedded before."""
    monkeypatch.setattr(rebuilding, "BATCH", 2)
    kept, gone, late = (ledger.noted(cast.bot) for _ in range(3))
    TaskNote.objects.filter(pk=late.pk).update(embedded_at=None)
    get_provider().delete_notes([late.pk])
    copy, written = rebuilding._copy, []

    def then(*arguments: Any) -> None:
        copy(*arguments)
        if not written:
            written.append(ledger.noted(cast.bot))
            notes_delete([gone.pk])

    monkeypatch.setattr(rebuilding, "_copy", then)
    row = rebuild(wider)

    assert rows_of("fm_notes_g1") == []
    provider = Mem0Provider(wider)
    assert set(noted(provider, kept)) == {kept.pk, late.pk, written[0].pk}
    assert len(rows_of(f"fm_notes_g{row.number}")) == 3
    with registry.override(provider):
        assert notes_embed([late.pk]) == 1
        asked = SearchRequest(q=kept.content, tiers=("episodic",), task=kept.task)
        answer = search(principal=cast.bot, request=asked)
        assert answer.results[0]["id"] == str(kept.pk)
        assert answer.degraded is False


def test_while_the_pool_has_moved_a_note_is_written_all_the_same(cast: Cast, wider: HashingEmbedder) -> None:
    rebuild(wider)
    note = ledger.noted(cast.bot)
    assert note.embedded_at is None
    with registry.override(Mem0Provider(wider)) as provider:
        assert notes_embed([note.pk]) == 1
        assert noted(provider, note) == [note.pk]
