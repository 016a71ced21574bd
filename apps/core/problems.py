"""One handler for everything that goes wrong behind an HTTP door.

``as_domain_error`` turns an exception into a ``DomainError``, or into nothing when it is a fault of ours;
clients get it as ``application/problem+json`` (RFC 9457), people as a page, htmx as a partial.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

import psycopg
from django.core.exceptions import (
    NON_FIELD_ERRORS,
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    ValidationError,
)
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError
from django.db.models import ProtectedError, RestrictedError
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    UnreadablePostError,
)
from django.template.loader import select_template
from django.urls import resolve
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions as drf
from rest_framework.response import Response
from rest_framework.settings import api_settings

from apps.core import request_id
from apps.core.database import DatabaseDown
from apps.core.errors import (
    Conflict,
    DomainError,
    FieldError,
    Forbidden,
    Invalid,
    Malformed,
    NotAuthenticated,
    NotFound,
    TooMany,
    Unavailable,
)
from apps.core.screening.secrets import find_secrets, mask

logger = logging.getLogger("firm_memory.problems")

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 5
API_PREFIXES = ("/api/", "/mcp", "/hooks/")
CHALLENGE = 'Bearer realm="firm-memory"'

# What no encoder takes, in text that a problem quotes from a request.
_UNENCODABLE = re.compile("[\x00\ud800-\udfff]")
# SQLSTATEs of a database that is up, and busy or in the way: the same request may succeed in a moment.
_BUSY = {"40001": "serialization", "40P01": "deadlock", "55P03": "lock_timeout", "57014": "statement_timeout"}
_RAISED_BY_TRIGGER = "P0001"
# Django's own, and the driver's, which a store that works on the raw connection lets through.
DATABASE_ERRORS = (DatabaseError, InterfaceError, psycopg.Error)
_CHECK_VIOLATIONS = ("23502", "23514")


class MethodNotAllowed(DomainError):
    status, code = 405, "method_not_allowed"


class NotAcceptable(DomainError):
    status, code = 406, "not_acceptable"


class TooLarge(DomainError):
    status, code = 413, "too_large"


class UnsupportedMediaType(DomainError):
    status, code = 415, "unsupported_media_type"


class Broken(DomainError):
    """A fault of ours. What it was stands in the log, under the request id."""

    status, code = 500, "internal_error"


# --- what PostgreSQL refuses by name ------------------------------------------------------------------------
CONSTRAINT_ERRORS: dict[str, Callable[[], DomainError]] = {}
_BY_STATUS: dict[int, type[DomainError]] = {403: Forbidden, 404: NotFound, 409: Conflict, 422: Invalid}


def register_constraint(
    name: str, *, message: str, code: str | None = None, status: int = 409, field: str | None = None
) -> None:
    """Say in a sentence what a violated constraint or trigger means. Rooms call this in ``ready()``."""
    kind = _BY_STATUS[status]
    errors = [FieldError(field, message)] if field else []
    CONSTRAINT_ERRORS[name] = lambda: kind(message, code=code or name, errors=errors)


# --- exception → DomainError --------------------------------------------------------------------------------
def as_domain_error(error: BaseException) -> DomainError | None:
    """What a client may read about ``error``; None for a fault of ours."""
    if isinstance(error, DomainError):
        return error
    if isinstance(error, drf.APIException):
        return _from_drf(error)
    if isinstance(error, DATABASE_ERRORS):
        return _from_database(error)
    if isinstance(error, ValidationError):
        return Invalid("Some values will not do.", errors=list(_django_field_errors(error)))
    if isinstance(error, UnicodeEncodeError):
        return Invalid("A text holds a character that cannot be stored: half of a surrogate pair.")
    return _from_django(error)


def _from_django(error: BaseException) -> DomainError | None:
    if isinstance(error, Http404):
        return NotFound("There is nothing at this address.")
    if isinstance(error, PermissionDenied):
        return Forbidden(str(error) or "You may not do this.")
    if isinstance(error, RequestDataTooBig):
        return TooLarge("The request is larger than what is taken here.")
    if isinstance(error, SuspiciousOperation | BadRequest | UnreadablePostError):
        return Malformed("The request cannot be read.")
    return None


def _from_drf(error: drf.APIException) -> DomainError | None:
    detail = str(error.detail)
    if isinstance(error, drf.ValidationError):
        return Invalid("Some values will not do.", errors=list(field_errors(error.detail)))
    if isinstance(error, drf.MethodNotAllowed):
        return MethodNotAllowed(detail)
    if isinstance(error, drf.Throttled):
        wait = int(getattr(error, "wait", None) or 1)
        return TooMany(f"Too many requests. Try again in {wait} seconds.", extra={"retry_after": wait})
    kinds: list[tuple[type[drf.APIException], type[DomainError]]] = [
        (drf.ParseError, Malformed),
        (drf.NotAuthenticated, NotAuthenticated),
        (drf.AuthenticationFailed, NotAuthenticated),
        (drf.PermissionDenied, Forbidden),
        (drf.NotFound, NotFound),
        (drf.NotAcceptable, NotAcceptable),
        (drf.UnsupportedMediaType, UnsupportedMediaType),
    ]
    return next((ours(detail) for theirs, ours in kinds if isinstance(error, theirs)), None)


def _from_database(error: Exception) -> DomainError | None:
    state: str = getattr(error.__cause__, "sqlstate", None) or getattr(error, "sqlstate", None) or ""
    if isinstance(error, ProtectedError | RestrictedError):
        return Conflict("This is in use by other records and is not removed.", code="in_use")
    if isinstance(error, IntegrityError):
        return _from_constraint(error, state)
    if isinstance(error, DataError):
        return Invalid("A value cannot be stored: it is out of range, or a text holds a NUL character.")
    if state == _RAISED_BY_TRIGGER:
        return Conflict("The database refuses this: what is on record is not changed or removed.", code="immutable")
    if state in _BUSY:
        return Unavailable("The database is busy with another request. Try again.", code=_BUSY[state])
    if isinstance(error, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
        return DatabaseDown("The database does not answer. Try again in a moment.")
    return None


def constraint_of(error: IntegrityError) -> str:
    """The name of the constraint that PostgreSQL refused a row by."""
    return getattr(getattr(error.__cause__, "diag", None), "constraint_name", None) or ""


def _from_constraint(error: IntegrityError, state: str) -> DomainError:
    name = constraint_of(error)
    if name in CONSTRAINT_ERRORS:
        return CONSTRAINT_ERRORS[name]()
    # The database held where a service should have: say where, to whoever reads the log. The error's own text
    # is left out, since PostgreSQL puts the values of the row into it.
    where = "".join(traceback.format_tb(error.__traceback__))
    logger.warning("constraint %s has no sentence of its own\n%s", name or state, where)
    if state in _CHECK_VIOLATIONS:
        return Invalid("A value will not do, and the database refused it.", code=name or None)
    return Conflict("This conflicts with what is stored already.", code=name or None)


def field_errors(detail: Any, path: str = "") -> Iterator[FieldError]:
    """DRF's nested error detail as a flat list of ``sources[0].url`` and sentences."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from field_errors(inner, _join(path, name))
    elif isinstance(detail, list | tuple):
        for position, inner in enumerate(detail):
            nested = isinstance(inner, Mapping | list | tuple)
            yield from field_errors(inner, f"{path}[{position}]" if nested else path)
    else:
        yield FieldError(path, str(detail))


