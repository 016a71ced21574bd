"""The review pages: the queue, one candidate, the decisions, and the page one comes home to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django_htmx.http import HttpResponseLocation

from apps.accounts.models import Role
from apps.accounts.pages import PageRequest, page
from apps.approvals import last_decision, policy, services, shortcuts
from apps.approvals.bulk import Outcome, candidates_decide, matching
from apps.approvals.claims import candidate_claim
from apps.approvals.forms import (
    FLAGS,
    TAKEN_UP,
    ApproveForm,
    DecideForm,
    QueueFilterForm,
    RejectForm,
    SaveFilterForm,
    bulk_items,
)
from apps.approvals.models import SavedFilter
from apps.approvals.saved_filters import (
    saved_filter_open_with,
    saved_filter_remove,
    saved_filter_save,
    saved_filters,
)
from apps.approvals.selectors import (
    Sheet,
    around,
    learned_lately,
    next_to_review,
    proposed_lately,
    queue_counts,
    queue_facets,
    queue_order,
    queue_rows,
    reasons_lately,
    sheet,
    waiting,
)
from apps.candidates.access import candidate_for, candidates_visible
from apps.candidates.models import OPEN, Candidate, CandidateStatus
from apps.candidates.opened import opened_record
from apps.candidates.selectors import QueueFilter, in_any_status
from apps.capture.browsing import captured_from
from apps.core.addresses import repeatable
from apps.core.errors import Conflict, DomainError, Invalid, Malformed, Unavailable
from apps.core.facets import facet_groups
from apps.core.forms import without_secrets
from apps.core.frames import render_framed, wants_content
from apps.core.methods import looked_at, posted
from apps.core.pagination import Page, page_of
from apps.core.redirects import SeeOther
from apps.core.wording import words
from apps.memories.history import Entry
from apps.memories.models import Action, Memory
from apps.memories.selectors import memory_for, scopes_shown
from apps.retrieval.forms import ReasonForm
from apps.retrieval.views import memory_page
from apps.scopes.models import Domain
from apps.scopes.selectors import find_repository
from apps.taxonomy.selectors import memory_types

ROWS = 18
# Of what a bulk decision is about, so many are shown before it is made.
SAMPLE = 10
FACETS = {"type": "Type", "repo": "Repository", "domain": "Domain", "origin": "Origin", "flag": "Flag"}
_PAST = {Action.APPROVE: "approved", Action.REJECT: "rejected"}


@looked_at
@page()
def home(request: PageRequest) -> HttpResponseBase:
    principal = request.principal
    learned = learned_lately(principal)
    waits = waiting(principal) if principal.can_review else None
    context = {
        "waiting": waits,
        "waiting_count": waits.pending if waits is not None else 0,
        "learned": learned,
        "learned_scopes": scopes_shown(learned.newest),
        "proposed": proposed_lately(principal),
    }
    return render(request, "review/home.html", context)


# --- the queue ----------------------------------------------------------------------------------------------
@looked_at
@page(Role.REVIEWER, to="review candidates")
def queue(request: PageRequest) -> HttpResponseBase:
    # An address without a filter opens with the one that this person wants to begin with; any filter is its own.
    saved = saved_filters(request.principal)
    chosen = next((each for each in saved if each.is_default), None)
    if chosen is not None and not request.GET:
        return HttpResponseRedirect(f"{reverse('approvals:queue')}?{chosen.query}")
    return _queue_page(request, saved=saved)


def _queue_page(
    request: PageRequest,
    *,
    refusal: DomainError | None = None,
    ticked: frozenset[str] = frozenset(),
    reason: str = "",
    save: SaveFilterForm | None = None,
    saved: list[SavedFilter] | None = None,
) -> HttpResponse:
    principal = request.principal
    types = memory_types(principal.workspace)
    form = QueueFilterForm(request.GET, types=types)
    context: dict[str, Any] = {
        "form": form,
        "filters": QueueFilterForm.carried(request.GET),
        "parameters": repeatable(request.GET),
        "flag_names": FLAGS,
        "refusal": refusal,
        "ticked": ticked,
        "reason": without_secrets(reason),
        "statuses": CandidateStatus.choices,
        "status": CandidateStatus.PENDING.value,
        "saved": saved_filters(principal) if saved is None else saved,
        "save": save or SaveFilterForm(),
    }
    status = refusal.status if refusal else 200
    if form.is_valid():
        try:
            context |= _queue_rows(request, form, types)
        except Invalid as error:
            form.add_refusal(error)
    if form.errors or (save is not None and save.errors):
        status = 422
    response = render_framed(request, "review/queue.html", context, status=status)
    if refusal is not None:
        # Whoever is told beside the buttons stays there.
        response["HX-Reswap"] = "outerHTML show:none"
    return response


def _queue_rows(request: PageRequest, form: QueueFilterForm, types: list[Any]) -> dict[str, Any]:
    principal, asked = request.principal, form.asked()
    status = asked.status or CandidateStatus.PENDING.value
    matching = in_any_status(principal, asked, types=types)
    rows = matching.filter(status=status).select_related("type", "origin_token", "claimed_by")
    if status not in OPEN:
        rows = rows.select_related("decision__memory").defer("decision__memory__search_vector")
    found: Page[Candidate] = page_of(
        rows, order=queue_order(status), limit=ROWS, cursor=request.GET.get("cursor"), request=request
    )
    facets = queue_facets(matching, status)
    counts, in_all = queue_counts(principal, matching, known={status: facets.total})
    return {
        "rows": queue_rows(principal, found.rows),
        "counts": counts,
        "waiting_count": in_all,
        "facets": facets,
        "facet_groups": facet_groups(
            request.GET, facets.values, FACETS, named=facet_name, whole=f"status={CandidateStatus.PENDING}"
        ),
        "next": found.next,
        "previous": found.previous,
        "status": status,
        "decidable": status in OPEN,
        "unknown": _unknown_names(principal.workspace, asked) if not found.rows else (),
    }


def facet_name(name: str, value: str) -> str:
    """What people call a value of a facet."""
    if name == "flag":
        return FLAGS.get(value, value)
    return words(value) if name == "type" else value


def _unknown_names(workspace: Any, asked: QueueFilter) -> list[str]:
    """Why nothing is found, where the reason is a name that nobody has used here."""
    sentences = []
    if asked.repo is not None and find_repository(workspace, asked.repo) is None:
        sentences.append(f"There is no repository “{asked.repo[:80]}” here.")
    if asked.domain is not None and not Domain.objects.filter(workspace=workspace, slug=asked.domain).exists():
        sentences.append(f"There is no domain “{asked.domain[:80]}” here.")
    return sentences


@posted
@page(Role.REVIEWER, to="keep a filter of the queue", sent="filter")
def filter_save(request: PageRequest) -> HttpResponseBase:
    """Keep the filter that stands in the address of the form."""
    form = SaveFilterForm(request.POST)
    form.full_clean()
    try:
        kept = saved_filter_save(
            principal=request.principal,
            name=form.cleaned_data.get("name", ""),
            query=request.GET.urlencode(),
            is_default=form.cleaned_data.get("is_default", False),
        )
    except Invalid as refusal:
        form.add_refusal(refusal)
        return _queue_page(request, save=form)
    messages.success(request, f"Kept as “{kept.name}”.")
    return SeeOther(f"{reverse('approvals:queue')}?{kept.query}")


@posted
@page(Role.REVIEWER, to="change a filter of the queue")
def filter_open_with(request: PageRequest, filter_id: int) -> HttpResponseBase:
    wanted = request.POST.get("default") == "yes"
    kept = saved_filter_open_with(principal=request.principal, filter_id=filter_id, is_default=wanted)
    said = f"The queue opens with “{kept.name}” now." if wanted else "The queue opens with everything pending now."
    messages.success(request, said)
    return SeeOther(_whole_queue(request))


@posted
@page(Role.REVIEWER, to="change a filter of the queue")
def filter_remove(request: PageRequest, filter_id: int) -> HttpResponseBase:
    removed = saved_filter_remove(principal=request.principal, filter_id=filter_id)
    messages.success(request, f"“{removed.name}” is removed.")
    return SeeOther(_whole_queue(request))


def _whole_queue(request: PageRequest) -> str:
    """Back to what was being looked at; with nothing looked at, to all that is pending and not to a filter."""
    filters = QueueFilterForm.carried(request.GET) or f"status={CandidateStatus.PENDING}"
    return f"{reverse('approvals:queue')}?{filters}"


@looked_at
@page(Role.REVIEWER, to="review candidates")
def bulk_all(request: PageRequest) -> HttpResponseBase:
    """How many the filter admits, and one decision about all of them. Those that come later are not part of it."""
    asked = _asked(request)
    return _queue_page(request) if asked is None else _bulk_all_page(request, asked)


def _bulk_all_page(
    request: PageRequest, asked: QueueFilter, *, refusal: DomainError | None = None, reason: str = ""
) -> HttpResponse:
    found = matching(request.principal, asked)
    context = {
        "found": found,
        "total": len(found.rows),
        "shown": found.rows[:SAMPLE],
        "rest": found.rows[SAMPLE:],
        "approvable": len(found.rows) - found.unopened,
        "narrows": _narrowing(request.GET),
        "filters": QueueFilterForm.carried(request.GET),
        "refusal": refusal,
        "reason": without_secrets(reason),
    }
    return render_framed(request, "review/bulk_all.html", context, status=refusal.status if refusal else 200)


def _narrowing(parameters: QueryDict) -> list[tuple[str, str]]:
    """The filter in words: what each of its fields is called, and what was asked of it."""
    fields = QueueFilterForm.base_fields
    asked = ((name, str(parameters[name]).strip()) for name in parameters if name in fields)
    return [(str(fields[name].label), _value_words(name, value)) for name, value in asked if value]


def _value_words(name: str, value: str) -> str:
    return str(CandidateStatus(value).label).lower() if name == "status" else facet_name(name, value)


@posted
@page(to="decide about candidates", sent="decision about several candidates")
def bulk(request: PageRequest) -> HttpResponseBase:
    principal, reason = request.principal, request.POST.get("reason", "").replace("\r\n", "\n")
    policy.require_reviewer(principal, to="decide about candidates", subject_kind="candidate", subject_id="bulk")
    items = bulk_items(request.POST)
    ticked = frozenset(f"{item.id}:{item.version}" for item in items)
    if request.POST.get("action") == "":
        refusal = Invalid("Enter decides nothing here: press Approve, or Reject.")
        return _queue_page(request, refusal=refusal, ticked=ticked, reason=reason)
    action = _bulk_action(request.POST.get("action", ""))
    if not items:
        return _queue_page(request, refusal=Invalid("Tick at least one candidate first."), reason=reason)
    try:
        batch, outcomes = candidates_decide(principal=principal, action=action, items=items, reason=reason)
    except Invalid as refusal:
        if request.POST.get("all") and (asked := _asked(request)) is not None:
            return _bulk_all_page(request, asked, refusal=refusal, reason=reason)
        return _queue_page(request, refusal=refusal, ticked=ticked, reason=reason)
    return render_framed(request, "review/bulk.html", _bulk_result(request, action, batch, outcomes, reason))


def _bulk_action(value: str) -> Action:
    if value not in (Action.APPROVE, Action.REJECT):
        raise Malformed("Use the action approve or reject.")
    return Action(value)


def _bulk_result(
    request: PageRequest, action: Action, batch: UUID, outcomes: list[Outcome], reason: str
) -> dict[str, Any]:
    ids = [outcome.id for outcome in outcomes]
    rows = candidates_visible(request.principal).filter(pk__in=ids).select_related("type")
    candidates = {row.pk: row for row in rows}
    results = [(outcome, candidates.get(outcome.id)) for outcome in outcomes]
    done = sum(outcome.outcome == "done" for outcome in outcomes)
    return {
        "results": results,
        "successes": [result for result in results if result[0].outcome == "done"],
        "failures": [result for result in results if result[0].outcome != "done"],
        "done": done,
        "failed": len(outcomes) - done,
        "past": _PAST[action],
        "batch": batch,
        "reason": reason,
        "filters": QueueFilterForm.carried(request.GET),
    }


# --- one candidate ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Why a decision came to nothing, for the page that offers it again."""

    title: str
    detail: str
    decided: Entry | None = None
    mine: bool = False
    since: list[Entry] = field(default_factory=list)
    seen_version: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@looked_at
