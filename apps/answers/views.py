"""The page to ask on."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase

from apps.accounts.pages import PageRequest, page
from apps.accounts.throttling import SEARCH, spend
from apps.answers.forms import AskForm
from apps.answers.services import ask
from apps.core.errors import Invalid
from apps.core.frames import render_framed
from apps.core.methods import looked_at


@looked_at
@page(to="ask")
def ask_page(request: PageRequest) -> HttpResponseBase:
    form = AskForm(request.GET)
    context: dict[str, Any] = {"form": form}
    if form.is_valid() and form.asks:
        # A model may cost money for each.
        spend(request.principal, SEARCH)
        repo = form.cleaned_data["repo"]
        try:
            context["answer"] = ask(
                principal=request.principal, q=form.cleaned_data["q"], repos=(repo,) if repo else None
            )
        except Invalid as error:
            form.add_refusal(error)
    return render_framed(request, "answers/ask.html", context, status=422 if form.errors else 200)
