"""Raw material over REST: hand it over, ask what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any
from uuid import UUID

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.idempotency import idempotent
from apps.candidates.api import ScopeIn, values_from
from apps.capture.inbox import RawMaterial, Received, check_given, check_material, events_receive
from apps.capture.models import MAX_EXTERNAL_ID, MAX_PAYLOAD, EventOutcome, EventState
from apps.capture.selectors import EventFilter, event_for, event_shown, events_found
from apps.core.chunked import MAX_BYTES
from apps.core.errors import FieldError, Invalid, Malformed, Refusals, UnknownKeys
from apps.core.pagination import PageQuery, page_of
from apps.core.parsers import StrictJSONParser, parse_object, read_bounded
from apps.core.serializers import Many, NoQuery, OneOf, Raw, StrictSerializer, Text, Whole
from apps.sources.api import SourceIn
from apps.sources.models import SourceKind
from apps.sources.services import MAX_SOURCES

MAX_LINES = 1_000


class IngestIn(StrictSerializer):
    content = Raw(max_length=MAX_PAYLOAD, help_text="The material as it is. Secrets, personal data, code are cut out.")
    kind = OneOf(choices=SourceKind.values)
    scope = ScopeIn()
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False)
    external_id = Text(
        max_length=MAX_EXTERNAL_ID,
        multiline=False,
        required=False,
        help_text="Its name where it comes from. The same name and kind twice is one event.",
    )


class ReceivedOut(serializers.Serializer[Any]):
    event = serializers.UUIDField()
    notes = serializers.ListField(child=serializers.CharField(), help_text="What was taken out of it.")
    note = serializers.CharField(allow_blank=True)


class ReceivedManyOut(serializers.Serializer[Any]):
    """The answer to JSON lines, in their order."""

    events = serializers.ListField(child=serializers.UUIDField())
    notes = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="For each line why it was not kept; blank where it was.",
    )


class EventOut(serializers.Serializer[Any]):
    event = serializers.UUIDField()
    kind = serializers.CharField()
    external_id = serializers.CharField()
    state = serializers.ChoiceField(EventState.choices)
    outcome = serializers.ChoiceField(EventOutcome.choices, allow_null=True)
    reason = serializers.CharField(allow_null=True)
    attempts = serializers.IntegerField()
    candidates = serializers.ListField(child=serializers.UUIDField())
    notes = serializers.ListField(child=serializers.CharField())
    received_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)


class EventPageOut(serializers.Serializer[Any]):
    results = EventOut(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class EventQuery(PageQuery):
    outcome = OneOf(choices=EventOutcome.values, required=False)
    state = OneOf(choices=EventState.values, required=False)
    kind = OneOf(choices=SourceKind.values, required=False)
    origin = Text(max_length=200, multiline=False, required=False)
    days = Whole(min_value=1, max_value=36_500, required=False, help_text="Received in so many days.")


class JSONLinesParser(BaseParser):
    """One JSON object a line; empty lines are left out. Answers ``{"lines": [...]}``."""

    media_type = "application/x-ndjson"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        view = (parser_context or {}).get("view")
        body = read_bounded(stream, getattr(view, "max_body_bytes", MAX_BYTES))
        lines = [(number, line) for number, line in enumerate(body.splitlines(), start=1) if line.strip()]
        if len(lines) > MAX_LINES:
            raise Malformed(f"Send at most {MAX_LINES:,} lines; there are {len(lines):,}.", code="too_many_lines")
        return {"lines": [(number, _line(number, line)) for number, line in lines]}


class JSONLParser(JSONLinesParser):
    """The same by its other name."""

    media_type = "application/jsonl"


def _line(number: int, line: bytes) -> dict[str, Any]:
    try:
        return parse_object(line)
    except Malformed as error:
        raise Malformed(f"Line {number}: {error.detail}", code=error.code) from None


RECEIVED = PolymorphicProxySerializer(
    component_name="ReceivedOneOrMany", serializers=[ReceivedOut, ReceivedManyOut], resource_type_field_name=None
)


class IngestView(APIView):
    max_body_bytes = MAX_BYTES
    parser_classes = (StrictJSONParser, JSONLinesParser, JSONLParser)

    @extend_schema(operation_id="events", parameters=[EventQuery], responses=EventPageOut, summary="What became of it")
    def get(self, request: Request) -> Response:
        principal = principal_of(request)
        asked = EventQuery.read_query(request)
        limit, cursor = asked.pop("limit"), asked.pop("cursor", None)
        rows = events_found(principal, EventFilter(**asked))
        page = page_of(rows, order=("-received_at", "-id"), limit=limit, cursor=cursor, request=request)
        return Response(page.as_dict(event_shown))

    @extend_schema(
        operation_id="ingest",
        request={"application/json": IngestIn, "application/x-ndjson": IngestIn(many=True)},
        responses={202: RECEIVED},
        summary="Hand over raw material: one piece as JSON, or one a line",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        lines: list[tuple[int, dict[str, Any]]] = dict(request.data).get("lines", []) if _has_lines(request) else []
        if not _has_lines(request):
            material = _material(IngestIn.read_body(request, also=_check_readable))
            received = events_receive(principal=principal, materials=[material], prefixes=[""])[0]
            return Response(_received(received), status=202)
        materials = _read_lines(lines)
        received_all = events_receive(
            principal=principal, materials=materials, prefixes=[f"[{number}]." for number, _ in lines]
        )
        events = [str(one.event.pk) for one in received_all]
        return Response({"events": events, "notes": [one.note for one in received_all]}, status=202)


def _has_lines(request: Request) -> bool:
    return request.content_type.split(";")[0].strip().lower() in (
        JSONLinesParser.media_type,
        JSONLParser.media_type,
    )


def _read_lines(lines: list[tuple[int, dict[str, Any]]]) -> list[RawMaterial]:
    """All or none of them: whoever sent them mends a line and sends them again, and what was there is known."""
    if not lines:
        raise Malformed("There is no line in it. Send one JSON object a line.", code="not_json")
    materials: dict[int, RawMaterial] = {}
    faults: dict[int, list[FieldError]] = {}
    for number, line in lines:
        try:
            materials[number] = _material(IngestIn.read(line, also=_check_readable))
        except UnknownKeys as error:
            raise Malformed(f"Line {number}: {error.detail}", code=error.code) from None
        except Invalid as error:
            faults[number] = [FieldError(f"[{number}].{fault.field}", fault.message) for fault in error.errors]
    if faults:
        # Those that can be read may have faults of their own, which are said at once as well.
        faults |= {number: check_material(one, prefix=f"[{number}].") for number, one in materials.items()}
        errors = [error for number, _ in lines for error in faults[number]]
        raise Invalid("Some lines will not do. Nothing was kept.", errors=errors)
    return list(materials.values())


def _check_readable(good: dict[str, Any]) -> None:
    """The values of one piece that can be read, where others cannot."""
    refusals = Refusals()
    refusals.add(check_given(values_from(good)))
    refusals.raise_all("Some values will not do.")


def _material(data: dict[str, Any]) -> RawMaterial:
    return RawMaterial(**values_from(data))


def _received(received: Received) -> dict[str, Any]:
    event = received.event
    return {"event": str(event.pk), "notes": event.notes if received.created else [], "note": received.note}


class EventView(APIView):
    @extend_schema(operation_id="event", responses=EventOut, summary="What became of one event")
    def get(self, request: Request, event_id: UUID) -> Response:
        NoQuery.read_query(request)
        return Response(event_shown(event_for(principal_of(request), event_id)))
