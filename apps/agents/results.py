"""What each tool gives: always ``results`` and ``note``, of which ``results`` has a shape for each tool."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.agents.schemas import schema_of
from apps.candidates.api import CorrectionOut, ProposedOut
from apps.retrieval.api import AmendmentOut, FoundOut, MemoryOut

_TRUST = "How far to rely on it."


class ErrorOut(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable; for programs.")
    detail = serializers.CharField()
    errors = serializers.ListField(  # type: ignore[assignment]  # DRF takes it off the class
        child=serializers.DictField(), required=False, help_text="Each with a field and a message."
    )
    extra = serializers.DictField(required=False)
    request_id = serializers.CharField()


class FoundMemory(FoundOut):
    trust = serializers.CharField(help_text=_TRUST)


class WholeMemory(MemoryOut):
    trust = serializers.CharField(help_text=_TRUST)


class WhyOut(serializers.Serializer[Any]):
    reason = serializers.CharField(allow_blank=True, help_text="What the reviewer wrote who approved it.")
    quotes = serializers.ListField(child=serializers.CharField(), help_text="The words of its sources.")


class Decision(FoundMemory):
    holds_now = serializers.BooleanField()
    replaced = serializers.ListField(
        child=serializers.DictField(), help_text="What held before it, the oldest first, each with when and what."
    )
    why = WhyOut()


class CitedSource(serializers.Serializer[Any]):
    kind = serializers.CharField()
    reference = serializers.CharField()


class ContextItem(serializers.Serializer[Any]):
    """No more than an agent needs, since it counts in the budget; ``memory_get`` gives the rest."""

    id = serializers.UUIDField()
    number = serializers.CharField(help_text="To cite.")
    content = serializers.CharField()
    type = serializers.CharField()
    status = serializers.CharField()
    valid_from = serializers.DateTimeField(required=False)
    sources = CitedSource(many=True)
    amended_by = AmendmentOut(many=True, required=False)
    trust = serializers.CharField(help_text=_TRUST)
    why_here = serializers.CharField()


class LeftOut(serializers.Serializer[Any]):
    number = serializers.CharField()
    because = serializers.CharField()


class ProposedHere(ProposedOut):
    """``note`` stands beside the results."""

    note = None  # type: ignore[assignment]


class Reported(CorrectionOut):
    memory = serializers.CharField(help_text="The number of the memory that was reported.")


class Handed(serializers.Serializer[Any]):
    event = serializers.UUIDField(help_text="Its id; GET /api/v1/ingest/{event}/ tells what became of it.")
    notes = serializers.ListField(child=serializers.CharField(), help_text="What was taken out of it.")


class SearchExtras(serializers.Serializer[Any]):
    intent = serializers.CharField(required=False)
    degraded = serializers.BooleanField(required=False, help_text="Not everything could be looked at; see note.")


class ContextExtras(SearchExtras):
    used_tokens = serializers.IntegerField(
        required=False,
        help_text="At four ASCII characters each: of the text or of this object, whichever is more.",
    )
    budget_tokens = serializers.IntegerField(required=False)
    left_out = LeftOut(many=True, required=False, help_text="As many as there was room for; note tells how many.")


class NoExtras(serializers.Serializer[Any]):
    """Nothing beside ``results`` and ``note``."""


def output_schema(
    result: type[serializers.Serializer[Any]], extras: type[serializers.Serializer[Any]]
) -> dict[str, Any]:
    """A refusal has this shape, too: no results, why in ``note``, and for programs in ``error``."""
    beside = schema_of(extras())["properties"]
    return {
        "type": "object",
        "properties": {
            "results": {"type": "array", "items": schema_of(result())},
            "note": {"type": "string", "description": "Where was looked, and what else to know about the results."},
            **beside,
            "error": schema_of(ErrorOut()),
        },
        "required": ["results", "note"],
    }
