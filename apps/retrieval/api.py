"""Memories over REST: search, and one memory in full."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.principal import Principal
from apps.accounts.throttling import SEARCH
from apps.core.errors import Refusals
from apps.core.serializers import Many, Moment, NoQuery, OneOf, StrictQuery, Text, Whole, utc_note
from apps.memories.models import MAX_TASK, Disposition, EdgeKind, MemoryStatus, Tier
from apps.memories.notes import UNREVIEWED
from apps.memories.selectors import memory_for, memory_shown
from apps.retrieval.receipts import receipts_shown, served_record
from apps.retrieval.request import DEFAULT_LIMIT, INTENTS, MAX_LIMIT, MAX_QUESTION, TIERS, SearchRequest, check_task
from apps.retrieval.services import search
from apps.sources.api import SourceOut
from apps.taxonomy.selectors import find_types

MAX_LISTED = 100


class QuestionQuery(StrictQuery):
    """What every question has; a door's own parameters come on top."""

    q = Text(max_length=MAX_QUESTION, verbatim=True, help_text="The question, in plain words.")
    repos = Many(
        Text(max_length=500, multiline=False),
        max_items=MAX_LISTED,
        required=False,
        help_text="Slugs, aliases or remotes. Each brings its domains and the firm with it.",
    )


class SearchQuery(QuestionQuery):
    domains = Many(Text(max_length=200, multiline=False), max_items=MAX_LISTED, required=False)
    types = Many(Text(max_length=100, multiline=False), max_items=MAX_LISTED, required=False)
    tiers = Many(
        OneOf(choices=TIERS),
        max_items=len(TIERS),
        required=False,
        help_text="`episodic` are the working notes of one task, and needs `task`.",
    )
    task = Text(
        max_length=MAX_TASK, multiline=False, required=False, help_text="The task whose notes are asked for, too."
    )
    limit = Whole(min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT)
    as_of = Moment(required=False, help_text="What held then.")
    known_at = Moment(required=False, help_text="What was known then.")
    intent = OneOf(choices=INTENTS, required=False)
    recipe = Text(max_length=60, multiline=False, required=False, help_text="For curators.")


class MemoryScopeOut(serializers.Serializer[Any]):
    firm = serializers.BooleanField()
    domains = serializers.ListField(child=serializers.CharField())
    repos = serializers.ListField(child=serializers.CharField())


class ResultOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.CharField()
    content = serializers.CharField()
    type = serializers.CharField()
    category = serializers.CharField()
    scope = MemoryScopeOut()
    tier = serializers.ChoiceField(Tier.choices)
    status = serializers.ChoiceField(MemoryStatus.choices)
    confidence = serializers.FloatField(allow_null=True)
    sources = SourceOut(many=True)
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    recorded_at = serializers.DateTimeField()
    retired_at = serializers.DateTimeField(allow_null=True)


class AmendmentOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.CharField()
    kind = serializers.ChoiceField([EdgeKind.PARTIAL.value, EdgeKind.AMENDS.value])
    content = serializers.CharField()


class WriterOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField()


class FoundOut(ResultOut):
    """A memory, or a working note: `reviewed` says which, and what only notes have is with notes alone."""

    number = serializers.CharField(allow_null=True, help_text="A note has none.")
    tier = serializers.ChoiceField([*Tier.choices, ("episodic", "Working note")])
    status = serializers.ChoiceField([*MemoryStatus.choices, (UNREVIEWED, "Working note")])
    reviewed = serializers.BooleanField(help_text="False: a working note, which nobody has approved.")
    task = serializers.CharField(required=False)
    disposition = serializers.ChoiceField(Disposition.choices, required=False, allow_null=True)
    disposed_by = serializers.CharField(required=False, allow_null=True)
    disposed_at = serializers.DateTimeField(required=False, allow_null=True)
    origin = WriterOut(required=False)
    proposed_as = serializers.UUIDField(required=False, allow_null=True)
    created_at = serializers.DateTimeField(required=False)
    expires_at = serializers.DateTimeField(required=False)
    amended_by = AmendmentOut(many=True, help_text="What replaces it in part or amends it; both hold.")
    instead_of = serializers.ListField(
        child=serializers.CharField(), help_text="Numbers of memories that it replaced and that led to it."
    )
    chain = serializers.ListField(
        child=serializers.DictField(), required=False, help_text="For explain-why and history: all of it, oldest first."
    )
    score = serializers.FloatField()
    scores = serializers.DictField(child=serializers.FloatField())


class ReceiptOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = serializers.CharField(help_text="Of the token, or person.")
    via = serializers.CharField()
    asked_for = serializers.CharField()
    question = serializers.CharField(allow_blank=True, help_text="Masked; blank where it is for an audience.")
    request_id = serializers.CharField(allow_blank=True)
    at = serializers.DateTimeField()


class ReceiptsOut(serializers.Serializer[Any]):
    total = serializers.IntegerField()
    days = serializers.IntegerField(help_text="For so many days they are kept.")
    latest = ReceiptOut(many=True)


class MemoryOut(ResultOut):
    chain = serializers.ListField(child=serializers.DictField())
    verdicts = serializers.ListField(child=serializers.DictField())
    served = ReceiptsOut(required=False, help_text="For reviewers: what relied on it, the latest first.")


class StageOut(serializers.Serializer[Any]):
    name = serializers.CharField()
    ms = serializers.FloatField()
    detail = serializers.CharField(allow_blank=True)


class SearchOut(serializers.Serializer[Any]):
    results = FoundOut(many=True)
    intent = serializers.CharField()
    pipeline_stages = StageOut(many=True)
    degraded = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)


class SearchView(APIView):
    throttle_kind = SEARCH

    @extend_schema(
        operation_id="search", parameters=[SearchQuery], responses=SearchOut, summary="Search what the firm knows"
    )
    def get(self, request: Request) -> Response:
        principal = principal_of(request)
        asked = SearchQuery.read_query(request, also=lambda good: _check(principal, good))
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()
        }
        note = utc_note(request.query_params, "as_of", "known_at")
        notes = (note,) if note else ()
        answer = search(principal=principal, request=SearchRequest(**values, notes=notes))
        served_record(principal, "search", results=answer.results, question=asked["q"])
        return Response(answer.as_dict())


def _check(principal: Principal, good: dict[str, Any]) -> None:
    refusals = Refusals()
    with refusals.collecting():
        find_types(principal.workspace, good.get("types", []), field="types", active_only=False)
    with refusals.collecting():
        check_task(good.get("task"), good.get("tiers"), as_of=good.get("as_of"), known_at=good.get("known_at"))
    refusals.raise_all("The question will not do.")


class MemoryView(APIView):
    @extend_schema(
        operation_id="memory", responses=MemoryOut, summary="One memory in any status, by id or number, with its chain"
    )
    def get(self, request: Request, reference: str) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        memory = memory_for(principal, reference)
        shown = memory_shown(principal, memory)
        if principal.can_review:
            shown["served"] = receipts_shown(principal, memory)
        served_record(principal, "get", results=[shown])
        return Response(shown)
