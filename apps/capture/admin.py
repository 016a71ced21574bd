"""The inbox, to look at. What became of material is told, and overruled, on its own pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet

from apps.accounts.principal import Principal
from apps.capture.models import CaptureEvent
from apps.memories.admin import LedgerAdmin


@admin.register(CaptureEvent)
class CaptureEventAdmin(LedgerAdmin):
    list_display = ["short_id", "kind", "external_id", "state", "outcome", "origin_name", "received_at"]
    list_filter = ["state", "outcome", "kind"]
    ordering = ["-received_at"]
    shown = (
        *("kind", "external_id", "state", "outcome", "reason", "origin_name", "scope", "notes"),
        *("size", "extractor", "calls", "prompt_tokens", "completion_tokens"),
        *("attempts", "next_attempt_at", "last_error", "overruled_by", "overruled_at"),
        *("received_at", "finished_at", "id", "content_hash"),
    )

    def visible(self, rows: QuerySet[Any], principal: Principal) -> QuerySet[Any]:
        return rows.filter(audience_ids__contained_by=list(principal.audience_ids))

    @admin.display(description="id")
    def short_id(self, row: CaptureEvent) -> str:
        return str(row.pk)[:8]
