"""Codes and tokens, as allauth's identity provider makes and keeps them; and what it leaves to us.

It has codes that work once, PKCE, rotation of refresh tokens, narrower scopes and resources, and keeps digests only.
Ours are the stricter look at the request (``asking``), one connection behind each grant, and noticing what comes twice.
"""

from __future__ import annotations

import copy
import json
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from allauth.idp.oidc.adapter import get_adapter
from allauth.idp.oidc.internal.oauthlib.server import get_server
from allauth.idp.oidc.internal.oauthlib.utils import get_validator_context
from allauth.idp.oidc.models import Token
from django.db import transaction
from django.http import HttpRequest
from oauthlib.oauth2.rfc6749.errors import OAuth2Error

from apps.accounts.principal import Principal
from apps.oauth.addresses import READ, known_resource
from apps.oauth.asking import Asked
from apps.oauth.models import Connection
from apps.oauth.selectors import connection_of, is_usable
from apps.oauth.services import (
    COPIED_CODE,
    COPIED_REFRESH,
    GIVEN_BACK,
    connection_end,
    connection_make,
    refresh_spend,
)

Answer = tuple[int, dict[str, Any]]
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


class Unfit(Exception):
    """An error of the token endpoint."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error
        self.status = HTTPStatus.UNAUTHORIZED if error == "invalid_client" else HTTPStatus.BAD_REQUEST


@transaction.atomic
def allowed(
    request: HttpRequest, what: Asked, *, principal: Principal, read_only: bool, repository_ids: list[int]
) -> str:
    """Connect the client and return where its browser goes, with the code."""
    scopes = [READ] if read_only else list(what.scopes)
    context = get_validator_context()
    # Looked at by stricter rules already: allauth is told of this client alone, with this address alone.
    client = copy.copy(what.client)
    client.redirect_uris = what.place.uri
    context.clients = {client.pk: client}
    context.requested_resources = list(what.resources)
    query = {
        "response_type": "code",
        "client_id": client.pk,
        "redirect_uri": what.place.uri,
        "scope": " ".join(scopes),
        "code_challenge": what.challenge,
        "code_challenge_method": "S256",
    }
    headers, _, _ = get_server().create_authorization_response(
        f"/?{urlencode(query)}", "GET", "", {}, scopes=scopes, credentials={"user": principal.user}
    )
    (code,) = parse_qs(urlsplit(headers["Location"]).query)["code"]
    connection_make(
        principal=principal,
        client=what.client,
        grant_id=context.grant_id,
        came_from=what.place,
        read_only=read_only,
        resources=what.resources,
        repository_ids=repository_ids,
    )
    return what.answer(code=code)


def exchanged(request: HttpRequest) -> Answer:
    """A code or a refresh token for tokens. What is found out in doing so is kept, even if the answer is a refusal."""
    try:
        _require_plain(request)
        context = get_validator_context()
        context.requested_resources = _resources(request)
        kind = request.POST.get("grant_type")
        if kind == "authorization_code":
            return _code_exchanged(request)
        if kind == "refresh_token":
            return _refreshed(request)
        raise Unfit("unsupported_grant_type", "Only authorization_code and refresh_token are taken here.")
    except Unfit as refusal:
        return _unfit(refusal)


@transaction.atomic
def _code_exchanged(request: HttpRequest) -> Answer:
    code = _lookup(Token.Type.AUTHORIZATION_CODE, request.POST.get("code", ""))
    connection = connection_of(code)
    if connection is not None and not is_usable(connection):
        return _no_longer()
    answer = _made(request)
    if connection is not None and answer[0] != HTTPStatus.OK and _came_twice(code):
        connection_end(connection, why=COPIED_CODE)
    return answer


def _came_twice(code: Token | None) -> bool:
    again = Token.objects.filter(pk=code.pk).first() if code is not None else None
    return again is not None and isinstance(again.data, dict) and again.data.get("reused") is True


@transaction.atomic
def _refreshed(request: HttpRequest) -> Answer:
    secret, client_id = request.POST.get("refresh_token", ""), request.POST.get("client_id", "")
    digest = _digest(secret)
    known = connection_of(_lookup(Token.Type.REFRESH_TOKEN, secret))
    if known is None:
        copied = Connection.objects.filter(client_id=client_id, spent__contains=[digest]).first()
        if copied is not None:
            connection_end(copied, why=COPIED_REFRESH)
        return _no_longer()
    # Of two that come with the same token at once the second one waits, and then finds it spent.
    connection = (
        Connection.objects.select_for_update(of=("self",)).select_related("token", "workspace").get(pk=known.pk)
    )
    if digest in connection.spent:
        connection_end(connection, why=COPIED_REFRESH)
        return _no_longer()
    if not is_usable(connection):
        return _no_longer()
    answer = _made(request)
    if answer[0] == HTTPStatus.OK:
        refresh_spend(connection, digest)
    return answer


@transaction.atomic
def given_back(request: HttpRequest) -> Answer:
    """RFC 7009. Giving back the refresh token ends the connection; the answer never says whether anything was there."""
    try:
        _require_plain(request)
    except Unfit as refusal:
        return _unfit(refusal)
    secret, client_id = request.POST.get("token", ""), request.POST.get("client_id", "")
    if not secret or not client_id:
        return _unfit(Unfit("invalid_request", "Send token and client_id."))
    issued = Token.objects.by_value(secret).filter(
        client_id=client_id, type__in=[Token.Type.ACCESS_TOKEN, Token.Type.REFRESH_TOKEN]
    )
    for each in issued:
        connection = connection_of(each)
        if each.type == Token.Type.REFRESH_TOKEN and connection is not None:
            connection_end(connection, why=GIVEN_BACK)
        else:
            each.delete()
    return HTTPStatus.OK, {}


def _made(request: HttpRequest) -> Answer:
    """What allauth answers to this request for tokens."""
    try:
        body = urlencode(list(request.POST.items()))
        _, answer, status = get_server().create_token_response("/", "POST", body, _FORM)
    except OAuth2Error as error:
        return error.status_code, dict(error.twotuples)
    return int(status), json.loads(answer) if answer else {}


def _unfit(refusal: Unfit) -> Answer:
    return refusal.status, {"error": refusal.error, "error_description": str(refusal)}


def _no_longer() -> Answer:
    return HTTPStatus.BAD_REQUEST, {
        "error": "invalid_grant",
        "error_description": "This is not known here, or no longer. Connect again.",
    }


def _resources(request: HttpRequest) -> list[str] | None:
    named = [known_resource(each) for each in request.POST.getlist("resource")]
    if None in named:
        raise Unfit("invalid_target", "No tokens are made here for that resource.")
    return [each for each in named if each is not None] or None


def _require_plain(request: HttpRequest) -> None:
    """Each parameter once, in the body, in plain characters; and no credentials of a client, since none has any."""
    if request.GET:
        raise Unfit("invalid_request", "Parameters belong into the body, where no log keeps them.")
    twice = [name for name, values in request.POST.lists() if len(values) > 1 and name != "resource"]
    if twice:
        raise Unfit("invalid_request", "A parameter stands twice.")
    if not all(value.isascii() and value.isprintable() for _, values in request.POST.lists() for value in values):
        raise Unfit("invalid_request", "A parameter holds a character that no token has.")
    if request.headers.get("Authorization"):
        raise Unfit("invalid_client", "No client has a secret here. Send client_id in the body, and no Authorization.")


def _lookup(kind: str, secret: str) -> Token | None:
    return Token.objects.by_value(secret).filter(type=kind).first() if secret else None


def _digest(secret: str) -> str:
    return str(get_adapter().hash_token(secret))
