from __future__ import annotations

import pytest

from apps.core.errors import Malformed
from apps.core.parsers import MAX_DEPTH, parse_json, parse_object

pytestmark = pytest.mark.urls("tests.probe_urls")
BODY = "/api/v1/probe/body/"


def nested(depth: int) -> str:
    return '{"a":' * (depth - 1) + "1" + "}" * (depth - 1)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "not_json"),
        (b"nonsense", "not_json"),
        (b'{"content": "a"', "not_json"),
        (b'{"content": "a",}', "not_json"),
        (b"{'content': 'a'}", "not_json"),
        (b'{"content": "a"} {}', "not_json"),
        (b'{"n": NaN}', "not_json"),
        (b'{"n": Infinity}', "not_json"),
        (b'{"n": -Infinity}', "not_json"),
        (b'{"n": 1e999}', "not_json"),
        (b'{"n": ' + b"9" * 5000 + b"}", "not_json"),
        (b'\xef\xbb\xbf{"content": "a"}', "not_json"),
        (b'{"content": "\xff"}', "not_utf8"),
        ('{"content": "a"}'.encode("utf-16"), "not_utf8"),
        (b"[]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"null", "not_an_object"),
        (b"1", "not_an_object"),
        (b'{"content": "a", "content": "b"}', "duplicate_key"),
        (b'{"content": "a", "x": {"y": 1, "y": 1}}', "duplicate_key"),
        (b'{"content": "a", "x": [{"y": 1, "\\u0079": 1}]}', "duplicate_key"),
        (nested(MAX_DEPTH + 1).encode(), "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 100_000, "too_deep"),
    ],
)
def test_refuses_what_is_not_one_plain_object(body: bytes, code: str) -> None:
    with pytest.raises(Malformed) as refused:
        parse_object(body)
    assert refused.value.code == code
    assert refused.value.detail.endswith(".")


def test_reads_what_is_one() -> None:
    text = '{"content": "a\\u0000b \\ud83d é", "n": 1.5, "big": 12345678901234567890, "none": null, "l": []}'
    assert parse_object(text.encode()) == {
        "content": "a\x00b \ud83d é",
        "n": 1.5,
        "big": 12345678901234567890,
        "none": None,
        "l": [],
    }
    assert parse_json(nested(MAX_DEPTH).encode())["a"]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ('application/json; charset="UTF-8"', 201),
        ("application/json; charset=latin-1", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/xml", 415),
        ("nonsense", 415),
        ("", 415),
    ],
)
def test_content_types(api, robo, content_type: str, status: int) -> None:
    answer = api(robo).post(BODY, '{"content": "a"}', content_type=content_type)
    assert answer.status_code == status, answer.content
    if status == 415:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "unsupported_media_type"


def test_no_body_at_all_is_no_json_and_an_empty_object_misses_its_fields(api, robo) -> None:
    answer = api(robo).post(BODY)
    assert (answer.status_code, answer.json()["code"]) == (400, "not_json")
    assert answer.json()["detail"] == "The body is empty. Send one JSON object."
    answer = api(robo).post(BODY, {})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "content", "message": "This is missing."}]


def test_body_over_the_limit_of_the_view(api, robo) -> None:
    client = api(robo)
    fits = '{"content": "' + "a" * 40 + '"}'
    assert client.post("/api/v1/probe/small/", fits).status_code == 201
    answer = client.post("/api/v1/probe/small/", fits + " " * 30)
    assert answer.status_code == 413
    assert "64 bytes" in answer.json()["detail"]


def test_body_over_the_general_limit(api, robo) -> None:
    answer = api(robo).post(BODY, '{"content": "a"}' + " " * (2 * 1024 * 1024))
    assert answer.status_code == 413
    assert "2,097,152 bytes" in answer.json()["detail"]


def test_a_lie_about_the_length_is_not_read_on(api, robo) -> None:
    answer = api(robo).post(BODY, '{"content": "a"}', CONTENT_LENGTH=str(10**12))
    assert answer.status_code == 413


def test_malformed_body_over_http(api, robo) -> None:
    answer = api(robo).post(BODY, b'{"content": "a", "content": "b"}')
    assert answer.status_code == 400
    assert answer.json()["code"] == "duplicate_key"
    assert "'content'" in answer.json()["detail"]
