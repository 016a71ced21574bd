"""Queue, verdicts and notes of tasks, to look at. Deciding is done on the review pages, where the gate is."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.accounts.principal import Principal
from apps.candidates.models import Candidate, CandidateEvidence
from apps.core.clock import now
from apps.memories.admin import (
    MAX_LINKED,
    LedgerAdmin,
    as_uuid,
    excerpt,
    link,
    listed,
    scope_text,
    seen_source,
    source_link,
    verdict_link,
)
from apps.memories.models import Action, Memory, SubjectKind, TaskNote, Verdict
from apps.memories.selectors import memories_visible
from apps.memories.words import AllWords


@admin.register(Candidate)
class CandidateAdmin(LedgerAdmin):
    list_display = ["short_id", "summary", "type", "status", "origin_name", "version", "created_at"]
    list_select_related = ["type"]
    list_filter = ["status", "tier", "type"]
    search_fields = ["content"]
    search_help_text = "Words of the statement, or its id."
    searched_text = "search_vector"
    ordering = ["-created_at"]
    shown = (
        *("content", "type", "scope", "tier", "status", "status_reason", "confidence", "valid_from"),
        *("origin_name", "proposers_listed", "sources", "seen_count", "supersedes_listed"),
        *("corrects_link", "correction_kind", "correction_reason", "flags"),
        *("decision_link", "verdicts", "version", "created_at", "updated_at", "id", "fingerprint"),
    )

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        return rows.filter(audience_ids__contained_by=list(principal.audience_ids))

    @admin.display(description="id")
    def short_id(self, row: Candidate) -> str:
        return str(row.pk)[:8]

    @admin.display(description="statement")
    def summary(self, row: Candidate) -> str:
        return excerpt(row.content)

    @admin.display(description="scope")
    def scope(self, row: Candidate) -> str:
        return scope_text(row)

    @admin.display(description="proposed by")
    def proposers_listed(self, row: Candidate) -> str:
        return listed(f"{proposer.name}, {proposer.created_at:%Y-%m-%d %H:%M}" for proposer in row.proposers.all())

    @admin.display(description="sources")
    def sources(self, row: Any) -> str:
        evidence = row.evidence.filter(seen_source(row.reader)).select_related("source")
        return listed(source_link(item.source, item.quote) for item in evidence[:MAX_LINKED])

    @admin.display(description="would replace")
    def supersedes_listed(self, row: Any) -> str:
        rows = memories_visible(row.reader).filter(pk__in=row.supersedes)
        return listed(link(memory, memory.label) for memory in rows)

    @admin.display(description="reports")
    def corrects_link(self, row: Candidate) -> str:
        return link(row.corrects, row.corrects.label) if row.corrects is not None else "—"

    @admin.display(description="decided by")
    def decision_link(self, row: Candidate) -> str:
        return verdict_link(row.decision) if row.decision is not None else "—"

    @admin.display(description="verdicts")
    def verdicts(self, row: Candidate) -> str:
        rows = Verdict.objects.filter(workspace=row.workspace_id, subject_id=row.pk)
        return listed(verdict_link(verdict) for verdict in rows[:MAX_LINKED])


@admin.register(CandidateEvidence)
class CandidateEvidenceAdmin(LedgerAdmin):
    list_display = ["id", "candidate_link", "source_link", "quote"]
    list_filter = ["source__kind"]
    search_fields = ["source__reference", "quote"]
    shown = ("candidate_link", "source_link", "quote")

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        mine = list(principal.audience_ids)
        rows = rows.filter(seen_source(principal), candidate__audience_ids__contained_by=mine)
        return rows.select_related("candidate", "source").defer("candidate__search_vector", "candidate__vector")

    @admin.display(description="candidate")
    def candidate_link(self, row: CandidateEvidence) -> str:
        return link(row.candidate, excerpt(row.candidate.content))

    @admin.display(description="source")
    def source_link(self, row: CandidateEvidence) -> str:
        return source_link(row.source)


@admin.register(Verdict)
class VerdictAdmin(LedgerAdmin):
    """Here rather than beside the memories: it is about either, and shown to whoever may see its subject."""

    list_display = ["created_at", "action", "subject_link", "reviewer_name", "via", "second_person", "reason_start"]
    list_filter = ["action", "subject_kind", "via", "second_person"]
    search_fields = ["reviewer_name", "reason"]
    search_help_text = "A reviewer's name, words of the reason, or the id of the verdict or of what it is about."
    ordering = ["-created_at", "-id"]
    shown = (
        *("action", "subject_link", "reviewer_name", "reason", "before", "after", "second_person", "via"),
        *("token", "request_id", "batch_id", "created_at", "id"),
    )

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        mine = list(principal.audience_ids)
        for kind in (Memory, Candidate):
            hidden = kind.objects.filter(workspace=principal.workspace).exclude(audience_ids__contained_by=mine)
            rows = rows.exclude(subject_id__in=hidden.values("pk"))
        unseen = Memory.objects.filter(workspace=principal.workspace).exclude(audience_ids__contained_by=mine)
        named = unseen.annotate(text=Cast("pk", TextField())).values("text")
        return rows.alias(by=KeyTextTransform("by", "after")).exclude(action=Action.SUPERSEDE, by__in=named)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        key = as_uuid(search_term.strip())
        if key is not None:
            return queryset.filter(Q(pk=key) | Q(subject_id=key)), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description="about")
    def subject_link(self, verdict: Verdict) -> SafeString:
        subject = Memory if verdict.subject_kind == SubjectKind.MEMORY else Candidate
        label = format_html("{} {}", verdict.subject_kind, str(verdict.subject_id)[:8])
        return link(subject(pk=verdict.subject_id), label)

    @admin.display(description="reason")
    def reason_start(self, verdict: Verdict) -> str:
        return excerpt(verdict.reason)


_LATEST_NOTES: Final = 500
_TASKS: Final = 30


class TaskFilter(admin.SimpleListFilter):
    """The tasks that the latest notes are of; any other one is named in the address, or searched for."""

    title = "task"
    parameter_name = "task"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        latest = model_admin.get_queryset(request).order_by("-created_at", "-id")
        names = latest.values_list("task", flat=True)[:_LATEST_NOTES]
        tasks = [*dict.fromkeys(names)][:_TASKS]
        chosen = self.value()
        return [(task, task) for task in ([] if chosen in (None, *tasks) else [chosen]) + tasks]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        task = self.value()
        return queryset if task is None else queryset.filter(task=task)


class ExpiryFilter(admin.SimpleListFilter):
    """What has expired is served to nobody, and here until the worker deletes it."""

    title = "expired"
    parameter_name = "expired"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "No"), ("yes", "Yes, not yet deleted")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "no":
                return queryset.filter(expires_at__gt=now())
            case "yes":
                return queryset.filter(expires_at__lte=now())
            case _:
                return queryset


@admin.register(TaskNote)
class TaskNoteAdmin(LedgerAdmin):
    """Here rather than beside the memories: a note is written, proposed and deleted by this room."""

    audit_kind = "note"
    list_display = ["task", "summary", "type", "disposition", "origin_name", "created_at", "expires_at", "embedded"]
    list_display_links = ["summary"]
    list_select_related = ["type"]
    list_filter = [ExpiryFilter, ("embedded_at", admin.EmptyFieldListFilter), "disposition", "type", TaskFilter]
    search_fields = ["content"]
    search_help_text = "Words of the note, a part of its task's name, or its id."
    searched_text = "search_vector"
    ordering = ["-created_at", "-id"]
    shown = (
        *("task_link", "content", "type", "scope", "disposition", "disposed_by", "disposed_at"),
        *("origin_name", "sources", "proposed_link"),
        *("created_at", "expires_at", "embedded_at", "id", "fingerprint"),
    )

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        return rows.filter(audience_ids__contained_by=list(principal.audience_ids))

    def exact_match(self, term: str) -> Q | None:
        found = super().exact_match(term)
        if found is not None:
            return found
        return Q(task__icontains=term) | Q(search_vector=AllWords(term))

    @admin.display(description="note")
    def summary(self, note: TaskNote) -> str:
        return excerpt(note.content)

    @admin.display(description="embedded", boolean=True)
    def embedded(self, note: TaskNote) -> bool:
        return note.embedded_at is not None

    @admin.display(description="task")
    def task_link(self, note: TaskNote) -> str:
        address = f"{reverse('candidates:tasks')}?{urlencode({'task': note.task})}"
        return format_html('<a href="{}">{}</a>', address, note.task)

    @admin.display(description="scope")
    def scope(self, note: TaskNote) -> str:
        return scope_text(note)

    @admin.display(description="sources")
    def sources(self, note: Any) -> str:
        rows = note.evidence.filter(seen_source(note.reader)).select_related("source")
        return listed(source_link(row.source, row.quote) for row in rows[:MAX_LINKED])

    @admin.display(description="proposed as")
    def proposed_link(self, note: Any) -> str:
        mine = list(note.reader.audience_ids)
        rows = Candidate.objects.filter(workspace=note.workspace_id, audience_ids__contained_by=mine)
        candidate = rows.filter(pk=note.proposed_as).first()
        return link(candidate, excerpt(candidate.content)) if candidate is not None else "—"
