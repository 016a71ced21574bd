"""The ledger: what a memory means, who approved it, what replaced it. PostgreSQL guards it, not only this code."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q
from django.db.models.functions import Length, Now

from apps.accounts.models import ApiToken, Workspace, admitted
from apps.core.triggers import append_only, no_delete, raise_violation, read_only_except, same_workspace
from apps.scopes.scope import Scope
from apps.sources.models import Source, inherits_audience
from apps.taxonomy.models import MemoryType

# The check on the length of content is written as `content__length__lte`.
models.TextField.register_lookup(Length)

MAX_CONTENT = {"durable": 8_000, "index": 20_000}
MAX_QUOTE = 500
MAX_TASK = 200
# What a search calls the working notes of one task. No memory is of this tier, and the pool of memories refuses it.
EPISODIC = "episodic"


class Tier(models.TextChoices):
    DURABLE = "durable", "Durable"
    INDEX = "index", "Index card"


class MemoryStatus(models.TextChoices):
    ACTIVE = "active", "Active"
    DISPUTED = "disputed", "Disputed"
    SUPERSEDED = "superseded", "Superseded"
    RETIRED = "retired", "Retired"


IN_FORCE = (MemoryStatus.ACTIVE, MemoryStatus.DISPUTED)


class SearchDocument(Func):
    """``fm_search_document(content)``: stemmed words; identifiers and paths count as their parts."""

    function = "fm_search_document"
    output_field = SearchVectorField()


class Action(models.TextChoices):
    APPROVE = "approve", "Approved"
    REJECT = "reject", "Rejected"
    REOPEN = "reopen", "Reopened"
    RETIRE = "retire", "Retired"
    RESTORE = "restore", "Restored"
    SUPERSEDE = "supersede", "Superseded"
    REVISE = "revise", "Revised"
    WITHDRAW = "withdraw", "Withdrawn"
    CORRECT = "correct", "Reported"
    REDACT = "redact", "Redacted"


BY_REVIEWERS_ONLY = (
    Action.APPROVE,
    Action.REJECT,
    Action.REOPEN,
    Action.RETIRE,
    Action.RESTORE,
    Action.SUPERSEDE,
)


class SubjectKind(models.TextChoices):
    CANDIDATE = "candidate", "Candidate"
    MEMORY = "memory", "Memory"


class Verdict(models.Model):
    """What somebody did to a candidate or a memory, and why. Append-only."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="verdicts")
    subject_kind = models.CharField(max_length=10, choices=SubjectKind)
    subject_id = models.UUIDField()
    action = models.CharField(max_length=10, choices=Action)
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    token = models.ForeignKey(ApiToken, null=True, on_delete=models.PROTECT, related_name="+")
    reviewer_name = models.CharField(max_length=200, help_text="The name at the time, kept as text.")
    reason = models.TextField(blank=True)
    before: models.JSONField[Any, Any] = models.JSONField(default=dict)
    after: models.JSONField[Any, Any] = models.JSONField(default=dict)
    via = models.CharField(max_length=20)
    second_person = models.BooleanField(default=True, help_text="Somebody other than the proposer gave it.")
    request_id = models.CharField(max_length=64, blank=True)
    batch_id = models.UUIDField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(action__in=Action.values), name="verdict_action_known"),
            models.CheckConstraint(condition=Q(subject_kind__in=SubjectKind.values), name="verdict_subject_known"),
            models.CheckConstraint(
                condition=~Q(action__in=BY_REVIEWERS_ONLY) | Q(reviewer__isnull=False),
                name="verdict_by_a_person",
            ),
        ]
        indexes = [
            models.Index(fields=["subject_id", "created_at"], name="verdict_subject"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="verdict_by_time"),
            models.Index(fields=["workspace", "reviewer_name", "-created_at", "-id"], name="verdict_by_reviewer"),
            models.Index(fields=["request_id"], condition=~Q(request_id=""), name="verdict_by_request"),
            models.Index(fields=["batch_id"], condition=Q(batch_id__isnull=False), name="verdict_by_batch"),
        ]
        triggers = [
            append_only("verdict_append_only"),
            same_workspace("verdict_same_workspace", ("token_id", "accounts_apitoken")),
            pgtrigger.Trigger(
                name="verdict_of_a_subject",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                IF NOT EXISTS (
                    SELECT 1 FROM candidates_candidate c
                    WHERE NEW.subject_kind = 'candidate' AND c.id = NEW.subject_id AND c.workspace_id = NEW.workspace_id
                    UNION ALL
                    SELECT 1 FROM memories_memory m
                    WHERE NEW.subject_kind = 'memory' AND m.id = NEW.subject_id AND m.workspace_id = NEW.workspace_id
                ) THEN
                    {raise_violation("there is no such subject in this workspace", constraint="verdict_of_a_subject")}
                END IF;
                RETURN NEW;""",
            ),
            # The gate, in the database: only a person with the reviewer role, using no agent's or bot's token.
            pgtrigger.Trigger(
                name="verdict_by_a_reviewer",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                condition=pgtrigger.Q(new__action__in=list(BY_REVIEWERS_ONLY)),
                func=f"""
                IF NOT EXISTS (
                    SELECT 1 FROM accounts_membership m
                    WHERE m.workspace_id = NEW.workspace_id AND m.user_id = NEW.reviewer_id
                      AND m.role IN ('reviewer', 'curator', 'admin')
                ) OR EXISTS (
                    SELECT 1 FROM accounts_apitoken t
                    WHERE t.id = NEW.token_id AND (t.kind <> 'reviewer' OR t.owner_id IS DISTINCT FROM NEW.reviewer_id)
                ) THEN
                    {raise_violation("only a reviewer of this workspace decides", constraint="verdict_by_a_reviewer")}
                END IF;
                RETURN NEW;""",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reviewer_name} {self.action} {self.subject_kind} {self.subject_id}"


class MemoryQuerySet(models.QuerySet["Memory"]):
    def of(self, workspace: Workspace | int) -> MemoryQuerySet:
        return self.filter(workspace=workspace)

    def visible_to(self, audience_ids: Iterable[int]) -> MemoryQuerySet:
        """Only what every audience it was restricted to admits."""
        return self.filter(admitted(audience_ids))

    def in_scope(self, *, domain_ids: Iterable[int], repo_ids: Iterable[int]) -> MemoryQuerySet:
        """Firm-wide memories, and those that share a domain or a repository."""
        return self.filter(Q(firm=True) | Q(domain_ids__overlap=list(domain_ids)) | Q(repo_ids__overlap=list(repo_ids)))


class MemoryManager(models.Manager.from_queryset(MemoryQuerySet)):  # type: ignore[misc]
    """The search vector is for PostgreSQL only; no page needs it fetched."""

    def get_queryset(self) -> MemoryQuerySet:
        queryset: MemoryQuerySet = super().get_queryset().defer("search_vector")
        return queryset


class Memory(models.Model):
    """One approved, self-contained statement.

    Two clocks: ``valid_from``/``valid_to`` say when it holds in the world, ``recorded_at``/``retired_at`` when
    this ledger believed it; ``closed_at`` says when ``valid_to`` became known. Intervals are ``[from, to)``.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="memories")
    number = models.BigIntegerField()
    content = models.TextField()
    type = models.ForeignKey(MemoryType, on_delete=models.PROTECT, related_name="memories")
    firm = models.BooleanField(default=False)
    domain_ids = ArrayField(models.BigIntegerField(), default=list)
    repo_ids = ArrayField(models.BigIntegerField(), default=list)
    audience_ids = ArrayField(models.BigIntegerField(), default=list)
    tier = models.CharField(max_length=10, choices=Tier, default=Tier.DURABLE)
    status = models.CharField(max_length=10, choices=MemoryStatus, default=MemoryStatus.ACTIVE)
    confidence = models.FloatField(null=True)
    valid_from = models.DateTimeField(null=True)
    valid_to = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)
    verdict = models.OneToOneField(Verdict, on_delete=models.PROTECT, related_name="memory")
    fingerprint = models.CharField(max_length=64)
    search_vector = models.GeneratedField(
        expression=SearchDocument("content"), output_field=SearchVectorField(), db_persist=True
    )
    doclen = models.GeneratedField(
        expression=Func(SearchDocument("content"), function="fm_document_length", output_field=models.IntegerField()),
        output_field=models.IntegerField(),
        db_persist=True,
    )

    objects = MemoryManager()

    class Meta:
        ordering = ["-number"]
        verbose_name_plural = "memories"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "number"], name="memory_number_once"),
            models.CheckConstraint(condition=Q(tier__in=Tier.values), name="memory_tier_known"),
            models.CheckConstraint(condition=Q(status__in=MemoryStatus.values), name="memory_status_known"),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                name="memory_confidence_is_share",
            ),
            models.CheckConstraint(
                condition=Q(firm=True) | ~Q(domain_ids=[]) | ~Q(repo_ids=[]), name="memory_has_scope"
            ),
            models.CheckConstraint(
                condition=~Q(content="")
                & (
                    Q(tier=Tier.DURABLE, content__length__lte=MAX_CONTENT["durable"])
                    | Q(tier=Tier.INDEX, content__length__lte=MAX_CONTENT["index"])
                ),
                name="memory_content_length",
            ),
            models.CheckConstraint(
                condition=Q(retired_at__isnull=True) | Q(status=MemoryStatus.RETIRED),
                name="memory_retired_says_so",
            ),
        ]
        indexes = [
            # Without a list of what is still to be put in order, which every search would have to read through.
            GinIndex(fields=["search_vector"], name="memory_text", fastupdate=False),
            GinIndex(fields=["domain_ids"], name="memory_domains", fastupdate=False),
            GinIndex(fields=["repo_ids"], name="memory_repos", fastupdate=False),
            models.Index(fields=["workspace", "status", "-number"], name="memory_newest"),
            models.Index(fields=["workspace", "type", "-number"], name="memory_newest_type"),
            models.Index(fields=["workspace", "-recorded_at"], name="memory_lately"),
            # The few that not everybody may see.
            models.Index(fields=["id"], condition=~Q(audience_ids=[]), name="memory_restricted"),
            models.Index(fields=["workspace", "fingerprint"], name="memory_fingerprint"),
            models.Index(fields=["workspace"], condition=Q(firm=True), name="memory_firm"),
            # What a successor will end at a moment that was known in advance: a handful of rows.
            models.Index(
                fields=["valid_to"],
                condition=Q(status__in=IN_FORCE, valid_to__isnull=False),
                name="memory_to_end",
            ),
        ]
        triggers = [
            no_delete("memory_no_delete"),
            read_only_except(
                "memory_read_only",
                *("status", "confidence", "valid_to", "closed_at", "retired_at", "audience_ids"),
                *("search_vector", "doclen"),
            ),
            pgtrigger.Trigger(
                name="memory_audience_only_grows",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf("audience_ids"),
                func=f"""
                IF NOT (NEW.audience_ids @> OLD.audience_ids) THEN
                    {raise_violation("an audience is never taken off", constraint="memory_audience_only_grows")}
                END IF;
                RETURN NEW;""",
            ),
            same_workspace(
                "memory_same_workspace",
                ("type_id", "taxonomy_memorytype"),
                ("verdict_id", "memories_verdict"),
                arrays=(
                    ("domain_ids", "scopes_domain"),
                    ("repo_ids", "scopes_repository"),
                    ("audience_ids", "accounts_audience"),
                ),
            ),
            pgtrigger.Trigger(
                name="memory_has_evidence",
                operation=pgtrigger.Insert,
                when=pgtrigger.After,
                timing=pgtrigger.Deferred,
                func=f"""
                IF NOT EXISTS (SELECT 1 FROM memories_memoryevidence e WHERE e.memory_id = NEW.id) THEN
                    {raise_violation("memory % has no source", "NEW.id", constraint="memory_has_evidence")}
                END IF;
                RETURN NULL;""",
            ),
            # What is remembered was approved, word for word. Deferred, because an approval has several parts; one
            # that is undone in the same transaction was an approval all the same.
            pgtrigger.Trigger(
                name="memory_was_approved",
                operation=pgtrigger.Insert,
                when=pgtrigger.After,
                timing=pgtrigger.Deferred,
                func=f"""
                IF NOT EXISTS (
                    SELECT 1 FROM memories_verdict v
                    JOIN candidates_candidate c ON c.id = v.subject_id AND c.workspace_id = v.workspace_id
                    WHERE v.id = NEW.verdict_id AND v.action = 'approve' AND v.subject_kind = 'candidate'
                      AND (c.corrects_id IS NULL OR c.has_replacement)
                      AND (
                        c.status = 'approved' AND c.decision_id = v.id
                        AND NEW.content = coalesce(v.after ->> 'content', c.content)
                        OR EXISTS (
                            SELECT 1 FROM memories_verdict undone
                            WHERE undone.subject_id = c.id AND undone.action = 'reopen'
                              AND undone.created_at >= v.created_at
                        )
                      )
                ) THEN
                    {raise_violation("memory % lacks an approving verdict", "NEW.id", constraint="memory_was_approved")}
                END IF;
                IF EXISTS (
                    SELECT 1 FROM memories_verdict v
                    JOIN candidates_proposer p ON p.candidate_id = v.subject_id
                    LEFT JOIN accounts_apitoken t ON t.id = p.token_id
                    JOIN accounts_workspace w ON w.id = v.workspace_id
                    WHERE v.id = NEW.verdict_id AND v.reviewer_id IN (p.user_id, t.owner_id)
                      AND (w.second_person OR v.second_person)
                ) THEN
                    {raise_violation("% was approved by its proposer", "NEW.id", constraint="memory_second_person")}
                END IF;
                RETURN NULL;""",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        return f"M-{self.number}"

    @property
    def scope(self) -> Scope:
        return Scope(self.firm, tuple(sorted(self.domain_ids)), tuple(sorted(self.repo_ids)))

    @property
    def is_never_in_force(self) -> bool:
        """Whether it ended before it could begin: an interval without a moment in it."""
        return self.valid_from is not None and self.valid_to is not None and self.valid_to <= self.valid_from


class MemoryCounter(models.Model):
    """The last number given in a workspace."""

    workspace = models.OneToOneField(Workspace, primary_key=True, on_delete=models.PROTECT, related_name="+")
    last = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.workspace}: {self.last}"


class MemoryEvidence(models.Model):
    """The link from a memory to a source, with the words that support it."""

    memory = models.ForeignKey(Memory, on_delete=models.PROTECT, related_name="evidence")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="memory_evidence")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    quote = models.CharField(max_length=MAX_QUOTE, blank=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "memory evidence"
        triggers = [
            append_only("memory_evidence_append_only"),
            same_workspace(
                "memory_evidence_same_workspace",
                ("memory_id", "memories_memory"),
                ("source_id", "sources_source"),
            ),
            inherits_audience(
                "memory_inherits_audience",
                "SELECT audience_ids FROM memories_memory WHERE id = NEW.memory_id",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} ← {self.source_id}"


class EdgeKind(models.TextChoices):
    FULL = "full", "Replaces"
    PARTIAL = "partial", "Replaces in part"
    AMENDS = "amends", "Amends"


class SupersessionQuerySet(models.QuerySet["Supersession"]):
    def live(self) -> SupersessionQuerySet:
        return self.filter(voided_by__isnull=True)

    def full(self) -> SupersessionQuerySet:
        return self.filter(kind=EdgeKind.FULL)


class Supersession(models.Model):
    """An approved edge from an old memory to the one that replaced it. A graph without cycles, not a chain."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    old = models.ForeignKey(Memory, on_delete=models.PROTECT, related_name="replaced_by")
    new = models.ForeignKey(Memory, on_delete=models.PROTECT, related_name="replaces")
    kind = models.CharField(max_length=10, choices=EdgeKind, default=EdgeKind.FULL)
    holds_from = models.DateTimeField(help_text="When the new one took effect: where a full edge ends the old one.")
    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, related_name="edges")
    voided_by = models.ForeignKey(Verdict, null=True, on_delete=models.PROTECT, related_name="voided_edges")

    objects = SupersessionQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["old", "new"],
                condition=Q(voided_by__isnull=True),
                name="supersession_once_while_live",
            ),
            models.CheckConstraint(condition=~Q(old=F("new")), name="supersession_not_of_itself"),
            models.CheckConstraint(condition=Q(kind__in=EdgeKind.values), name="supersession_kind_known"),
        ]
        triggers = [
            no_delete("supersession_no_delete"),
            read_only_except("supersession_read_only", "voided_by"),
            same_workspace(
                "supersession_same_workspace",
                ("old_id", "memories_memory"),
                ("new_id", "memories_memory"),
                ("verdict_id", "memories_verdict"),
                ("voided_by_id", "memories_verdict"),
            ),
            # Serialised per workspace, so that two edges written at once cannot close a cycle between them.
            pgtrigger.Trigger(
                name="supersession_no_cycle",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                PERFORM pg_advisory_xact_lock(hashtext('firm-memory supersession'), NEW.workspace_id::int);
                IF EXISTS (
                    WITH RECURSIVE newer(id) AS (
                        SELECT NEW.new_id
                        UNION
                        SELECT s.new_id FROM memories_supersession s JOIN newer ON s.old_id = newer.id
                        WHERE s.voided_by_id IS NULL
                    )
                    SELECT 1 FROM newer WHERE id = NEW.old_id
                ) THEN
                    {raise_violation("a memory cannot replace its own successor", constraint="supersession_no_cycle")}
                END IF;
                RETURN NEW;""",
            ),
            pgtrigger.Trigger(
                name="supersession_approved",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.UpdateOf("voided_by_id"),
                func=f"""
                IF NOT EXISTS (
                    SELECT 1 FROM memories_verdict v
                    WHERE v.id = NEW.verdict_id AND v.action IN ('approve', 'supersede')
                ) OR NEW.voided_by_id IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM memories_verdict v WHERE v.id = NEW.voided_by_id AND v.action = 'reopen'
                ) THEN
                    {raise_violation("only a verdict makes or voids an edge", constraint="supersession_approved")}
                END IF;
                RETURN NEW;""",
            ),
            pgtrigger.Trigger(
                name="supersession_voided_once",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf("voided_by_id"),
                func=f"""
                IF OLD.voided_by_id IS NOT NULL AND NEW.voided_by_id IS DISTINCT FROM OLD.voided_by_id THEN
                    {raise_violation("a voided edge stays voided", constraint="supersession_voided_once")}
                END IF;
                RETURN NEW;""",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.new_id} {self.kind} {self.old_id}"


class Disposition(models.TextChoices):
    """What became of a finding. A note that is none has no disposition."""

    OPEN = "open", "Open"
    ACCEPTED = "accepted", "Accepted"
    FIXED = "fixed", "Fixed"
    DISMISSED = "dismissed", "Dismissed"


NOTE_ONCE = "note_once_of_an_origin"


class TaskNoteQuerySet(models.QuerySet["TaskNote"]):
    def of_task(self, workspace: Workspace | int, task: str) -> TaskNoteQuerySet:
        return self.filter(workspace=workspace, task=task)

    def live(self, at: datetime) -> TaskNoteQuerySet:
        """Not expired, whether or not the worker has removed what is."""
        return self.filter(expires_at__gt=at)

    def visible_to(self, audience_ids: Iterable[int]) -> TaskNoteQuerySet:
        """Only what every audience it was restricted to admits."""
        return self.filter(admitted(audience_ids))

    def in_scope(self, *, domain_ids: Iterable[int], repo_ids: Iterable[int]) -> TaskNoteQuerySet:
        """Firm-wide notes, and those that share a domain or a repository."""
        return self.filter(Q(firm=True) | Q(domain_ids__overlap=list(domain_ids)) | Q(repo_ids__overlap=list(repo_ids)))


class TaskNoteManager(models.Manager.from_queryset(TaskNoteQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> TaskNoteQuerySet:
        queryset: TaskNoteQuerySet = super().get_queryset().defer("search_vector")
        return queryset


class TaskNote(models.Model):
    """A working note of one task, which nobody has reviewed. It expires, and may be deleted at any time.

    It is no row of the ledger: what is worth keeping is proposed, and waits for a reviewer like everything else.
    ``embedded_at`` is when the pool got it; without it only words find the note.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="task_notes")
    task = models.CharField(max_length=MAX_TASK, help_text="Such as `mr:acme/pay!4821` or `branch:feature/x`.")
    content = models.TextField()
    type = models.ForeignKey(MemoryType, on_delete=models.PROTECT, related_name="task_notes")
    firm = models.BooleanField(default=False)
    domain_ids = ArrayField(models.BigIntegerField(), default=list)
    repo_ids = ArrayField(models.BigIntegerField(), default=list)
    audience_ids = ArrayField(models.BigIntegerField(), default=list)
    fingerprint = models.CharField(max_length=64)
    disposition = models.CharField(max_length=10, choices=Disposition, blank=True)
    disposed_by = models.CharField(max_length=200, blank=True, help_text="The name at the time, kept as text.")
    disposed_at = models.DateTimeField(null=True)
    origin_token = models.ForeignKey(ApiToken, null=True, on_delete=models.PROTECT, related_name="+")
    origin_user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    origin_name = models.CharField(max_length=200)
    proposed_as = models.UUIDField(null=True, help_text="The candidate that it was last proposed as.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    embedded_at = models.DateTimeField(null=True)
    search_vector = models.GeneratedField(
        expression=SearchDocument("content"), output_field=SearchVectorField(), db_persist=True
    )

    objects = TaskNoteManager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "task", "origin_token", "origin_user", "fingerprint"],
                nulls_distinct=False,
                name=NOTE_ONCE,
            ),
            models.CheckConstraint(condition=~Q(task=""), name="note_has_task"),
            models.CheckConstraint(
                condition=~Q(content="") & Q(content__length__lte=MAX_CONTENT["durable"]), name="note_content_length"
            ),
            models.CheckConstraint(condition=Q(firm=True) | ~Q(domain_ids=[]) | ~Q(repo_ids=[]), name="note_has_scope"),
            models.CheckConstraint(
                condition=Q(disposition__in=["", *Disposition.values]), name="note_disposition_known"
            ),
            models.CheckConstraint(
                condition=Q(origin_token__isnull=False) | Q(origin_user__isnull=False), name="note_has_origin"
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "task", "-created_at", "-id"], name="note_of_task"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="note_newest"),
            models.Index(fields=["expires_at"], name="note_to_expire"),
            # What the embedder was too late for: a handful of rows, mostly none.
            models.Index(fields=["created_at"], condition=Q(embedded_at__isnull=True), name="note_to_embed"),
        ]
        triggers = [
            read_only_except(
                "note_read_only",
                *("disposition", "disposed_by", "disposed_at", "expires_at", "audience_ids"),
                *("proposed_as", "embedded_at", "search_vector"),
            ),
            pgtrigger.Trigger(
                name="note_audience_only_grows",
                when=pgtrigger.Before,
                operation=pgtrigger.UpdateOf("audience_ids"),
                func=f"""
                IF NOT (NEW.audience_ids @> OLD.audience_ids) THEN
                    {raise_violation("an audience is never taken off", constraint="note_audience_only_grows")}
                END IF;
                RETURN NEW;""",
            ),
            same_workspace(
                "note_same_workspace",
                ("type_id", "taxonomy_memorytype"),
                ("origin_token_id", "accounts_apitoken"),
                arrays=(
                    ("domain_ids", "scopes_domain"),
                    ("repo_ids", "scopes_repository"),
                    ("audience_ids", "accounts_audience"),
                ),
            ),
            # A note that is deleted in the transaction that made it needs none.
            pgtrigger.Trigger(
                name="note_has_evidence",
                operation=pgtrigger.Insert,
                when=pgtrigger.After,
                timing=pgtrigger.Deferred,
                func=f"""
                IF EXISTS (SELECT 1 FROM memories_tasknote n WHERE n.id = NEW.id)
                    AND NOT EXISTS (SELECT 1 FROM memories_tasknoteevidence e WHERE e.note_id = NEW.id) THEN
                    {raise_violation("note % has no source", "NEW.id", constraint="note_has_evidence")}
                END IF;
                RETURN NULL;""",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task}: {self.id}"

    @property
    def scope(self) -> Scope:
        return Scope(self.firm, tuple(sorted(self.domain_ids)), tuple(sorted(self.repo_ids)))


class TaskNoteEvidence(models.Model):
    """The link from a note to a source, with the words that support it. It goes with the note."""

    note = models.ForeignKey(TaskNote, on_delete=models.CASCADE, related_name="evidence")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="note_evidence")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    quote = models.CharField(max_length=MAX_QUOTE, blank=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "task note evidence"
        constraints = [models.UniqueConstraint(fields=["note", "source"], name="note_evidence_once")]
        triggers = [
            same_workspace(
                "note_evidence_same_workspace",
                ("note_id", "memories_tasknote"),
                ("source_id", "sources_source"),
            ),
            # The note may be gone by the time that the transaction commits.
            inherits_audience(
                "note_inherits_audience",
                "SELECT coalesce((SELECT audience_ids FROM memories_tasknote WHERE id = NEW.note_id), "
                "ARRAY[restricted_to])",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.note_id} ← {self.source_id}"


class Lexeme(models.Model):
    """In how many memories of a workspace a word stands: the document frequency that BM25 needs."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    word = models.TextField()
    ndoc = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "word"], name="lexeme_once")]

    def __str__(self) -> str:
        return f"{self.word}: {self.ndoc}"


