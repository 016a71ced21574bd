"""Proposing by hand, taking a proposal back, and reporting a memory."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html

from apps.accounts.pages import PageRequest, page
from apps.candidates.corrections import Report, memory_correct
from apps.candidates.forms import ProposeForm, WithdrawForm
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.revisions import candidate_withdraw
from apps.candidates.selectors import candidates_shown, own_candidates
from apps.candidates.services import Proposed, candidate_propose
from apps.core.errors import Conflict, DomainError, Invalid, TooMany
from apps.core.methods import only, posted
from apps.core.pagination import Page, page_of
from apps.core.redirects import SeeOther
from apps.memories.selectors import memory_for
from apps.retrieval.forms import CorrectForm
from apps.retrieval.views import memory_page
from apps.taxonomy.selectors import memory_types

ROWS = 10


@only("GET", "HEAD", "POST")
@page(to="propose", sent="proposal")
def propose(request: PageRequest) -> HttpResponseBase:
    if request.method != "POST":
        return _propose_page(request, _blank_form(request))
    form = ProposeForm(request.POST, types=memory_types(request.principal.workspace))
    if not form.is_valid():
        return _propose_page(request, form, status=422)
    try:
        proposed = candidate_propose(principal=request.principal, proposal=form.proposal())
    except (Invalid, TooMany) as refusal:
        form.add_refusal(refusal)
        return _propose_page(request, form, status=refusal.status)
    _say(request, proposed)
    return SeeOther(f"{reverse('candidates:propose')}?proposed={proposed.candidate.pk}")


def _blank_form(request: PageRequest) -> ProposeForm:
    return ProposeForm(types=memory_types(request.principal.workspace))


def _say(request: PageRequest, proposed: Proposed) -> None:
    """What became of it. The sentence of the service, or that it waits."""
    if proposed.created and proposed.status == CandidateStatus.PENDING:
        messages.success(request, "Proposed. A reviewer decides about it; you can follow it below.")
    elif proposed.created:
        messages.warning(request, f"Proposed, and set aside until a reviewer asks for it. {proposed.reason}")
    else:
        messages.info(request, proposed.reason)


def _propose_page(request: PageRequest, form: ProposeForm, *, status: int = 200) -> HttpResponse:
    principal = request.principal
    rows = own_candidates(principal).select_related("type", "origin_token").annotate(people=Count("proposers"))
    cursor = request.GET.get("cursor")
    found: Page[Candidate] = page_of(rows, order=("-created_at", "-id"), limit=ROWS, cursor=cursor, request=request)
    context = {
        "form": form,
        "types": [row for row in memory_types(principal.workspace) if row.is_active],
        "own": list(zip(found.rows, candidates_shown(principal, found.rows), strict=True)),
        "next": found.next,
        "previous": found.previous,
        "proposed": request.GET.get("proposed", ""),
    }
    return render(request, "candidates/propose.html", context, status=status)


@posted
@page(to="withdraw a proposal", sent="withdrawal")
def withdraw(request: PageRequest, candidate_id: UUID) -> HttpResponseBase:
    form = WithdrawForm(request.POST)
    if not form.is_valid():
        raise Invalid("The form does not say which version it is about.", errors=[])
    try:
        candidate_withdraw(principal=request.principal, candidate_id=candidate_id, **form.cleaned_data)
    except Conflict as refusal:
        messages.error(request, refusal.detail)
        return _propose_page(request, _blank_form(request), status=refusal.status)
    messages.success(request, "Withdrawn. Nobody has to decide about it any more.")
    return SeeOther(reverse("candidates:propose"))


@posted
@page(to="report a memory", sent="report")
def correct(request: PageRequest, reference: str) -> HttpResponseBase:
    memory = memory_for(request.principal, reference)
    form = CorrectForm(request.POST)
    if not form.is_valid():
        return memory_page(request, memory, forms={"correct": form}, status=422)
    try:
        proposed = memory_correct(principal=request.principal, reference=memory.pk, report=_report(form))
    except (Invalid, TooMany) as refusal:
        form.add_refusal(refusal)
        return memory_page(request, memory, forms={"correct": form}, status=refusal.status)
    except Conflict as refusal:
        return _clash(request, reference, form, refusal)
    said = "Reported. A reviewer decides about it." if proposed.created else "Your earlier report is still open."
    messages.success(request, format_html("{} {}", said, _where_to_follow()))
    return SeeOther(reverse("retrieval:memory", args=[memory.label]))


def _report(form: CorrectForm) -> Report:
    values = form.cleaned_data
    return Report(
        kind=values["kind"],
        reason=values["reason"],
        replacement=values["content"],
        sources=form.sources.sources(),
    )


def _clash(request: PageRequest, reference: str, form: CorrectForm, refusal: DomainError) -> HttpResponse:
    memory = memory_for(request.principal, reference)
    return memory_page(request, memory, forms={"correct": form}, refusal=refusal, status=refusal.status)


def _where_to_follow() -> str:
    return format_html('<a href="{}">Follow it here</a>.', reverse("candidates:propose"))
