"""How often a principal, and an address that shows no valid credentials, may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from apps.accounts.principal import Principal
from apps.core import throttle
from apps.core.errors import TooMany

if TYPE_CHECKING:
    from rest_framework.views import APIView  # at run time DRF's views import this module

READ, WRITE, SEARCH, ANONYMOUS, REGISTRATION = "read", "write", "search", "anonymous", "registration"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class PrincipalThrottle(BaseThrottle):
    """By method, or by ``throttle_kind`` of the view, such as ``search``."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        principal = getattr(request, "auth", None)
        if isinstance(principal, Principal):
            kind = getattr(view, "throttle_kind", None)
            spend(principal, kind or (READ if request.method in SAFE_METHODS else WRITE))
        return True


def spend(principal: Principal, kind: str) -> None:
    """Count one request; ``TooMany`` when the rate is used up. For REST, and for doors that are not DRF's."""
    _spend(f"{principal.key}:{kind}", kind)


def spend_anonymous(request: HttpRequest) -> None:
    """Count one request that showed no valid credentials, by its address."""
    _spend(f"address:{client_address(request)}", ANONYMOUS)


def spend_registration(request: HttpRequest) -> None:
    """Count one client that registers itself, by its address: each leaves a row behind."""
    _spend(f"address:{client_address(request)}:{REGISTRATION}", REGISTRATION)


def rate(kind: str) -> int:
    """Requests a minute."""
    rates: dict[str, int] = settings.FIRM_MEMORY_RATES
    return rates[kind]


def client_address(request: HttpRequest) -> str:
    """The peer's, or the one that the outermost trusted proxy saw. What a client writes itself counts nothing."""
    proxies: int = settings.ALLAUTH_TRUSTED_PROXY_COUNT
    forwarded = [part.strip() for part in request.headers.get("X-Forwarded-For", "").split(",")]
    if proxies and len(forwarded) >= proxies and forwarded[-proxies]:
        return forwarded[-proxies][:64]
    return str(request.META.get("REMOTE_ADDR", ""))[:64]


def _spend(key: str, kind: str) -> None:
    if not settings.FIRM_MEMORY_THROTTLE:
        return
    wait = throttle.spend(key, per_minute=rate(kind))
    if wait is not None:
        raise TooMany(
            f"Too many requests: at most {rate(kind)} a minute of this kind. Try again in {wait} seconds.",
            code="throttled",
            extra={"retry_after": wait, "limit_per_minute": rate(kind)},
        )
