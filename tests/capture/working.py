"""Workers that go on whatever happens to the database meanwhile. Run as processes of their own by ``test_faults``.

``python -m tests.capture.working hand COUNT`` hands over so many events, says of each that it was accepted, and then
drains what is left; ``… drain`` drains until it is stopped. What waits a minute in earnest waits a moment here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta


def main(role: str, count: int = 0) -> None:
    import django

    django.setup()
    from apps.accounts.models import TokenKind, Workspace
    from apps.accounts.principal import operator
    from apps.accounts.selectors import principal_for_token
    from apps.accounts.services import token_create
    from apps.capture import leasing
    from apps.capture.models import CaptureEvent
    from apps.capture.tasks import sweep
    from apps.memories.providers import registry
    from apps.memories.providers.mem0.provider import Mem0Provider
    from tests.capture.doubles import an_event
    from tests.memories.providers.doubles import HashingEmbedder

    leasing.LEASE, leasing._FIRST_WAIT = timedelta(seconds=3), timedelta(milliseconds=100)  # type: ignore[misc]
    with registry.override(Mem0Provider(HashingEmbedder(name="local", dimensions=384))):
        if role == "hand":
            workspace = Workspace.objects.get(slug="firm")
            _, secret = token_create(principal=operator(workspace), name="botty", kind=TokenKind.BOT)
            bot = principal_for_token(secret, "rest")
            for number in range(count):
                said = f"lgtm {number % 3}" if number % 2 else f"We decided that rule {number} holds, since it broke."
                again_and_again(lambda: an_event(bot, said, external_id=str(number)))  # noqa: B023 - run at once
                print("accepted", number, flush=True)
        while role == "drain" or again_and_again(CaptureEvent.objects.unfinished().exists):
            again_and_again(sweep)
            time.sleep(0.1)


def again_and_again(work: Callable[[], object]) -> object:
    """Until the database does it; a client sends again what was not answered."""
    from django.db import DatabaseError, InterfaceError, connection

    while True:
        try:
            return work()
        except (DatabaseError, InterfaceError) as error:
            print("missed", type(error).__name__, flush=True)
            connection.close()
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
