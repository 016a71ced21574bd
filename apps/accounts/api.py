from __future__ import annotations

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.principal import Principal
from apps.accounts.selectors import audience_names, repository_slugs
from apps.accounts.throttling import READ, SEARCH, WRITE, rate
from apps.core.serializers import NoQuery


class LimitsOut(serializers.Serializer[Any]):
    reads_per_minute = serializers.IntegerField()
    writes_per_minute = serializers.IntegerField()
    searches_per_minute = serializers.IntegerField()


class MeOut(serializers.Serializer[Any]):
    principal = serializers.CharField(help_text="`token:7` or `user:3`: the name of this origin.")
    kind = serializers.ChoiceField(["person", "agent", "bot", "reviewer"])
    name = serializers.CharField()
    workspace = serializers.CharField()
    role = serializers.CharField(allow_null=True)
    token = serializers.CharField(allow_null=True, help_text="The token's name.")
    read_only = serializers.BooleanField()  # type: ignore[assignment]
    confidence_ceiling = serializers.FloatField()
    repositories = serializers.ListField(child=serializers.CharField(), help_text="Empty: not limited.")
    audiences = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField(allow_null=True)
    limits = LimitsOut()


class MeView(APIView):
    @extend_schema(operation_id="me", responses=MeOut, summary="Who am I, and what may I do?")
    def get(self, request: Request) -> Response:
        NoQuery.read_query(request)
        return Response(me(principal_of(request)))


class SchemaView(APIView):
    """This document. It needs credentials like everything else under `/api/`."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        NoQuery.read_query(request)
        return Response(openapi_document())


@cache
def openapi_document() -> dict[str, Any]:
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return document


def me(principal: Principal) -> dict[str, Any]:
    token = principal.token
    return {
        "principal": principal.key,
        "kind": principal.kind,
        "name": principal.name,
        "workspace": principal.workspace.slug,
        "role": principal.role.value if principal.role else None,
        "token": token.name if token else None,
        "read_only": principal.read_only,
        "confidence_ceiling": principal.confidence_ceiling,
        "repositories": repository_slugs(principal),
        "audiences": audience_names(principal),
        "expires_at": token.expires_at if token else None,
        "limits": {
            "reads_per_minute": rate(READ),
            "writes_per_minute": rate(WRITE),
            "searches_per_minute": rate(SEARCH),
        },
    }
