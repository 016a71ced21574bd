from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.core.triggers import append_only, no_delete, same_workspace


class Workspace(models.Model):
    """One firm's memory. Every row of every table belongs to exactly one."""

    slug = models.SlugField(max_length=100, unique=True)
    second_person = models.BooleanField(
        default=True,
        help_text="A proposal must be approved by somebody other than its proposer. A one-person firm may switch this "
        "off; every verdict given without a second person says so.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["slug"]
        triggers = [no_delete("workspace_no_delete")]

    def __str__(self) -> str:
        return self.slug


class Role(models.TextChoices):
    """Cumulative: each role may do what the ones before it may."""

    MEMBER = "member", "Member"
    REVIEWER = "reviewer", "Reviewer"
    CURATOR = "curator", "Curator"
    ADMIN = "admin", "Admin"

    @property
    def rank(self) -> int:
        return list(Role).index(self)


class Membership(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_once_per_workspace"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.role} in {self.workspace}"


class TokenKind(models.TextChoices):
    AGENT = "agent", "Agent"
    BOT = "bot", "Bot"
    REVIEWER = "reviewer", "Reviewer"


class ApiToken(models.Model):
    """A bearer token for REST and MCP. The secret is shown once; only its SHA-256 digest is kept."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="tokens")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=TokenKind)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="api_tokens"
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    prefix = models.CharField(max_length=20, editable=False, help_text="The first characters, to recognise it by.")
    confidence_ceiling = models.FloatField(
        default=1.0,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text="Proposals of this token count with at most this confidence.",
    )
    repository_ids = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        help_text="When set, the token proposes and reads only within these repositories.",
    )
    read_only = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="token_name_once_per_workspace"),
            models.CheckConstraint(condition=Q(kind__in=TokenKind.values), name="token_kind_known"),
            models.CheckConstraint(
                condition=~Q(kind=TokenKind.REVIEWER) | Q(owner__isnull=False), name="token_reviewer_has_person"
            ),
            models.CheckConstraint(
                condition=Q(confidence_ceiling__gte=0, confidence_ceiling__lte=1), name="token_ceiling_is_share"
            ),
        ]
        triggers = [
            no_delete("token_no_delete"),
            same_workspace("token_same_workspace", arrays=(("repository_ids", "scopes_repository"),)),
            pgtrigger.ReadOnly(
                name="token_read_only", fields=["workspace", "kind", "owner", "digest", "prefix", "created_at"]
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class Audience(models.Model):
    """Who may see what came from a restricted source."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="audiences")
    name = models.CharField(max_length=100)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="audiences")
    tokens = models.ManyToManyField(ApiToken, blank=True, related_name="audiences")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="audience_name_once")]
        triggers = [no_delete("audience_no_delete")]

    def __str__(self) -> str:
        return self.name


def admitted(audience_ids: Iterable[int]) -> Q:
    """Rows of which every audience is one of these.

    Most rows are restricted to nobody. Said by itself, PostgreSQL knows it from its statistics; of ``<@`` alone it
    expects next to nothing, and reads and sorts whole tables for the first rows of a list.
    """
    mine = list(audience_ids)
    return Q(audience_ids=[]) | Q(audience_ids__contained_by=mine) if mine else Q(audience_ids=[])


class AuditEvent(models.Model):
    """Who did what to what, with the values before and after. Append-only."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="audit_events")
    actor = models.CharField(max_length=200, help_text="The name at the time, kept as text.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    token = models.ForeignKey(ApiToken, null=True, on_delete=models.PROTECT, related_name="+")
    verb = models.CharField(max_length=60)
    subject_kind = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=64)
    before: models.JSONField[Any, Any] = models.JSONField(default=dict)
    after: models.JSONField[Any, Any] = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="audit_newest"),
            models.Index(fields=["workspace", "-created_at", "-id"], name="audit_by_time"),
            models.Index(fields=["workspace", "actor", "-created_at", "-id"], name="audit_by_actor"),
            models.Index(fields=["request_id"], condition=~Q(request_id=""), name="audit_by_request"),
            models.Index(fields=["workspace", "subject_kind", "subject_id"], name="audit_subject"),
        ]
        triggers = [append_only("audit_append_only")]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.subject_kind} {self.subject_id}"


class IdempotencyKey(models.Model):
    """The first answer to a request, given again when a client repeats it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    principal = models.CharField(max_length=40, help_text="`token:7` or `user:3`.")
    key = models.CharField(max_length=200)
    request = models.CharField(max_length=300, help_text="Method and path.")
    body_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    response: models.JSONField[Any, Any] = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "principal", "key"], name="idempotency_key_once")]
        indexes = [models.Index(fields=["created_at"], name="idempotency_age")]

    def __str__(self) -> str:
        return f"{self.principal} {self.key}"