class Corpus(models.Model):
    """How many memories a workspace has and how long they are together, as of the last count."""

    workspace = models.OneToOneField(Workspace, primary_key=True, on_delete=models.PROTECT, related_name="+")
    documents = models.IntegerField(default=0)
    lexemes = models.BigIntegerField(default=0)
    counted_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "corpora"

    def __str__(self) -> str:
        return f"{self.workspace}: {self.documents}"

    @property
    def mean_length(self) -> float:
        return self.lexemes / self.documents if self.documents else 0.0


class GenerationState(models.TextChoices):
    BUILDING = "building", "Building"
    LIVE = "live", "Live"
    RETIRED = "retired", "Retired"


class PoolGeneration(models.Model):
    """One pool table, made by one embedder. Exactly one is live; rows of all workspaces share it."""

    number = models.PositiveIntegerField(unique=True)
    embedder = models.CharField(max_length=200)
    dimensions = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=GenerationState, default=GenerationState.BUILDING)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["state"], condition=Q(state="live"), name="pool_generation_one_live"),
            models.CheckConstraint(condition=Q(state__in=GenerationState.values), name="pool_generation_state_known"),
        ]

    def __str__(self) -> str:
        return f"fm_pool_g{self.number} ({self.embedder}, {self.dimensions}, {self.state})"


def epoch(moment: datetime | None) -> float | None:
    """Seconds since 1970 in UTC, the form in which the pool keeps moments."""
    return None if moment is None else moment.timestamp()
