"""`mcp` serves one agent over standard input and output, with the token in FIRM_MEMORY_TOKEN."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
from pathlib import Path
from typing import IO, Any, Final, cast

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import close_old_connections, connections

from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_token
from apps.agents.answering import Caller
from apps.agents.checkout import remote_of
from apps.agents.mending import MendedLines
from apps.core import problems, request_id
from apps.core.errors import NotAuthenticated
from apps.scopes.identity import repository_identity

logger = logging.getLogger(__name__)

VARIABLE: Final = "FIRM_MEMORY_TOKEN"
# What a client leaves of a reference to a variable that it does not know: ${X}, ${env:X}, {env:X}, $X.
_REFERENCE: Final = re.compile(r"\$?\{[^{}]*\}|\$\w+")


class Command(BaseCommand):
    help = (
        f"Serve an agent over stdio (MCP). The token comes from {VARIABLE}; the repository is the one checked out in "
        "the folder that this is started in."
    )
    # They write to standard output, which belongs to the protocol.
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--folder", default=".", help="The folder of the checkout, if it is another one.")
        parser.add_argument("--repo", help="The repository: a slug or a remote, instead of the one checked out.")

    def handle(self, *args: Any, folder: str, repo: str | None, **options: Any) -> None:
        secret = os.environ.get(VARIABLE, "").strip()
        if not secret:
            raise CommandError(f"{VARIABLE} is not set. `manage.py token create NAME --kind agent` makes a token.")
        if _REFERENCE.fullmatch(secret):
            raise CommandError(
                f"{VARIABLE} holds {secret}, letter by letter: what starts this has no such variable. Put the token "
                f"into the environment that your client is started from: export {VARIABLE}=…"
            )
        self._greet(secret, checkout := repo or remote_of(Path(folder)))
        asyncio.run(_serve(Caller(lambda: _identify(secret), checkout)))

    def _greet(self, secret: str, checkout: str | None) -> None:
        """On standard error, which clients keep in their log. A token that will not do is said at once."""
        where = repository_identity(checkout) if checkout else "no repository: the whole workspace is searched"
        try:
            principal = _identify(secret)
        except NotAuthenticated as error:
            raise CommandError(error.detail) from None
        except problems.DATABASE_ERRORS as error:
            refusal = problems.as_domain_error(error) or problems.broken()
            self.stderr.write(f"{refusal.detail} Serving anyway; tools say so until it is back.")
        else:
            self.stderr.write(f"Firm Memory for {principal.name} in {principal.workspace.slug}, for {where}.")
        finally:
            close_old_connections()


def _identify(secret: str) -> Principal:
    """Anew for each call: the token may have been revoked, and the database restarted, since the last one."""
    close_old_connections()
    request_id.current.set(request_id.accept(None))
    return principal_for_token(secret, "mcp", request_id.current.get())


async def _serve(who: Caller) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from apps.agents.server import SERVER, caller

    caller.set(who)
    lines = anyio.wrap_file(cast(IO[str], MendedLines(sys.stdin.buffer)))
    async with stdio_server(stdin=lines) as (incoming, outgoing):
        # From here on whatever a library prints goes to standard error. It is no daemon, since one that is inside the
        # model's C++ at the end would take the process down with it.
        threading.Thread(target=_warm_up, name="warm-up").start()
        await SERVER.run(incoming, outgoing, SERVER.create_initialization_options())


def _warm_up() -> None:
    """Load what the first search would otherwise wait for, while the client still greets."""
    from apps.memories.providers import registry

    try:
        registry.warm_up()
    except Exception:
        # The first search tries again, and its answer says what is missing.
        logger.exception("The provider cannot be warmed up.")
    finally:
        connections.close_all()
