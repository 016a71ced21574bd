from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pytest
from django.core.handlers.wsgi import WSGIRequest
from django.db import OperationalError
from django.db.backends.postgresql.base import DatabaseWrapper

from apps.core import health
from apps.core.errors import Unavailable

pytestmark = pytest.mark.urls("tests.probe_urls")


@pytest.fixture
def database_down(monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[None]:
    def refuse(self: DatabaseWrapper, *args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused")

    with monkeypatch.context() as patched:
        patched.setattr(DatabaseWrapper, "cursor", refuse)
        yield


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_checks", dict(health._checks))


def test_alive_without_a_database_a_host_or_https(client, settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    # No `db` fixture: any query fails this test.
    answer = client.get("/healthz", headers={"Host": "10.0.0.7:8100"})
    assert answer.status_code == 200
    assert "Set-Cookie" not in answer.headers
    assert "Vary" not in answer.headers


def test_ready(client, db, django_assert_max_num_queries, monkeypatch) -> None:
    monkeypatch.setattr(health, "_checks", {"migrations": health._checks["migrations"]})
    client.get("/readyz")
    # The migrations are read once, and not by every probe.
    with django_assert_max_num_queries(1):
        answer = client.get("/readyz", headers={"Host": "10.0.0.7:8100"})
    assert answer.status_code == 200
    body = answer.json()
    assert body["ready"] is True
    assert body["parts"]["database"]["ok"] and body["parts"]["migrations"]["ok"]


def test_not_ready_while_the_database_is_down_and_ready_again_after(client, monkeypatch, db, settings) -> None:
    settings.SECURE_SSL_REDIRECT = True

    def refuse(self: DatabaseWrapper, *args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused: password=hunter2")

    with monkeypatch.context() as patched:
        patched.setattr(DatabaseWrapper, "cursor", refuse)
        answer = client.get("/readyz")
        assert client.get("/healthz").status_code == 200
    assert answer.status_code == 503
    assert answer.json()["ready"] is False
    assert answer.json()["parts"]["database"]["ok"] is False
    assert answer.json()["parts"]["migrations"]["detail"].startswith("Not looked at")
    assert "hunter2" not in answer.content.decode()
    assert client.get("/readyz").status_code == 200


def test_pending_migrations_are_not_ready(client, db, monkeypatch) -> None:
    monkeypatch.setattr(health, "_migrations_applied", False)
    monkeypatch.setattr(health.MigrationExecutor, "migration_plan", lambda *_: ["one", "two"])
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "2 migrations" in answer.json()["parts"]["migrations"]["detail"]


def test_a_part_that_may_be_missing_does_not_take_the_service_away(client, db, registered) -> None:
    def broken() -> str:
        raise RuntimeError("key=hunter2")

    health.register_check("embedder", broken, required=False)
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["parts"]["embedder"] == {
        "ok": False,
        "required": False,
        "detail": "Failed: RuntimeError.",
    }


def test_a_part_that_must_be_there_takes_it_away(client, db, registered) -> None:
    def moved() -> str:
        raise Unavailable("The pool moved: restart.")

    health.register_check("pool", moved)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["parts"]["pool"]["detail"] == "The pool moved: restart."


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/api/v1/me/", "/review/", "/nowhere/"])
def test_an_answer_to_head_has_its_length_and_no_body(path: str, db, alice, browser) -> None:
    # The client takes bodies off by itself, so this asks underneath it.
    client = browser(alice)
    environ = client.request().wsgi_request.environ | {"PATH_INFO": path}
    seen = client.handler.get_response(WSGIRequest(environ | {"REQUEST_METHOD": "GET", "wsgi.input": BytesIO()}))
    answer = client.handler.get_response(WSGIRequest(environ | {"REQUEST_METHOD": "HEAD", "wsgi.input": BytesIO()}))
    assert answer.status_code == seen.status_code
    assert answer.content == b""
    if path in ("/healthz", "/nowhere/"):
        assert answer.headers["Content-Length"] == seen.headers["Content-Length"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_only_look(client, path: str) -> None:
    assert client.post(path).status_code == 405


@pytest.mark.parametrize("path", ["/api/v1/me/", "/api/v1/schema/"])
def test_rest_is_503_while_the_database_is_down(api, robo, database_down, path: str) -> None:
    answer = api(robo).get(path)
    assert answer.status_code == 503
    assert answer.json()["code"] == "database_down"
    assert answer.headers["Retry-After"]


def test_rest_is_503_for_nobody_too(api, database_down) -> None:
    assert api().get("/api/v1/me/").status_code == 503


def test_pages_are_503_for_anybody(browser, alice, monkeypatch) -> None:
    signed_in, nobody = browser(alice, raise_request_exception=False), browser(raise_request_exception=False)

    def refuse(self: DatabaseWrapper, *args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused")

    with monkeypatch.context() as patched:
        patched.setattr(DatabaseWrapper, "cursor", refuse)
        for who in (signed_in, nobody):
            answer = who.get("/probe/reviewers/")
            assert answer.status_code == 503
            assert answer.context["problem"]["code"] == "database_down"
    assert signed_in.get("/probe/reviewers/").status_code == 200


def test_a_middleware_that_meets_a_dead_database_says_503_as_well(browser, alice, monkeypatch) -> None:
    client = browser(alice, raise_request_exception=False)

    def refuse(*args: object, **kwargs: object) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr("django.contrib.sessions.middleware.SessionMiddleware.process_response", refuse)
    answer = client.get("/probe/reviewers/")
    assert answer.status_code == 503
    assert answer.context["problem"]["code"] == "database_down"
