"""`/metrics` for Prometheus: open to this machine, and to whoever shows the token."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.crypto import constant_time_compare
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from apps.core.errors import Forbidden, NotAuthenticated
from apps.core.problems import problem_response
from apps.insights.collector import TableCollector
from apps.insights.meters import counted

# A request with one of these came through a proxy, which is what the peer's address belongs to then.
_FORWARDED: Final = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip")


def metrics(request: HttpRequest) -> HttpResponse:
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    refusal = _refusal(request)
    if refusal is not None:
        return problem_response(refusal, request)
    registry = CollectorRegistry()
    registry.register(counted())
    registry.register(TableCollector())
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry), content_type=content_type, headers={"Cache-Control": "no-store"})


def _refusal(request: HttpRequest) -> Forbidden | NotAuthenticated | None:
    if _is_local(request):
        return None
    token: str = settings.FIRM_MEMORY_METRICS_TOKEN
    if not token:
        return Forbidden(
            "Metrics are for this machine alone. Set FIRM_MEMORY_METRICS_TOKEN to have them from elsewhere.",
            code="metrics_local_only",
        )
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and constant_time_compare(secret.strip(), token):
        return None
    return NotAuthenticated("Send the token of FIRM_MEMORY_METRICS_TOKEN: `Authorization: Bearer …`.")


def _is_local(request: HttpRequest) -> bool:
    """From this machine, and not handed on by a proxy that runs on it."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        peer = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        # A unix socket has no address; whoever may open it decides by its permissions.
        return False
    mapped = getattr(peer, "ipv4_mapped", None)
    return (mapped or peer).is_loopback
