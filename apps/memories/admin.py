"""The ledger, to look at. Nothing of it can be added, changed or deleted here: verdicts do that, on the pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from apps.accounts.admin_site import ReadOnlyAdmin, admin_principal
from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.memories.models import Memory, MemoryEvidence, PoolGeneration, Supersession, Verdict
from apps.memories.selectors import scopes_shown
from apps.memories.words import AllWords
from apps.sources.models import Source

MAX_LINKED = 50


class LedgerAdmin(ReadOnlyAdmin):
    """Counts no rows but those that are shown, and searches by words as documents are indexed."""

    show_full_result_count = False
    list_per_page = 50
    shown: ClassVar[tuple[str, ...]] = ()
    searched_text: ClassVar[str | None] = None

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*self.shown]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*self.shown]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return self.visible(super().get_queryset(request), admin_principal(request))

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        """Only what the audiences of whoever looks allow; the admin is no way around them."""
        raise NotImplementedError

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """With whoever looks at it, for the columns that list other rows: an admin page serves all threads."""
        found: Any = super().get_object(request, object_id, from_field)
        if found is not None:
            found.reader = admin_principal(request)
        return found

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term or self.searched_text is None:
            return super().get_search_results(request, queryset, term)
        exact = self.exact_match(term)
        if exact is None:
            exact = Q(**{self.searched_text: AllWords(term)})
        return queryset.filter(exact), False

    def exact_match(self, term: str) -> Q | None:
        """The row that a term names outright, by its id."""
        key = as_uuid(term)
        return None if key is None else Q(pk=key)


def as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def excerpt(text: str) -> str:
    return Truncator(text).chars(120)


def link(row: Model, label: str) -> SafeString:
    address = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', address, label)


def listed(items: Iterable[SafeString | str]) -> SafeString | str:
    return format_html_join("", "<div>{}</div>", ((item,) for item in items)) or "—"


def scope_text(row: Any) -> str:
    """Where it holds, in names. For one row: it looks them up."""
    scope = scopes_shown([row])[row.pk]
    firm = ["the whole firm"] if scope["firm"] else []
    domains = [f"domain {name}" for name in scope["domains"]]
    return ", ".join([*firm, *domains, *(f"repository {name}" for name in scope["repos"])])


def source_link(source: Source, quote: str = "") -> SafeString:
    return format_html("{} {}", link(source, str(source)), f"“{quote}”" if quote else "")


def seen_source(principal: Principal, path: str = "source") -> Q:
    """Conditions on the source at ``path`` that admit what this reader may see."""
    open_to_all = Q(**{f"{path}__audience__isnull": True})
    return open_to_all | Q(**{f"{path}__audience__in": principal.audience_ids})


@admin.register(Memory)
class MemoryAdmin(LedgerAdmin):
    list_display = ["label", "summary", "type", "tier", "status", "recorded_at"]
    list_select_related = ["type"]
    list_filter = ["status", "tier", "type", "firm"]
    search_fields = ["content"]
    search_help_text = "Words of the statement, its number such as M-12, or its id."
    searched_text = "search_vector"
    ordering = ["-number"]
    shown = (
        *("label", "content", "type", "scope", "tier", "status", "confidence"),
        *("valid_from", "valid_to", "closed_at", "recorded_at", "retired_at"),
        *("sources", "replaces_listed", "replaced_by_listed", "approved_by", "verdicts", "id", "fingerprint"),
    )

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        return rows.filter(audience_ids__contained_by=list(principal.audience_ids))

    def exact_match(self, term: str) -> Q | None:
        number = term[2:] if term[:2].upper() == "M-" else ""
        if number.isascii() and number.isdecimal() and len(number) <= 18:
            return Q(number=int(number))
        return super().exact_match(term)

    @admin.display(description="number", ordering="number")
    def label(self, memory: Memory) -> str:
        return memory.label

    @admin.display(description="statement")
    def summary(self, memory: Memory) -> str:
        return excerpt(memory.content)

    @admin.display(description="scope")
    def scope(self, memory: Memory) -> str:
        return scope_text(memory)

    @admin.display(description="sources")
    def sources(self, memory: Any) -> str:
        rows = memory.evidence.filter(seen_source(memory.reader)).select_related("source")
        return listed(source_link(row.source, row.quote) for row in rows[:MAX_LINKED])

    @admin.display(description="replaces")
    def replaces_listed(self, memory: Any) -> str:
        edges = SupersessionAdmin.among(memory.reader, memory.replaces.live())
        return listed(link(edge.old, f"{edge.old.label} ({edge.kind})") for edge in edges[:MAX_LINKED])

    @admin.display(description="replaced by")
    def replaced_by_listed(self, memory: Any) -> str:
        edges = SupersessionAdmin.among(memory.reader, memory.replaced_by.live())
        return listed(link(edge.new, f"{edge.new.label} ({edge.kind})") for edge in edges[:MAX_LINKED])

    @admin.display(description="approved by")
    def approved_by(self, memory: Memory) -> str:
        return verdict_link(memory.verdict)

    @admin.display(description="verdicts since")
    def verdicts(self, memory: Memory) -> str:
        rows = Verdict.objects.filter(workspace=memory.workspace_id, subject_id=memory.pk)
        return listed(verdict_link(row) for row in rows[:MAX_LINKED])


def verdict_link(verdict: Verdict) -> SafeString:
    when = f"{verdict.created_at:%Y-%m-%d %H:%M}"
    return link(verdict, f"{verdict.get_action_display()} by {verdict.reviewer_name}, {when}")


@admin.register(MemoryEvidence)
class MemoryEvidenceAdmin(LedgerAdmin):
    list_display = ["id", "memory_link", "source_link", "quote"]
    list_filter = ["source__kind"]
    search_fields = ["source__reference", "quote"]
    shown = ("memory_link", "source_link", "quote")

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        mine = list(principal.audience_ids)
        rows = rows.filter(seen_source(principal), memory__audience_ids__contained_by=mine)
        return rows.select_related("memory", "source").defer("memory__search_vector", "memory__content")

    @admin.display(description="memory")
    def memory_link(self, row: MemoryEvidence) -> str:
        return link(row.memory, row.memory.label)

    @admin.display(description="source")
    def source_link(self, row: MemoryEvidence) -> str:
        return source_link(row.source)


@admin.register(Supersession)
class SupersessionAdmin(LedgerAdmin):
    list_display = ["id", "old_link", "kind", "new_link", "voided"]
    list_filter = ["kind", ("voided_by", admin.EmptyFieldListFilter)]
    search_fields = ["=old__number", "=new__number"]
    search_help_text = "The number of a memory, without M-."
    shown = ("old_link", "kind", "new_link", "decided_by", "voided", "voided_by_link")

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        return self.among(principal, rows)

    @staticmethod
    def among(principal: Principal, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Of these edges the ones of which both ends may be seen."""
        mine = list(principal.audience_ids)
        rows = rows.filter(old__audience_ids__contained_by=mine, new__audience_ids__contained_by=mine)
        return rows.select_related("old", "new").defer(
            *("old__search_vector", "old__content", "new__search_vector", "new__content")
        )

    @admin.display(description="old")
    def old_link(self, edge: Supersession) -> str:
        return link(edge.old, edge.old.label)

    @admin.display(description="new")
    def new_link(self, edge: Supersession) -> str:
        return link(edge.new, edge.new.label)

    @admin.display(description="taken back", boolean=True)
    def voided(self, edge: Supersession) -> bool:
        return edge.voided_by_id is not None

    @admin.display(description="decided by")
    def decided_by(self, edge: Supersession) -> str:
        return verdict_link(edge.verdict)

    @admin.display(description="taken back by")
    def voided_by_link(self, edge: Supersession) -> str:
        return verdict_link(edge.voided_by) if edge.voided_by is not None else "—"


@admin.register(PoolGeneration)
class PoolGenerationAdmin(ReadOnlyAdmin):
    """The installation's, not a workspace's: which embedder made the pool says nothing of what is in it."""

    role = Role.ADMIN
    list_display = ["number", "embedder", "dimensions", "state", "created_at"]
    list_filter = ["state"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return PoolGeneration.objects.all()
