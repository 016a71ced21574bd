from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.models import Workspace
from apps.core.serializers import NoQuery
from apps.taxonomy.models import Category, Exclusion
from apps.taxonomy.selectors import memory_types


class TypeOut(serializers.Serializer[Any]):
    slug = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    category = serializers.CharField()
    always_human = serializers.BooleanField()
    min_confidence = serializers.FloatField()
    is_active = serializers.BooleanField()


class CategoryOut(serializers.Serializer[Any]):
    slug = serializers.CharField()
    half_life_days = serializers.IntegerField(allow_null=True)
    ttl_days = serializers.IntegerField(allow_null=True)


class ExclusionOut(serializers.Serializer[Any]):
    slug = serializers.CharField()
    description = serializers.CharField()


class TaxonomyOut(serializers.Serializer[Any]):
    types = TypeOut(many=True)
    categories = CategoryOut(many=True)
    exclusions = ExclusionOut(many=True)


class TaxonomyView(APIView):
    @extend_schema(operation_id="taxonomy", responses=TaxonomyOut, summary="Types, categories and exclusions")
    def get(self, request: Request) -> Response:
        NoQuery.read_query(request)
        return Response(taxonomy_shown(principal_of(request).workspace))


def taxonomy_shown(workspace: Workspace) -> dict[str, Any]:
    types = [{"category": row.category.slug} | _fields(row, TypeOut, "category") for row in memory_types(workspace)]
    exclusions = Exclusion.objects.filter(workspace=workspace, is_active=True)
    return {
        "types": types,
        "categories": [_fields(row, CategoryOut) for row in Category.objects.filter(workspace=workspace)],
        "exclusions": [_fields(row, ExclusionOut) for row in exclusions],
    }


def _fields(row: object, shape: type[serializers.Serializer[Any]], *left_out: str) -> dict[str, Any]:
    names: list[str] = list(shape().get_fields())
    return {name: getattr(row, name) for name in names if name not in left_out}