@page(Role.REVIEWER, to="review candidates")
def candidate(request: PageRequest, candidate_id: UUID) -> HttpResponseBase:
    row = candidate_for(request.principal, candidate_id)
    if request.method == "GET":
        return _open(request, row)
    opened_record(request.principal, row)
    return _candidate_page(request, row)


def _open(request: PageRequest, row: Candidate) -> HttpResponse:
    """Show it to somebody who is going to decide."""
    opened_record(request.principal, row)
    candidate_claim(principal=request.principal, candidate=row)
    return _candidate_page(request, row)


def _candidate_page(
    request: PageRequest,
    row: Candidate,
    *,
    forms: dict[str, ApproveForm | DecideForm] | None = None,
    refusal: DomainError | None = None,
    status: int = 200,
) -> HttpResponse:
    """``forms`` holds what was sent and came to nothing, by action; the other forms are blank."""
    page_sheet = sheet(request.principal, row)
    sent = forms or {}
    context = {
        "sheet": page_sheet,
        "candidate": row,
        "shown": page_sheet.shown,
        "captured": captured_from(request.principal, row.pk),
        "filters": QueueFilterForm.carried(request.GET),
        "flag_names": FLAGS,
        "clash": _clash(page_sheet, refusal, sent) if refusal else None,
        "approve": sent.get("approve") or _approve_form(request, page_sheet),
        "reject": sent.get("reject") or RejectForm(initial=page_sheet.initial, auto_id="reject-%s"),
        "reopen": sent.get("reopen") or DecideForm(initial=page_sheet.initial, auto_id="reopen-%s"),
        "sent": sent,
        "reasons": reasons_lately(request.principal) if row.is_open and not page_sheet.objection else [],
        **_around(request, row),
    }
    return render_framed(request, "review/candidate.html", context, status=refusal.status if refusal else status)


