"""What a client asks a person for: the parameters of an authorization request, read once and strictly.

What is wrong before it is certain where the answer belongs is shown to the person, on a page. Everything else goes
back to the client, as ``Refused``. Parameters that are not known here are passed over, as OAuth demands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from allauth.idp.oidc.models import Client
from django.http import QueryDict

from apps.core.errors import Malformed
from apps.oauth.addresses import PROPOSE, SCOPES, base, known_resource, resource
from apps.oauth.clients import may_be_answered
from apps.oauth.redirects import Place, place

MAX_STATE: Final = 1_000
_VISIBLE: Final = re.compile(r"[\x20-\x7e]*")
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_KNOWN: Final = (
    *("client_id", "redirect_uri", "response_type", "response_mode", "scope", "state", "prompt"),
    *("code_challenge", "code_challenge_method", "request", "request_uri"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    client: Client
    place: Place
    state: str
    scopes: tuple[str, ...]
    resources: tuple[str, ...]
    challenge: str

    @property
    def may_propose(self) -> bool:
        return PROPOSE in self.scopes

    def answer(self, **parameters: str) -> str:
        """Where the browser goes next, with who answers (RFC 9207) and what the client wanted back."""
        return answered(self.place, self.state, parameters)


class Refused(Exception):
    """An error of RFC 6749 that the client gets, by way of the browser."""

    def __init__(self, where: Place, state: str, error: str, description: str) -> None:
        super().__init__(description)
        self.location = answered(where, state, {"error": error, "error_description": description})


def answered(where: Place, state: str, parameters: dict[str, str]) -> str:
    query = urlencode(parameters | ({"state": state} if state else {}) | {"iss": base()})
    return f"{where.uri}{'&' if '?' in where.uri else '?'}{query}"


def asked(parameters: QueryDict) -> Asked:
    """``Malformed`` where nobody can be answered, ``Refused`` where the client can."""
    client, where = _who(parameters), _once(parameters, "redirect_uri")
    found = place(where)
    if found is None or not may_be_answered(client, found):
        raise Malformed(
            "The program that sent you here wants the answer at an address that is not registered for it. Nothing was "
            "allowed. Remove the connection in that program and connect it again.",
            code="redirect_mismatch",
        )
    return _rest(parameters, client, found)


def _who(parameters: QueryDict) -> Client:
    client = Client.objects.filter(pk=_once(parameters, "client_id")[:100], type=Client.Type.PUBLIC).first()
    if client is None:
        raise Malformed(
            "The program that sent you here is not registered, or no longer. Nothing was allowed. Remove the "
            "connection in that program and connect it again.",
            code="client_unknown",
        )
    return client


def _once(parameters: QueryDict, name: str) -> str:
    values = parameters.getlist(name)
    if len(values) != 1 or not _VISIBLE.fullmatch(values[0]):
        raise Malformed(
            f"The program that sent you here must say `{name}` once and in plain characters. Nothing was allowed.",
            code="request_malformed",
        )
    return values[0]


def _rest(parameters: QueryDict, client: Client, where: Place) -> Asked:
    states = parameters.getlist("state")
    state = states[0] if len(states) == 1 and len(states[0]) <= MAX_STATE and _VISIBLE.fullmatch(states[0]) else ""

    def refuse(error: str, description: str) -> Any:
        raise Refused(where, state, error, description)

    def one(name: str, default: str = "") -> str:
        return str(parameters.get(name, default))

    if any(len(parameters.getlist(name)) > 1 for name in _KNOWN) or (states and not state and states != [""]):
        refuse("invalid_request", "A parameter stands twice, or the state is too long or no plain text.")
    if one("response_type") != "code":
        refuse("unsupported_response_type", "Only response_type=code is offered here.")
    if one("request") or one("request_uri"):
        refuse("request_not_supported", "Requests are not taken as objects here.")
    if one("response_mode", "query") != "query":
        refuse("invalid_request", "Only response_mode=query is offered here.")
    if one("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(one("code_challenge")):
        refuse("invalid_request", "PKCE is needed: a code_challenge of 43 characters with code_challenge_method=S256.")
    if "none" in one("prompt").split():
        refuse("interaction_required", "A person decides here each time.")
    scopes = tuple(each for each in SCOPES if each in one("scope").split()) if one("scope").strip() else SCOPES
    if not scopes or set(one("scope").split()) - set(SCOPES):
        refuse("invalid_scope", f"Known here: {' '.join(SCOPES)}.")
    resources = [known_resource(each) for each in parameters.getlist("resource")] or [resource("/mcp")]
    known = tuple(each for each in resources if each is not None)
    if len(known) < len(resources) or len(resources) > len(SCOPES) + 1:
        refuse("invalid_target", f"Tokens are made here for {resource('/mcp')} and nothing elsewhere.")
    return Asked(client, where, state, scopes, known, one("code_challenge"))
