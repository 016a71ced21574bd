from __future__ import annotations

import pytest

from apps.accounts.api import openapi_document

SCHEMA = "/api/v1/schema/"


@pytest.fixture
def document(api, robo) -> dict:
    answer = api(robo).get(SCHEMA)
    assert answer.status_code == 200
    return answer.json()


def test_it_is_openapi_3_1(document) -> None:
    assert document["openapi"].startswith("3.1")
    assert document["info"]["title"] == "Firm Memory"
    assert "/api/v1/me/" in document["paths"]


def test_both_ways_to_authenticate_are_named(document) -> None:
    schemes = document["components"]["securitySchemes"]
    assert schemes["token"] | {"description": ""} == {"type": "http", "scheme": "bearer", "description": ""}
    assert schemes["session"]["name"] == "sessionid"
    assert document["paths"]["/api/v1/me/"]["get"]["security"] == [{"token": []}, {"session": []}]


def test_every_operation_says_which_problems_it_has(document) -> None:
    assert "request_id" in document["components"]["schemas"]["Problem"]["properties"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            problems = operation["responses"]
            for status in ("400", "401", "403", "429", "503"):
                content = problems[status]["content"]
                assert content["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}, (
                    path,
                    method,
                )
            if "{" in path:
                assert "404" in problems
            if method == "post":
                assert "422" in problems
                names = [parameter["name"] for parameter in operation["parameters"]]
                assert names.count("Idempotency-Key") == 1


def test_it_is_written_without_warnings(capsys) -> None:
    openapi_document.cache_clear()
    openapi_document()
    told = capsys.readouterr()
    assert "Warning" not in told.err and "Error" not in told.err


def test_it_needs_credentials_and_takes_no_parameters(api, robo) -> None:
    assert api().get(SCHEMA).status_code == 401
    assert api(robo).get(f"{SCHEMA}?format=yaml").status_code == 400
