"""What a reviewer decided last in this browser, so that one key takes it back."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase

from apps.candidates.models import Candidate

COOKIE = "decided"
_KEPT_FOR = 8 * 3600


@dataclass(frozen=True, slots=True)
class LastDecision:
    """``version`` is the candidate's after the decision: whoever changed it since is not undone."""

    candidate_id: UUID
    version: int


def last_decision(request: HttpRequest) -> LastDecision | None:
    """What the browser remembers. Whether it can be undone is looked at when somebody tries."""
    candidate_id, _, version = request.COOKIES.get(COOKIE, "").partition(":")
    try:
        return LastDecision(UUID(candidate_id), int(version)) if int(version) > 0 else None
    except ValueError:
        return None


def remember(request: HttpRequest, decided: Candidate) -> LastDecision:
    """Also for what is rendered in the same request."""
    last = LastDecision(decided.pk, decided.version)
    request.COOKIES[COOKIE] = f"{last.candidate_id}:{last.version}"
    return last


def forget(request: HttpRequest) -> None:
    request.COOKIES.pop(COOKIE, None)


def carry(request: HttpRequest, response: HttpResponseBase) -> None:
    """Tell the browser what ``remember`` or ``forget`` made of it."""
    if value := request.COOKIES.get(COOKIE):
        response.set_cookie(COOKIE, value, max_age=_KEPT_FOR, httponly=True, samesite="Lax")
    else:
        response.delete_cookie(COOKIE, samesite="Lax")
