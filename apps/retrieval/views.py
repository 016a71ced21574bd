"""The memory browser and the page of one memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render

from apps.accounts.pages import PageRequest, page
from apps.core.errors import DomainError, Invalid
from apps.core.forms import PageForm
from apps.core.methods import looked_at
from apps.core.pagination import Page, page_of
from apps.core.screening import masked
from apps.memories.models import IN_FORCE, Memory, MemoryStatus
from apps.memories.selectors import memories_shown, memory_for
from apps.retrieval.browsing import leaf, listed
from apps.retrieval.forms import EVERY, STATUSES, BrowseForm, CorrectForm, ReasonForm
from apps.retrieval.forms import IN_FORCE as STATUS_IN_FORCE
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from apps.taxonomy.models import MemoryType
from apps.taxonomy.selectors import memory_types

ROWS = 25
FOUND = 25


@looked_at
@page()
def memories(request: PageRequest) -> HttpResponseBase:
    types = memory_types(request.principal.workspace)
    form = BrowseForm(request.GET, types=types)
    context: dict[str, Any] = {
        "form": form,
        "filters": carried(request.GET),
        "statuses": STATUSES,
        "status": STATUS_IN_FORCE,
        "in_force": STATUS_IN_FORCE,
    }
    if form.is_valid():
        try:
            context |= _search(request, form) if form.cleaned_data["q"].strip() else _list(request, form, types)
        except Invalid as error:
            form.add_refusal(error)
    return render(request, "memories/list.html", context, status=422 if form.errors else 200)


def _list(request: PageRequest, form: BrowseForm, types: list[MemoryType]) -> dict[str, Any]:
    principal, values = request.principal, form.cleaned_data
    status = values["status"] or STATUS_IN_FORCE
    asked = {name: values[name] or None for name in ("type", "repo", "domain")}
    rows = listed(principal, statuses=_statuses(status), types=types, **asked).select_related("type__category")
    found: Page[Memory] = page_of(
        rows, order=("-number",), limit=ROWS, cursor=request.GET.get("cursor"), request=request
    )
    return {
        "rows": memories_shown(principal, found.rows),
        "next": found.next,
        "previous": found.previous,
        "status": status,
    }


def _statuses(status: str) -> tuple[str, ...] | None:
    if status == EVERY:
        return None
    return IN_FORCE if status == STATUS_IN_FORCE else (MemoryStatus(status),)


def _search(request: PageRequest, form: BrowseForm) -> dict[str, Any]:
    """What answers the question best. It looks at what is in force; the chain on a memory's page has the rest."""
    values = form.cleaned_data
    asked = SearchRequest(
        q=values["q"],
        types=_one(values["type"]),
        repos=_one(values["repo"]),
        domains=_one(values["domain"]),
        limit=FOUND,
    )
    answer = search(principal=request.principal, request=asked)
    return {"rows": answer.results, "answer": answer, "question": masked(values["q"].strip())}


def _one(value: str) -> tuple[str, ...] | None:
    return (value,) if value else None


def carried(parameters: QueryDict) -> str:
    """The filter as it goes from page to page: without a position in the list, and without empty values."""
    kept = QueryDict(mutable=True)
    for name, values in parameters.lists():
        if name in BrowseForm.base_fields and values[-1].strip():
            kept[name] = values[-1]
    return kept.urlencode()


@looked_at
@page()
def memory(request: PageRequest, reference: str) -> HttpResponseBase:
    return memory_page(request, memory_for(request.principal, reference))


def memory_page(
    request: PageRequest,
    row: Memory,
    *,
    forms: Mapping[str, PageForm] | None = None,
    refusal: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    """``forms`` holds what was sent and came to nothing, by action; the other forms are blank."""
    sent = forms or {}
    context = {
        "leaf": leaf(request.principal, row),
        "memory": row,
        "refusal": refusal,
        "correct": sent.get("correct") or CorrectForm(),
        "retire": sent.get("retire") or ReasonForm(auto_id="retire-%s"),
        "restore": sent.get("restore") or ReasonForm(auto_id="restore-%s"),
        "sent": sent,
    }
    return render(request, "memories/memory.html", context, status=status)