def _join(path: str, name: Any) -> str:
    if name == api_settings.NON_FIELD_ERRORS_KEY:
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else str(name)


def _django_field_errors(error: ValidationError) -> Iterator[FieldError]:
    if hasattr(error, "error_dict"):
        for field, messages in error.message_dict.items():
            yield from (FieldError("" if field == NON_FIELD_ERRORS else field, message) for message in messages)
    else:
        yield from (FieldError("", message) for message in error.messages)


# --- DomainError → answer -----------------------------------------------------------------------------------
def problem(error: DomainError, *, instance: str = "") -> dict[str, Any]:
    """The body of RFC 9457, with the names that clients rely on beside it."""
    body = {
        "type": f"urn:firm-memory:problem:{error.code}",
        "title": _title(error),
        **error.as_dict(),
        "instance": instance,
        "request_id": request_id.current.get(),
    }
    encodable: dict[str, Any] = _masked(_encodable(body))
    return encodable


def _masked(value: Any) -> Any:
    """A refusal names what came, and what came may be a secret in the place of a name."""
    if isinstance(value, str):
        findings = find_secrets(value)
        return mask(value, findings) if findings else value
    if isinstance(value, dict):
        return {_masked(name): _masked(inner) for name, inner in value.items()}
    return [_masked(inner) for inner in value] if isinstance(value, list) else value


