"""The inbox: raw material on its way into the queue. Inbox, retry guard and record of every outcome in one."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Now

from apps.accounts.models import ApiToken, Workspace, admitted
from apps.core.triggers import no_delete, raise_violation, same_workspace
from apps.sources.models import SourceKind, reference_lock

MAX_EXTERNAL_ID = 500
MAX_PAYLOAD = 32 * 1024 * 1024  # characters; a request's body is bounded by the same number of bytes


class EventState(models.TextChoices):
    RECEIVED = "received", "Received"
    PROCESSING = "processing", "Being processed"
    DONE = "done", "Done"
    FAILED = "failed", "Failed, will be tried again"
    DEAD = "dead", "Given up"


# What still has to be done. ``processing`` counts once its lease has run out.
UNFINISHED = (EventState.RECEIVED, EventState.PROCESSING, EventState.FAILED)


class EventOutcome(models.TextChoices):
    """Best first: the outcome of an event is the best one of its facts."""

    QUEUED = "queued", "Queued for review"
    QUARANTINED = "quarantined", "Quarantined"
    DUPLICATE = "duplicate", "Known already"
    EXCLUDED = "excluded", "Excluded"
    DROPPED_CLASSIFIER = "dropped_classifier", "Nothing durable found"
    DROPPED_PREFILTER = "dropped_prefilter", "Dropped as noise"

    @property
    def rank(self) -> int:
        return list(EventOutcome).index(self)


# Of these the masked payload stays for a while, so that a wrong drop can be overruled.
DROPPED = (EventOutcome.EXCLUDED, EventOutcome.DROPPED_CLASSIFIER, EventOutcome.DROPPED_PREFILTER)


# Of these at least one fact may have become a candidate, or joined one.
BROUGHT = (EventOutcome.QUEUED, EventOutcome.QUARANTINED, EventOutcome.DUPLICATE)


class CaptureEventQuerySet(models.QuerySet["CaptureEvent"]):
    def of(self, workspace: Workspace | int) -> CaptureEventQuerySet:
        return self.filter(workspace=workspace)

    def unfinished(self) -> CaptureEventQuerySet:
        return self.filter(state__in=UNFINISHED)

    def due(self) -> CaptureEventQuerySet:
        """What a worker may take up now: what waits for its moment, and what a worker that is gone left behind."""
        waiting = Q(state__in=(EventState.RECEIVED, EventState.FAILED), next_attempt_at__lte=Now())
        return self.filter(waiting | Q(state=EventState.PROCESSING, leased_until__lte=Now()))

    def visible_to(self, audience_ids: Iterable[int]) -> CaptureEventQuerySet:
        """Only what every audience it was restricted to admits."""
        return self.filter(admitted(audience_ids))


class CaptureEventManager(models.Manager.from_queryset(CaptureEventQuerySet)):  # type: ignore[misc]
    def get_queryset(self) -> CaptureEventQuerySet:
        queryset: CaptureEventQuerySet = super().get_queryset().defer("payload")
        return queryset


_CITED_LOCK = reference_lock("NEW.workspace_id", "cited.kind", "cited.reference")


class CaptureEvent(models.Model):
    """One piece of raw material. Its row is the truth: a queue's message that got lost costs time and nothing else."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="capture_events")
    kind = models.CharField(max_length=20, choices=SourceKind)
    external_id = models.CharField(
        max_length=MAX_EXTERNAL_ID, help_text="Its name where it comes from; made of its content where none was given."
    )
    payload = models.TextField(
        blank=True, help_text="Masked, without code; cleared once done, of drops after two weeks."
    )
    content_hash = models.CharField(max_length=64, help_text="SHA-256 of the masked payload.")
    size = models.PositiveIntegerField(help_text="Characters of the payload as it was kept.")
    scope: models.JSONField[Any, Any] = models.JSONField(default=dict, help_text="{firm, domains, repos} as named")
    sources: models.JSONField[Any, Any] = models.JSONField(default=list, help_text="As named, masked")
    notes: models.JSONField[Any, Any] = models.JSONField(default=list, help_text="What was taken out, as sentences")
    audience_ids = ArrayField(models.BigIntegerField(), default=list)
    state = models.CharField(max_length=10, choices=EventState, default=EventState.RECEIVED)
    outcome = models.CharField(max_length=20, choices=EventOutcome, blank=True)
    reason = models.TextField(blank=True, help_text="Why it has this outcome, or why it waits, as a sentence.")
    facts: models.JSONField[Any, Any] = models.JSONField(
        default=list, help_text="[{content, type, confidence, quote, outcome, reason, candidate}]"
    )
    extractor = models.CharField(max_length=20, blank=True, help_text="What looked for facts in it.")
    calls = models.PositiveIntegerField(default=0, help_text="Calls of a model.")
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    used_at = models.DateTimeField(null=True, help_text="When a model was last called for it.")
    work: models.JSONField[Any, Any] = models.JSONField(
        default=dict, help_text="How far it was read and what was found so far, so that nothing is read twice"
    )
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(db_default=Now())
    lease = models.UUIDField(null=True, editable=False, help_text="Of the worker that is at it.")
    leased_until = models.DateTimeField(null=True)
    last_error = models.TextField(blank=True)
    origin_token = models.ForeignKey(ApiToken, null=True, on_delete=models.PROTECT, related_name="+")
    origin_user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    origin_name = models.CharField(max_length=200)
    overruled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", help_text="Who undid its drop."
    )
    overruled_at = models.DateTimeField(null=True)
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    finished_at = models.DateTimeField(null=True)

    objects = CaptureEventManager()

    class Meta:
        ordering = ["-received_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "kind", "external_id"], name="capture_event_once"),
            models.CheckConstraint(condition=Q(kind__in=SourceKind.values), name="capture_kind_known"),
            models.CheckConstraint(condition=Q(state__in=EventState.values), name="capture_state_known"),
            models.CheckConstraint(
                condition=Q(outcome="") | Q(outcome__in=EventOutcome.values), name="capture_outcome_known"
            ),
            # Silence is never an outcome: what is done says what became of it, and why.
            models.CheckConstraint(
                condition=~Q(state=EventState.DONE) | (~Q(outcome="") & ~Q(reason="") & Q(finished_at__isnull=False)),
                name="capture_done_has_outcome",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=(EventState.FAILED, EventState.DEAD)) | ~Q(last_error=""),
                name="capture_failure_has_error",
            ),
            models.CheckConstraint(
                condition=Q(state=EventState.PROCESSING, lease__isnull=False, leased_until__isnull=False)
                | (~Q(state=EventState.PROCESSING) & Q(lease__isnull=True, leased_until__isnull=True)),
                name="capture_lease_while_processing",
            ),
            models.CheckConstraint(
                condition=Q(origin_token__isnull=False) | Q(origin_user__isnull=False), name="capture_has_origin"
            ),
        ]
        indexes = [
            # What is due, without reading what is done.
            models.Index(fields=["next_attempt_at"], condition=Q(state__in=UNFINISHED), name="capture_due"),
            models.Index(fields=["workspace", "-received_at", "-id"], name="capture_newest"),
            # The few that are not done, among many that are.
            models.Index(
                fields=["workspace", "state", "-received_at", "-id"],
                condition=Q(state__in=(*UNFINISHED, EventState.DEAD)),
                name="capture_open_newest",
            ),
            models.Index(
                fields=["workspace", "finished_at"],
                condition=Q(outcome__in=DROPPED) | Q(overruled_at__isnull=False),
                name="capture_drops",
            ),
            models.Index(fields=["workspace", "outcome", "-received_at", "-id"], name="capture_outcome_newest"),
            models.Index(fields=["finished_at"], condition=~Q(payload=""), name="capture_payload_kept"),
            models.Index(fields=["used_at"], name="capture_used"),
            # Where a candidate was captured from.
            GinIndex(
                Func(F("facts"), Value("$[*].candidate"), function="jsonb_path_query_array"),
                condition=Q(outcome__in=BROUGHT),
                name="capture_brought",
            ),
        ]
        triggers = [
            no_delete("capture_event_no_delete"),
            pgtrigger.ReadOnly(
                name="capture_event_read_only",
                fields=[
                    *("id", "workspace", "kind", "external_id", "content_hash", "size", "scope", "sources"),
                    *("origin_token", "origin_user", "origin_name", "received_at"),
                ],
            ),
            # What comes from a restricted source is restricted to the same audience, whatever happens to the source at
            # this moment.
            pgtrigger.Trigger(
                name="capture_event_inherits_audience",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                func=f"""
                PERFORM pg_advisory_xact_lock_shared({_CITED_LOCK})
                FROM (
                    SELECT DISTINCT named ->> 'kind' AS kind, named ->> 'reference' AS reference
                    FROM jsonb_array_elements(NEW.sources) AS listed(named)
                ) cited;
                NEW.audience_ids := ARRAY(
                    SELECT given.id FROM unnest(NEW.audience_ids) AS given(id)
                    UNION
                    SELECT source.audience_id
                    FROM jsonb_array_elements(NEW.sources) AS listed(named)
                    JOIN sources_source source ON source.workspace_id = NEW.workspace_id
                        AND source.kind = named ->> 'kind' AND source.reference = named ->> 'reference'
                    WHERE source.audience_id IS NOT NULL
                    ORDER BY 1
                );
                RETURN NEW;""",
            ),
            same_workspace(
                "capture_event_same_workspace",
                ("origin_token_id", "accounts_apitoken"),
                arrays=(("audience_ids", "accounts_audience"),),
            ),
            # An outcome stands. A wrong drop is overruled by a person, which leaves its mark.
            pgtrigger.Trigger(
                name="capture_event_stays_done",
                when=pgtrigger.Before,
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__state=EventState.DONE)
                & (
                    pgtrigger.Q(new__state__df=pgtrigger.F("old__state"))
                    | (
                        pgtrigger.Q(new__outcome__df=pgtrigger.F("old__outcome"))
                        & pgtrigger.Q(new__overruled_at__isnull=True)
                    )
                ),
                func=raise_violation("an outcome stands", constraint="capture_event_stays_done"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.external_id}: {self.outcome or self.state}"

    @property
    def is_finished(self) -> bool:
        return self.state not in UNFINISHED
