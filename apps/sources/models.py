from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.accounts.models import Audience, Workspace
from apps.core.triggers import no_delete, raise_violation, read_only_except, same_workspace
from apps.core.wording import words


class SourceKind(models.TextChoices):
    MERGE_REQUEST = "merge_request", "Merge request"
    ISSUE = "issue", "Issue"
    CHAT = "chat", "Chat thread"
    INCIDENT = "incident", "Incident"
    INTERVIEW = "interview", "Interview"
    TRANSCRIPT = "transcript", "Transcript"
    DOCUMENT = "document", "Document"
    COMMIT = "commit", "Commit"
    RULES_FILE = "rules_file", "Rules file"
    AGENT = "agent", "Agent"


# One lock for some references of a workspace, so that a request of a thousand of them takes few.
_LOCKS = 64
_LOCK_CLASS = 827_343


def reference_lock(workspace: str, kind: str, reference: str) -> str:
    """SQL for the two numbers of the advisory lock on everything of one kind and reference.

    Whoever records such a source, or raw material that names it, holds it shared until the commit; whoever restricts
    it holds it alone. So either the restriction sees what was recorded, or what is recorded sees the restriction.
    """
    bucket = f"hashtext({kind} || ' ' || {reference}) & {_LOCKS - 1}"
    return f"{_LOCK_CLASS}, mod({workspace}, 1000000)::int * {_LOCKS} + ({bucket})"


class Source(models.Model):
    """Where a statement came from. What it says of itself never changes; only its audience may.

    A merge request is the same one at each of its commits: all rows of one kind and reference have one audience.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="sources")
    kind = models.CharField(max_length=20, choices=SourceKind)
    reference = models.CharField(max_length=500, help_text="Its name in its own system, such as `acme/pay!128`.")
    url = models.CharField(max_length=2000, blank=True)
    title = models.CharField(max_length=500, blank=True)
    occurred_at = models.DateTimeField(null=True, blank=True)
    commit = models.CharField(max_length=64, null=True, blank=True)
    audience = models.ForeignKey(Audience, null=True, blank=True, on_delete=models.PROTECT, related_name="sources")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "reference", "commit"], nulls_distinct=False, name="source_once"
            ),
            models.CheckConstraint(condition=Q(kind__in=SourceKind.values), name="source_kind_known"),
            models.CheckConstraint(
                condition=Q(url="") | Q(url__startswith="https://") | Q(url__startswith="http://"),
                name="source_url_is_http",
            ),
        ]
        triggers = [
            no_delete("source_no_delete"),
            read_only_except("source_read_only", "audience"),
            same_workspace("source_same_workspace", ("audience_id", "accounts_audience")),
            pgtrigger.Trigger(
                name="source_inherits_audience",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                PERFORM pg_advisory_xact_lock_shared(
                    {reference_lock("NEW.workspace_id", "NEW.kind", "NEW.reference")}
                );
                IF NEW.audience_id IS NULL THEN
                    SELECT same.audience_id INTO NEW.audience_id FROM sources_source same
                    WHERE same.workspace_id = NEW.workspace_id AND same.kind = NEW.kind
                        AND same.reference = NEW.reference AND same.audience_id IS NOT NULL
                    ORDER BY same.id LIMIT 1;
                END IF;
                RETURN NEW;""",
            ),
            # Looked at when the transaction commits, since the rows are restricted one after the other.
            pgtrigger.Trigger(
                name="source_one_audience",
                when=pgtrigger.After,
                operation=pgtrigger.Insert | pgtrigger.UpdateOf("audience_id"),
                timing=pgtrigger.Deferred,
                condition=pgtrigger.Q(new__audience__isnull=False),
                func=f"""
                IF EXISTS (
                    SELECT FROM sources_source same
                    WHERE same.workspace_id = NEW.workspace_id AND same.kind = NEW.kind
                        AND same.reference = NEW.reference AND same.audience_id IS NULL
                ) THEN
                    {raise_violation("it is open to others at another commit", constraint="source_one_audience")}
                END IF;
                RETURN NULL;""",
            ),
            pgtrigger.Trigger(
                name="source_stays_restricted",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf("audience_id"),
                condition=pgtrigger.Q(old__audience__isnull=False)
                & pgtrigger.Q(old__audience__df=pgtrigger.F("new__audience")),
                func=raise_violation("a restriction is never taken off", constraint="source_stays_restricted"),
            ),
        ]

    def __str__(self) -> str:
        return f"{words(self.kind)} {self.reference}"


def inherits_audience(name: str, audiences: str) -> pgtrigger.Trigger:
    """For a table of evidence: whatever a restricted source supports is restricted to the same audience.

    ``audiences`` selects the audiences of what is supported. Looked at when the transaction commits, with the source
    locked: a source that is being restricted at this moment cannot slip through between reading it and using it.
    """
    return pgtrigger.Trigger(
        name=name,
        when=pgtrigger.After,
        operation=pgtrigger.Insert,
        timing=pgtrigger.Deferred,
        declare=[("restricted_to", "bigint")],
        func=f"""
        SELECT audience_id INTO restricted_to FROM sources_source WHERE id = NEW.source_id FOR SHARE;
        IF restricted_to IS NOT NULL AND NOT ({audiences}) @> ARRAY[restricted_to] THEN
            {raise_violation("it came from a restricted source", constraint=name)}
        END IF;
        RETURN NULL;""",
    )
