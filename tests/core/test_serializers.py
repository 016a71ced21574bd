from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import get_resolver
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from apps.core.errors import DomainError, Invalid, Malformed, UnknownKeys
from apps.core.serializers import (
    Flag,
    Identifier,
    Many,
    Moment,
    NoQuery,
    OneOf,
    Share,
    StrictQuery,
    StrictSerializer,
    Text,
    Whole,
    read_moment,
)


class ScopeIn(StrictSerializer):
    firm = Flag(default=False)
    repos = Many(Text(max_length=20, multiline=False), default=list, max_items=3)


class SourceIn(StrictSerializer):
    kind = OneOf(["issue", "chat"])
    quote = Text(max_length=10, required=False, allow_blank=True)


class ThingIn(StrictSerializer):
    content = Text(max_length=20)
    scope = ScopeIn(required=False)
    sources = Many(SourceIn(), required=False, allow_empty=False)
    version = Whole(min_value=1, max_value=1_000, required=False)
    confidence = Share(required=False, allow_null=True)
    when = Moment(required=False)
    id = Identifier(required=False)


class ThingQuery(StrictQuery):
    q = Text(max_length=20, verbatim=True)
    types = Many(Text(max_length=20), required=False, allow_empty=False, max_items=3)
    limit = Whole(min_value=1, max_value=100, default=10)
    as_of = Moment(required=False)
    firm = Flag(required=False)
    share = Share(required=False)
    id = Identifier(required=False)
    intent = OneOf(["history"], required=False)


def query(text: str) -> dict[str, Any]:
    return ThingQuery.read_query(Request(APIRequestFactory().get(f"/?{text}")))


def faults(error: DomainError) -> dict[str, str]:
    return {fault.field: fault.message for fault in error.errors}


def test_the_values_come_back_as_they_were_sent() -> None:
    sent = {
        "content": "  two\nlines  ",
        "scope": {"firm": True, "repos": ["a&b", "50%_off"]},
        "sources": [{"kind": "issue", "quote": ""}],
        "version": 3,
        "confidence": 1,
        "when": "2025-03-01",
        "id": "0190A1B2-7c3d-4e5f-8a9b-0c1d2e3f4a5b",
    }
    read = ThingIn.read(sent)
    assert read["content"] == "  two\nlines  "
    assert read["scope"] == {"firm": True, "repos": ["a&b", "50%_off"]}
    assert read["sources"] == [{"kind": "issue", "quote": ""}]
    assert (read["version"], read["confidence"]) == (3, 1.0)
    assert read["when"] == dt.datetime(2025, 3, 1, tzinfo=dt.UTC)
    assert read["id"] == uuid.UUID("0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b")


def test_what_is_left_out_is_absent_or_its_default() -> None:
    assert ThingIn.read({"content": "a"}) == {"content": "a"}
    assert ThingIn.read({"content": "a", "scope": {}})["scope"] == {"firm": False, "repos": []}
    assert ThingIn.read({"content": "a", "confidence": None}) == {"content": "a", "confidence": None}


@pytest.mark.parametrize(
    ("extra", "names"),
    [
        ({"status": "approved", "workspace": "other"}, {"status", "workspace"}),
        ({"scope": {"team": "x"}}, {"scope.team"}),
        ({"sources": [{"kind": "issue"}, {"kind": "issue", "by": 1}]}, {"sources[1].by"}),
        ({"Content": "a"}, {"Content"}),
        ({"": 1}, {""}),
        ({"content ": "a"}, {"content "}),
    ],
)
def test_unknown_keys_are_named_by_their_path(extra: dict[str, Any], names: set[str]) -> None:
    with pytest.raises(UnknownKeys) as refused:
        ThingIn.read({"content": "a", **extra})
    assert set(faults(refused.value)) == names
    assert refused.value.status == 400


