"""The filter of what was captured, as it stands in the address."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from apps.capture.models import EventOutcome, EventState
from apps.capture.selectors import EventFilter
from apps.core.forms import FilterForm, Text, choices
from apps.sources.models import SourceKind

MAX_DAYS = 36_500


class CapturedForm(FilterForm):
    """A parameter that is not known here is refused, not passed over."""

    origin = Text(label="Handed over by", help_text="The name of a token or a person.", max_length=200)
    kind = forms.ChoiceField(label="Source", required=False, choices=choices(SourceKind.choices, empty="Any"))
    state = forms.ChoiceField(label="State", required=False, choices=choices(EventState.choices, empty="Any"))
    days = forms.IntegerField(
        label="In the last (days)",
        required=False,
        min_value=1,
        max_value=MAX_DAYS,
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
        error_messages={"invalid": "Give a whole number of days, such as 7."},
    )
    outcome = forms.ChoiceField(
        label="Outcome", required=False, choices=choices(EventOutcome.choices, empty=""), widget=forms.HiddenInput
    )

    CANNOT = "What was captured cannot be filtered"

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data, auto_id="filter-%s")
        for name, known in (("kind", SourceKind), ("state", EventState), ("outcome", EventOutcome)):
            message = f"“%(value)s” is not {_ARTICLES[name]}. Use one of: {', '.join(known.values)}."
            self.fields[name].error_messages["invalid_choice"] = message

    def asked(self) -> EventFilter:
        """``None`` for whatever was left empty; call it on a valid form."""
        return EventFilter(**self.values)

    @property
    def narrows(self) -> bool:
        """Whether it asks for anything beyond an outcome."""
        return any(self.data.get(name, "").strip() for name in self.fields if name != "outcome")


_ARTICLES = {"kind": "a kind of source", "state": "a state", "outcome": "an outcome"}