def _around(request: PageRequest, row: Candidate) -> dict[str, Any]:
    """Where the keys for the next and the previous one lead, in the list that the address names."""
    asked = _asked(request)
    if asked is None:
        return {}
    found = around(request.principal, asked, row)
    return {
        "previous_url": _candidate_url(found.previous, request) if found.previous else None,
        "next_url": _candidate_url(found.next, request) if found.next else None,
        "place": found,
    }


def _asked(request: PageRequest) -> QueueFilter | None:
    """The filter in the address; ``None`` where it will not do."""
    filters = request.GET.copy()
    filters.pop(TAKEN_UP, None)
    form = QueueFilterForm(filters, types=memory_types(request.principal.workspace))
    return form.asked() if form.is_valid() else None


def _approve_form(request: PageRequest, page_sheet: Sheet, data: QueryDict | None = None) -> ApproveForm:
    types = memory_types(request.principal.workspace)
    taken_up = request.GET.get(TAKEN_UP, "") if data is None else ""
    if taken_up in page_sheet.suggested:
        supersedes = tuple(dict.fromkeys([*page_sheet.initial["supersedes"], taken_up]))
        return ApproveForm(initial=page_sheet.initial | {"supersedes": supersedes}, types=types, taken_up=True)
    return ApproveForm(data, initial=page_sheet.initial, types=types)


