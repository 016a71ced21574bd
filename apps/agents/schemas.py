"""JSON Schema of what tools take and give, made from the serializers that read and describe it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.core.serializers import Many, Raw, Share, StrictSerializer, Text, Whole

_Field = serializers.Field[Any, Any, Any, Any]


def schema_of(field: _Field) -> dict[str, Any]:
    """Without references, which not every client follows."""
    schema = _shape(field)
    if getattr(field, "allow_null", False) and "type" in schema:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    if field.help_text:
        schema["description"] = str(field.help_text)
    return schema


def _shape(field: _Field) -> dict[str, Any]:
    if isinstance(field, serializers.Serializer):
        return _object(field)
    if isinstance(field, serializers.ListSerializer | serializers.ListField):
        return _list(field)
    if isinstance(field, serializers.ChoiceField):
        return {"type": "string", "enum": [str(choice) for choice in field.choices]}
    return _simple(field)


def _object(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    fields = serializer.fields
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: schema_of(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
    }
    if isinstance(serializer, StrictSerializer):
        schema["additionalProperties"] = False
    return schema


def _list(field: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": schema_of(field.child)}
    if isinstance(field, Many):
        schema["maxItems"] = field.max_items
        if not field.allow_empty:
            schema["minItems"] = 1
    return schema


def _simple(field: _Field) -> dict[str, Any]:
    if isinstance(field, Text):
        limits = {"maxLength": field.limits["max_length"], "minLength": field.limits["min_length"]}
        return {"type": "string", **{name: limit for name, limit in limits.items() if limit}}
    if isinstance(field, Raw):
        return {"type": "string", "minLength": 1, "maxLength": field.most}
    if isinstance(field, Whole):
        return {"type": "integer", "minimum": field.least, "maximum": field.most} | _default(field)
    if isinstance(field, Share):
        return {"type": "number", "minimum": 0, "maximum": 1}
    return {"type": _type(field)}


def _default(field: _Field) -> dict[str, Any]:
    return {} if field.default is serializers.empty else {"default": field.default}


def _type(field: _Field) -> str:
    kinds: list[tuple[type, str]] = [
        (serializers.BooleanField, "boolean"),
        (serializers.IntegerField, "integer"),
        (serializers.FloatField, "number"),
        (serializers.DictField, "object"),
    ]
    return next((name for kind, name in kinds if isinstance(field, kind)), "string")
