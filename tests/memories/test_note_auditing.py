"""Notes compared with the collection of their embeddings: what is told, and what is mended."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command

from apps.core.clock import now
from apps.memories.models import TaskNote
from apps.memories.note_auditing import NoteDrift, note_drifts, note_repair
from apps.memories.notes import notes_delete
from apps.memories.providers.base import NoteQuery, ProviderError
from apps.memories.providers.mem0.provider import Mem0Provider
from tests.ledger import fresh, noted, of_person, of_token, remember, sql

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

LONG = " ".join(f"word{number} stays" for number in range(300))


@pytest.fixture
def bot(botty):
    return of_token(botty.token)


def found(workspace_id: int | None = None) -> list[NoteDrift]:
    return [item for item in note_drifts(generation=1, workspace_id=workspace_id) if isinstance(item, NoteDrift)]


def searched(provider: Mem0Provider, note: TaskNote) -> list[UUID]:
    query = NoteQuery(vector=provider.embed_query(note.content), workspace=note.workspace_id, task=note.task)
    return [hit.note_id for hit in provider.search_notes(query)]


def stray(of: TaskNote, *, workspace: int | None = None) -> UUID:
    """The embedding of a note that is not there, as a deletion that was cut off would have left it."""
    pk = uuid4()
    sql(
        "INSERT INTO fm_notes_g1 (id, vector, payload) SELECT %s, vector, payload || jsonb_build_object('note_id', "
        "%s::text, 'workspace', %s::bigint) FROM fm_notes_g1 WHERE id = %s",
        *(pk, str(pk), workspace or of.workspace_id, of.pk),
    )
    return pk


def audited(*options: str) -> tuple[int, str]:
    """The command's exit code, and what it says of notes."""
    out, code = StringIO(), 0
    try:
        call_command("pool", "audit", *options, stdout=out, stderr=StringIO())
    except SystemExit as ended:
        code = int(ended.code or 0)
    return code, out.getvalue()


def test_what_is_as_it_should_be_is_no_disagreement(bot) -> None:
    noted(bot), noted(bot, LONG, task="mr:1")
    assert found() == []
    assert [*note_drifts(generation=1)] == [2]


def test_what_waits_for_its_embedding_or_has_expired_is_none(bot, pool) -> None:
    late, gone = noted(bot), noted(bot)
    pool.delete_notes([late.pk, gone.pk])
    TaskNote.objects.filter(pk=late.pk).update(embedded_at=None)
    TaskNote.objects.filter(pk=gone.pk).update(expires_at=now() - timedelta(seconds=1))
    assert found() == []


@pytest.mark.parametrize(
    ("harm", "kind", "fields"),
    [
        ("DELETE FROM fm_notes_g1 WHERE note_id = %s", "missing", ()),
        ("DELETE FROM fm_notes_g1 WHERE note_id = %s AND passage = 0", "passages", ()),
        ("DELETE FROM fm_notes_g1 WHERE note_id = %s AND passage = 1", "passages", ()),
        ('UPDATE fm_notes_g1 SET payload = payload || \'{"task": "mr:9"}\' WHERE note_id = %s', "differs", ("task",)),
        (
            'UPDATE fm_notes_g1 SET payload = payload || \'{"task": "mr:9"}\' WHERE note_id = %s AND passage = 1',
            "differs",
            ("task",),
        ),
        (
            'UPDATE fm_notes_g1 SET payload = payload || \'{"task": "mr:9", "workspace": 77}\' WHERE note_id = %s',
            "differs",
            ("task", "workspace"),
        ),
    ],
)
def test_what_disagrees_is_told_and_mended(bot, pool, harm: str, kind: str, fields: tuple[str, ...]) -> None:
    other, note = noted(bot), noted(bot, LONG)
    before = sql("SELECT id, vector::text, payload FROM fm_notes_g1 ORDER BY id")
    sql(harm, note.pk)
    (drift,) = found()
    assert (drift.kind, drift.note_id, drift.task, drift.fields) == (kind, note.pk, note.task, fields)
    assert drift.is_repairable
    assert note_repair(drift, pool) is True
    assert found() == []
    assert sql("SELECT id, vector::text, payload FROM fm_notes_g1 ORDER BY id") == before
    assert {*searched(pool, note)} == {note.pk, other.pk}
    assert fresh(note).embedded_at is not None