def test_unknown_keys_come_before_bad_values() -> None:
    with pytest.raises(UnknownKeys):
        ThingIn.read({"content": 7, "bogus": 1})


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"content": 7}, "content"),
        ({"content": True}, "content"),
        ({"content": None}, "content"),
        ({"content": ["a"]}, "content"),
        ({"content": {"a": 1}}, "content"),
        ({"content": ""}, "content"),
        ({"content": "  \n"}, "content"),
        ({"content": "\u200b\ufeff"}, "content"),
        ({"content": "a\x00b"}, "content"),
        ({"content": "a\ud83db"}, "content"),
        ({"content": "a" * 21}, "content"),
        ({"version": "1"}, "version"),
        ({"version": 1.0}, "version"),
        ({"version": True}, "version"),
        ({"version": None}, "version"),
        ({"version": 0}, "version"),
        ({"version": 10**30}, "version"),
        ({"confidence": "0.5"}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"confidence": 1.01}, "confidence"),
        ({"confidence": -0.01}, "confidence"),
        ({"confidence": 10**400}, "confidence"),
        ({"scope": None}, "scope"),
        ({"scope": "firm"}, "scope"),
        ({"scope": []}, "scope"),
        ({"scope": {"firm": 1}}, "scope.firm"),
        ({"scope": {"firm": "true"}}, "scope.firm"),
        ({"scope": {"firm": None}}, "scope.firm"),
        ({"scope": {"repos": "acme/pay"}}, "scope.repos"),
        ({"scope": {"repos": {"0": "a"}}}, "scope.repos"),
        ({"scope": {"repos": None}}, "scope.repos"),
        ({"scope": {"repos": ["a", None]}}, "scope.repos[1]"),
        ({"scope": {"repos": ["a", "b\nc"]}}, "scope.repos[1]"),
        ({"scope": {"repos": ["a", "b", "c", "d"]}}, "scope.repos"),
        ({"sources": []}, "sources"),
        ({"sources": ["issue"]}, "sources[0]"),
        ({"sources": [{"kind": "issue"}, {}]}, "sources[1].kind"),
        ({"sources": [{"kind": "Issue"}]}, "sources[0].kind"),
        ({"sources": [{"kind": "issue", "quote": "a" * 11}]}, "sources[0].quote"),
        ({"when": 20250301}, "when"),
        ({"when": "yesterday"}, "when"),
        ({"when": ""}, "when"),
        ({"when": "2025-02-30"}, "when"),
        ({"when": "2025-03-01T25:00:00"}, "when"),
        ({"when": "0001-01-01T00:00:00+14:00"}, "when"),
        ({"when": "9999-12-31T23:59:59-14:00"}, "when"),
        ({"id": "not-an-id"}, "id"),
        ({"id": 7}, "id"),
        ({"id": "{0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b}"}, "id"),
    ],
)
def test_a_value_that_will_not_do_is_named_by_its_path(values: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        ThingIn.read({"content": "a", **values})
    assert set(faults(refused.value)) == {field}
    assert faults(refused.value)[field].endswith(".")
    assert refused.value.status == 422


def test_every_fault_is_told_at_once_with_the_limit() -> None:
    with pytest.raises(Invalid) as refused:
        ThingIn.read({"content": "a" * 30, "version": 5_000, "scope": {"repos": ["a"] * 9}})
    told = faults(refused.value)
    assert set(told) == {"content", "version", "scope.repos"}
    assert "20 characters" in told["content"] and "30" in told["content"]
    assert "1,000" in told["version"]
    assert "at most 3" in told["scope.repos"]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(Invalid) as refused:
        ThingIn.read({})
    assert faults(refused.value) == {"content": "This is missing."}


@pytest.mark.parametrize("body", [[], "a", None, 1])
def test_only_an_object_is_read(body: Any) -> None:
    with pytest.raises(Malformed):
        ThingIn.read(body)


def test_parameters_are_read_as_what_they_stand_for() -> None:
    read = query(
        "q=null&types=a&types=b,c&limit=7&as_of=2025-03-01T00:00:00%2B02:00&firm=true&share=0.25"
        "&id=0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b&intent=history"
    )
    assert read["q"] == "null"
    assert read["types"] == ["a", "b,c"]
    assert read["limit"] == 7
    assert read["as_of"] == dt.datetime(2025, 2, 28, 22, tzinfo=dt.UTC)
    assert read["firm"] is True and read["share"] == 0.25
    assert query("q=a")["limit"] == 10


def test_one_word_is_one_item_and_not_its_letters() -> None:
    assert query("q=a&types=ownership")["types"] == ["ownership"]


def test_a_plus_sign_that_became_a_space_is_still_an_offset() -> None:
    assert query("q=a&as_of=2025-03-01T00:00:00+02:00")["as_of"] == dt.datetime(2025, 2, 28, 22, tzinfo=dt.UTC)


@pytest.mark.parametrize("name", ["repo", "Q", "types[]", "format", "q ", ""])
def test_an_unknown_parameter_is_refused(name: str) -> None:
    with pytest.raises(UnknownKeys) as refused:
        query(f"q=a&{name}=x")
    assert set(faults(refused.value)) == {name}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "q"),
        ("q=", "q"),
        ("q=%20%20", "q"),
        ("q=%E2%80%8B", "q"),
        ("q=a%00b", "q"),
        ("q=a&q=b", "q"),
        ("q=" + "a" * 21, "q"),
        ("q=a&types=", "types"),
        ("q=a&types=a&types=", "types"),
        ("q=a&types=%5B%5D", "types"),
        ("q=a&types=null", "types"),
        ("q=a&types=a&types=b&types=c&types=d", "types"),
        ("q=a&limit=", "limit"),
        ("q=a&limit=0", "limit"),
        ("q=a&limit=101", "limit"),
        ("q=a&limit=ten", "limit"),
        ("q=a&limit=1.0", "limit"),
        ("q=a&limit=%2B1", "limit"),
        ("q=a&limit=%201", "limit"),
        ("q=a&limit=1_0", "limit"),
        ("q=a&limit=%D9%A3", "limit"),  # an Arabic-Indic digit
        ("q=a&limit=" + "9" * 5_000, "limit"),
        ("q=a&limit=1&limit=1", "limit"),
        ("q=a&firm=1", "firm"),
        ("q=a&firm=True", "firm"),
        ("q=a&share=nan", "share"),
        ("q=a&share=2", "share"),
        ("q=a&as_of=now", "as_of"),
        ("q=a&as_of=null", "as_of"),
        ("q=a&id=7", "id"),
        ("q=a&intent=History", "intent"),
    ],
)
def test_a_parameter_that_will_not_do_is_named(text: str, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        query(text)
    names = {name.partition("[")[0] for name in faults(refused.value)}
    assert names == {field}


def test_bytes_that_are_no_utf8_are_not_searched_for_as_something_else() -> None:
    with pytest.raises(Malformed):
        query("q=%ff")
    with pytest.raises(Malformed):
        query("q=%ED%A0%80")


def test_an_address_without_parameters_takes_none() -> None:
    with pytest.raises(UnknownKeys):
        NoQuery.read_query(Request(APIRequestFactory().get("/?a=1")))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-03-01", dt.datetime(2025, 3, 1, tzinfo=dt.UTC)),
        ("2025-03-01T09:30", dt.datetime(2025, 3, 1, 9, 30, tzinfo=dt.UTC)),
        ("2025-03-01T09:30:00Z", dt.datetime(2025, 3, 1, 9, 30, tzinfo=dt.UTC)),
        ("2025-03-01T09:30:00.123+01:00", dt.datetime(2025, 3, 1, 8, 30, 0, 123_000, tzinfo=dt.UTC)),
        ("2025-03-01T09:30:00-0800", dt.datetime(2025, 3, 1, 17, 30, tzinfo=dt.UTC)),
        ("2025-13-01", None),
        ("1741000000", None),
        ("٢٠٢٥-٠٣-٠١", None),
    ],
)
def test_moments(text: str, moment: dt.datetime | None) -> None:
    assert read_moment(text) == moment


def _defaults(field: Any) -> Iterator[Any]:
    yield getattr(field, "default", None)
    for inner in [*getattr(field, "fields", {}).values(), *filter(None, [getattr(field, "child", None)])]:
        yield from _defaults(inner)


def _kinds(kind: type[StrictSerializer]) -> Iterator[type[StrictSerializer]]:
    for each in kind.__subclasses__():
        yield each
        yield from _kinds(each)


def test_no_default_is_an_object_that_one_request_could_change_for_the_next():
    """One serializer of each kind reads for all, so a list as a default would be the same list for everybody."""
    get_resolver().url_patterns  # noqa: B018 - imports the views
    shared = [
        f"{kind.__name__}: {default!r}"
        for kind in _kinds(StrictSerializer)
        for default in _defaults(kind())
        if isinstance(default, list | dict | set)
    ]
    assert shared == []
