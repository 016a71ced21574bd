"""The queue over REST: propose, read, revise, withdraw."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.idempotency import idempotent
from apps.accounts.principal import Principal
from apps.candidates.access import candidate_for
from apps.candidates.corrections import Report, check_readable_report, memory_correct
from apps.candidates.models import CandidateStatus, CorrectionKind
from apps.candidates.opened import opened_record
from apps.candidates.proposal import MAX_SUPERSEDES, Proposal, ScopeInput, check_readable
from apps.candidates.revisions import Revision, candidate_revise, candidate_withdraw
from apps.candidates.selectors import QueueFilter, candidates_shown, near_shown, queue
from apps.candidates.services import Proposed, candidate_propose
from apps.core.pagination import PageQuery, page_of
from apps.core.serializers import (
    Also,
    Flag,
    Many,
    Moment,
    NoQuery,
    OneOf,
    Share,
    StrictSerializer,
    Text,
    Whole,
    utc_note,
)
from apps.memories.models import MAX_CONTENT, Tier
from apps.scopes.services import MAX_NAMES
from apps.sources.api import SourceIn, SourceOut, sources_from
from apps.sources.services import MAX_SOURCES
from apps.taxonomy.selectors import find_types

MAX_VERSION = 2_147_483_647
REFERENCE = 64


class ScopeIn(StrictSerializer):
    firm = Flag(required=False, help_text="It holds for the whole firm.")
    domains = Many(Text(max_length=200, multiline=False), max_items=MAX_NAMES, required=False)
    repos = Many(Text(max_length=500, multiline=False), max_items=MAX_NAMES, required=False)


class ProposeIn(StrictSerializer):
    content = Text(max_length=MAX_CONTENT[Tier.INDEX], help_text="One self-contained statement, kept word for word.")
    type = Text(max_length=100, multiline=False, help_text="The name or the slug of a type; see `taxonomy/`.")
    scope = ScopeIn()
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False)
    confidence = Share(required=False, allow_null=True)
    supersedes = Many(Text(max_length=REFERENCE, multiline=False), max_items=MAX_SUPERSEDES, required=False)
    valid_from = Moment(required=False, allow_null=True)
    tier = OneOf(choices=Tier.values, default=Tier.DURABLE.value)


class ReviseIn(StrictSerializer):
    version = Whole(min_value=1, max_value=MAX_VERSION)
    content = Text(max_length=MAX_CONTENT[Tier.INDEX], required=False)
    type = Text(max_length=100, multiline=False, required=False)
    scope = ScopeIn(required=False)
    confidence = Share(required=False, allow_null=True)
    valid_from = Moment(required=False, allow_null=True)
    supersedes = Many(Text(max_length=REFERENCE, multiline=False), max_items=MAX_SUPERSEDES, required=False)
    sources = Many(SourceIn(), max_items=MAX_SOURCES, required=False)


class WithdrawIn(StrictSerializer):
    version = Whole(min_value=1, max_value=MAX_VERSION)


class CorrectionIn(StrictSerializer):
    kind = OneOf(choices=CorrectionKind.values)
    reason = Text(max_length=2_000)
    replacement = Text(max_length=MAX_CONTENT[Tier.INDEX], required=False)
    sources = Many(SourceIn(), max_items=MAX_SOURCES, allow_empty=False)


class QueueQuery(PageQuery):
    status = OneOf(choices=CandidateStatus.values, required=False)
    type = Text(max_length=100, multiline=False, required=False)
    repo = Text(max_length=500, multiline=False, required=False)
    domain = Text(max_length=200, multiline=False, required=False)
    origin = Text(max_length=200, multiline=False, required=False, help_text="Its name or its kind.")
    flag = Text(max_length=60, multiline=False, required=False)
    age = Whole(min_value=0, max_value=36_500, required=False, help_text="At least this many days old.")
    confidence = Share(required=False, help_text="At least this.")
    q = Text(max_length=8_000, required=False, verbatim=True)


class ScopeOut(serializers.Serializer[Any]):
    firm = serializers.BooleanField()
    domains = serializers.ListField(child=serializers.CharField())
    repos = serializers.ListField(child=serializers.CharField())


class NearOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    what = serializers.ChoiceField(["memory", "candidate"])
    similarity = serializers.FloatField()
    how = serializers.ChoiceField(["words", "term", "name", "card", "vector"])
    content = serializers.CharField(allow_null=True)


class DuplicateOut(serializers.Serializer[Any]):
    what = serializers.ChoiceField(["memory", "candidate"])
    id = serializers.UUIDField()


class ProposedOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(CandidateStatus.choices)
    reason = serializers.CharField(allow_blank=True)
    duplicate_of = DuplicateOut(allow_null=True)
    near = NearOut(many=True)
    version = serializers.IntegerField()
    note = serializers.CharField(allow_blank=True)


class OriginOut(serializers.Serializer[Any]):
    kind = serializers.CharField()
    name = serializers.CharField()


class CandidateOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    content = serializers.CharField()
    type = serializers.CharField()
    scope = ScopeOut()
    tier = serializers.CharField()
    confidence = serializers.FloatField(allow_null=True)
    valid_from = serializers.DateTimeField(allow_null=True)
    sources = SourceOut(many=True)
    origin = OriginOut()
    near = NearOut(many=True)
    supersedes = serializers.ListField(child=serializers.UUIDField())
    corrects = serializers.DictField(allow_null=True)
    flags = serializers.ListField(child=serializers.DictField())
    status = serializers.ChoiceField(CandidateStatus.choices)
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    verdicts = serializers.ListField(child=serializers.DictField())


class CandidatePageOut(serializers.Serializer[Any]):
    results = CandidateOut(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.URLField(allow_null=True)


class CorrectionOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    status = serializers.ChoiceField(CandidateStatus.choices)
    reason = serializers.CharField(allow_blank=True)


class CandidatesView(APIView):
    @extend_schema(
        operation_id="candidates",
        parameters=[QueueQuery],
        responses=CandidatePageOut,
        summary="The queue for reviewers, their own candidates for proposers; the pending ones unless asked otherwise",
    )
    def get(self, request: Request) -> Response:
        principal = principal_of(request)
        asked = QueueQuery.read_query(request, also=lambda good: _check_type(principal, good))
        limit, cursor = asked.pop("limit"), asked.pop("cursor", None)
        rows = queue(principal, QueueFilter(**asked)).select_related("type", "origin_token")
        page = page_of(rows, order=("created_at", "id"), limit=limit, cursor=cursor, request=request)
        shown = {entry["id"]: entry for entry in candidates_shown(principal, page.rows)}
        return Response(page.as_dict(lambda row: shown[str(row.pk)]))

    @extend_schema(
        operation_id="propose",
        request=ProposeIn,
        responses={
            201: ProposedOut,
            200: OpenApiResponse(ProposedOut, "It joined an open candidate, or was decided before."),
        },
        summary="Propose a statement",
    )
    @idempotent
    def post(self, request: Request) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = ProposeIn.read_body(request, also=also_of(principal))
        proposed = candidate_propose(principal=principal, proposal=_proposal(data))
        shown = proposed_shown(principal, proposed) | {"note": utc_note(dict(request.data), "valid_from")}
        return Response(shown, status=201 if proposed.created else 200)


def _check_type(principal: Principal, good: dict[str, Any]) -> None:
    if "type" in good:
        find_types(principal.workspace, [good["type"]], field="type", active_only=False)


def _proposal(data: dict[str, Any]) -> Proposal:
    return Proposal(
        content=data["content"],
        type=data["type"],
        scope=scope_from(data["scope"]),
        sources=sources_from(data["sources"]),
        confidence=data.get("confidence"),
        supersedes=tuple(data.get("supersedes", ())),
        valid_from=data.get("valid_from"),
        tier=data["tier"],
    )


def values_from(data: dict[str, Any]) -> dict[str, Any]:
    """Scope and sources as services take them, where they are named."""
    values = dict(data)
    if "scope" in values:
        values["scope"] = scope_from(values["scope"])
    if "sources" in values:
        values["sources"] = sources_from(values["sources"])
    return values


def also_of(principal: Principal, *, prefix: str = "") -> Also:
    """For ``read_body``: look further at the values of a statement that can be read."""
    return lambda good: check_readable(principal, values_from(good), prefix=prefix)


def scope_from(value: dict[str, Any]) -> ScopeInput:
    return ScopeInput(
        firm=value.get("firm", False), domains=tuple(value.get("domains", ())), repos=tuple(value.get("repos", ()))
    )


def proposed_shown(principal: Principal, proposed: Proposed) -> dict[str, Any]:
    """What a proposer is told, by whatever door it came."""
    candidate, duplicate = proposed.candidate, proposed.duplicate_of
    return {
        "id": str(candidate.pk),
        "status": proposed.status,
        "reason": proposed.reason,
        "duplicate_of": {"what": duplicate.what, "id": str(duplicate.id)} if duplicate else None,
        "near": near_shown(principal, [candidate])[candidate.pk],
        "version": candidate.version,
    }


def candidate_response(principal: Principal, candidate_id: UUID) -> Response:
    candidate = candidate_for(principal, candidate_id)
    return Response(candidates_shown(principal, [candidate])[0])


class CandidateView(APIView):
    @extend_schema(operation_id="candidate", responses=CandidateOut, summary="One candidate in full")
    def get(self, request: Request, candidate_id: UUID) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        candidate = candidate_for(principal, candidate_id)
        opened_record(principal, candidate)
        return Response(candidates_shown(principal, [candidate])[0])


class ReviseView(APIView):
    @extend_schema(
        operation_id="revise", request=ReviseIn, responses=CandidateOut, summary="Word an own open candidate anew"
    )
    @idempotent
    def post(self, request: Request, candidate_id: UUID) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = values_from(ReviseIn.read_body(request, also=also_of(principal)))
        version = data.pop("version")
        candidate_revise(
            principal=principal, candidate_id=candidate_id, version=version, revision=Revision(values=data)
        )
        return candidate_response(principal, candidate_id)


class WithdrawView(APIView):
    @extend_schema(
        operation_id="withdraw", request=WithdrawIn, responses=CandidateOut, summary="Take an own open candidate back"
    )
    @idempotent
    def post(self, request: Request, candidate_id: UUID) -> Response:
        NoQuery.read_query(request)
        data = WithdrawIn.read_body(request)
        principal = principal_of(request)
        candidate_withdraw(principal=principal, candidate_id=candidate_id, version=data["version"])
        return candidate_response(principal, candidate_id)


class CorrectionsView(APIView):
    @extend_schema(
        operation_id="correct",
        request=CorrectionIn,
        responses={201: CorrectionOut, 200: OpenApiResponse(CorrectionOut, "This origin's report is open already.")},
        summary="Report a memory as stale or wrong",
    )
    @idempotent
    def post(self, request: Request, reference: str) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = CorrectionIn.read_body(request, also=lambda good: check_readable_report(principal, values_from(good)))
        report = Report(
            kind=data["kind"],
            reason=data["reason"],
            replacement=data.get("replacement", ""),
            sources=sources_from(data["sources"]),
        )
        proposed = memory_correct(principal=principal, reference=reference, report=report)
        return Response(
            {"id": str(proposed.candidate.pk), "status": proposed.status, "reason": proposed.reason},
            status=201 if proposed.created else 200,
        )
