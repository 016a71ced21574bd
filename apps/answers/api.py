"""Questions over REST."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.throttling import SEARCH
from apps.answers.sentences import HOW
from apps.answers.services import ask
from apps.retrieval.api import FoundOut, QuestionQuery, StageOut
from apps.retrieval.receipts import served_record


class SentenceOut(serializers.Serializer[Any]):
    text = serializers.CharField()
    citations = serializers.ListField(child=serializers.UUIDField(), help_text="The memories that it rests on.")
    how = serializers.ChoiceField(HOW, help_text="By a model, word for word, or of a mind that was changed.")
    disputed = serializers.BooleanField(help_text="One of them was reported as stale or wrong.")


class AnswerOut(serializers.Serializer[Any]):
    answer = serializers.CharField(help_text="The sentences with their numbers, or that nothing is known.")
    citations = serializers.ListField(child=serializers.UUIDField())
    sentences = SentenceOut(many=True)
    results = FoundOut(many=True)
    intent = serializers.CharField()
    pipeline_stages = StageOut(many=True)
    degraded = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)


class AskView(APIView):
    throttle_kind = SEARCH

    @extend_schema(
        operation_id="ask",
        parameters=[QuestionQuery],
        responses=AnswerOut,
        summary="Ask, and get an answer of which each sentence has its citations",
    )
    def get(self, request: Request) -> Response:
        asked = QuestionQuery.read_query(request)
        repos = tuple(asked["repos"]) if "repos" in asked else None
        principal = principal_of(request)
        answer = ask(principal=principal, q=asked["q"], repos=repos)
        served_record(principal, "ask", results=answer.results, question=answer.question)
        return Response(answer.as_dict())
