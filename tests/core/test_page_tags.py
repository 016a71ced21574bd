from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.utils.html import strip_tags

from apps.core.templatetags import pages

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "now", lambda: NOW)


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=20), "2 weeks ago"),
        (timedelta(days=31), "11 Feb 2026"),
        (-timedelta(days=2), "16 Mar 2026"),
    ],
)
def test_when(ago: timedelta, said: str) -> None:
    at = NOW - ago
    for value in (at, at.isoformat()):
        assert strip_tags(pages.when(value)) == said
    assert f'datetime="{at.isoformat(timespec="seconds")}"' in pages.when(at)


def test_waiting_is_told_however_long_it_is() -> None:
    assert strip_tags(pages.waiting(NOW - timedelta(days=90))) == "3 months ago"


def test_what_paper_leaves_out_of_a_moment_is_marked() -> None:
    at = NOW - timedelta(minutes=3)
    for told in (pages.when(at), pages.waiting(at)):
        assert told.endswith('title="14 March 2026, 11:57 UTC"><span class="ago">3 minutes ago</span></time>')
    assert 'class="ago"' not in pages.when(NOW - timedelta(days=31)) + pages.on(at)


def test_moments_are_told_in_utc() -> None:
    assert 'title="13 March 2026, 22:30 UTC"' in pages.when("2026-03-14T00:30:00+02:00")
    assert pages.on("2026-03-14T00:30:00+02:00").endswith(">13 Mar 2026</time>")


@pytest.mark.parametrize("value", [None, ""])
def test_no_moment_is_nothing(value: str | None) -> None:
    assert pages.when(value) == pages.on(value) == ""


def test_an_excerpt_is_one_line_and_ends_at_a_word() -> None:
    assert pages.excerpt("a\n\n b\tc") == "a b c"
    long = pages.excerpt("word " * 200)
    assert long.endswith("word …") and len(long) <= pages.EXCERPT + 2
    assert len(pages.excerpt("x" * 20_000)) <= pages.EXCERPT + 2


def test_shares() -> None:
    assert (pages.percent(0.825), pages.percent(None), pages.share(1.0), pages.share(None)) == ("82 %", "", 100, 0)


@pytest.mark.parametrize(
    ("url", "web"),
    [("https://x", True), ("http://x", True), ("javascript:alert(1)", False), ("//x", False), (" https://x", False)],
)
def test_only_web_addresses_are_links(url: str, web: bool) -> None:
    assert pages.is_web(url) is web


def test_text_from_outside_is_escaped_with_its_hidden_characters_shown() -> None:
    assert pages.shown("<b>\u200b") == '&lt;b&gt;<mark class="hidden">[U+200B ZERO WIDTH SPACE]</mark>'


def test_wire_spellings_are_told_in_words() -> None:
    told = "{% load pages %}{{ 'business_rules'|words }}, {{ 'sources[1].occurred_at'|field_words }}"
    assert Template(told).render(Context()) == "business rules, the date of source 2"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("content", "the statement"),
        ("scope.repos[3]", "a repository"),
        ("sources[0].quote", "the quote of source 1"),
        ("sources[11].url", "the address of source 12"),
        ("tier", "the tier"),
        ("valid_until", "the valid until"),
    ],
)
def test_fields_are_named_as_people_do(path: str, said: str) -> None:
    assert pages.field_words(path) == said
