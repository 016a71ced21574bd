"""What the worker keeps fresh for searches."""

from __future__ import annotations

from django.db import connection, transaction

from apps.accounts.models import Workspace
from apps.core.clock import now
from apps.memories.models import Corpus, Lexeme, Memory


def count_lexemes() -> str:
    """Count document frequencies anew for each workspace whose number of memories changed since. Idempotent."""
    counted = [workspace.slug for workspace in Workspace.objects.all() if _count_if_changed(workspace)]
    return f"Counted anew: {', '.join(counted) or 'nothing had changed'}."


def _count_if_changed(workspace: Workspace) -> bool:
    known = Corpus.objects.filter(workspace=workspace).values_list("documents", flat=True).first()
    documents = Memory.objects.of(workspace).count()
    if documents == (known or 0):
        return False
    lexemes_count(workspace)
    return True


@transaction.atomic
def lexemes_count(workspace: Workspace) -> None:
    """Replace a workspace's document frequencies by a fresh count; about 4 µs a memory."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('firm-memory lexemes'), %s)", [workspace.pk])
        cursor.execute(f"DELETE FROM {Lexeme._meta.db_table} WHERE workspace_id = %s", [workspace.pk])
        # ts_stat takes its query as text; the workspace's id is an integer of ours.
        cursor.execute(
            f"INSERT INTO {Lexeme._meta.db_table} (workspace_id, word, ndoc) SELECT %s, word, ndoc FROM ts_stat(%s)",
            [
                workspace.pk,
                f"SELECT search_vector FROM {Memory._meta.db_table} WHERE workspace_id = {int(workspace.pk)}",
            ],
        )
        cursor.execute(
            f"SELECT count(*), coalesce(sum(doclen), 0) FROM {Memory._meta.db_table} WHERE workspace_id = %s",
            [workspace.pk],
        )
        documents, lexemes = cursor.fetchone()
    Corpus.objects.update_or_create(
        workspace=workspace, defaults={"documents": documents, "lexemes": lexemes, "counted_at": now()}
    )
