"""Sources and scopes as requests carry them, shared by every door that takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from apps.core.serializers import Moment, OneOf, StrictSerializer, Text
from apps.sources.models import SourceKind
from apps.sources.services import MAX_QUOTE, SourceInput, check_url


class Address(Text):
    """An address that starts with http:// or https://."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if errors := check_url(text, field=""):
            raise serializers.ValidationError([error.message for error in errors])
        return text


class SourceIn(StrictSerializer):
    kind = OneOf(choices=SourceKind.values)
    reference = Text(max_length=500, multiline=False, help_text="Its name in its own system, such as `acme/pay!128`.")
    url = Address(max_length=2000, multiline=False, required=False, allow_blank=True)
    title = Text(max_length=500, multiline=False, required=False, allow_blank=True)
    occurred_at = Moment(required=False, allow_null=True)
    commit = Text(max_length=64, multiline=False, required=False, allow_null=True)
    quote = Text(max_length=MAX_QUOTE, required=False, allow_blank=True)


class SourceOut(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    reference = serializers.CharField()
    url = serializers.CharField(allow_blank=True)
    title = serializers.CharField(allow_blank=True)
    occurred_at = serializers.DateTimeField(allow_null=True)
    commit = serializers.CharField(allow_null=True)
    quote = serializers.CharField(allow_blank=True)


def sources_from(values: Sequence[dict[str, Any]]) -> tuple[SourceInput, ...]:
    return tuple(SourceInput(**value) for value in values)
