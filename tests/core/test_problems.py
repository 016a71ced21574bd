from __future__ import annotations

import logging

import pytest

from apps.core import problems
from apps.core.errors import Conflict

pytestmark = pytest.mark.urls("tests.probe_urls")

FAULTS = [
    ("stale", 409, "stale"),
    ("404", 404, "not_found"),
    ("403", 403, "forbidden"),
    ("suspicious", 400, "malformed"),
    ("validation", 422, "invalid"),
    ("drf_validation", 422, "invalid"),
    ("drf_throttled", 429, "too_many"),
    ("down", 503, "database_down"),
    ("unique", 409, "audience_name_once"),
    ("unnamed", 409, "auth_user_username_key"),
    ("trigger", 409, "immutable"),
    ("protected", 409, "in_use"),
    ("nul", 422, "invalid"),
    ("surrogate", 422, "invalid"),
    ("too_long", 422, "invalid"),
    ("timeout", 503, "statement_timeout"),
]


@pytest.mark.parametrize(("name", "status", "code"), FAULTS)
def test_a_client_reads_a_problem(api, robo, name: str, status: int, code: str) -> None:
    answer = api(robo).get(f"/api/v1/probe/raise/{name}/")
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    assert body["code"] == code
    assert body["type"] == f"urn:firm-memory:problem:{code}"
    assert body["title"] and body["detail"]
    assert body["instance"] == f"/api/v1/probe/raise/{name}/"
    assert body["request_id"] == answer.headers["X-Request-ID"]
    assert "secret detail" not in answer.content.decode()
    assert "hunter2" not in answer.content.decode()


@pytest.mark.parametrize(("name", "status", "code"), FAULTS)
def test_a_person_reads_a_page(browser, db, name: str, status: int, code: str) -> None:
    answer = browser().get(f"/probe/raise/{name}/")
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    page = answer.content.decode()
    assert answer.context["problem"]["code"] == code
    assert "<title>" in page
    assert "hunter2" not in page


def test_htmx_gets_the_partial_alone(browser, db) -> None:
    answer = browser().get("/probe/raise/stale/", headers={"HX-Request": "true"})
    assert answer.status_code == 409
    assert answer.context["problem"]["code"] == "stale"
    assert "<title>" not in answer.content.decode()


def test_extra_and_errors_are_kept(api, robo) -> None:
    client = api(robo)
    assert client.get("/api/v1/probe/raise/stale/").json()["extra"] == {"version": 3}
    assert client.get("/api/v1/probe/raise/validation/").json()["errors"] == [{"field": "name", "message": "Too bad."}]
    assert client.get("/api/v1/probe/raise/drf_validation/").json()["errors"] == [
        {"field": "sources[1].url", "message": "Bad."}
    ]
    assert client.get("/api/v1/probe/raise/unique/").json()["errors"][0]["field"] == "name"


def test_retry_after_says_when(api, robo) -> None:
    client = api(robo)
    assert client.get("/api/v1/probe/raise/drf_throttled/").headers["Retry-After"] == "7"
    assert int(client.get("/api/v1/probe/raise/down/").headers["Retry-After"]) > 0


def test_text_that_no_encoder_takes_is_still_answered(api, robo) -> None:
    answer = api(robo).get("/api/v1/probe/raise/surrogate_text/")
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "a\ufffd", "message": "No \ufffd."}]


@pytest.mark.parametrize("name", ["bug", "key"])
@pytest.mark.parametrize("door", ["/api/v1/probe/raise/", "/probe/raise/"])
def test_a_fault_of_ours_is_logged_and_not_told(api, robo, caplog, door: str, name: str) -> None:
    client = api(robo, raise_request_exception=False)
    with caplog.at_level(logging.ERROR):
        answer = client.get(f"{door}{name}/", headers={"X-Request-ID": "seen-again"})
    assert answer.status_code == 500
    assert "hunter2" not in answer.content.decode()
    assert "Traceback" not in answer.content.decode()
    assert "seen-again" in answer.content.decode()
    if door.startswith("/api/"):
        assert answer.json()["code"] == "internal_error"


def test_a_constraint_without_a_sentence_leaves_a_log_line(api, robo, caplog) -> None:
    with caplog.at_level(logging.WARNING, logger="firm_memory.problems"):
        api(robo).get("/api/v1/probe/raise/unnamed/")
    assert "auth_user_username_key" in caplog.text
    assert "probe_urls" in caplog.text
    assert "already exists" not in caplog.text


def test_a_room_gives_its_constraint_a_sentence(monkeypatch) -> None:
    monkeypatch.setattr(problems, "CONSTRAINT_ERRORS", {})
    problems.register_constraint("thing_once", message="There is one already.", field="name")
    error = problems.CONSTRAINT_ERRORS["thing_once"]()
    assert isinstance(error, Conflict)
    assert error.as_dict() == {
        "code": "thing_once",
        "detail": "There is one already.",
        "status": 409,
        "errors": [{"field": "name", "message": "There is one already."}],
    }


@pytest.mark.parametrize("method", ["get", "post", "put", "delete"])
@pytest.mark.parametrize("path", ["/api/", "/api/v1/nothing/", "/api/v2/me/", "/api/v1/me/more/"])
def test_unknown_addresses_of_the_api(api, db, settings, method: str, path: str) -> None:
    settings.DEBUG = True
    answer = getattr(api(enforce_csrf_checks=True), method)(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["code"] == "not_found"


def test_a_missing_slash_is_named_and_no_body_is_lost_in_a_redirect(api, robo) -> None:
    answer = api(robo).post("/api/v1/probe/body", {"content": "a"})
    assert answer.status_code == 404
    assert "/api/v1/probe/body/" in answer.json()["detail"]


def test_unknown_page(browser, db) -> None:
    answer = browser().get("/nothing/")
    assert answer.status_code == 404
    assert answer.context["problem"]["code"] == "not_found"


@pytest.mark.parametrize("method", ["put", "patch", "delete", "trace", "post"])
def test_wrong_method(api, robo, method: str) -> None:
    answer = getattr(api(robo), method)("/api/v1/me/")
    assert answer.status_code == 405
    assert answer.json()["code"] == "method_not_allowed"


@pytest.mark.parametrize("accept", ["text/html", "application/problem+json", "image/png", "nonsense", "*/*"])
def test_the_answer_is_json_whatever_is_accepted(api, robo, accept: str) -> None:
    answer = api(robo).get("/api/v1/me/", headers={"Accept": accept})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"


def test_a_foreign_host_is_refused_without_a_page_of_errors(browser, db) -> None:
    answer = browser().get("/api/v1/me/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.json()["code"] == "malformed"


def test_a_form_without_its_csrf_token(browser, alice) -> None:
    answer = browser(alice, enforce_csrf_checks=True).post("/workspace/", {"workspace": "firm"})
    assert answer.status_code == 403
    assert answer.context["problem"]["code"] == "csrf_failed"
