"""Decisions over REST. Only a person's session or a reviewer's token gets past the services behind these."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.accounts.idempotency import earlier_answer, idempotent, once
from apps.accounts.principal import Principal
from apps.approvals.amendments import PREFIX, Amendment
from apps.approvals.bulk import MAX_ITEMS, Item, candidates_decide, decisions_hold, decisions_prepare
from apps.approvals.services import (
    MAX_REASON,
    approval_prepare,
    candidate_approve,
    candidate_reject,
    candidate_reopen,
    checked_reason,
    memory_restore,
    memory_retire,
)
from apps.candidates.api import MAX_VERSION, REFERENCE, CandidateOut, ScopeIn, also_of, candidate_response, values_from
from apps.candidates.proposal import MAX_SUPERSEDES
from apps.core.errors import Conflict, Refusals
from apps.core.serializers import Also, Identifier, Many, Moment, NoQuery, OneOf, Share, StrictSerializer, Text, Whole
from apps.memories.models import MAX_CONTENT, Action, Memory, Tier
from apps.memories.selectors import memory_for, memory_shown
from apps.retrieval.api import MemoryOut


class AmendmentIn(StrictSerializer):
    is_good_in_parts = True

    content = Text(max_length=MAX_CONTENT[Tier.INDEX], required=False)
    type = Text(max_length=100, multiline=False, required=False)
    scope = ScopeIn(required=False)
    confidence = Share(required=False, allow_null=True)
    valid_from = Moment(required=False, allow_null=True)
    supersedes = Many(Text(max_length=REFERENCE, multiline=False), max_items=MAX_SUPERSEDES, required=False)


class ApproveIn(StrictSerializer):
    version = Whole(min_value=1, max_value=MAX_VERSION, help_text="The version that was looked at.")
    amendment = AmendmentIn(required=False)
    note = Text(max_length=MAX_REASON, required=False, allow_blank=True)


class DecideIn(StrictSerializer):
    version = Whole(min_value=1, max_value=MAX_VERSION)
    reason = Text(max_length=MAX_REASON)


class ReasonIn(StrictSerializer):
    reason = Text(max_length=MAX_REASON)


class ItemIn(StrictSerializer):
    id = Identifier()
    version = Whole(min_value=1, max_value=MAX_VERSION)


class BulkIn(StrictSerializer):
    action = OneOf(choices=[Action.APPROVE.value, Action.REJECT.value])
    items = Many(ItemIn(), max_items=MAX_ITEMS, allow_empty=False)
    reason = Text(max_length=MAX_REASON, required=False, allow_blank=True)


class ApprovedOut(serializers.Serializer[Any]):
    memory = MemoryOut()


class OutcomeOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    outcome = serializers.ChoiceField(["done", "conflict", "forbidden", "invalid", "error"])
    detail = serializers.CharField()


class BulkOut(serializers.Serializer[Any]):
    batch = serializers.UUIDField()
    results = OutcomeOut(many=True)


class ApproveView(APIView):
    @extend_schema(operation_id="approve", request=ApproveIn, responses=ApprovedOut, summary="Approve a candidate")
    def post(self, request: Request, candidate_id: UUID) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = ApproveIn.read_body(request, also=lambda good: _check_readable(principal, good))
        decide = partial(
            candidate_approve,
            principal=principal,
            candidate_id=candidate_id,
            version=data["version"],
            amendment=amendment_from(data.get("amendment", {})),
            note=data.get("note", ""),
        )
        return earlier_answer(request) or _approve(request, principal, decide)


def _check_readable(principal: Principal, good: dict[str, Any]) -> None:
    refusals = Refusals()
    with refusals.collecting():
        also_of(principal, prefix=PREFIX)(good.get("amendment", {}))
    with refusals.collecting():
        checked_reason(principal, good.get("note", ""), required=False, field="note")
    refusals.raise_all("Some values will not do.")


def _approve(request: Request, principal: Principal, decide: Callable[..., Any]) -> Response:
    """Embed before the transaction that the repeatable answer is kept in."""
    try:
        prepared = approval_prepare(**{name: decide.keywords[name] for name in _PREPARED_FROM})  # type: ignore[attr-defined]
    except Conflict:
        # The first request with this key may have decided since this one looked for its answer.
        earlier = earlier_answer(request)
        if earlier is None:
            raise
        return earlier

    def effect() -> Response:
        approved = decide(prepared=prepared)
        return Response({"memory": memory_shown(principal, approved.memory)})

    return once(request, effect)


_PREPARED_FROM = ("principal", "candidate_id", "version", "amendment", "note")


def amendment_from(values: dict[str, Any]) -> Amendment:
    return Amendment(values_from(values))


def _reason_of(principal: Principal) -> Also:
    return lambda good: checked_reason(principal, good.get("reason", ""), required=False)


class RejectView(APIView):
    @extend_schema(operation_id="reject", request=DecideIn, responses=CandidateOut, summary="Reject a candidate")
    @idempotent
    def post(self, request: Request, candidate_id: UUID) -> Response:
        return _decide(request, candidate_id, candidate_reject)


class ReopenView(APIView):
    @extend_schema(operation_id="reopen", request=DecideIn, responses=CandidateOut, summary="Undo a decision")
    @idempotent
    def post(self, request: Request, candidate_id: UUID) -> Response:
        return _decide(request, candidate_id, candidate_reopen)


def _decide(request: Request, candidate_id: UUID, service: Callable[..., Any]) -> Response:
    NoQuery.read_query(request)
    principal = principal_of(request)
    data = DecideIn.read_body(request, also=_reason_of(principal))
    service(principal=principal, candidate_id=candidate_id, version=data["version"], reason=data["reason"])
    return candidate_response(principal, candidate_id)


class BulkView(APIView):
    @extend_schema(operation_id="bulk", request=BulkIn, responses=BulkOut, summary="Decide about many candidates")
    def post(self, request: Request) -> Response:
        NoQuery.read_query(request)
        principal = principal_of(request)
        data = BulkIn.read_body(request, also=_reason_of(principal))
        asked: dict[str, Any] = {
            "principal": principal,
            "action": Action(data["action"]),
            "items": [Item(**item) for item in data["items"]],
            "reason": data.get("reason", ""),
        }
        return earlier_answer(request) or _decide_many(request, asked)


def _decide_many(request: Request, asked: dict[str, Any]) -> Response:
    """Embed before the transaction that the repeatable answer is kept in."""
    embedded = decisions_prepare(**asked)

    def effect() -> Response:
        if connection.in_atomic_block:  # of the repeatable answer
            decisions_hold(principal=asked["principal"], items=asked["items"])
        batch, outcomes = candidates_decide(**asked, embedded=embedded)
        return Response({"batch": str(batch), "results": [outcome.as_dict() for outcome in outcomes]})

    return once(request, effect)


class RetireView(APIView):
    @extend_schema(operation_id="retire", request=ReasonIn, responses=MemoryOut, summary="Retire a memory")
    @idempotent
    def post(self, request: Request, reference: str) -> Response:
        return _change_memory(request, reference, memory_retire)


class RestoreView(APIView):
    @extend_schema(operation_id="restore", request=ReasonIn, responses=MemoryOut, summary="Undo a retirement")
    @idempotent
    def post(self, request: Request, reference: str) -> Response:
        return _change_memory(request, reference, memory_restore)


def _change_memory(request: Request, reference: str, service: Callable[..., Memory]) -> Response:
    NoQuery.read_query(request)
    data = ReasonIn.read_body(request)
    principal = principal_of(request)
    memory = service(principal=principal, reference=reference, reason=data["reason"])
    return Response(memory_shown(principal, memory_for(principal, memory.pk)))
