"""Which token stands behind what a client shows, and what a person has connected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from allauth.idp.oidc.models import Token
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from apps.accounts.models import ApiToken
from apps.accounts.selectors import Lent, usable_token
from apps.core.errors import NotAuthenticated
from apps.oauth.addresses import PROPOSE, opens
from apps.oauth.models import Connection

MAX_LENGTH = 200


def lent_to(secret: str, via: str) -> Lent | None:
    """What an access token stands for, at this door; None for what is no living access token."""
    if not settings.FIRM_MEMORY_OAUTH or len(secret) > MAX_LENGTH or not secret.isascii():
        return None
    issued = Token.objects.lookup(Token.Type.ACCESS_TOKEN, secret)
    connection = connection_of(issued)
    if issued is None or connection is None:
        return None
    if not opens(issued.get_resources(), via):
        raise NotAuthenticated("This token was made for another resource.", code="token_of_another_resource")
    return Lent(connection.token_id, read_only=PROPOSE not in issued.get_scopes())


def connection_of(issued: Token | None) -> Connection | None:
    grant = issued.get_grant_id() if issued is not None else None
    if grant is None:
        return None
    return Connection.objects.filter(grant_id=grant).select_related("token", "workspace").first()


def is_usable(connection: Connection) -> bool:
    """Whether the person could still have it: not revoked, and they are an active member."""
    try:
        usable_token(connection.token_id)
    except NotAuthenticated:
        return False
    return True


def connections_of(person: User) -> QuerySet[Connection]:
    """What a person has connected and not ended, in every workspace."""
    return Connection.objects.filter(token__owner=person, token__revoked_at__isnull=True).select_related(
        "token", "workspace", "client"
    )


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection as its person sees it."""

    connection: Connection
    repositories: list[str]
    lasts_until: datetime | None

    @property
    def token(self) -> ApiToken:
        return self.connection.token


def connected(person: User) -> list[Connected]:
    """Newest first. ``lasts_until`` is None where nothing living is left and the client has to ask anew."""
    from apps.accounts.selectors import repositories

    found = list(connections_of(person))
    ends: dict[str, datetime] = {}
    living = Token.objects.valid().filter(user=person, type__in=[Token.Type.ACCESS_TOKEN, Token.Type.REFRESH_TOKEN])
    for issued in living:
        grant = issued.get_grant_id()
        if grant is not None and issued.expires_at is not None:
            ends[grant] = max(issued.expires_at, ends.get(grant, issued.expires_at))
    listed = {pk for each in found for pk in each.token.repository_ids}
    names: dict[int, str] = {}
    for workspace in {each.workspace for each in found}:
        names |= dict(repositories(workspace).filter(pk__in=listed).values_list("pk", "slug"))
    return [
        Connected(
            each,
            sorted(names[pk] for pk in each.token.repository_ids if pk in names),
            ends.get(each.grant_id),
        )
        for each in found
    ]
