"""How PostgreSQL goes about the notes of one task, beside many more of others."""

from __future__ import annotations

import pytest
from django.db import connection

from apps.candidates.notes import Note, note_add, note_prepare
from apps.memories.models import TaskNote
from apps.memories.notes import notes_of, tasks_lately
from apps.memories.tasks import notes_embed_late, notes_expire
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from apps.sources.models import Source
from apps.taxonomy.models import MemoryType
from tests import ledger
from tests.retrieval.test_plans import plan, plans

pytestmark = pytest.mark.django_db

TASK = "mr:4821"
MINE, OTHERS = 999, 10_000

# Written past the triggers, which would take a minute. Of short texts, since their number is what matters here.
FILL = """
INSERT INTO memories_tasknote (id, workspace_id, task, content, type_id, firm, domain_ids, repo_ids, audience_ids,
    fingerprint, disposition, disposed_by, origin_token_id, origin_name, created_at, expires_at, embedded_at)
SELECT md5('note ' || number)::uuid, %(workspace)s,
    CASE WHEN number <= %(mine)s THEN %(task)s ELSE 'mr:' || (number / 50) END,
    'Finding ' || number, %(type)s, true, '{}', '{}', '{}', md5(number::text), '', '', %(token)s, 'botty',
    now() - number * interval '1 second', now() + interval '9 days', now()
FROM generate_series(1, %(mine)s + %(others)s) AS number
"""
EVIDENCE = """
INSERT INTO memories_tasknoteevidence (note_id, source_id, workspace_id, quote)
SELECT note.id, source.id, note.workspace_id, '' FROM memories_tasknote AS note CROSS JOIN sources_source AS source
"""
POOL = """
INSERT INTO fm_notes_g1 (id, vector, payload)
SELECT id, array_fill(1, ARRAY[384])::vector,
    jsonb_build_object('note_id', id, 'passage', 0, 'workspace', workspace_id, 'task', task)
FROM memories_tasknote
"""


@pytest.fixture
def filled(workspace, robo):
    type_id = MemoryType.objects.filter(workspace=workspace).values_list("pk", flat=True).first()
    values = {"workspace": workspace.pk, "type": type_id, "token": robo.token.pk, "task": TASK}
    Source.objects.create(workspace=workspace, kind="merge_request", reference="acme/pay!4821")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(FILL, values | {"mine": MINE, "others": OTHERS})
        cursor.execute(EVIDENCE)
        cursor.execute(POOL)
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute("ANALYZE memories_tasknote")
        cursor.execute("ANALYZE memories_tasknoteevidence")
        cursor.execute("ANALYZE fm_notes_g1")
    return workspace


def test_no_look_at_one_task_reads_the_others(filled, pool, bot, carol):
    """One test for all of them, since filling the tables is what takes the time."""
    person = ledger.of_person(carol)
    proposal = ledger.a_proposal()
    note = Note(task=TASK, content="New.", type=proposal.type, scope=proposal.scope, sources=proposal.sources)

    def look() -> None:
        prepared = note_prepare(principal=bot, note=note)
        assert note_add(principal=bot, note=note, prepared=prepared).created
        answer = search(principal=person, request=SearchRequest(q="finding 17", tiers=("episodic",), task=TASK))
        assert answer.degraded is False
        assert len(answer.results) == 10
        list(notes_of(person, TASK).order_by("-created_at", "-id")[:50])
        assert tasks_lately(person)[0]["task"] == TASK
        notes_embed_late()
        notes_expire()

    found = plans(look)
    assert any("fm_notes_g1" in statement for statement in found)
    assert sum("memories_tasknote" in statement for statement in found) > 6
    for statement, lines in found.items():
        for table in ("memories_tasknote ", "memories_tasknoteevidence", "fm_notes_g1"):
            assert f"Seq Scan on {table}" not in lines, f"{statement}\n{lines}"
    (searched,) = [lines for statement, lines in found.items() if "DISTINCT ON (note_id)" in statement]
    assert "fm_notes_g1_of_task" in searched

    ids = [str(pk) for pk in TaskNote.objects.filter(task=TASK).values_list("pk", flat=True)[:5]]
    for statement, index in (
        ("DELETE FROM fm_notes_g1 WHERE note_id = ANY(%s::uuid[])", "fm_notes_g1_passage_once"),
        ("DELETE FROM memories_tasknote WHERE id = ANY(%s::uuid[])", "memories_tasknote_pkey"),
    ):
        assert index in plan(statement, [ids])
