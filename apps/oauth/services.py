"""Connecting a client and ending it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from allauth.idp.oidc.models import Client, Token
from django.db import transaction

from apps.accounts.audit import audit_record
from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_of_origin, repositories
from apps.accounts.services import token_end, token_facts, token_lend
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.oauth.models import Connection
from apps.oauth.redirects import Place
from apps.oauth.selectors import connections_of

MOST_LIVING: Final = 20
SPENT_KEPT: Final = 20

COPIED_CODE: Final = "An authorization code came twice, so somebody has a copy of it."
COPIED_REFRESH: Final = "A refresh token came twice, so somebody has a copy of it."
RAN_OUT: Final = "It was not used until its last token ran out."
GIVEN_BACK: Final = "The client gave it back."


@transaction.atomic
def connection_make(
    *,
    principal: Principal,
    client: Client,
    grant_id: str,
    came_from: Place,
    read_only: bool,
    resources: Sequence[str],
    repository_ids: Iterable[int],
) -> Connection:
    """Lend a client what the person allowed. Each consent makes one of its own, with a token of its own."""
    person = principal.user
    if principal.kind != "person" or person is None:
        raise Forbidden("Only a person who has signed in connects an agent.")
    # Of two consents at once the second waits, so that both are counted.
    Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
    if connections_of(person).count() >= MOST_LIVING:
        raise Conflict(
            f"You have connected {MOST_LIVING} agents, which is the most. Disconnect one that you no longer use.",
            code="too_many_connections",
        )
    token = token_lend(
        principal=principal,
        name=f"{client.name} · {person.get_username()[:24]} · {grant_id[:8]}",
        read_only=read_only,
        repository_ids=repository_ids,
    )
    connection = Connection.objects.create(
        workspace=principal.workspace, token=token, client=client, grant_id=grant_id, came_from=came_from.origin
    )
    audit_record(
        principal,
        "connect",
        subject_kind="token",
        subject_id=token.pk,
        after={
            "name": token.name,
            **token_facts(token),
            "client": client.pk,
            "came_from": connection.came_from,
            "resources": list(resources),
        },
    )
    return connection


@transaction.atomic
def connection_disconnect(*, principal: Principal, connection_id: int) -> Connection:
    """A person ends what they connected, in whatever workspace it is; ``NotFound`` for what is not theirs."""
    person = principal.user
    if principal.kind != "person" or person is None:
        raise Forbidden("Only a person who has signed in disconnects an agent.")
    connection = connections_of(person).filter(pk=connection_id).first()
    if connection is None:
        raise NotFound("You have no such connection. Perhaps it has ended already.")
    _end(_in_workspace_of(connection, principal), connection)
    return connection


@transaction.atomic
def connection_end(connection: Connection, *, why: str) -> None:
    """End it for a reason that nobody had to ask a person about; recorded in the agent's own name."""
    who = principal_of_origin(connection.workspace, token_id=connection.token_id, user_id=None, via="oauth")
    _end(who, connection, why=why)


@transaction.atomic
def connections_end(*, principal: Principal, username: str | None = None) -> int:
    """End every connection in the workspace, or those of one person; for operators. Returns how many there were."""
    if not principal.is_operator:
        raise Forbidden("Only an operator ends the connections of others. An admin revokes tokens in the admin.")
    living = Connection.objects.filter(workspace=principal.workspace, token__revoked_at__isnull=True)
    if username is not None:
        living = living.filter(token__owner__username=username)
    found = list(living.select_related("token", "workspace"))
    for connection in found:
        _end(principal, connection)
    return len(found)


@transaction.atomic
def connections_run_out() -> int:
    """End connections of which no code and no token is left, so that what is listed as living is."""
    # Connections first: one that is made in between comes with its code, and is not among them.
    living = list(Connection.objects.filter(token__revoked_at__isnull=True).select_related("token", "workspace"))
    held = set(Token.objects.values_list("data__grant_id", flat=True))
    ended = [connection for connection in living if connection.grant_id not in held]
    for connection in ended:
        connection_end(connection, why=RAN_OUT)
    return len(ended)


def refresh_spend(connection: Connection, digest: str) -> None:
    """Remember that a refresh token was used, so that it is known when it comes again."""
    connection.spent = [*connection.spent, digest][-SPENT_KEPT:]
    connection.save(update_fields=["spent"])


def repositories_named(workspace: Workspace, names: Sequence[str]) -> list[int]:
    """Ids of the repositories of these names; ``Invalid`` that names what is not known, and where none is named."""
    if not names:
        raise Invalid.field("repositories", "Name at least one repository, or choose all of them.")
    found = dict(repositories(workspace).filter(slug__in=names).values_list("slug", "pk"))
    missing = [name for name in names if name not in found]
    if missing:
        raise Invalid.field(
            "repositories",
            f"Not known in {workspace}: {', '.join(name[:60] for name in missing[:5])}. Write each as it is listed.",
        )
    return sorted(found.values())


def _end(who: Principal, connection: Connection, *, why: str = "") -> None:
    token_end(principal=who, token=connection.token, why=why)
    Token.objects.filter(client_id=connection.client_id, data__grant_id=connection.grant_id).delete()


def _in_workspace_of(connection: Connection, principal: Principal) -> Principal:
    """The same person, recorded where the connection is."""
    return Principal(
        workspace=connection.workspace,
        user=principal.user,
        token=None,
        role=None,
        audience_ids=frozenset(),
        via=principal.via,
        request_id=principal.request_id,
    )
