from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from apps.accounts.pages import PageRequest, page
from apps.accounts.sessions import choose_workspace
from apps.core.errors import Forbidden


@require_POST
@page()
def workspace_choose(request: PageRequest) -> HttpResponseBase:
    choose_workspace(request, request.POST.get("workspace", ""))
    return HttpResponseRedirect(_next(request))


def sign_up_closed(request: HttpRequest) -> HttpResponseBase:
    raise Forbidden("Nobody signs up here: an admin adds people and gives them a password.", code="invited_only")


def _next(request: HttpRequest) -> str:
    target = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(target, allowed_hosts=None):
        return target
    return "/"
