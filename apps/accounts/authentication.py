"""REST credentials: a bearer token, or the session of a signed-in browser.

Either way ``request.auth`` is a ``Principal``; views take it from ``principal_of(request)``.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from rest_framework.authentication import BaseAuthentication, CSRFCheck
from rest_framework.request import Request

from apps.accounts.principal import Principal
from apps.accounts.selectors import principal_for_token
from apps.accounts.sessions import session_principal
from apps.accounts.throttling import spend_anonymous
from apps.core import problems, request_id
from apps.core.errors import Forbidden, NotAuthenticated

Credentials = tuple[User | None, Principal]


def principal_of(request: Request) -> Principal:
    """Who is asking, in a view that ``HasPrincipal`` guards."""
    principal = request.auth
    if not isinstance(principal, Principal):
        raise not_authenticated()
    return principal


def bearer_principal(request: HttpRequest, via: str) -> Principal | None:
    """The principal of the ``Authorization`` header, None without one. For REST, and for doors not of DRF.

    Failed attempts are counted by address.
    """
    header = request.headers.get("Authorization")
    if header is None:
        return None
    try:
        return principal_for_token(_bearer_secret(header), via, request_id.current.get())
    except NotAuthenticated:
        spend_anonymous(request)
        raise


def not_authenticated() -> NotAuthenticated:
    return NotAuthenticated("Send a token: `Authorization: Bearer fm_…`. Or sign in with a browser.")


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> Credentials | None:
        principal = bearer_principal(request._request, "rest")
        return None if principal is None else (principal.user, principal)

    def authenticate_header(self, request: Request) -> str:
        return problems.CHALLENGE


class SessionAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> Credentials | None:
        principal = session_principal(request._request, "rest")
        if principal is None:
            return None
        _enforce_csrf(request._request)
        return principal.user, principal


def _bearer_secret(header: str) -> str:
    scheme, _, secret = header.strip().partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise NotAuthenticated("The Authorization header must read `Bearer fm_…`.", code="authorization_malformed")
    return secret.strip()


def _enforce_csrf(request: HttpRequest) -> None:
    def never_called(_: HttpRequest) -> HttpResponseBase:
        raise NotImplementedError

    check = CSRFCheck(never_called)
    check.process_request(request)
    reason = check.process_view(request, never_called, (), {})
    if reason:
        raise Forbidden(
            f"A session may change things only with its CSRF token in X-CSRFToken. {reason}", code="csrf_failed"
        )
