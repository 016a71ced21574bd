from __future__ import annotations

from functools import partial
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest

from apps.accounts.principal import Principal
from apps.approvals.last_decision import last_decision
from apps.approvals.selectors import waiting_count
from apps.approvals.shortcuts import shortcuts_on


def review(request: HttpRequest) -> dict[str, Any]:
    """What the frame around every page shows to reviewers; nothing is counted until it is shown."""
    return {
        "last_decision": last_decision(request),
        "shortcuts_on": shortcuts_on(request),
        "waiting_count": partial(_waiting_count, request),
    }


def _waiting_count(request: HttpRequest) -> int | None:
    principal: Principal | None = getattr(request, "principal", None)
    if principal is None or not principal.can_review:
        return None
    try:
        return waiting_count(principal)
    except DatabaseError:
        return None  # this may be the page that says that the database does not answer
