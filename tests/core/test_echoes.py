"""What a caller sends in the place of a name is answered without repeating a secret, and never stored."""

from __future__ import annotations

import pytest

from apps.accounts.models import AuditEvent, IdempotencyKey
from tests.ledger import a_body

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

SECRET = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A"


@pytest.mark.parametrize(
    "path",
    [
        f"/api/v1/{SECRET}/",
        f"/api/v1/memories/{SECRET}/",
        f"/api/v1/memories/search/?q=x&{SECRET}=1",
        f"/api/v1/memories/search/?q=x&repos={SECRET}",
        f"/api/v1/memories/search/?q=x&types={SECRET}",
    ],
)
def test_an_address_with_a_secret_is_answered_without_it(api, robo, path):
    assert SECRET not in api(robo).get(path).content.decode()


def test_an_unknown_key_that_is_a_secret_is_not_repeated(api, robo):
    response = api(robo).post("/api/v1/candidates/", a_body() | {SECRET: 1})
    assert response.status_code == 400
    assert SECRET not in response.content.decode()


def test_a_secret_as_request_id_or_idempotency_key_is_kept_nowhere(api, robo):
    response = api(robo).post(
        "/api/v1/candidates/", a_body(), headers={"X-Request-ID": SECRET, "Idempotency-Key": SECRET}
    )
    assert response.status_code == 201
    assert response.headers["X-Request-ID"] != SECRET
    assert not AuditEvent.objects.filter(request_id=SECRET).exists()
    assert not IdempotencyKey.objects.filter(key__contains=SECRET).exists()
