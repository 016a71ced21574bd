"""Propose and approve statements one after the other, and say what became of each try. Run by ``test_faults``.

``python -m tests.approvals.approving <how many>``; whatever the database does meanwhile, it goes on.
"""

from __future__ import annotations

import sys
import time


def main(count: int) -> None:
    import django

    django.setup()
    from django.db import close_old_connections, connection
    from django.db.utils import InterfaceError, OperationalError

    from apps.accounts.models import Role, TokenKind, Workspace
    from apps.accounts.principal import operator
    from apps.accounts.services import member_add, token_create
    from apps.core.errors import Unavailable
    from apps.memories.providers import registry
    from apps.memories.providers.mem0.provider import Mem0Provider
    from tests.ledger import approve, of_person, of_token, propose
    from tests.memories.providers.doubles import HashingEmbedder

    workspace = Workspace.objects.get(slug="firm")
    member_add(principal=operator(workspace), username="alice", role=Role.REVIEWER)
    token, _ = token_create(principal=operator(workspace), name="robo", kind=TokenKind.AGENT)
    from django.contrib.auth.models import User

    reviewer, proposer = of_person(User.objects.get(username="alice")), of_token(token)
    candidates = [propose(proposer) for _ in range(count)]
    with registry.override(Mem0Provider(HashingEmbedder(name="local", dimensions=384))):
        while candidates:
            close_old_connections()
            try:
                memory = approve(reviewer, candidates[0]).memory
            except (Unavailable, OperationalError, InterfaceError) as error:
                print("failed", type(error).__name__, flush=True)
                connection.close()
                time.sleep(0.05)
            else:
                candidates.pop(0)
                print("approved", memory.label, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
