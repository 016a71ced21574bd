"""OAuth's addresses: what clients read, ask and exchange, and the two pages for people.

Whatever imports OAuth's library is imported when it is first asked for: processes that serve none of it need not pay.
"""

from __future__ import annotations

from typing import IO, Any, cast

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from apps.accounts.pages import PageRequest, page
from apps.accounts.selectors import principal_for_user
from apps.accounts.sessions import session_memberships, session_principal
from apps.accounts.throttling import WRITE, spend, spend_anonymous, spend_registration
from apps.core import request_id
from apps.core.errors import DomainError, Malformed
from apps.core.methods import looked_at, only, posted
from apps.core.parsers import parse_object, read_bounded
from apps.oauth import metadata
from apps.oauth.asking import Asked, Refused, asked
from apps.oauth.clients import MAX_BODY_BYTES, client_register, described
from apps.oauth.doors import answer, for_programs
from apps.oauth.forms import ConsentForm
from apps.oauth.selectors import connected
from apps.oauth.services import MOST_LIVING, connection_disconnect, repositories_named


@looked_at
def protected_resource(request: HttpRequest, path: str = "") -> HttpResponse:
    return _metadata(metadata.protected_resource(path))


@looked_at
def authorization_server(request: HttpRequest) -> HttpResponse:
    return _metadata(metadata.authorization_server())


def _metadata(body: dict[str, Any]) -> HttpResponse:
    return JsonResponse(body, headers={"Cache-Control": "max-age=300"})


@for_programs
def register(request: HttpRequest) -> HttpResponse:
    spend_registration(request)
    body = parse_object(read_bounded(cast(IO[bytes], request), MAX_BODY_BYTES))
    return answer(201, described(client_register(body)))


@for_programs
def token(request: HttpRequest) -> HttpResponse:
    from apps.oauth.issuing import exchanged

    status, body = exchanged(request)
    if status >= 400:
        spend_anonymous(request)
    return answer(status, body)


@for_programs
def revoke(request: HttpRequest) -> HttpResponse:
    from apps.oauth.issuing import given_back

    spend_anonymous(request)
    return answer(*given_back(request))


# --- pages --------------------------------------------------------------------------------------------------
@only("GET", "HEAD", "POST")
def authorize(request: HttpRequest) -> HttpResponseBase:
    """Asks the person, and sends the browser back to the client with what they said.

    What the client asks for stands in the address, is read anew for the answer, and is shown before it is allowed.
    """
    principal = session_principal(request, "ui")
    if principal is None:
        # Word for word: the client recognises its own `state`, and none of this is secret.
        return redirect_to_login(request.get_full_path())
    request.principal = principal  # type: ignore[attr-defined]
    try:
        what = asked(request.GET)
    except Refused as refusal:
        return _sent(refusal.location)
    form = ConsentForm(
        request.POST if request.method == "POST" else None,
        what=what,
        memberships=session_memberships(request),
        current=principal.workspace.slug,
    )
    if request.method == "POST":
        return _decided(request, what, form)
    return _asking(request, what, form)


def _decided(request: HttpRequest, what: Asked, form: ConsentForm) -> HttpResponseBase:
    from apps.oauth.issuing import allowed

    decision = request.POST.get("decision")
    if decision == "refuse":
        return _sent(what.answer(error="access_denied", error_description="The person said no."))
    if decision != "allow":
        raise Malformed("Choose to allow it, or not.")
    if not form.is_valid():
        return _asking(request, what, form, status=422)
    user = form.membership.user
    person = principal_for_user(user, form.membership.workspace, "ui", request_id.current.get())
    spend(person, WRITE)
    try:
        limit = [] if form.names is None else repositories_named(person.workspace, form.names)
        location = allowed(request, what, principal=person, read_only=form.read_only, repository_ids=limit)
    except DomainError as error:
        form.add_refusal(error)
        return _asking(request, what, form, status=error.status)
    return _sent(location)


def _asking(request: HttpRequest, what: Asked, form: ConsentForm, *, status: int = 200) -> HttpResponse:
    context = {"what": what, "form": form, "person": request.user}
    response = render(request, "oauth/consent.html", context, status=status)
    add_never_cache_headers(response)
    # Chromium holds the redirect that follows a form to the same rule as the form.
    response._csp_update = {"form-action": what.place.source}  # type: ignore[attr-defined]
    return response


def _sent(location: str) -> HttpResponse:
    """To a place that was looked at; Django's own redirect knows fewer schemes."""
    response = HttpResponse(status=302, headers={"Location": location, "Referrer-Policy": "no-referrer"})
    add_never_cache_headers(response)
    return response


@looked_at
@page()
def agents(request: PageRequest) -> HttpResponseBase:
    assert request.principal.user is not None  # noqa: S101 - a session is a person's
    context = {"connected": connected(request.principal.user), "most": MOST_LIVING}
    return render(request, "oauth/agents.html", context)


@posted
@page(sent="disconnection")
def disconnect(request: PageRequest, connection_id: int) -> HttpResponseBase:
    spend(request.principal, WRITE)
    connection = connection_disconnect(principal=request.principal, connection_id=connection_id)
    messages.success(request, f"{connection.client.name} is disconnected. What it holds opens nothing from now on.")
    return HttpResponseRedirect(reverse("oauth:agents"))
