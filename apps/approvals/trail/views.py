"""The audit trail as a page and as a file."""

from __future__ import annotations

from itertools import chain, islice
from typing import Any

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse

from apps.accounts.models import Role
from apps.accounts.pages import PageRequest, page
from apps.approvals.trail.export import FORMATS
from apps.approvals.trail.forms import TrailForm
from apps.approvals.trail.selectors import trail_entries, trail_page
from apps.approvals.trail.showing import entries_shown
from apps.core.addresses import at_cursor
from apps.core.clock import now
from apps.core.errors import Invalid, NotFound
from apps.core.frames import render_framed
from apps.core.methods import looked_at

ROWS = 50
TO = "see the audit trail"


@looked_at
@page(Role.REVIEWER, to=TO)
def trail(request: PageRequest) -> HttpResponseBase:
    form = TrailForm(request.GET)
    context: dict[str, Any] = {"form": form, "filters": TrailForm.carried(request.GET)}
    if form.is_valid():
        try:
            found = trail_page(request.principal, form.asked(), limit=ROWS, cursor=request.GET.get("cursor") or None)
        except Invalid as error:
            form.add_refusal(error)
        else:
            context |= {
                "entries": entries_shown(request.principal, found.entries),
                "next": _at(request, found.older),
                "previous": _at(request, found.newer),
            }
    return render_framed(request, "trail/trail.html", context, status=422 if form.errors else 200)


def _at(request: PageRequest, cursor: str | None) -> str | None:
    return None if cursor is None else at_cursor(request, cursor)


@looked_at
@page(Role.REVIEWER, to=TO)
def export(request: PageRequest, format: str) -> HttpResponseBase:
    """Everything that the filter admits, sent while it is read."""
    if format not in FORMATS:
        raise NotFound("The audit trail is exported as csv and as jsonl.")
    form = TrailForm(request.GET)
    if not form.is_valid():
        return render_framed(request, "trail/trail.html", {"form": form, "filters": ""}, status=422)
    kind, lines = FORMATS[format]
    entries = trail_entries(request.principal, form.asked())
    # Read before the answer begins: a database that is down is a 503, and no file that stops in the middle.
    first = list(islice(entries, 1))
    answer: HttpResponse | StreamingHttpResponse = StreamingHttpResponse(
        lines(chain(first, entries)), content_type=kind
    )
    name = f"audit-{request.principal.workspace.slug}-{now():%Y-%m-%d}.{format}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
