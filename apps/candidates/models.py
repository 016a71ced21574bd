"""The queue: what was proposed and waits for a person. Nothing in here is ever served as knowledge."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from pgvector.django import VectorField

from apps.accounts.models import ApiToken, Workspace, admitted
from apps.core.triggers import append_only, no_delete, raise_violation, same_workspace
from apps.memories.models import MAX_CONTENT, MAX_QUOTE, Memory, SearchDocument, Tier, Verdict
from apps.scopes.scope import Scope
from apps.sources.models import Source, inherits_audience
from apps.taxonomy.models import MemoryType


class CandidateStatus(models.TextChoices):
    PENDING = "pending", "Pending"
    QUARANTINED = "quarantined", "Quarantined"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    WITHDRAWN = "withdrawn", "Withdrawn"


OPEN = (CandidateStatus.PENDING, CandidateStatus.QUARANTINED)
ONCE_WHILE_OPEN = "candidate_once_while_open"

# What would replace or reports a memory. Few do, and an index of their own leads to them.
REFERS = ~Q(supersedes=[]) | Q(corrects__isnull=False)


class CorrectionKind(models.TextChoices):
    STALE = "stale", "Stale"
    WRONG = "wrong", "Wrong"


class CandidateQuerySet(models.QuerySet["Candidate"]):
    def of(self, workspace: Workspace | int) -> CandidateQuerySet:
        return self.filter(workspace=workspace)

    def open(self) -> CandidateQuerySet:
        return self.filter(status__in=OPEN)

    def pending(self) -> CandidateQuerySet:
        return self.filter(status=CandidateStatus.PENDING)

    def visible_to(self, audience_ids: Iterable[int]) -> CandidateQuerySet:
        """Only what every audience it was restricted to admits."""
        return self.filter(admitted(audience_ids))

    def in_scope(self, *, domain_ids: Iterable[int], repo_ids: Iterable[int]) -> CandidateQuerySet:
        """Firm-wide candidates, and those that share a domain or a repository."""
        return self.filter(Q(firm=True) | Q(domain_ids__overlap=list(domain_ids)) | Q(repo_ids__overlap=list(repo_ids)))


class CandidateManager(models.Manager.from_queryset(CandidateQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> CandidateQuerySet:
        queryset: CandidateQuerySet = super().get_queryset().defer("search_vector", "vector")
        return queryset


class Candidate(models.Model):
    """One proposed statement. ``version`` is raised by every change; a decision names the one it was made on."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="candidates")
    content = models.TextField()
    type = models.ForeignKey(MemoryType, on_delete=models.PROTECT, related_name="candidates")
    firm = models.BooleanField(default=False)
    domain_ids = ArrayField(models.BigIntegerField(), default=list)
    repo_ids = ArrayField(models.BigIntegerField(), default=list)
    audience_ids = ArrayField(models.BigIntegerField(), default=list)
    tier = models.CharField(max_length=10, choices=Tier, default=Tier.DURABLE)
    confidence = models.FloatField(null=True, help_text="As reported by the proposer.")
    valid_from = models.DateTimeField(null=True)
    status = models.CharField(max_length=12, choices=CandidateStatus, default=CandidateStatus.PENDING)
    status_reason = models.TextField(blank=True, help_text="Why it is where it is, as a sentence.")
    fingerprint = models.CharField(max_length=64)
    version = models.PositiveIntegerField(default=1)
    origin_token = models.ForeignKey(ApiToken, null=True, on_delete=models.PROTECT, related_name="+")
    origin_user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    origin_name = models.CharField(max_length=200)
    supersedes = ArrayField(models.UUIDField(), default=list)
    corrects = models.ForeignKey(Memory, null=True, on_delete=models.PROTECT, related_name="corrections")
    correction_kind = models.CharField(max_length=10, choices=CorrectionKind, blank=True)
    correction_reason = models.TextField(blank=True)
    has_replacement = models.BooleanField(default=False, help_text="A correction that brings a new wording.")
    flags: models.JSONField[Any, Any] = models.JSONField(default=list)
    seen_count = models.PositiveIntegerField(default=1)
    near: models.JSONField[Any, Any] = models.JSONField(default=list, help_text="[{what, id, similarity, how}]")
    vector = VectorField(null=True, help_text="Until it is decided, to find what is near it.")
    decision = models.ForeignKey(
        Verdict,
        null=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The verdict that closed it.",
    )
    claimed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    claimed_until = models.DateTimeField(null=True)
    reopened_at = models.DateTimeField(null=True, help_text="When a new source last reopened it.")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)
    search_vector = models.GeneratedField(
        expression=SearchDocument("content"), output_field=SearchVectorField(), db_persist=True
    )

    objects = CandidateManager()

    class Meta:
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "fingerprint"],
                condition=Q(status__in=OPEN),
                name=ONCE_WHILE_OPEN,
            ),
            models.CheckConstraint(condition=Q(status__in=CandidateStatus.values), name="candidate_status_known"),
            models.CheckConstraint(condition=Q(tier__in=Tier.values), name="candidate_tier_known"),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                name="candidate_confidence_is_share",
            ),
            models.CheckConstraint(
                condition=Q(firm=True) | ~Q(domain_ids=[]) | ~Q(repo_ids=[]), name="candidate_has_scope"
            ),
            models.CheckConstraint(
                condition=Q(origin_token__isnull=False) | Q(origin_user__isnull=False),
                name="candidate_has_origin",
            ),
            models.CheckConstraint(
                condition=~Q(content="")
                & (
                    Q(tier=Tier.DURABLE, content__length__lte=MAX_CONTENT["durable"])
                    | Q(tier=Tier.INDEX, content__length__lte=MAX_CONTENT["index"])
                ),
                name="candidate_content_length",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=(CandidateStatus.APPROVED, CandidateStatus.REJECTED))
                | Q(decision__isnull=False),
                name="candidate_decided_has_decision",
            ),
            models.CheckConstraint(
                condition=Q(corrects__isnull=True, correction_kind="")
                | Q(corrects__isnull=False, correction_kind__in=CorrectionKind.values),
                name="candidate_correction_has_kind",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "status", "created_at", "id"], name="candidate_queue"),
            # What the queue is filtered by, each in the order of the queue.
            models.Index(fields=["workspace", "status", "type", "created_at", "id"], name="candidate_queue_type"),
            models.Index(
                fields=["workspace", "status", "origin_name", "created_at", "id"], name="candidate_queue_origin"
            ),
            models.Index(
                fields=["workspace", "status", "created_at", "id"],
                condition=Q(status__in=OPEN) & REFERS,
                name="candidate_queue_refers",
            ),
            models.Index(
                fields=["workspace", "status", "created_at", "id"],
                condition=~Q(flags=[]),
                name="candidate_queue_flagged",
            ),
            # The few that not everybody may see.
            models.Index(fields=["id"], condition=~Q(audience_ids=[]), name="candidate_restricted"),
            models.Index(fields=["workspace", "fingerprint"], name="candidate_fingerprint"),
            models.Index(fields=["origin_token", "status"], name="candidate_origin_token"),
            models.Index(fields=["origin_user", "status"], name="candidate_origin_user"),
            models.Index(fields=["corrects"], condition=Q(status__in=OPEN), name="candidate_open_correction"),
            GinIndex(fields=["search_vector"], name="candidate_text"),
            GinIndex(fields=["repo_ids"], name="candidate_repos"),
            GinIndex(fields=["domain_ids"], name="candidate_domains"),
        ]
        triggers = [
            no_delete("candidate_no_delete"),
            pgtrigger.ReadOnly(
                name="candidate_read_only",
                fields=[
                    *("id", "workspace", "tier", "created_at"),
                    *("origin_token", "origin_user", "origin_name"),
                    *("corrects", "correction_kind", "has_replacement"),
                ],
            ),
            pgtrigger.Trigger(
                name="candidate_only_grows",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                func=f"""
                IF NOT (NEW.audience_ids @> OLD.audience_ids) OR NEW.version < OLD.version THEN
                    {raise_violation("audiences and version only grow", constraint="candidate_only_grows")}
                END IF;
                RETURN NEW;""",
            ),
            # What a verdict was given on stays as it was, and is not exchanged while it is being given.
            pgtrigger.Trigger(
                name="candidate_reworded_while_open",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=(~pgtrigger.Q(old__status__in=list(OPEN)) | ~pgtrigger.Q(new__status__in=list(OPEN)))
                & (
                    pgtrigger.Q(old__content__df=pgtrigger.F("new__content"))
                    | pgtrigger.Q(old__type__df=pgtrigger.F("new__type"))
                    | pgtrigger.Q(old__firm__df=pgtrigger.F("new__firm"))
                    | pgtrigger.Q(old__domain_ids__df=pgtrigger.F("new__domain_ids"))
                    | pgtrigger.Q(old__repo_ids__df=pgtrigger.F("new__repo_ids"))
                    | pgtrigger.Q(old__confidence__df=pgtrigger.F("new__confidence"))
                    | pgtrigger.Q(old__valid_from__df=pgtrigger.F("new__valid_from"))
                    | pgtrigger.Q(old__supersedes__df=pgtrigger.F("new__supersedes"))
                    | pgtrigger.Q(old__correction_reason__df=pgtrigger.F("new__correction_reason"))
                    | pgtrigger.Q(old__fingerprint__df=pgtrigger.F("new__fingerprint"))
                ),
                func=raise_violation("only an open candidate is reworded", constraint="candidate_reworded_while_open"),
            ),
            same_workspace(
                "candidate_same_workspace",
                ("type_id", "taxonomy_memorytype"),
                ("origin_token_id", "accounts_apitoken"),
                ("corrects_id", "memories_memory"),
                arrays=(
                    ("domain_ids", "scopes_domain"),
                    ("repo_ids", "scopes_repository"),
                    ("audience_ids", "accounts_audience"),
                    ("supersedes", "memories_memory"),
                ),
            ),
            # A candidate turns approved or rejected only by its own newest verdict, which says the same.
            pgtrigger.Trigger(
                name="candidate_decided_by_verdict",
                operation=pgtrigger.Update,
                when=pgtrigger.Before,
                condition=pgtrigger.Q(old__decision__df=pgtrigger.F("new__decision"))
                | (
                    pgtrigger.Q(new__status__in=["approved", "rejected"])
                    & pgtrigger.Q(old__status__df=pgtrigger.F("new__status"))
                ),
                func=f"""
                IF NOT EXISTS (
                    SELECT 1 FROM memories_verdict v
                    WHERE v.id = NEW.decision_id AND v.subject_id = NEW.id AND v.workspace_id = NEW.workspace_id
                      AND v.action = CASE NEW.status WHEN 'approved' THEN 'approve' WHEN 'rejected' THEN 'reject' END
                      AND NOT EXISTS (
                        SELECT 1 FROM memories_verdict later
                        WHERE later.subject_id = NEW.id AND later.created_at > v.created_at
                      )
                ) THEN
                    {raise_violation("% lacks a verdict", "NEW.id", constraint="candidate_decided_by_verdict")}
                END IF;
                RETURN NEW;""",
            ),
            # A report without a new wording makes no memory, so the memory's own trigger would not see it.
            pgtrigger.Trigger(
                name="candidate_second_person",
                operation=pgtrigger.Update,
                when=pgtrigger.Before,
                condition=pgtrigger.Q(new__status="approved") & pgtrigger.Q(old__status__df="approved"),
                func=f"""
                IF EXISTS (
                    SELECT 1 FROM memories_verdict v
                    JOIN candidates_proposer p ON p.candidate_id = NEW.id
                    LEFT JOIN accounts_apitoken t ON t.id = p.token_id
                    JOIN accounts_workspace w ON w.id = v.workspace_id
                    WHERE v.id = NEW.decision_id AND v.reviewer_id IN (p.user_id, t.owner_id)
                      AND (w.second_person OR v.second_person)
                ) THEN
                    {raise_violation("% was approved by its proposer", "NEW.id", constraint="candidate_second_person")}
                END IF;
                RETURN NEW;""",
            ),
            # Only a reviewer's verdict takes an approval back, and nothing goes from one decision to another.
            pgtrigger.Trigger(
                name="candidate_reopened_by_verdict",
                operation=pgtrigger.Update,
                when=pgtrigger.Before,
                condition=~pgtrigger.Q(old__status__in=list(OPEN))
                & pgtrigger.Q(old__status__df=pgtrigger.F("new__status")),
                func=f"""
                IF NEW.status NOT IN ('pending', 'quarantined') OR OLD.status = 'approved' AND (
                    SELECT v.action FROM memories_verdict v
                    WHERE v.subject_id = NEW.id ORDER BY v.created_at DESC LIMIT 1
                ) IS DISTINCT FROM 'reopen' THEN
                    {raise_violation("% was not reopened", "NEW.id", constraint="candidate_reopened_by_verdict")}
                END IF;
                RETURN NEW;""",
            ),
            pgtrigger.Trigger(
                name="candidate_starts_open",
                operation=pgtrigger.Insert,
                when=pgtrigger.Before,
                condition=~pgtrigger.Q(new__status__in=list(OPEN)),
                func=raise_violation("a candidate starts open", constraint="candidate_starts_open"),
            ),
            pgtrigger.Trigger(
                name="candidate_has_evidence",
                operation=pgtrigger.Insert,
                when=pgtrigger.After,
                timing=pgtrigger.Deferred,
                func=f"""
                IF NOT EXISTS (SELECT 1 FROM candidates_candidateevidence e WHERE e.candidate_id = NEW.id) THEN
                    {raise_violation("candidate % has no source", "NEW.id", constraint="candidate_has_evidence")}
                END IF;
                IF NOT EXISTS (SELECT 1 FROM candidates_proposer p WHERE p.candidate_id = NEW.id) THEN
                    {raise_violation("candidate % has no proposer", "NEW.id", constraint="candidate_has_proposer")}
                END IF;
                RETURN NULL;""",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.status} {self.id}"

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def brings_memory(self) -> bool:
        """A report without a wording of its own retires a memory and makes none."""
        return self.corrects_id is None or self.has_replacement

    @property
    def scope(self) -> Scope:
        return Scope(self.firm, tuple(sorted(self.domain_ids)), tuple(sorted(self.repo_ids)))


class CandidateEvidence(models.Model):
    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="evidence")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="candidate_evidence")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    quote = models.CharField(max_length=MAX_QUOTE, blank=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "candidate evidence"
        constraints = [
            models.UniqueConstraint(fields=["candidate", "source"], name="candidate_evidence_once"),
        ]
        triggers = [
            append_only("candidate_evidence_append_only"),
            same_workspace(
                "candidate_evidence_same_workspace",
                ("candidate_id", "candidates_candidate"),
                ("source_id", "sources_source"),
            ),
            inherits_audience(
                "candidate_inherits_audience",
                "SELECT audience_ids FROM candidates_candidate WHERE id = NEW.candidate_id",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.candidate_id} ← {self.source_id}"


class Proposer(models.Model):
    """Everybody who proposed a candidate, the first and those who joined. None of them may approve it."""

    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="proposers")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    token = models.ForeignKey(ApiToken, null=True, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["candidate", "token", "user"], nulls_distinct=False, name="proposer_once"),
            models.CheckConstraint(
                condition=Q(token__isnull=False) | Q(user__isnull=False), name="proposer_is_somebody"
            ),
        ]
        indexes = [
            models.Index(fields=["token", "candidate"], name="proposer_token"),
            models.Index(fields=["user", "candidate"], name="proposer_user"),
        ]
        triggers = [
            append_only("proposer_append_only"),
            same_workspace(
                "proposer_same_workspace",
                ("candidate_id", "candidates_candidate"),
                ("token_id", "accounts_apitoken"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} → {self.candidate_id}"


class Opened(models.Model):
    """A reviewer looked at one candidate by itself: what bulk approval of an always-human type asks for."""

    candidate = models.ForeignKey(Candidate, on_delete=models.PROTECT, related_name="opened")
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    version = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["candidate", "user", "version"], name="opened_once")]
        triggers = [same_workspace("opened_same_workspace", ("candidate_id", "candidates_candidate"))]

    def __str__(self) -> str:
        return f"{self.user_id} opened {self.candidate_id} v{self.version}"
