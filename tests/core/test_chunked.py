"""Bodies without a declared length are read whole, bounded, and like any other."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_started
from django.db import close_old_connections
from django.test import RequestFactory

from apps.candidates.models import Candidate
from apps.core.chunked import with_chunked_bodies
from tests.ledger import a_body


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """As Django's test client does: what a request would close is the transaction of the test."""
    request_started.disconnect(close_old_connections)
    yield
    request_started.connect(close_old_connections)


def environ(path: str, body: Any, **changes: Any) -> dict[str, Any]:
    known = RequestFactory().post(path, content_type="application/json").environ
    del known["CONTENT_LENGTH"]
    stream = io.BytesIO(body) if isinstance(body, bytes) else body
    known |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input": stream, "wsgi.input_terminated": True}
    return known | changes


def ask(known: dict[str, Any], **options: Any) -> tuple[int, dict[str, Any]]:
    begun: list[str] = []

    def start_response(status: str, headers: Any, exc_info: Any = None) -> None:
        begun.append(status)

    answer = with_chunked_bodies(WSGIHandler(), **options)(known, start_response)
    return int(begun[0][:3]), json.loads(b"".join(answer))


@pytest.mark.django_db
@pytest.mark.usefixtures("pool")
@pytest.mark.parametrize("padding", [0, 1_500_000])
def test_a_chunked_proposal_is_a_proposal(robo, padding):
    body = json.dumps(a_body()).encode() + b" " * padding  # beyond a megabyte it is kept in a file meanwhile
    known = environ("/api/v1/candidates/", body, HTTP_AUTHORIZATION=f"Bearer {robo.secret}")
    status, answer = ask(known)
    assert (status, answer["status"]) == (201, "pending")
    assert Candidate.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "status", "code"), [(b"", 400, "not_json"), (b"{", 400, "not_json"), (b"{}", 422, "invalid")]
)
def test_what_is_wrong_with_it_is_said_as_of_any_other(robo, body, status, code):
    known = environ("/api/v1/candidates/", body, HTTP_AUTHORIZATION=f"Bearer {robo.secret}")
    answered, problem = ask(known)
    assert (answered, problem["code"]) == (status, code)


class Endless:
    """Counts what is asked of it."""

    given = 0

    def read(self, size: int = -1) -> bytes:
        self.given += size
        return b" " * size


@pytest.mark.django_db
def test_one_without_end_is_left_after_the_largest_that_is_taken(robo):
    stream = Endless()
    known = environ("/api/v1/candidates/", stream, HTTP_AUTHORIZATION=f"Bearer {robo.secret}")
    status, problem = ask(known, limit=300_000)
    assert (status, problem["code"]) == (413, "too_large")
    assert stream.given < 400_000


class CutOff:
    def read(self, size: int = -1) -> bytes:
        raise OSError("the chunk ends before its length")


@pytest.mark.django_db
def test_one_that_is_cut_off_is_400(robo):
    known = environ("/api/v1/candidates/", CutOff(), HTTP_AUTHORIZATION=f"Bearer {robo.secret}")
    status, problem = ask(known)
    assert (status, problem["code"]) == (400, "malformed")


@pytest.mark.parametrize(
    "changes",
    [{"CONTENT_LENGTH": "2"}, {"wsgi.input_terminated": False}, {"HTTP_TRANSFER_ENCODING": "gzip, chunked"}],
)
def test_anything_else_is_handed_on_as_it_is(changes):
    seen: list[dict[str, Any]] = []

    def application(known: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append(known)
        return []

    known = environ("/", b"{}", **changes)
    with_chunked_bodies(application)(known, None)
    assert seen == [known]
    assert seen[0]["wsgi.input"].getvalue() == b"{}"
