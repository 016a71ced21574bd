from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase


class PrincipalMiddleware:
    """``request.principal`` is there on every request, and None until a door has found out who is asking."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.principal = None  # type: ignore[attr-defined]
        return self.get_response(request)