def _clash(page_sheet: Sheet, refusal: DomainError, sent: dict[str, ApproveForm | DecideForm]) -> Clash:
    """Whoever sent the form is told what happened meanwhile and sends it again for the version there is now."""
    seen = next((form.cleaned_data.get("version") for form in sent.values() if form.is_valid()), None)
    for form in sent.values():
        _renew_version(form, page_sheet.candidate.version)
    last = page_sheet.last
    if refusal.code == "already_decided" and last is not None and not page_sheet.candidate.is_open:
        mine = last.verdict.reviewer_id == page_sheet.reader_id
        title = "It had arrived the first time" if mine else "Somebody was faster"
        return Clash(title=title, detail="", decided=last, mine=mine, seen_version=seen)
    if refusal.code == "stale":
        since = page_sheet.since(seen)
        return Clash(title="It has changed", detail=refusal.detail, since=since, seen_version=seen)
    titles = {"already_known": "This is known already", "target_not_in_force": "What it replaces has moved on"}
    title = titles.get(refusal.code, "It is still open" if isinstance(refusal, Unavailable) else "It cannot be done")
    return Clash(title=title, detail=refusal.detail, extra=refusal.extra, seen_version=seen)


def _renew_version(form: ApproveForm | DecideForm, version: int) -> None:
    form.data = {**form.data.dict(), "version": str(version)} if isinstance(form.data, QueryDict) else form.data


