"""What to know before working somewhere, over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.throttling import SEARCH
from apps.core.serializers import OneOf, StrictQuery, Text, Whole
from apps.memories.models import MemoryStatus
from apps.retrieval.api import AmendmentOut, MemoryScopeOut, StageOut
from apps.retrieval.context import (
    DEFAULT_TOKENS,
    LEAST_TOKENS,
    MAX_NAME,
    MOST_TOKENS,
    ContextRequest,
    context,
)
from apps.retrieval.receipts import served_record
from apps.retrieval.request import INTENTS, MAX_QUESTION
from apps.sources.api import SourceOut


class ContextQuery(StrictQuery):
    repo = Text(max_length=500, multiline=False, help_text="By slug, alias or remote.")
    path = Text(max_length=MAX_NAME, multiline=False, verbatim=True, required=False, help_text="A path in it.")
    task = Text(
        max_length=MAX_NAME, multiline=False, verbatim=True, required=False, help_text="What the task is called."
    )
    q = Text(max_length=MAX_QUESTION, verbatim=True, required=False, help_text="A question, in plain words.")
    intent = OneOf(choices=INTENTS, required=False, help_text="As in a search; implement where nothing is asked.")
    budget_tokens = Whole(min_value=LEAST_TOKENS, max_value=MOST_TOKENS, default=DEFAULT_TOKENS)


class ItemOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    number = serializers.CharField()
    content = serializers.CharField()
    type = serializers.CharField()
    category = serializers.CharField()
    status = serializers.ChoiceField(MemoryStatus.choices)
    scope = MemoryScopeOut()
    sources = SourceOut(many=True)
    confidence = serializers.FloatField(allow_null=True)
    valid_from = serializers.DateTimeField(allow_null=True)
    amended_by = AmendmentOut(many=True)
    chain = serializers.ListField(child=serializers.DictField(), required=False)
    why_here = serializers.CharField()


class LeftOutOut(serializers.Serializer[Any]):
    number = serializers.CharField()
    because = serializers.CharField()


class ContextOut(serializers.Serializer[Any]):
    repo = serializers.CharField()
    budget_tokens = serializers.IntegerField()
    used_tokens = serializers.IntegerField(help_text="An estimate: four ASCII characters are one token.")
    text = serializers.CharField(allow_blank=True, help_text="For an agent's context: every statement in it is data.")
    items = ItemOut(many=True)
    left_out = LeftOutOut(many=True)
    intent = serializers.CharField()
    note = serializers.CharField(allow_blank=True)
    degraded = serializers.BooleanField()
    pipeline_stages = StageOut(many=True)


class ContextView(APIView):
    throttle_kind = SEARCH

    @extend_schema(
        operation_id="context",
        parameters=[ContextQuery],
        responses=ContextOut,
        summary="What to know before working in a repository, within a number of tokens",
    )
    def get(self, request: Request) -> Response:
        asked = ContextQuery.read_query(request)
        principal, wanted = principal_of(request), ContextRequest(**asked)
        found = context(principal=principal, request=wanted).as_dict()
        served_record(principal, "context", results=found["items"], question=wanted.question)
        return Response(found)
