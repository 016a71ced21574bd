from __future__ import annotations

from typing import Any

from rest_framework import negotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


class AlwaysTheFirst(negotiation.BaseContentNegotiation):
    """A view answers in its one format, whatever Accept says: a problem is readable even to ``text/plain``."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return negotiation.DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type