@posted
@page(to="approve a candidate", sent="approval")
def approve(request: PageRequest, candidate_id: UUID) -> HttpResponseBase:
    row = _to_decide(request, candidate_id, Action.APPROVE)
    form = _approve_form(request, sheet(request.principal, row), request.POST)
    if not form.is_valid():
        return _candidate_page(request, row, forms={"approve": form}, status=422)
    try:
        approved = services.candidate_approve(
            principal=request.principal,
            candidate_id=candidate_id,
            version=form.cleaned_data["version"],
            amendment=form.amendment(),
            note=form.cleaned_data["reason"],
        )
    except (Invalid, Conflict, Unavailable) as refusal:
        return _refused(request, candidate_id, "approve", form, refusal)
    return _go_on(request, approved.candidate, _approved_message(request, approved.candidate, approved.memory))


@posted
@page(to="reject a candidate", sent="rejection")
def reject(request: PageRequest, candidate_id: UUID) -> HttpResponseBase:
    row = _to_decide(request, candidate_id, Action.REJECT)
    form = RejectForm(request.POST, auto_id="reject-%s")
    if not form.is_valid():
        return _candidate_page(request, row, forms={"reject": form}, status=422)
    try:
        row = services.candidate_reject(principal=request.principal, candidate_id=candidate_id, **form.cleaned_data)
    except (Invalid, Conflict, Unavailable) as refusal:
        return _refused(request, candidate_id, "reject", form, refusal)
    return _go_on(request, row, format_html("Rejected. {}", _link_back(request, row)))


@posted
@page(to="reopen a candidate", sent="reopening")
def reopen(request: PageRequest, candidate_id: UUID) -> HttpResponseBase:
    row = _to_decide(request, candidate_id, Action.REOPEN)
    form = DecideForm(request.POST, auto_id="reopen-%s")
    if not form.is_valid():
        return _candidate_page(request, row, forms={"reopen": form}, status=422)
    try:
        services.candidate_reopen(principal=request.principal, candidate_id=candidate_id, **form.cleaned_data)
    except (Invalid, Conflict, Unavailable) as refusal:
        return _refused(request, candidate_id, "reopen", form, refusal)
    messages.success(request, "Reopened. It is waiting for review again.")
    last_decision.forget(request)
    return _show(request, candidate_for(request.principal, candidate_id))


def _to_decide(request: PageRequest, candidate_id: UUID, action: Action) -> Candidate:
    """The right is asked for before the row, so that an attempt without it is on record and not a 404."""
    principal = request.principal
    policy.require_reviewer(
        principal, to=f"{action.value} a candidate", subject_kind="candidate", subject_id=candidate_id
    )
    return candidate_for(principal, candidate_id)


def _refused(
    request: PageRequest, candidate_id: UUID, action: str, form: ApproveForm | DecideForm, refusal: DomainError
) -> HttpResponse:
    """The candidate as it is now, with what was typed and why it came to nothing."""
    row = candidate_for(request.principal, candidate_id)
    if isinstance(refusal, Invalid):
        form.add_refusal(refusal)
        return _candidate_page(request, row, forms={action: form}, status=refusal.status)
    return _candidate_page(request, row, forms={action: form}, refusal=refusal)


