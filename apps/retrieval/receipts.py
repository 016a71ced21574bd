"""Read receipts: which memory was given to whom, so that it can be told what relied on one that turned out wrong.

An answer never waits for its receipts and never fails for them. They are written by one statement that does not wait
for the disk; what a crash takes with it are the receipts of its last moments.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from apps.accounts.principal import Principal
from apps.core.clock import now
from apps.core.problems import DATABASE_ERRORS
from apps.core.screening import masked
from apps.memories.models import EPISODIC, Memory
from apps.retrieval.models import Served

KEPT_FOR: Final = timedelta(days=90)
MAX_QUESTION: Final = 500
SHOWN: Final = 20
_FORGOTTEN_AT_ONCE: Final = 10_000

logger = logging.getLogger(__name__)

# Not waiting for the disk is set for the statement's own transaction and for nothing after it.
_RECORD: Final = f"""
INSERT INTO {Served._meta.db_table}
    (workspace_id, memory, principal, kind, name, via, asked_for, question, audience_ids, request_id)
SELECT %(workspace)s, memory, %(principal)s, %(kind)s, %(name)s, %(via)s, %(asked_for)s, %(question)s,
    %(audiences)s::bigint[], %(request_id)s
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quickly, unnest(%(memories)s::uuid[]) AS memory
"""


def served_record(
    principal: Principal, asked_for: str, *, results: Sequence[Mapping[str, Any]], question: str = ""
) -> None:
    """``results`` are memories as they were shown; working notes among them leave no receipt.

    What cannot be written is said in the log and nowhere else.
    """
    ids = list(dict.fromkeys(UUID(str(each["id"])) for each in results if each.get("tier") != EPISODIC))
    if not ids:
        return
    values: dict[str, Any] = {
        "workspace": principal.workspace.pk,
        "memories": ids,
        "principal": principal.key,
        "kind": principal.kind,
        "name": principal.name,
        "via": principal.via,
        "asked_for": asked_for,
        "question": masked(question.strip())[:MAX_QUESTION],
        "audiences": sorted(principal.audience_ids),
        "request_id": principal.request_id,
    }
    try:
        with _by_itself(), connection.cursor() as cursor:
            cursor.execute(_RECORD, values)
    except DATABASE_ERRORS as error:
        logger.warning("Who was served %s memories was not recorded: %s", len(ids), type(error).__name__)


def _by_itself() -> AbstractContextManager[Any]:
    """Inside a transaction a failure must not spoil the rest of it; outside, one statement is a transaction."""
    return transaction.atomic() if connection.in_atomic_block else nullcontext()


def receipts_shown(principal: Principal, memory: Memory) -> dict[str, Any]:
    """What relied on a memory, the latest first, for reviewers.

    What somebody of an audience asked is told to its members alone; that they asked is told to every reviewer.
    """
    rows = Served.objects.filter(workspace=principal.workspace, memory=memory.pk, at__gte=now() - KEPT_FOR)
    latest = list(rows.order_by("-at", "-id")[: SHOWN + 1])
    return {
        "total": rows.count() if len(latest) > SHOWN else len(latest),
        "days": KEPT_FOR.days,
        "latest": [_shown(principal, row) for row in latest[:SHOWN]],
    }


def _shown(principal: Principal, row: Served) -> dict[str, Any]:
    may_read = set(row.audience_ids) <= principal.audience_ids
    return {
        "name": row.name,
        "kind": row.kind,
        "via": row.via,
        "asked_for": row.asked_for,
        "question": row.question if may_read else "",
        "request_id": row.request_id,
        "at": row.at.isoformat(),
    }


def receipts_forget() -> int:
    """Remove some of those that are too old; how many were."""
    old = Served.objects.filter(at__lt=now() - KEPT_FOR).order_by("at").values("pk")[:_FORGOTTEN_AT_ONCE]
    gone, _ = Served.objects.filter(pk__in=old).delete()
    return gone
