from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django import forms
from django.http import QueryDict

from apps.core.errors import FieldError, Invalid
from apps.core.forms import Day, FilterForm, Lines, Names, PageForm, Share, Text


class AForm(PageForm):
    FIELD_OF = {"scope.repos": "repos"}

    content = Text(rows=3)
    title = Text()
    repos = Lines()
    supersedes = Names()
    since = Day()
    confidence = Share()


def cleaned(**data: str) -> dict[str, object]:
    form = AForm(data)
    assert form.is_valid(), form.errors
    return form.cleaned_data


def test_long_text_is_kept_and_short_text_is_trimmed() -> None:
    values = cleaned(content="  a\r\n b \r\n", title="  a  ")
    assert (values["content"], values["title"]) == ("  a\n b \n", "a")


def test_lists() -> None:
    values = cleaned(repos=" acme/pay \r\n\r\na&b\r\n50%_off", supersedes=" M-1, M-2;M-3\nM-4 ,")
    assert values["repos"] == ("acme/pay", "a&b", "50%_off")
    assert values["supersedes"] == ("M-1", "M-2", "M-3", "M-4")
    assert cleaned(supersedes=" , ")["supersedes"] == ()


def test_a_day_is_its_first_moment_in_utc() -> None:
    assert cleaned(since="2026-03-14")["since"] == datetime(2026, 3, 14, tzinfo=UTC)
    assert cleaned(since="")["since"] is None


@pytest.mark.parametrize(
    ("field", "initial", "sent", "changed"),
    [
        ("content", "a\nb", "a\r\nb", False),
        ("content", "a\r\nb", "a\r\nb", False),
        ("content", "a", "a ", True),
        ("repos", ("a", "b"), "a\r\nb\r\n", False),
        ("repos", ("a", "b"), "b\r\na", True),
        ("supersedes", ("M-1", "M-2"), "M-1,M-2", False),
        ("supersedes", ("M-1",), "", True),
        ("since", datetime(2026, 3, 14, 23, 59, 1, 5, tzinfo=UTC), "2026-03-14", False),
        ("since", datetime(2026, 3, 14, tzinfo=UTC), "", True),
        ("since", None, "2026-03-14", True),
        ("confidence", 0.8, "0.80", False),
        ("confidence", None, "", False),
        ("confidence", 0.8, "", True),
    ],
)
def test_what_counts_as_changed(field: str, initial: object, sent: str, changed: bool) -> None:
    form = AForm({field: sent}, initial={field: initial})
    assert (field in form.changed_data) is changed


def test_what_is_shown_comes_back_unchanged() -> None:
    initial = {
        "content": "\n a\n\nb ",
        "repos": ("a", "b"),
        "supersedes": ("M-1", "M-2"),
        "since": datetime(2026, 3, 14, 12, tzinfo=UTC),
        "confidence": 0.123456789,
    }
    shown = AForm(initial=initial)
    sent = {name: str(shown[name].field.widget.format_value(shown[name].value()) or "") for name in initial}
    assert AForm(sent, initial=initial).changed_data == []


def test_a_refusal_is_said_at_the_field_that_it_is_about() -> None:
    form = AForm({})
    form.is_valid()
    form.add_refusal(
        Invalid(
            "The values will not do.",
            errors=[
                FieldError("amendment.content", "Blank."),
                FieldError("scope.repos[2]", "Too long."),
                FieldError("supersedes[0]", "Not there."),
                FieldError("tier", "Not known."),
            ],
        )
    )
    assert form.errors == {
        "content": ["Blank."],
        "repos": ["Too long."],
        "supersedes": ["Not there."],
        "__all__": ["Not known."],
    }


def test_a_refusal_without_fields_is_said_above_the_form() -> None:
    form = AForm({})
    form.is_valid()
    form.add_refusal(Invalid("It cannot be done."))
    assert form.non_field_errors() == ["It cannot be done."]


def test_a_secret_is_not_given_back_and_still_there_to_be_refused() -> None:
    secret = "AKIA" + "Q7ZP2M4XW8R1B5KD"
    form = AForm({"content": f"It is {secret}."})
    assert form.is_valid()
    assert secret in form.cleaned_data["content"]
    assert secret not in str(form["content"]) and "[secret: aws access key]" in str(form["content"])


@pytest.mark.parametrize(("field", "sent"), [("since", "14.3.2026"), ("since", "soon"), ("confidence", "0,8")])
def test_complaints_say_what_to_do(field: str, sent: str) -> None:
    (message,) = AForm({field: sent}).errors[field]
    assert message.startswith("Give a ") and message.endswith(".")


def test_nothing_is_required_by_the_browser() -> None:
    assert all(not field.required for field in AForm().fields.values())
    assert isinstance(AForm().fields["content"].widget, forms.Textarea)
    assert 'dir="auto"' in str(AForm()["content"])


class AFilter(FilterForm):
    kind = Text(label="Kind")

    CANNOT = "It cannot be filtered"


@pytest.mark.parametrize(
    ("query", "faults"),
    [
        ("kind=a&kind=b", {"kind": ["This takes one value; there are 2."]}),
        ("kind=a&kind=a", {"kind": ["This takes one value; there are 2."]}),
        ("kind=&kind=a&kind=b", {"kind": ["This takes one value; there are 3."]}),
        ("kind=a&cursor=x&cursor=y", {"__all__": ["“cursor” takes one value; there are 2."]}),
        ("kind=a&cursor=x", {}),
    ],
)
def test_a_filter_takes_one_value_each(query: str, faults: dict[str, list[str]]) -> None:
    assert AFilter(QueryDict(query)).errors == faults
