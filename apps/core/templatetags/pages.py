"""What templates need to say things as people do."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django import template
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from apps.core.addresses import repeatable
from apps.core.clock import now
from apps.core.differences import Shown, difference_shown
from apps.core.marking import marked, marks_of_flags, marks_of_hidden
from apps.core.pagination import MAX_COUNTED
from apps.core.wording import door_words, field_words, words

register = template.Library()
register.filter("words", words)
register.filter("door_words", door_words)
register.filter("field_words", field_words)

EXCERPT = 320
IN_TITLE = 50
# What is longer than this, in characters or lines, would push what a decision needs out of sight.
FOLDED, FOLDED_LINES = 1_600, 24
_RECENT = timedelta(days=30)


@register.filter
def address(request: HttpRequest) -> str:
    """Where this page is, to come back to; without its parameters where these hold what is not to be repeated."""
    parameters = repeatable(request.GET)
    return request.get_full_path() if parameters == request.GET else request.path


@register.filter
def moment(value: datetime | str | None) -> datetime | None:
    """A moment that answers carry as ISO text, as a value again."""
    return datetime.fromisoformat(value) if isinstance(value, str) and value else value or None


@register.filter
def when(value: datetime | str | None) -> SafeString:
    """“3 days ago” while that says more than a date, with the moment itself at hand."""
    at = moment(value)
    if at is None:
        return SafeString("")
    is_recent = timedelta(0) <= now() - at < _RECENT
    return _time_ago(at, _ago(at)) if is_recent else _time(at, _day(at))


@register.filter
def waiting(value: datetime) -> SafeString:
    """How long ago, however long that is."""
    return _time_ago(value, f"{age(value)} ago")


@register.filter
def on(value: datetime | str | None) -> SafeString:
    """The day alone."""
    at = moment(value)
    return SafeString("") if at is None else _time(at, _day(at))


@register.filter
def age(value: datetime) -> str:
    """“3 days”: how long something has been waiting."""
    if now() - value < timedelta(minutes=1):
        return "a moment"
    return timesince(value, now(), depth=1).replace("\xa0", " ")


def _ago(at: datetime) -> str:
    return "just now" if now() - at < timedelta(minutes=1) else f"{age(at)} ago"


def _day(at: datetime) -> str:
    return date_format(at.astimezone(UTC), "j M Y")


def _time_ago(at: datetime, text: str) -> SafeString:
    """On paper, where "3 minutes ago" says nothing, the stylesheet puts the title in its place."""
    return _time(at, format_html('<span class="ago">{}</span>', text))


def _time(at: datetime, text: str) -> SafeString:
    exact = date_format(at.astimezone(UTC), "j F Y, H:i") + " UTC"
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(timespec="seconds"), exact, text)


@register.filter
def percent(value: float | None) -> str:
    return "" if value is None else f"{round(value * 100)} %"


@register.filter
def share(value: float | None) -> int:
    """For bars that are a hundred wide."""
    return 0 if value is None else round(value * 100)


@register.filter
def excerpt(text: str) -> str:
    """The beginning, on one line."""
    line = " ".join(text[: EXCERPT * 4].split())
    return line if len(line) <= EXCERPT else line[:EXCERPT].rsplit(" ", 1)[0][:EXCERPT] + " …"


@register.filter
def titled(text: str) -> str:
    """The beginning as a window's title shows it, where nothing can be marked: without characters that nobody sees."""
    seen = "".join(each for each in excerpt(text) if unicodedata.category(each) != "Cf")
    return seen if len(seen) <= IN_TITLE else seen[:IN_TITLE].rstrip() + "…"


@register.filter
def of(mapping: Mapping[str, Any], key: str) -> Any:
    """What a mapping holds under a key that the template has in a variable."""
    return mapping.get(key)


@register.filter
def thousands(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


@register.filter
def bounded(number: int | None, most: int = MAX_COUNTED) -> str:
    """“500+” where it was not counted any further."""
    return f"{most:,}+" if number is not None and number > most else thousands(number)


@register.filter
def shown(text: str) -> SafeString:
    """Text from outside with its hidden characters made visible."""
    return marked(text, marks_of_hidden(text))


@register.simple_tag
def shown_with_flags(text: str, flags: Iterable[Mapping[str, Any]], field: str = "content") -> SafeString:
    """The same, with the marks that were put on it when it was proposed."""
    return marked(text, marks_of_flags(flags, field=field))


@register.simple_tag
def word_difference(before: str, after: str, brief: bool = False) -> Shown:
    return difference_shown(before, after, brief=brief)


@register.filter
def is_long(text: str) -> bool:
    """Whether a text is folded until somebody wants all of it."""
    return len(text) > FOLDED or text.count("\n") > FOLDED_LINES


@register.filter
def is_web(url: str) -> bool:
    """Whether an address may become a link. The ledger takes no other, and a page asks again."""
    return url.startswith(("https://", "http://"))
