"""The addresses of the project, and a few whose only purpose is to be mistreated."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, SuspiciousOperation, ValidationError
from django.db import OperationalError, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from rest_framework import exceptions as drf
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.audit import audit_record
from apps.accounts.authentication import principal_of
from apps.accounts.idempotency import earlier_answer, idempotent, once
from apps.accounts.models import Audience, AuditEvent, Role, Workspace
from apps.accounts.pages import PageRequest, page
from apps.accounts.permissions import role_required
from apps.core import errors
from apps.core.pagination import PageQuery, page_of
from apps.core.serializers import Flag, Many, Share, StrictSerializer, Text, Whole
from firmmemory import urls as project
from firmmemory.urls import handler400, handler403, handler404, handler500  # noqa: F401


class SourceIn(StrictSerializer):
    kind = Text(max_length=20)
    url = Text(max_length=100, required=False)


class ProbeIn(StrictSerializer):
    content = Text(max_length=100)
    count = Whole(min_value=0, max_value=9, required=False)
    confidence = Share(required=False)
    loud = Flag(default=False)
    sources = Many(SourceIn(), default=list)


class BodyView(APIView):
    def post(self, request: Request) -> Response:
        return Response({"read": ProbeIn.read_body(request)}, status=201)


class SmallBodyView(BodyView):
    max_body_bytes = 64


class EffectView(APIView):
    """Writes an audit event for each time it really runs."""

    @idempotent
    def post(self, request: Request, verb: str = "ran") -> Response:
        principal = principal_of(request)
        event = audit_record(principal, verb, subject_kind="probe", subject_id=1)
        outcome = request.data.get("outcome", "done")
        if outcome == "conflict":
            raise errors.AlreadyDecided("Decided already.", extra={"decided_by": "alice"})
        if outcome == "down":
            raise errors.Unavailable("Down.")
        if outcome == "crash":
            raise RuntimeError("crash")
        if outcome == "aborted":
            Audience.objects.create(workspace=principal.workspace, name="twice")
            Audience.objects.create(workspace=principal.workspace, name="twice")
        return Response({"event": event.pk}, status=201)


class SlowEffectView(APIView):
    def post(self, request: Request) -> Response:
        if answer := earlier_answer(request):
            return answer
        in_transaction_before = connection.in_atomic_block
        return once(request, lambda: Response({"prepared_in_transaction": in_transaction_before}, status=201))


class ListView(APIView):
    def get(self, request: Request) -> Response:
        query = PageQuery.read_query(request)
        rows = AuditEvent.objects.filter(workspace=principal_of(request).workspace)
        page = page_of(
            rows, order=("-created_at", "-id"), limit=query["limit"], cursor=query.get("cursor"), request=request
        )
        return Response(page.as_dict(lambda event: event.verb))


class ReviewersView(APIView):
    permission_classes = [role_required(Role.REVIEWER, to="look at the queue")]

    def get(self, request: Request) -> Response:
        return Response({})

    def post(self, request: Request) -> Response:
        return Response({})


class SearchView(APIView):
    throttle_kind = "search"

    def get(self, request: Request) -> Response:
        return Response({})


def _violate(name: str) -> None:
    workspace = Workspace.objects.get(slug="firm")
    with transaction.atomic():
        if name == "unique":
            Audience.objects.create(workspace=workspace, name="one")
            Audience.objects.create(workspace=workspace, name="one")
        if name == "unnamed":
            User.objects.create(username="twice")
            User.objects.create(username="twice")
        if name == "trigger":
            Workspace.objects.filter(pk=workspace.pk)._raw_delete("default")
        if name == "protected":
            workspace.delete()
        if name == "nul":
            Audience.objects.create(workspace=workspace, name="a\x00b")
        if name == "surrogate":
            Audience.objects.create(workspace=workspace, name="a\ud83db")
        if name == "too_long":
            Audience.objects.create(workspace=workspace, name="a" * 101)
        if name == "timeout":
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', '20', true)")
                cursor.execute("SELECT pg_sleep(1)")


RAISED: dict[str, Exception] = {
    "stale": errors.Stale("Stale.", extra={"version": 3}),
    "surrogate_text": errors.Invalid.field("a\ud83d", "No \x00."),
    "404": Http404("secret detail"),
    "403": PermissionDenied(),
    "suspicious": SuspiciousOperation("secret detail"),
    "validation": ValidationError({"name": ["Too bad."]}),
    "drf_validation": drf.ValidationError({"sources": [{}, {"url": ["Bad."]}]}),
    "drf_throttled": drf.Throttled(wait=7),
    "down": OperationalError("connection refused: password=hunter2"),
    "bug": RuntimeError("password=hunter2"),
    "key": KeyError("missing"),
}


def _raise(name: str) -> None:
    if name in RAISED:
        raise RAISED[name]
    _violate(name)


class RaiseView(APIView):
    def get(self, request: Request, name: str) -> Response:
        _raise(name)
        return Response({})


def raise_page(request: HttpRequest, name: str) -> HttpResponse:
    _raise(name)
    return HttpResponse()


@page(Role.REVIEWER, to="see the queue")
def reviewers_page(request: PageRequest) -> HttpResponse:
    principal = request.principal
    return HttpResponse(f"{principal.name} in {principal.workspace} via {principal.via} {principal.request_id}")


urlpatterns: list[Any] = [
    path("api/v1/probe/body/", BodyView.as_view()),
    path("api/v1/probe/small/", SmallBodyView.as_view()),
    path("api/v1/probe/effect/", EffectView.as_view()),
    path("api/v1/probe/effect/<str:verb>/", EffectView.as_view()),
    path("api/v1/probe/slow/", SlowEffectView.as_view()),
    path("api/v1/probe/list/", ListView.as_view()),
    path("api/v1/probe/reviewers/", ReviewersView.as_view()),
    path("api/v1/probe/search/", SearchView.as_view()),
    path("api/v1/probe/raise/<str:name>/", RaiseView.as_view()),
    path("probe/raise/<str:name>/", raise_page),
    path("probe/reviewers/", reviewers_page),
    *project.urlpatterns,
]
