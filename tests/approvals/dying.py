"""Approve one candidate and die by SIGKILL at a named moment.

Run by ``test_faults`` in a process of its own (tests/forking.py).
"""

from __future__ import annotations

import os
import signal
from typing import Any, NoReturn
from unittest.mock import patch

MOMENTS = {
    "the candidate is locked": "apps.approvals.services.lock_targets",
    "the verdict is written": "apps.candidates.transitions.candidate_move",
    "the candidate is closed": "apps.approvals.services.memory_write",
    "the memory is written": "apps.memories.lifecycle.pool_record",
    "the pool is written": None,
    "the edges are written": "apps.memories.lifecycle.memories_refresh",
    "everything is written": "apps.approvals.services._audit",
}


def die(*_: Any, **__: Any) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("still alive")


def main(moment: str, candidate_id: str, reviewer: str) -> None:
    from django.contrib.auth.models import User

    from apps.approvals.services import candidate_approve
    from apps.memories.providers import registry
    from apps.memories.providers.mem0.provider import Mem0Provider
    from tests.ledger import of_person
    from tests.memories.providers.doubles import HashingEmbedder

    class Dying(Mem0Provider):
        def insert_many(self, records: Any) -> None:
            super().insert_many(records)
            if moment == "the pool is written":
                die()

    principal = of_person(User.objects.get(username=reviewer))
    with registry.override(Dying(HashingEmbedder(name="local", dimensions=384))):
        target = MOMENTS.get(moment)
        if target is None:
            candidate_approve(principal=principal, candidate_id=candidate_id, version=1)
        else:
            with patch(target, die):
                candidate_approve(principal=principal, candidate_id=candidate_id, version=1)
    die()
