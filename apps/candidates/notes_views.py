"""The page with the working notes of a task, where people say what became of a finding and propose what is worth it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.html import format_html

from apps.accounts.pages import PageRequest, page
from apps.candidates.forms import DispositionForm, TaskForm
from apps.candidates.notes import note_delete, note_dispose, note_propose
from apps.candidates.services import Proposed
from apps.core.errors import DomainError
from apps.core.frames import render_framed
from apps.core.methods import looked_at, posted
from apps.core.pagination import Page, page_of
from apps.core.redirects import SeeOther
from apps.memories.models import Disposition, TaskNote
from apps.memories.notes import is_origin, notes_of, notes_shown, tasks_lately

ROWS = 25


@looked_at
@page(to="see the notes of a task")
def tasks(request: PageRequest) -> HttpResponseBase:
    return _tasks_page(request, TaskForm(request.GET))


def _tasks_page(request: PageRequest, form: TaskForm, *, status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {"form": form, "dispositions": Disposition.choices}
    if not form.is_valid():
        return render_framed(request, "candidates/tasks.html", context, status=422)
    task = form.cleaned_data["task"]
    if task:
        context |= _notes(request, task)
    else:
        context["tasks"] = tasks_lately(request.principal)
    return render_framed(request, "candidates/tasks.html", context, status=status)


def _notes(request: PageRequest, task: str) -> dict[str, Any]:
    principal = request.principal
    rows = notes_of(principal, task).select_related("type__category", "origin_token")
    cursor = request.GET.get("cursor")
    found: Page[TaskNote] = page_of(rows, order=("-created_at", "-id"), limit=ROWS, cursor=cursor, request=request)
    shown = notes_shown(principal, found.rows)
    return {
        "task": task,
        "notes": [
            {"note": note, "shown": each, "may_delete": principal.can_review or is_origin(principal, note)}
            for note, each in zip(found.rows, shown, strict=True)
        ],
        "next": found.next,
        "previous": found.previous,
    }


def _back(task: str) -> SeeOther:
    return SeeOther(f"{reverse('candidates:tasks')}?{urlencode({'task': task})}")


def _refused(request: PageRequest, task: str, refusal: DomainError) -> HttpResponse:
    """The page as it was, with why nothing was done."""
    messages.error(request, " ".join(error.message for error in refusal.errors) or refusal.detail)
    return _tasks_page(request, TaskForm({"task": task}), status=refusal.status)


@posted
@page(to="propose a note", sent="proposal")
def propose(request: PageRequest, note_id: UUID) -> HttpResponseBase:
    task = request.POST.get("task", "")
    try:
        proposed = note_propose(principal=request.principal, task=task, note_id=note_id, changes={})
    except DomainError as refusal:
        return _refused(request, task, refusal)
    messages.success(request, format_html("{} {}", _told(proposed), _where(request, proposed)))
    return _back(task)


def _told(proposed: Proposed) -> str:
    if not proposed.created:
        return proposed.reason
    return f"Proposed. Somebody else decides about it. {proposed.reason}".strip()


def _where(request: PageRequest, proposed: Proposed) -> str:
    if request.principal.can_review:
        sheet = reverse("approvals:candidate", args=[proposed.candidate.pk])
        return format_html('<a href="{}">See it in the queue</a>.', sheet)
    address = f"{reverse('candidates:propose')}?proposed={proposed.candidate.pk}"
    return format_html('<a href="{}">Follow it here</a>.', address)


@posted
@page(to="say what became of a finding", sent="disposition")
def dispose(request: PageRequest, note_id: UUID) -> HttpResponseBase:
    task = request.POST.get("task", "")
    form = DispositionForm(request.POST)
    form.is_valid()
    try:
        note_dispose(
            principal=request.principal,
            task=task,
            note_id=note_id,
            disposition=form.cleaned_data.get("disposition", ""),
        )
    except DomainError as refusal:
        return _refused(request, task, refusal)
    messages.success(request, "Noted what became of it.")
    return _back(task)


@posted
@page(to="delete a note", sent="deletion")
def delete(request: PageRequest, note_id: UUID) -> HttpResponseBase:
    task = request.POST.get("task", "")
    try:
        note_delete(principal=request.principal, task=task, note_id=note_id)
    except DomainError as refusal:
        return _refused(request, task, refusal)
    messages.success(request, "Deleted. Nothing finds it any more.")
    return _back(task)
