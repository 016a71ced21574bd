"""Clients: what registers itself by RFC 7591, and what an operator adds.

All of them are public: none gets a secret, since a secret in a program on somebody's computer is none. Nothing that a
client says about itself is believed, and of what it says only its name and its redirect addresses are kept. Members
that are not known here are passed over, as the RFC demands.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import timedelta
from typing import Any, Final

from allauth.idp.oidc.models import Client
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import transaction

from apps.core.clock import now
from apps.core.environment import SCHEMES_OF_BROWSERS
from apps.core.errors import Forbidden, Invalid
from apps.core.screening import find_secrets, masked
from apps.oauth.addresses import SCOPES
from apps.oauth.redirects import Place, matches, may_register, place

MAX_BODY_BYTES: Final = 16 * 1024
MAX_REDIRECTS: Final = 10
NAME_LENGTH: Final = 60
UNNAMED: Final = "A client without a name"
# Clients that nobody has connected yet. The oldest make room for new ones, so that a flood cannot lock anybody out.
MOST_UNUSED: Final = 500
UNUSED_FOR: Final = timedelta(hours=24)

GRANTS: Final = ("authorization_code", "refresh_token")
REGISTERED: Final = "registered"


def shown_name(name: object) -> str:
    """A client's own name for itself as it may be shown and kept: one short line of visible characters, no secrets."""
    if not isinstance(name, str):
        return UNNAMED
    visible = "".join(" " if character.isspace() else character for character in name[: NAME_LENGTH * 20])
    kept = "".join(character for character in visible if unicodedata.category(character)[0] != "C")
    line = masked(re.sub(r" +", " ", kept).strip())
    return (line if len(line) <= NAME_LENGTH else f"{line[: NAME_LENGTH - 1].rstrip()}…") or UNNAMED


def client_register(metadata: dict[str, Any]) -> Client:
    """Take what a client says about itself. What it cannot have is left out, and the answer says what it has.

    ``Forbidden`` where nobody may register, ``Invalid`` with the member of the metadata that will not do.
    """
    if settings.FIRM_MEMORY_OAUTH_REGISTRATION == "off":
        raise Forbidden("Clients do not register themselves here. Ask an operator to add yours.")
    _require_what_is_offered(metadata)
    return client_add(name=shown_name(metadata.get("client_name")), redirects=_redirects(metadata), kind=REGISTERED)


@transaction.atomic
def client_add(*, name: str, redirects: list[Place], kind: str = "added") -> Client:
    """``kind`` is ``registered`` for one that came by itself, which is forgotten while nobody uses it."""
    client = Client(
        name=name,
        type=Client.Type.PUBLIC,
        secret=make_password(None),
        skip_consent=False,
        allow_uri_wildcards=False,
        data={"kind": kind},
    )
    client.set_grant_types(list(GRANTS))
    client.set_response_types(["code"])
    client.set_redirect_uris([each.uri for each in redirects])
    client.set_scopes(list(SCOPES))
    client.set_default_scopes(list(SCOPES))
    client.save(force_insert=True)
    if kind == REGISTERED:
        clients_forget()
    return client


def clients_forget() -> int:
    """Remove clients that registered themselves and that nobody has connected: the old ones, and what is too many."""
    unused = Client.objects.filter(data__kind=REGISTERED, connections__isnull=True)
    crowd = unused.order_by("-created_at", "-pk").values_list("pk", flat=True)[MOST_UNUSED : MOST_UNUSED * 2]
    gone, _ = unused.filter(created_at__lt=now() - UNUSED_FOR).delete()
    more, _ = Client.objects.filter(pk__in=list(crowd), connections__isnull=True).delete()
    return gone + more


def may_be_answered(client: Client, where: Place) -> bool:
    """Whether the address is registered, and still one that an operator allows where the client came by itself."""
    if not any(matches(where, known) for known in client.get_redirect_uris()):
        return False
    return (client.data or {}).get("kind") != REGISTERED or may_register(where)


def described(client: Client) -> dict[str, Any]:
    """The answer of RFC 7591: what was registered, which may be less than was asked for."""
    return {
        "client_id": client.pk,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.get_redirect_uris(),
        "grant_types": client.get_grant_types(),
        "response_types": client.get_response_types(),
        "token_endpoint_auth_method": "none",
        "scope": " ".join(client.get_scopes()),
    }


def _require_what_is_offered(metadata: dict[str, Any]) -> None:
    for member, offered in (("grant_types", "authorization_code"), ("response_types", "code")):
        asked = metadata.get(member, [offered])
        if not isinstance(asked, list) or offered not in asked:
            raise Invalid.field(member, f"Only {offered} is offered here: have `{member}` list it.")


def _redirects(metadata: dict[str, Any]) -> list[Place]:
    """Those that may be registered. An address that nobody may have spoils the whole registration."""
    asked = metadata.get("redirect_uris")
    if not isinstance(asked, list) or not 1 <= len(asked) <= MAX_REDIRECTS:
        raise Invalid.field("redirect_uris", f"List 1 to {MAX_REDIRECTS} addresses.")
    if any(find_secrets(uri) for uri in asked if isinstance(uri, str)):
        raise Invalid.field(
            "redirect_uris",
            "There is a secret in an address. Nothing was kept; if it is real, revoke it, since it was sent here.",
        )
    found = [(uri, place(uri)) for uri in asked]
    hostile = [uri for uri, it in found if it is None and not _is_of_a_program(uri)]
    if hostile:
        raise Invalid.field(
            "redirect_uris",
            "An address must be https, or http on this computer (localhost, 127.0.0.1, [::1]), in plain characters and "
            "without a fragment, a user name or a wildcard.",
        )
    allowed = [it for _, it in found if it is not None and may_register(it)]
    if not allowed:
        raise Invalid.field(
            "redirect_uris",
            "None of these addresses may be registered here. An operator allows hosts by FIRM_MEMORY_OAUTH_HOSTS and "
            "schemes of programs by FIRM_MEMORY_OAUTH_SCHEMES.",
        )
    return allowed


def _is_of_a_program(uri: object) -> bool:
    """Of the kind that an operator might allow, such as ``cursor://…``: left out where they did not."""
    found = re.match(r"([a-z][a-z0-9+.-]{0,39})://[!-~]*\Z", uri) if isinstance(uri, str) else None
    return found is not None and found[1] not in SCHEMES_OF_BROWSERS
