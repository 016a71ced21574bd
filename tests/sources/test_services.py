"""Sources: one row for one thing in the world, which keeps what it said first."""

from __future__ import annotations

import pytest

from apps.sources.models import Source
from apps.sources.services import SourceInput, check_sources, check_url, sources_record

pytestmark = pytest.mark.django_db


def given(reference="acme/pay!1", **values) -> SourceInput:
    return SourceInput(**({"kind": "merge_request", "reference": reference} | values))


def record(workspace, *inputs) -> list[Source]:
    return [row for row, _ in sources_record(workspace, inputs)]


def test_the_same_thing_is_one_row(workspace):
    (first,) = record(workspace, given(title="Retries", url="https://example.com/1"))

    (again,) = record(workspace, given(" acme/pay!1 ", title="Else", url="https://example.com/2"))

    assert again == first
    assert (again.title, again.url) == ("Retries", "https://example.com/1")


@pytest.mark.parametrize("other", [{"kind": "issue"}, {"reference": "acme/pay!2"}, {"commit": "abc"}])
def test_another_kind_reference_or_commit_is_another_source(workspace, other):
    record(workspace, given())

    record(workspace, given(**other))

    assert Source.objects.count() == 2


def test_no_commit_is_one_commit(workspace):
    record(workspace, given(commit=None))
    record(workspace, given(commit=""))

    assert Source.objects.count() == 1


def test_rows_come_in_the_order_named_each_once_with_the_first_quote(workspace):
    rows = sources_record(workspace, [given("b"), given("a", quote="first"), given("b"), given("a", quote="second")])

    assert [(row.reference, said.quote) for row, said in rows] == [("b", ""), ("a", "first")]


def test_sources_belong_to_their_workspace(workspace, other_workspace):
    record(workspace, given())
    record(other_workspace, given())

    assert Source.objects.count() == 2


def test_a_statement_without_a_source_is_never_taken():
    assert [error.field for error in check_sources([])] == ["sources"]
    assert "at most 50" in check_sources([given(str(at)) for at in range(51)])[0].message


@pytest.mark.parametrize(
    "url", ["", "https://example.com", "http://example.com:8080/x?y=z#f", "https://例え.jp/", "https://[::1]/x"]
)
def test_addresses_that_will_do(url):
    assert check_url(url, field="url") == []


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "data:text/html,x", "vbscript:x"),
        *("//example.com/x", "/x", "example.com", "https:/x", "https://", "http://[::1", "https://exa mple.com"),
        *("file:///etc/passwd", "ftp://example.com", "https://x\n.com", "java\tscript:alert(1)"),
    ],
)
def test_addresses_that_will_not(url):
    assert [error.field for error in check_url(url, field="url")] == ["url"]
