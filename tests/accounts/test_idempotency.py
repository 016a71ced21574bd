from __future__ import annotations

import hashlib
import json
import threading
from datetime import timedelta

import pytest
from django.db import connections

from apps.accounts import idempotency
from apps.accounts.models import Audience, AuditEvent, IdempotencyKey
from apps.core.clock import now

pytestmark = pytest.mark.urls("tests.probe_urls")
EFFECT = "/api/v1/probe/effect/"


def effects() -> int:
    return AuditEvent.objects.filter(subject_kind="probe").count()


def key(value: str = "k1") -> dict[str, dict[str, str]]:
    return {"headers": {"Idempotency-Key": value}}


def test_the_same_request_gets_the_same_answer_and_happens_once(api, robo) -> None:
    client = api(robo)
    first = client.post(EFFECT, {"outcome": "done"}, **key())
    again = client.post(EFFECT, {"outcome": "done"}, **key())
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert "Idempotent-Replay" not in first.headers
    assert again.headers["Idempotent-Replay"] == "true"
    assert effects() == 1


def test_the_order_of_keys_and_white_space_is_not_another_body(api, robo) -> None:
    client = api(robo)
    client.post(EFFECT, '{"outcome": "done", "n": 1}', **key())
    again = client.post(EFFECT, '{"n":1,\n"outcome":"done"}', **key())
    assert again.headers["Idempotent-Replay"] == "true"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (EFFECT, {"outcome": "done", "n": 2}),
        (EFFECT, {}),
        (EFFECT, {"outcome": "done", "n": "1"}),
        (f"{EFFECT}other/", {"outcome": "done", "n": 1}),
        (f"{EFFECT}?a=1", {"outcome": "done", "n": 1}),
    ],
)
def test_the_key_with_another_request_is_refused(api, robo, path: str, body: dict) -> None:
    client = api(robo)
    client.post(EFFECT, {"outcome": "done", "n": 1}, **key())
    refused = client.post(path, body, **key())
    assert refused.status_code == 422
    assert refused.json()["code"] == "idempotency_key_reused"
    assert refused.json()["errors"][0]["field"] == "Idempotency-Key"
    assert effects() == 1


def test_without_a_key_every_request_happens(api, robo) -> None:
    client = api(robo)
    client.post(EFFECT, {})
    client.post(EFFECT, {})
    assert effects() == 2
    assert not IdempotencyKey.objects.exists()


def test_keys_belong_to_a_principal(api, robo, botty, alice) -> None:
    for who in (robo, botty, alice):
        assert api(who).post(EFFECT, {}, **key()).status_code == 201
    assert effects() == 3


@pytest.mark.parametrize("value", ["", " ", "a b", "a" * 201, "ü", "a\tb", "a\x7f"])
def test_a_key_that_will_not_do(api, robo, value: str) -> None:
    refused = api(robo).post(EFFECT, {}, **key(value))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "Idempotency-Key"
    assert "200" in refused.json()["detail"]
    assert effects() == 0


def test_the_longest_key(api, robo) -> None:
    assert api(robo).post(EFFECT, {}, **key("~" * 200)).status_code == 201


def test_a_refusal_is_repeated_too_and_keeps_what_was_recorded(api, robo) -> None:
    client = api(robo)
    first = client.post(EFFECT, {"outcome": "conflict"}, **key())
    again = client.post(EFFECT, {"outcome": "conflict"}, **key())
    assert (first.status_code, again.status_code) == (409, 409)
    assert again.headers["Content-Type"] == first.headers["Content-Type"] == "application/problem+json"
    assert again.json()["extra"] == {"decided_by": "alice"}
    assert again.headers["Idempotent-Replay"] == "true"
    assert effects() == 1


@pytest.mark.parametrize(("outcome", "status"), [("down", 503), ("crash", 500)])
def test_what_may_go_away_by_itself_is_not_kept(api, robo, outcome: str, status: int) -> None:
    client = api(robo, raise_request_exception=False)
    for _ in range(2):
        answer = client.post(EFFECT, {"outcome": outcome}, **key())
        assert answer.status_code == status
        assert "Idempotent-Replay" not in answer.headers
    assert not IdempotencyKey.objects.exists()


def test_a_transaction_that_postgresql_aborted_leaves_nothing(api, robo) -> None:
    client = api(robo)
    for _ in range(2):
        assert client.post(EFFECT, {"outcome": "aborted"}, **key()).status_code == 409
    assert effects() == 0
    assert not Audience.objects.filter(name="twice").exists()
    assert not IdempotencyKey.objects.exists()


