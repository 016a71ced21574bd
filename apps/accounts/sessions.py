"""The person behind a browser's session, in the workspace that the session chose."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.http import HttpRequest

from apps.accounts.models import Membership
from apps.accounts.principal import Principal
from apps.accounts.selectors import memberships_for_session, memberships_of, principal_for_session
from apps.core import request_id
from apps.core.errors import NotFound

WORKSPACE_KEY = "workspace"


def signed_in_user(request: HttpRequest) -> User | None:
    user = getattr(request, "user", None)
    return user if isinstance(user, User) and user.is_authenticated else None


def session_principal(request: HttpRequest, via: str) -> Principal | None:
    """None for nobody signed in; ``Forbidden`` for a person without a membership. Looked up once a request."""
    user = signed_in_user(request)
    if user is None:
        return None
    known: Principal | None = getattr(request, "_session_principal", None)
    if known is None:
        chosen = request.session.get(WORKSPACE_KEY)
        known = principal_for_session(user, session_memberships(request), chosen, via, request_id.current.get())
        request._session_principal = known  # type: ignore[attr-defined]
    return known.through(via)


def session_memberships(request: HttpRequest) -> Sequence[Membership]:
    """Where the person behind the session is a member. Looked up once a request."""
    user = signed_in_user(request)
    if user is None:
        return []
    if not hasattr(request, "_session_memberships"):
        request._session_memberships = memberships_for_session(user)  # type: ignore[attr-defined]
    known: Sequence[Membership] = request._session_memberships  # type: ignore[attr-defined]
    return known


def choose_workspace(request: HttpRequest, slug: str) -> None:
    """Have the session work in another workspace; ``NotFound`` for one the person is not in."""
    user = signed_in_user(request)
    membership = memberships_of(user).filter(workspace__slug=slug).first() if user else None
    if membership is None:
        raise NotFound("You are in no workspace of this name.")
    request.session[WORKSPACE_KEY] = membership.workspace_id