def test_what_was_left_of_a_deleted_note_is_forgotten(bot, pool) -> None:
    note = noted(bot)
    pk = stray(note)
    assert [(drift.kind, drift.note_id) for drift in found()] == [("surplus", pk)]
    assert "was deleted and its embedding was not" in found()[0].sentence()
    assert note_repair(found()[0], pool) is True
    assert found() == []
    assert searched(pool, note) == [note.pk]


def test_a_note_that_is_deleted_while_it_is_mended_stays_deleted(bot, pool, monkeypatch) -> None:
    note = noted(bot)
    pool.delete_notes([note.pk])
    (drift,) = found()
    prepare = pool.prepare

    def slow(text: str) -> Any:
        made = prepare(text)
        notes_delete([note.pk])
        return made

    monkeypatch.setattr(pool, "prepare", slow)
    note_repair(drift, pool)
    assert sql("SELECT count(*) FROM fm_notes_g1") == [(0,)]


def test_batches_look_at_everything(bot, monkeypatch) -> None:
    monkeypatch.setattr("apps.memories.note_auditing.BATCH", 2)
    notes = [noted(bot) for _ in range(5)]
    strays = {stray(notes[0]) for _ in range(5)}
    sql(
        'UPDATE fm_notes_g1 SET payload = payload || \'{"task": "mr:9"}\' WHERE note_id = ANY(%s)',
        [note.pk for note in notes],
    )
    drifts = found()
    assert {drift.note_id for drift in drifts if drift.kind == "differs"} == {note.pk for note in notes}
    assert {drift.note_id for drift in drifts if drift.kind == "surplus"} == strays
    assert [item for item in note_drifts(generation=1) if isinstance(item, int)][-1] == 5


# --- the command --------------------------------------------------------------------------------------------------


def test_the_command_tells_and_mends(bot, alice, pool) -> None:
    remember(bot, of_person(alice))
    missing, kept = noted(bot), noted(bot)
    pool.delete_notes([missing.pk])
    pk = stray(kept)
    code, said = audited()
    assert code == 1
    assert f"Note {missing.pk} of {missing.task} has no embedding, so only its words find it.\n" in said
    assert f"Note {pk} was deleted and its embedding was not. It is never served.\n" in said
    assert "1 memories compared, 0 disagreements, 0 mended." in said
    assert "2 notes compared, 2 disagreements, 0 mended." in said
    code, said = audited("--repair")
    assert code == 0
    assert f"Note {missing.pk} of {missing.task} has no embedding, so only its words find it. Mended.\n" in said
    assert "2 notes compared, 2 disagreements, 2 mended." in said
    assert audited() == (
        0,
        "1 memories compared, 0 disagreements, 0 mended.\n2 notes compared, 0 disagreements, 0 mended.\n",
    )


def test_the_text_of_a_note_is_not_told(bot, pool) -> None:
    note = noted(bot, "The merger is off.")
    pool.delete_notes([note.pk])
    assert "merger" not in audited()[1]


def test_one_workspace_is_mended_and_another_left(bot, charlie, other_workspace, workspace, pool) -> None:
    ours, theirs = noted(bot), noted(of_person(charlie))
    stray_theirs = stray(theirs)
    pool.delete_notes([ours.pk, theirs.pk])
    code, said = audited("--repair", "--workspace", "firm")
    assert (code, "1 notes compared, 1 disagreements, 1 mended." in said) == (0, True)
    assert found(workspace.pk) == []
    assert {(drift.kind, drift.note_id) for drift in found()} == {("missing", theirs.pk), ("surplus", stray_theirs)}


def test_an_embedder_that_is_down_is_said_and_nothing_is_lost(bot, pool, monkeypatch) -> None:
    note = noted(bot)
    sql('UPDATE fm_notes_g1 SET payload = payload || \'{"task": "mr:9"}\'')

    def down(*_: Any) -> None:
        raise ProviderError("The embedding model did not answer.", permanent=False)

    monkeypatch.setattr(pool, "prepare_many", down)
    with pytest.raises(CommandError, match="did not answer"):
        audited("--repair")
    assert sql("SELECT note_id FROM fm_notes_g1") == [(note.pk,)]