def test_a_malformed_body_is_no_use_of_the_key(api, robo) -> None:
    client = api(robo)
    assert client.post(EFFECT, "nonsense", **key()).status_code == 400
    assert client.post(EFFECT, {}, **key()).status_code == 201


def test_text_that_no_encoder_takes_can_be_compared(api, robo) -> None:
    client = api(robo)
    body = '{"note": "\\ud83d \\u0000"}'
    assert client.post(EFFECT, body, **key()).status_code == 201
    assert client.post(EFFECT, body, **key()).headers["Idempotent-Replay"] == "true"


def test_a_long_path_is_told_apart_from_another(api, robo) -> None:
    client = api(robo)
    assert client.post(f"{EFFECT}{'a' * 55}/?{'b' * 400}", {}, **key()).status_code == 201
    assert client.post(f"{EFFECT}{'a' * 55}/?{'b' * 401}", {}, **key()).status_code == 422


def test_a_key_may_be_used_anew_after_a_day(api, robo) -> None:
    client = api(robo)
    client.post(EFFECT, {"n": 1}, **key())
    IdempotencyKey.objects.update(created_at=now() - timedelta(hours=24, seconds=1))
    assert client.post(EFFECT, {"n": 2}, **key()).status_code == 201
    assert effects() == 2
    assert IdempotencyKey.objects.count() == 1


def test_old_keys_go_with_every_use(api, robo, monkeypatch) -> None:
    client = api(robo)
    for n in range(5):
        client.post(EFFECT, {}, **key(f"old{n}"))
    IdempotencyKey.objects.update(created_at=now() - timedelta(days=2))
    monkeypatch.setattr(idempotency, "CLEANED_AT_ONCE", 3)
    client.post(EFFECT, {}, **key("new1"))
    assert IdempotencyKey.objects.count() == 3
    client.post(EFFECT, {}, **key("new2"))
    kept = {hashlib.sha256(name.encode()).hexdigest() for name in ("new1", "new2")}
    assert set(IdempotencyKey.objects.values_list("key", flat=True)) == kept


@pytest.mark.django_db(transaction=True)
def test_the_slow_part_is_outside_the_transaction_and_skipped_on_repetition(api, robo) -> None:
    client = api(robo)
    first = client.post("/api/v1/probe/slow/", {}, **key())
    assert first.json() == {"prepared_in_transaction": False}
    again = client.post("/api/v1/probe/slow/", {}, **key())
    assert again.headers["Idempotent-Replay"] == "true"


@pytest.mark.django_db(transaction=True)
def test_in_parallel_it_happens_once_and_all_get_the_answer(api, robo) -> None:
    answers: list[tuple[int, str]] = []

    def ask() -> None:
        try:
            answer = api(robo).post(EFFECT, {"n": 1}, **key("race"))
            answers.append((answer.status_code, answer.content.decode()))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert effects() == 1
    assert len(answers) == 8 and len(set(answers)) == 1
    assert answers[0][0] == 201


@pytest.mark.django_db(transaction=True)
def test_whoever_waits_too_long_is_told_so(api, robo, settings, monkeypatch) -> None:
    settings.FIRM_MEMORY_IDEMPOTENCY_WAIT_MS = 100
    entered, leave = threading.Event(), threading.Event()
    keep = idempotency._Claim.keep

    def slow(self, response) -> None:
        entered.set()
        leave.wait(10)
        keep(self, response)

    monkeypatch.setattr(idempotency._Claim, "keep", slow)
    statuses: list[int] = []

    def ask() -> None:
        try:
            statuses.append(api(robo).post(EFFECT, {}, **key()).status_code)
        finally:
            connections.close_all()

    first = threading.Thread(target=ask)
    first.start()
    assert entered.wait(10)
    second = api(robo).post(EFFECT, {}, **key())
    leave.set()
    first.join()
    assert (second.status_code, second.json()["code"]) == (409, "idempotency_in_progress")
    assert statuses == [201]
    assert effects() == 1
    third = api(robo).post(EFFECT, {}, **key())
    assert json.loads(third.content)["event"]
    assert third.headers["Idempotent-Replay"] == "true"


@pytest.mark.django_db(transaction=True)
def test_the_wait_does_not_shorten_the_locks_of_the_effect(api, robo, monkeypatch) -> None:
    from django.db import connection

    seen: list[str] = []
    original = idempotency._Claim.keep

    def look(self, response) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            seen.append(cursor.fetchone()[0])
        original(self, response)

    monkeypatch.setattr(idempotency._Claim, "keep", look)
    api(robo).post(EFFECT, {}, **key())
    assert seen == ["0"]
