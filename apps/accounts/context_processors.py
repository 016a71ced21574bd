from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.accounts.sessions import session_memberships, session_principal
from apps.core.errors import Forbidden


def principal(request: HttpRequest) -> dict[str, Any]:
    """``principal``, ``workspaces`` and whether there is ``oauth``, for the frame around a page.

    Nothing is looked up until it is shown.
    """
    return {
        "principal": SimpleLazyObject(lambda: _principal(request)),
        "workspaces": SimpleLazyObject(lambda: _workspaces(request)),
        "oauth": settings.FIRM_MEMORY_OAUTH,
    }


def _principal(request: HttpRequest) -> Principal | None:
    known: Principal | None = getattr(request, "principal", None)
    if known is not None:
        return known
    try:
        return session_principal(request, "ui")
    except Forbidden:
        return None  # signed in, and a member of nothing: the page says so


def _workspaces(request: HttpRequest) -> list[Workspace]:
    return [membership.workspace for membership in session_memberships(request)]
