"""The memory browser and the page of one memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpResponse, HttpResponseBase, QueryDict

from apps.accounts.models import Role
from apps.accounts.pages import PageRequest, page
from apps.accounts.principal import Principal
from apps.core.addresses import repeatable
from apps.core.errors import DomainError, Invalid
from apps.core.facets import facet_groups
from apps.core.forms import PageForm
from apps.core.frames import render_framed
from apps.core.methods import looked_at
from apps.core.pagination import MAX_COUNTED, Page, page_of
from apps.core.screening import masked
from apps.core.wording import words
from apps.memories.facets import Facets, counts_of
from apps.memories.models import IN_FORCE, Memory, MemoryQuerySet, MemoryStatus, Tier
from apps.memories.selectors import memories_shown, memory_for
from apps.retrieval.browsing import facets_found, facets_listed, leaf, listed
from apps.retrieval.forms import EVERY, STATUSES, BrowseForm, CorrectForm, ReasonForm, WeightsForm
from apps.retrieval.forms import IN_FORCE as STATUS_IN_FORCE
from apps.retrieval.ledger import Weighting
from apps.retrieval.receipts import receipts_shown
from apps.retrieval.request import SearchRequest
from apps.retrieval.services import search
from apps.retrieval.weights import compared
from apps.taxonomy.models import Category, MemoryType
from apps.taxonomy.selectors import memory_types

ROWS = 25
FOUND = 25
FACETS = {"type": "Type", "repo": "Repository", "domain": "Domain", "status": "Status", "tier": "Tier"}


@looked_at
@page()
def memories(request: PageRequest) -> HttpResponseBase:
    types = memory_types(request.principal.workspace)
    form = BrowseForm(request.GET, types=types)
    context: dict[str, Any] = {
        "form": form,
        "filters": BrowseForm.carried(request.GET),
        "parameters": repeatable(request.GET),
        "statuses": STATUSES,
        "status": STATUS_IN_FORCE,
        "in_force": STATUS_IN_FORCE,
    }
    if form.is_valid():
        try:
            context |= _search(request, form) if _is_question(form) else _list(request, form, types)
        except Invalid as error:
            form.add_refusal(error)
    return render_framed(request, "memories/list.html", context, status=422 if form.errors else 200)


def _counts(principal: Principal, everything: MemoryQuerySet) -> dict[str, int]:
    """By status, and of those that are more than one of them."""
    rows = everything.order_by()
    found = counts_of(principal, {status: rows.filter(status=status) for status in MemoryStatus.values})
    # None is counted further than one past the limit, and so a sum says no more than that either.
    return found | {
        STATUS_IN_FORCE: min(sum(found[status] for status in IN_FORCE), MAX_COUNTED + 1),
        EVERY: min(sum(found.values()), MAX_COUNTED + 1),
    }


def _is_question(form: BrowseForm) -> bool:
    """Whether the best answers are asked for. With another status, the words are looked for in all of that."""
    values = form.cleaned_data
    return bool(values["q"].strip()) and values["status"] in ("", STATUS_IN_FORCE)


def _list(request: PageRequest, form: BrowseForm, types: list[MemoryType]) -> dict[str, Any]:
    """What fits the filter, the newest first; every word that was asked for occurs in it."""
    principal, values = request.principal, form.cleaned_data
    status = values["status"] or STATUS_IN_FORCE
    asked = {name: values[name] or None for name in ("type", "repo", "domain", "tier")}
    words = values["q"].strip() or None
    everything = listed(principal, statuses=None, types=types, words=words, **asked)
    among = _statuses(status)
    rows = everything if among is None else everything.filter(status__in=among)
    found: Page[Memory] = page_of(
        rows.only("number"),
        order=("-number",),
        limit=ROWS,
        cursor=request.GET.get("cursor"),
        request=request,
    )
    facets = facets_listed(rows)
    return {
        "rows": memories_shown(principal, [row.pk for row in found.rows]),
        "next": found.next,
        "previous": found.previous,
        "status": status,
        "counts": {status: facets.total} if words else _counts(principal, everything),
        "facets": facets,
        "facet_groups": facet_groups(request.GET, _without_one_status(facets), FACETS, named=facet_name),
        "question": masked(values["q"].strip()),
    }


def _without_one_status(facets: Facets) -> dict[str, Any]:
    """The tab says it already where all rows have the same."""
    return {name: values for name, values in facets.values.items() if name != "status" or len(values) > 1}


def facet_name(name: str, value: str) -> str:
    """What people call a value of a facet."""
    if name in ("tier", "status"):
        return str((Tier if name == "tier" else MemoryStatus)(value).label)
    return words(value) if name == "type" else value


def _statuses(status: str) -> tuple[str, ...] | None:
    if status == EVERY:
        return None
    return IN_FORCE if status == STATUS_IN_FORCE else (MemoryStatus(status),)


def _search(request: PageRequest, form: BrowseForm) -> dict[str, Any]:
    """What answers the question best, of what is in force. The other tabs look for its words in the rest."""
    values = form.cleaned_data
    asked = SearchRequest(
        q=values["q"],
        types=_one(values["type"]),
        repos=_one(values["repo"]),
        domains=_one(values["domain"]),
        tiers=_one(values["tier"]),
        limit=FOUND,
    )
    answer = search(principal=request.principal, request=asked)
    facets = facets_found(request.principal, [row["id"] for row in answer.results])
    return {
        "rows": answer.results,
        "answer": answer,
        "question": masked(values["q"].strip()),
        "facets": facets,
        "facet_groups": facet_groups(request.GET, _without_one_status(facets), FACETS, named=facet_name),
    }


@looked_at
@page(Role.CURATOR, to="try another weighting")
def weights(request: PageRequest) -> HttpResponseBase:
    """Without a category in the address, a blank form with what the first one has."""
    categories = list(Category.objects.filter(workspace=request.principal.workspace))
    form = WeightsForm(weights_asked(request.GET, categories), categories=categories)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        context["category"] = form.chosen
        if form.cleaned_data["q"]:
            try:
                context["compared"] = compared(
                    request.principal,
                    question=form.cleaned_data["q"],
                    repo=form.cleaned_data["repo"] or None,
                    category=form.chosen.slug,
                    weighting=Weighting(form.cleaned_data["half_life_days"], form.weights),
                )
            except Invalid as error:
                form.add_refusal(error)
    return render_framed(request, "memories/weights.html", context, status=422 if form.errors else 200)


def weights_asked(asked: QueryDict, categories: Sequence[Category]) -> QueryDict:
    """With the category's own weighting, unless one is given: the form then sends every number along."""
    if not categories or set(asked) - {"q", "repo", "category"}:
        return asked
    row = next((each for each in categories if each.slug == asked.get("category")), categories[0])
    filled = asked.copy()
    filled.setdefault("category", row.slug)
    if filled["category"] == row.slug:
        filled["half_life_days"] = "" if row.half_life_days is None else str(row.half_life_days)
        filled.update({intent: f"{weight:g}" for intent, weight in row.weights.items()})
    return filled


def _one(value: str) -> tuple[str, ...] | None:
    return (value,) if value else None


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
        "served": receipts_shown(request.principal, row) if request.principal.can_review else None,
    }
    return render_framed(request, "memories/memory.html", context, status=status)
