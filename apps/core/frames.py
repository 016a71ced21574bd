"""One template for a page and for what htmx puts in its place."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

WHOLE = "base.html"
CONTENT = "content.html"
# By this the page's script tells our own answers, which may be shown whatever their status, from those of a proxy.
MARK = "Firm-Memory-Frame"


def wants_content(request: HttpRequest) -> bool:
    """Whether the frame around the page stands already, and its content alone is asked for."""
    htmx: Any = getattr(request, "htmx", None)
    return bool(htmx) and htmx.target == "content" and not htmx.history_restore_request


def render_framed(request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
    """``template`` extends ``frame``: the whole page, or its content with what else on the page has changed by it."""
    alone = wants_content(request)
    response = render(request, template, {**context, "frame": CONTENT if alone else WHOLE}, status=status)
    if alone:
        response[MARK] = "content"
        if request.method == "POST":
            # The address of the page stays: that of the form is not one to come back to. What the page says of it
            # (hx-push-url) does not hold for boosted forms.
            response["HX-Push-Url"] = "false"
    return response
