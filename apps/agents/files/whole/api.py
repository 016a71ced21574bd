"""Everything that was approved, over REST, for admins."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from apps.accounts.authentication import principal_of
from apps.agents.files.whole.writing import export_lines
from apps.core.clock import now
from apps.core.serializers import NoQuery

MEDIA_TYPE = "application/x-ndjson"


class WholeExportView(APIView):
    @extend_schema(
        operation_id="export",
        responses={
            (200, MEDIA_TYPE): OpenApiResponse(OpenApiTypes.STR, "One JSON object a line; the last one is the trailer.")
        },
        summary="Everything that was approved, as lines of JSON, for admins",
    )
    def get(self, request: Request) -> HttpResponseBase:
        NoQuery.read_query(request)
        principal = principal_of(request)
        # Begun before the answer: what is refused, or a database that is down, is no file that stops in the middle.
        answer = StreamingHttpResponse(_Begun(export_lines(principal)), content_type=f"{MEDIA_TYPE}; charset=utf-8")
        name = f"firm-memory-{principal.workspace.slug}-{now():%Y-%m-%d}.jsonl"
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer


class _Begun:
    """Lines of which the first has been read. Closing it ends the transaction that the rest is read in."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self._first = lines, next(lines, None)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._first is not None:
            line, self._first = self._first, None
            return line
        return next(self._lines)

    def close(self) -> None:
        close = getattr(self._lines, "close", None)
        if close:
            close()
