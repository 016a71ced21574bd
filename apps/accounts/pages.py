"""What stands before every HTML page: who may see it, and what nobody else's cache may keep."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme

from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.accounts.sessions import session_principal
from apps.core.addresses import repeatable_path
from apps.core.errors import Conflict

# Sent along by the script of a page: whom that page was made for.
PERSON = "Firm-Memory-Person"
# In a session: what was sent after the one before it had ended, and by whom if that is known.
NOT_RECORDED = "not_recorded"

P = ParamSpec("P")


class PageRequest(HttpRequest):
    """A request that ``page`` has let through."""

    principal: Principal


PageView = Callable[Concatenate[PageRequest, P], HttpResponseBase]
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def page(
    role: Role = Role.MEMBER, *, to: str = "see this page", sent: str = "", via: str = "ui"
) -> Callable[[PageView[P]], View[P]]:
    """Let a view be seen by members with at least ``role``, and give it ``request.principal``.

    Anybody not signed in is sent to sign in and back; a wrong role is ``Forbidden``, which becomes the 403 page.
    ``to`` completes "Only a person with the … role may …", ``sent`` "Your … was not recorded", which is told to whoever
    comes back from signing in after a form of theirs had come to nothing.
    """

    def decorate(view: PageView[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            principal = session_principal(request, via)
            if principal is None:
                return _send_to_sign_in(request, sent)
            _require_the_same_person(request, principal)
            _say_what_was_not_recorded(request, principal)
            principal.require_reading_role(role, to=to)
            request.principal = principal  # type: ignore[attr-defined]
            response = view(request, *args, **kwargs)  # type: ignore[arg-type]
            add_never_cache_headers(response)
            return response

        return guarded

    return decorate


def _require_the_same_person(request: HttpRequest, principal: Principal) -> None:
    """What a page was opened for by one person is not done in the name of another who signed in since."""
    opened_by = request.headers.get(PERSON)
    if opened_by and principal.user is not None and opened_by != str(principal.user.pk):
        raise Conflict(
            f"This page was opened by somebody else; {principal.name} has signed in since, perhaps in another window. "
            "Nothing was done. Load the page again.",
            code="another_person",
        )


def _send_to_sign_in(request: HttpRequest, sent: str) -> HttpResponseBase:
    # While the database is down nobody can sign in: say that, instead of asking for a password in vain.
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    if request.method == "POST" and sent:
        request.session[NOT_RECORDED] = {"what": sent, "person": request.headers.get(PERSON, "")}
    if getattr(request, "htmx", False):
        # A redirect would be followed by the script, and the sign-in page put into a corner of this one.
        htmx: Any = request.htmx  # type: ignore[attr-defined]
        target = redirect_to_login(repeatable_path(htmx.current_url_abs_path or "/"))["Location"]
        return HttpResponse(status=204, headers={"HX-Redirect": target})
    return redirect_to_login(repeatable_path(_page_of(request)))


def _say_what_was_not_recorded(request: HttpRequest, principal: Principal) -> None:
    lost = request.session.pop(NOT_RECORDED, None)
    if lost is None or principal.user is None or lost["person"] not in ("", str(principal.user.pk)):
        return
    messages.warning(
        request,
        f"Your {lost['what']} was not recorded, since you had been signed out. Send it again if you still want to.",
        extra_tags="lost",
    )


def _page_of(request: HttpRequest) -> str:
    """Where to come back to: what was asked for, or the page whose form was sent."""
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    origin, referer = f"{request.scheme}://{request.get_host()}", request.headers.get("Referer", "")
    path = referer.removeprefix(origin) if referer.startswith(f"{origin}/") else "/"
    return path if url_has_allowed_host_and_scheme(path, allowed_hosts=None) else "/"
