from __future__ import annotations

import logging

import pytest

from apps.accounts.models import AuditEvent
from apps.core import request_id
from apps.core.logs import RequestIdFilter

pytestmark = pytest.mark.urls("tests.probe_urls")


def test_a_sane_id_is_taken_over_into_answer_and_record(api, robo) -> None:
    answer = api(robo).post("/api/v1/probe/effect/", {}, headers={"X-Request-ID": "deploy-7.a_B"})
    assert answer.headers["X-Request-ID"] == "deploy-7.a_B"
    assert AuditEvent.objects.get(subject_kind="probe").request_id == "deploy-7.a_B"


@pytest.mark.parametrize("proposed", ["", "a" * 65, "a b", "a\nb", "ä", "../x", "a;b"])
def test_any_other_is_replaced(api, robo, proposed: str) -> None:
    answer = api(robo).get("/api/v1/me/", headers={"X-Request-ID": proposed})
    given = answer.headers["X-Request-ID"]
    assert given != proposed
    assert len(given) == 32 and given.isalnum()


def test_every_request_has_its_own(api, robo) -> None:
    client = api(robo)
    ids = {client.get("/api/v1/me/").headers["X-Request-ID"] for _ in range(3)}
    assert len(ids) == 3


def test_log_lines_carry_it_even_those_after_the_last_middleware(api, db, caplog) -> None:
    caplog.handler.addFilter(RequestIdFilter())
    logging.getLogger("django").addHandler(caplog.handler)
    try:
        api().get("/api/v1/me/", headers={"X-Request-ID": "find-me"})
    finally:
        logging.getLogger("django").removeHandler(caplog.handler)
    assert "find-me" in {getattr(record, "request_id", None) for record in caplog.records}


def test_nothing_is_left_behind_for_what_runs_next(api, robo) -> None:
    api(robo).get("/api/v1/me/", headers={"X-Request-ID": "find-me"})
    assert request_id.current.get() == ""
