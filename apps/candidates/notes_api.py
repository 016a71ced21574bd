"""The working notes of a task over REST: note, list, say what became of a finding, delete, propose."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.idempotency import earlier_answer, idempotent, once
from apps.candidates.api import (
    OriginOut,
    ProposedOut,
    ScopeIn,
    ScopeOut,
    also_of,
    proposed_shown,
    values_from,
)
from apps.candidates.notes import (
    MAX_NOTE,
    Note,
    check_note,
    note_add,
    note_delete,
    note_dispose,
    note_prepare,
    note_propose,
    require_task,
)
from apps.core.pagination import PageQuery, page_of
from apps.core.serializers import Many, NoQuery, OneOf, Share, StrictSerializer, Text, Whole
from apps.memories.models import Disposition
from apps.memories.notes import MAX_DAYS, note_for, notes_of, notes_shown
from apps.sources.api import SourceIn, SourceOut
from apps.sources.services import MAX_SOURCES


class NoteIn(StrictSerializer):
    content = Text(max_length=MAX_NOTE, help_text="One finding or one thing to bear in mind, kept word for word.")
    type = Text(max_length=100, multiline=False, help_text="The name or the slug of a type; see `taxonomy/`.")
    scope = ScopeIn()
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False)
    disposition = OneOf(choices=Disposition.values, required=False, help_text="Of a finding: what became of it.")
    ttl_days = Whole(
        min_value=1,
        max_value=MAX_DAYS,
        required=False,
        help_text="After so many it expires; else as its category says.",
    )


class DispositionIn(StrictSerializer):
    disposition = OneOf(choices=Disposition.values)


class ProposeNoteIn(StrictSerializer):
    """What the proposal says otherwise than the note."""

    content = Text(max_length=MAX_NOTE, required=False)
    type = Text(max_length=100, multiline=False, required=False)
    scope = ScopeIn(required=False)
    confidence = Share(required=False, allow_null=True)


class NotesQuery(PageQuery):
    disposition = OneOf(choices=Disposition.values, required=False)


class NoteOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    task = serializers.CharField()
    content = serializers.CharField()
    type = serializers.CharField()
    category = serializers.CharField()
    scope = ScopeOut()
    tier = serializers.ChoiceField(["episodic"])
    reviewed = serializers.BooleanField(help_text="Always false: nobody has reviewed a note.")
    disposition = serializers.ChoiceField(Disposition.choices, allow_null=True)
    disposed_by = serializers.CharField(allow_null=True)
    disposed_at = serializers.DateTimeField(allow_null=True)
    sources = SourceOut(many=True)
    origin = OriginOut()
    proposed_as = serializers.UUIDField(allow_null=True, help_text="The candidate that it was last proposed as.")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()


class NotedOut(NoteOut):
    note = serializers.CharField(allow_blank=True, help_text="What else there is to say about it.")


class NotePageOut(serializers.Serializer[Any]):
    results = NoteOut(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class NotesView(APIView):
    @extend_schema(
        operation_id="notes",
        parameters=[NotesQuery],
        responses=NotePageOut,
        summary="The working notes of exactly this task that have not expired, the newest first",
    )
    def get(self, request: Request, task: str) -> Response:
        principal = principal_of(request)
        asked = NotesQuery.read_query(request)
        limit, cursor = asked.pop("limit"), asked.pop("cursor", None)
        rows = notes_of(principal, require_task(task)).filter(**asked).select_related("type__category", "origin_token")
        page = page_of(rows, order=("-created_at", "-id"), limit=limit, cursor=cursor, request=request)
        shown = {entry["id"]: entry for entry in notes_shown(principal, page.rows)}
        return Response(page.as_dict(lambda row: shown[str(row.pk)]))

    @extend_schema(
        operation_id="note_add",
        request=NoteIn,
        responses={201: NotedOut, 200: OpenApiResponse(NotedOut, "This origin had noted the same in this task.")},
        summary="Note something for this task",
    )
    def post(self, request: Request, task: str) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = values_from(
            NoteIn.read_body(request, also=lambda good: check_note(principal, values_from(good) | {"task": task}))
        )
        note = Note(task=task, **data)
        earlier = earlier_answer(request)
        if earlier is not None:
            return earlier
        # Embedded before the transaction that the repeatable answer is kept in.
        prepared = note_prepare(principal=principal, note=note)

        def effect() -> Response:
            noted = note_add(principal=principal, note=note, prepared=prepared)
            (shown,) = notes_shown(principal, [noted.note])
            return Response(shown | {"note": noted.told}, status=201 if noted.created else 200)

        return once(request, effect)


class NoteView(APIView):
    @extend_schema(operation_id="note", responses=NoteOut, summary="One working note")
    def get(self, request: Request, task: str, note_id: UUID) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        (shown,) = notes_shown(principal, [note_for(principal, require_task(task), note_id)])
        return Response(shown)

    @extend_schema(
        operation_id="note_delete",
        responses={204: None},
        summary="Delete a working note: whoever noted it, or a reviewer",
    )
    def delete(self, request: Request, task: str, note_id: UUID) -> Response:
        NoQuery.read_query(request)
        note_delete(principal=principal_of(request), task=task, note_id=note_id)
        return Response(status=204)


class DispositionView(APIView):
    @extend_schema(
        operation_id="note_dispose",
        request=DispositionIn,
        responses=NoteOut,
        summary="Say what became of a finding: whoever noted it, or a person",
    )
    @idempotent
    def post(self, request: Request, task: str, note_id: UUID) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = DispositionIn.read_body(request)
        note = note_dispose(principal=principal, task=task, note_id=note_id, disposition=data["disposition"])
        (shown,) = notes_shown(principal, [note])
        return Response(shown)


class ProposeNoteView(APIView):
    @extend_schema(
        operation_id="note_propose",
        request=ProposeNoteIn,
        responses={
            201: ProposedOut,
            200: OpenApiResponse(ProposedOut, "It joined an open candidate, or was decided before."),
        },
        summary="Propose what a note says, with its sources, like any other proposal",
    )
    @idempotent
    def post(self, request: Request, task: str, note_id: UUID) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = values_from(ProposeNoteIn.read(_body(request), also=also_of(principal)))
        proposed = note_propose(principal=principal, task=task, note_id=note_id, changes=data)
        return Response(proposed_shown(principal, proposed) | {"note": ""}, status=201 if proposed.created else 200)


def _body(request: Request) -> Any:
    """Nothing to change is no body at all, too."""
    return request.data if request.data or request.stream is not None else {}
