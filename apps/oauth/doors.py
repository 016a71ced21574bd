"""What stands before the addresses that programs ask: refusals in the words of OAuth, and nothing for any cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from apps.core import problems
from apps.core.errors import DomainError, NotAuthenticated
from apps.oauth.addresses import DOORS, challenge

View = Callable[[HttpRequest], HttpResponse]

_ERRORS: Final = {
    HTTPStatus.FORBIDDEN: "access_denied",
    HTTPStatus.TOO_MANY_REQUESTS: "temporarily_unavailable",
    HTTPStatus.SERVICE_UNAVAILABLE: "temporarily_unavailable",
}


def answer(status: int, body: dict[str, Any]) -> HttpResponse:
    response = JsonResponse(body, status=status)
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    return response


def for_programs(view: View) -> View:
    """Takes POST alone, needs no session, and says what is wrong as RFC 6749 has it."""

    @csrf_exempt
    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        if request.method != "POST":
            refused = answer(405, {"error": "invalid_request", "error_description": "This address takes POST."})
            refused["Allow"] = "POST"
            return refused
        try:
            return view(request)
        except DomainError as error:
            return _refused(error)
        except problems.DATABASE_ERRORS as error:
            known = problems.as_domain_error(error)
            if known is None or known.status != HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            return _refused(known)

    return guarded


def _refused(error: DomainError) -> HttpResponse:
    fields = [each.field for each in error.errors]
    status = HTTPStatus.BAD_REQUEST if error.status == HTTPStatus.UNPROCESSABLE_ENTITY else error.status
    kind = _ERRORS.get(HTTPStatus(status), "invalid_request")
    if fields:
        kind = "invalid_redirect_uri" if "redirect_uris" in fields else "invalid_client_metadata"
    response = answer(status, {"error": kind, "error_description": error.detail})
    for name, value in problems.problem_headers(error).items():
        response[name] = value
    return response


def challenged(door: str) -> Callable[[View], View]:
    """Have whoever shows no valid credentials at this door be told where a person may let them in."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest) -> HttpResponse:
            try:
                return view(request)
            except NotAuthenticated as error:
                if not settings.FIRM_MEMORY_OAUTH:
                    raise
                response = problems.problem_response(error, request)
                shown = "invalid_token" if request.headers.get("Authorization") else ""
                response["WWW-Authenticate"] = challenge(DOORS[door], error=shown)
                return response

        return guarded

    return decorate
