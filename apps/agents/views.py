"""``/mcp``: the MCP server as a plain view. Any web process answers any request, since nothing is kept between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any, cast
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from apps.accounts.authentication import bearer_principal, not_authenticated
from apps.accounts.principal import Principal
from apps.accounts.throttling import READ, spend, spend_anonymous
from apps.agents.answering import Caller
from apps.agents.mending import has_halves, mended
from apps.core import problems
from apps.core.chunked import MAX_BYTES
from apps.core.errors import Forbidden, Unavailable
from apps.core.methods import posted
from apps.core.parsers import read_bounded
from apps.core.patience import READ_SECONDS, patience
from apps.oauth.doors import challenged


@csrf_exempt
@posted
@challenged("mcp")
def mcp(request: HttpRequest) -> HttpResponse:
    """Takes a bearer token and no session, so that no page of another site can ask in somebody's name.

    While the database is down nobody can be told apart; a tool then answers that it is down, and nothing else.
    """
    # All of it comes as a POST, and little of it writes. A tool that does waits longer by itself.
    with patience(READ_SECONDS):
        return _answered(request)


def _answered(request: HttpRequest) -> HttpResponse:
    from apps.agents.http import exchanged  # takes a second to import, which processes that serve no web need not pay

    _require_own_origin(request)
    who = _caller(request)
    body = read_bounded(cast(IO[bytes], request), MAX_BYTES, declared=_declared(request))
    message = _message(body)
    if not _calls_a_tool(message):
        _spend(who)
    elif has_halves(body):
        who, body = replace(who, given=message), mended(message)
    done = exchanged(who, path=request.path, headers=request.headers, body=body)
    if not done.status:
        raise RuntimeError("The MCP server gave no answer.")
    response = HttpResponse(done.answer, status=done.status)
    del response["Content-Type"]
    for name, value in done.headers:
        if name.lower() not in ("content-length", "connection"):
            response[name] = value
    return response


def _require_own_origin(request: HttpRequest) -> None:
    """Only browsers send one."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != request.get_host().lower():
        raise Forbidden("Pages of another origin may not ask here.", code="foreign_origin")


def _caller(request: HttpRequest) -> Caller:
    try:
        principal = bearer_principal(request, "mcp")
    except problems.DATABASE_ERRORS as error:
        refusal = problems.as_domain_error(error)
        if not isinstance(refusal, Unavailable):
            raise
        return Caller(_failing(refusal))
    if principal is None:
        spend_anonymous(request)
        raise not_authenticated()
    return _known(principal)


def _known(principal: Principal) -> Caller:
    return Caller(lambda: principal)


def _failing(refusal: Unavailable) -> Callable[[], Principal]:
    def identify() -> Principal:
        raise refusal

    return identify


def _spend(who: Caller) -> None:
    try:
        principal = who.identify()
    except Unavailable:
        return
    spend(principal, READ)


def _message(body: bytes) -> Any:
    """What the body says; None for what is no JSON, of which the SDK says what is wrong."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _calls_a_tool(message: Any) -> bool:
    """Calls are counted by what they do, everything else is a read."""
    return isinstance(message, dict) and message.get("method") == "tools/call"


def _declared(request: HttpRequest) -> int:
    length = request.headers.get("Content-Length", "")
    return int(length) if length.isascii() and length.isdigit() else 0
