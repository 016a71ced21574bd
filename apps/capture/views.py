"""What was captured and what became of it: the list, one event, and the drops of a week to be read again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts.models import Role
from apps.accounts.pages import PageRequest, page
from apps.candidates.models import Candidate
from apps.capture import selectors
from apps.capture.browsing import (
    NEWEST,
    drop_rows,
    event_rows,
    event_sheet,
    facets_listed,
    inbox_seen,
)
from apps.capture.forms import CapturedForm
from apps.capture.models import CaptureEvent, EventOutcome, EventState
from apps.capture.services import event_overrule
from apps.core.addresses import repeatable
from apps.core.errors import Conflict, DomainError, Invalid, TooMany, Unavailable
from apps.core.facets import facet_groups
from apps.core.frames import render_framed
from apps.core.methods import looked_at, posted
from apps.core.pagination import Page, page_of
from apps.core.redirects import SeeOther
from apps.memories.facets import counts_of
from apps.sources.models import SourceKind

ROWS = 20
TO = "see what was captured"
FACETS = {"kind": "Source", "state": "State", "origin": "Handed over by"}
# The tab that asks for no outcome, and the short names of those that do.
EVERY = ""
TABS = (
    (EVERY, "All"),
    (EventOutcome.QUEUED.value, "Queued"),
    (EventOutcome.QUARANTINED.value, "Quarantined"),
    (EventOutcome.DUPLICATE.value, "Known already"),
    (EventOutcome.EXCLUDED.value, "Excluded"),
    (EventOutcome.DROPPED_CLASSIFIER.value, "Nothing durable"),
    (EventOutcome.DROPPED_PREFILTER.value, "Noise"),
)
# Of each drop in the sample; its own page shows the rest.
READ_QUICKLY = 4_000


@looked_at
@page(Role.REVIEWER, to=TO)
def captured(request: PageRequest) -> HttpResponseBase:
    form = CapturedForm(request.GET)
    context: dict[str, Any] = {
        "form": form,
        "parameters": repeatable(request.GET),
        "tabs": TABS,
        "inbox": inbox_seen(request.principal),
    }
    if form.is_valid():
        try:
            context |= _listed(request, form)
        except Invalid as error:
            form.add_refusal(error)
    return render_framed(request, "capture/list.html", context, status=422 if form.errors else 200)


def _listed(request: PageRequest, form: CapturedForm) -> dict[str, Any]:
    principal, asked = request.principal, form.asked()
    everything = selectors.events_found(principal, replace(asked, outcome=None)).order_by(*NEWEST)
    matching = {EVERY: everything} | {name: everything.filter(outcome=name) for name in EventOutcome.values}
    outcome = asked.outcome or EVERY
    rows = matching[outcome]
    found: Page[CaptureEvent] = page_of(
        rows.select_related("origin_token").defer("payload", "work", "notes"),
        order=NEWEST,
        limit=ROWS,
        cursor=request.GET.get("cursor"),
        request=request,
    )
    facets = facets_listed(rows)
    return {
        "rows": event_rows(principal, found.rows),
        "next": found.next,
        "previous": found.previous,
        "outcome": outcome,
        "counts": counts_of(principal, matching),
        "facets": facets,
        "facet_groups": facet_groups(request.GET, facets.values, FACETS, named=_facet_name),
    }


def _facet_name(name: str, value: str) -> str:
    """What people call a value of a facet."""
    if name == "origin":
        return value
    return str((SourceKind if name == "kind" else EventState)(value).label)


@looked_at
@page(Role.REVIEWER, to=TO)
def event(request: PageRequest, event_id: UUID) -> HttpResponseBase:
    return _event_page(request, event_id)


def _event_page(request: PageRequest, event_id: UUID, *, refusal: DomainError | None = None) -> HttpResponse:
    sheet = event_sheet(request.principal, event_id)
    context = {"sheet": sheet, "event": sheet.event, "refusal": refusal}
    return render_framed(request, "capture/event.html", context, status=refusal.status if refusal else 200)


@looked_at
@page(Role.REVIEWER, to=TO)
def drops(request: PageRequest) -> HttpResponseBase:
    found = selectors.drops(request.principal)
    context = {
        "drops": found,
        "rate": f"{found.false_drop_rate * 100:.1f} %",
        "rows": drop_rows(found.sample, characters=READ_QUICKLY),
    }
    return render_framed(request, "capture/drops.html", context)


@posted
@page(Role.REVIEWER, to="overrule a drop", sent="decision about a drop")
def overrule(request: PageRequest, event_id: UUID) -> HttpResponseBase:
    try:
        candidate = event_overrule(principal=request.principal, event_id=event_id)
    except (Conflict, Invalid, TooMany, Unavailable) as refusal:
        return _event_page(request, event_id, refusal=refusal)
    messages.success(request, _overruled_message(candidate))
    return SeeOther(reverse("approvals:candidate", args=[candidate.pk]))


def _overruled_message(candidate: Candidate) -> SafeString:
    said = (
        "A candidate was made of the drop."
        if candidate.is_open
        else f"The same statement was {candidate.get_status_display().lower()} before, and this is it."
    )
    return format_html('{} <a href="{}">Back to the drops of this week</a>', said, reverse("capture:drops"))