def problem_headers(error: DomainError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = CHALLENGE
    if error.status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        headers["Retry-After"] = str(error.extra.get("retry_after", RETRY_AFTER_SECONDS))
    return headers


def problem_response(error: DomainError, request: HttpRequest) -> HttpResponse:
    return JsonResponse(
        problem(error, instance=request.path),
        status=error.status,
        content_type=MEDIA_TYPE,
        headers=problem_headers(error),
    )


def problem_page(error: DomainError, request: HttpRequest) -> HttpResponse:
    """``templates/errors/<status>.html``, or ``errors/error.html``; for htmx the partial alone.

    Pages of 5xx get no request: nothing in them may need the database or what has just failed.
    """
    names = [f"errors/{error.status}.html", "errors/error.html"]
    if getattr(request, "htmx", False):
        names = ["errors/partials/_problem.html"]
    context = {"problem": problem(error, instance=request.path)}
    template = select_template(names)
    body = template.render(context, request if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else None)
    return HttpResponse(body, status=error.status, headers=problem_headers(error))


def answer(error: DomainError, request: HttpRequest) -> HttpResponse:
    """A problem for clients of the API, a page for people."""
    return problem_response(error, request) if for_clients(request) else problem_page(error, request)


def for_clients(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIXES)


def _title(error: DomainError) -> str:
    return error.code.replace("_", " ").capitalize()


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _UNENCODABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    return value


# --- the handlers that Django and DRF call ------------------------------------------------------------------
def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook. None hands a fault of ours on to Django, which logs it and calls ``server_error``."""
    ours = as_domain_error(error)
    if ours is None:
        return None
    request = context["request"]
    return Response(
        problem(ours, instance=request.path),
        status=ours.status,
        headers=problem_headers(ours),
        content_type=MEDIA_TYPE,
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(as_domain_error(exception) or Malformed("The request cannot be read."), request)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return answer(as_domain_error(exception) or Forbidden("You may not do this."), request)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return answer(NotFound("There is nothing at this address."), request)


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponse:
    """Any address under ``/api/`` that no room has: never the debug page, nor a redirect that drops a body."""
    hint = ""
    if not request.path.endswith("/") and resolve(f"{request.path_info}/").func is not unknown_address:
        hint = f" Did you mean {request.path}/, with a slash at the end?"
    return problem_response(NotFound(f"There is nothing at this address.{hint}"), request)


def server_error(request: HttpRequest) -> HttpResponse:
    """Called by Django with the exception in flight, also for those that a middleware raised."""
    error = sys.exc_info()[1]
    ours = as_domain_error(error) if error is not None else None
    return answer(ours or broken(), request)


def broken() -> Broken:
    return Broken("Something went wrong on the server. It has been logged; name the request id when you report it.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    return answer(
        Forbidden(
            "The form was out of date or came from elsewhere. Go back, reload the page and try again.",
            code="csrf_failed",
        ),
        request,
    )