def _go_on(request: PageRequest, decided: Candidate, message: SafeString) -> HttpResponseBase:
    """To the next one in the same filter, with a way back to this one."""
    messages.success(request, message)
    last_decision.remember(request, decided)
    asked = _asked(request)
    following = next_to_review(request.principal, asked, decided) if asked is not None else None
    return _to_queue(request) if following is None else _show(request, following)


def _show(request: PageRequest, row: Candidate) -> HttpResponseBase:
    """A page of its own for browsers without scripts; with htmx it comes in the answer to the decision."""
    url = _candidate_url(row.pk, request)
    response: HttpResponseBase = SeeOther(url)
    if wants_content(request):
        response = _open(request, row)
        response["HX-Push-Url"] = url
    last_decision.carry(request, response)
    return response


def _to_queue(request: PageRequest) -> HttpResponseBase:
    filters = QueueFilterForm.carried(request.GET)
    url = reverse("approvals:queue") + (f"?{filters}" if filters else "")
    response: HttpResponseBase = SeeOther(url)
    if wants_content(request):
        response = HttpResponseLocation(url, target="#content", swap="outerHTML show:window:top")
    last_decision.carry(request, response)
    return response


def _candidate_url(candidate_id: UUID, request: PageRequest) -> str:
    filters = QueueFilterForm.carried(request.GET)
    return reverse("approvals:candidate", args=[candidate_id]) + (f"?{filters}" if filters else "")


def _link_back(request: PageRequest, row: Candidate) -> SafeString:
    """What was decided, to look at again or to take back; the form that the button sends is in the page's frame."""
    return format_html(
        '<a href="{}">Look at it again</a> <button class="button button-small" form="undo">Undo{}</button>',
        reverse("approvals:candidate", args=[row.pk]),
        shortcuts.printed(request, "undo"),
    )


# --- how somebody works ---------------------------------------------------------------------------------------
@posted
@page(to="use shortcuts")
def switch_shortcuts(request: PageRequest) -> HttpResponseBase:
    back = request.POST.get("back", "")
    safe = url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    response = SeeOther(back if safe else reverse("approvals:home"))
    shortcuts.shortcuts_switch(response, on=request.POST.get("switch") != shortcuts.OFF)
    return response


def _approved_message(request: PageRequest, row: Candidate, memory: Memory) -> SafeString:
    url = reverse("retrieval:memory", args=[memory.label])
    said = "Approved as" if row.corrects_id is None or row.has_replacement else "Approved, which retired"
    return format_html('{} <a href="{}">{}</a>. {}', said, url, memory.label, _link_back(request, row))


# --- decisions about a memory -------------------------------------------------------------------------------
@posted
@page(to="retire a memory", sent="retirement of a memory")
def retire(request: PageRequest, reference: str) -> HttpResponseBase:
    return _change_memory(request, reference, Action.RETIRE)


@posted
@page(to="restore a memory", sent="restoration of a memory")
def restore(request: PageRequest, reference: str) -> HttpResponseBase:
    return _change_memory(request, reference, Action.RESTORE)


def _change_memory(request: PageRequest, reference: str, action: Action) -> HttpResponseBase:
    principal = request.principal
    change = services.memory_retire if action is Action.RETIRE else services.memory_restore
    policy.require_reviewer(principal, to=f"{action.value} a memory", subject_kind="memory", subject_id=reference)
    memory = memory_for(principal, reference)
    form = ReasonForm(request.POST, auto_id=f"{action.value}-%s")
    form.full_clean()
    try:
        memory = change(principal=principal, reference=memory.pk, reason=form.cleaned_data.get("reason", ""))
    except Invalid as refusal:
        form.add_refusal(refusal)
        return memory_page(request, memory, forms={action.value: form}, status=refusal.status)
    except (Conflict, Unavailable) as refusal:
        memory = memory_for(principal, memory.pk)
        return memory_page(request, memory, forms={action.value: form}, refusal=refusal, status=refusal.status)
    messages.success(request, f"{memory.label} is {memory.get_status_display().lower()} now.")
    return SeeOther(reverse("retrieval:memory", args=[memory.label]))
