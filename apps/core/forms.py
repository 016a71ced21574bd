"""Forms of pages. They read what a browser sends; whether a value will do is for the services to say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from typing import Any, ClassVar

from django import forms
from django.http import QueryDict

from apps.core.addresses import repeatable
from apps.core.errors import DomainError, FieldError
from apps.core.screening import masked

_INDEX = re.compile(r"\[\d+\]")


class Text(forms.CharField):
    """Kept as it was typed, apart from the line ends that browsers make of every line break."""

    def __init__(self, *, rows: int = 0, **kwargs: Any) -> None:
        if rows:
            kwargs.setdefault("widget", forms.Textarea(attrs={"rows": rows, "dir": "auto"}))
        else:
            kwargs.setdefault("widget", forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"}))
        super().__init__(**{"required": False, "strip": not rows, **kwargs})

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")

    def has_changed(self, initial: Any, data: Any) -> bool:
        return str(initial or "").replace("\r\n", "\n") != self.to_python(data)


class Lines(Text):
    """One value a line."""

    def __init__(self, *, rows: int = 2, **kwargs: Any) -> None:
        super().__init__(rows=rows, **kwargs)

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else "\n".join(value)

    def clean(self, value: Any) -> tuple[str, ...]:
        return tuple(line.strip() for line in super().clean(value).split("\n") if line.strip())

    def has_changed(self, initial: Any, data: Any) -> bool:
        return tuple(initial or ()) != self.clean(data)


class Names(Text):
    """Values with commas or spaces between them, such as ``M-12, M-15``."""

    def prepare_value(self, value: Any) -> Any:
        return value if isinstance(value, str) or value is None else ", ".join(value)

    def clean(self, value: Any) -> tuple[str, ...]:
        return tuple(re.split(r"[\s,;]+", stripped)) if (stripped := super().clean(value).strip(" ,;\n\t")) else ()

    def has_changed(self, initial: Any, data: Any) -> bool:
        return tuple(initial or ()) != self.clean(data)


class Day(forms.DateField):
    """A day, taken as its first moment in UTC."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})
        errors = {"invalid": "Give a day as year, month and day, such as 2026-03-14."}
        super().__init__(
            **{"required": False, "widget": widget, "input_formats": ["%Y-%m-%d"], "error_messages": errors, **kwargs}
        )

    def prepare_value(self, value: Any) -> Any:
        return value.astimezone(UTC).date() if isinstance(value, datetime) else value

    def clean(self, value: Any) -> datetime | None:
        day: date | None = super().clean(value)
        return None if day is None else datetime.combine(day, time(0), tzinfo=UTC)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)


class Share(forms.FloatField):
    """A number from 0 to 1; the service checks the limits."""

    def __init__(self, **kwargs: Any) -> None:
        widget = forms.NumberInput(attrs={"min": "0", "max": "1", "step": "any", "inputmode": "decimal"})
        errors = {"invalid": "Give a number from 0 to 1, such as 0.8."}
        super().__init__(**{"required": False, "widget": widget, "error_messages": errors, **kwargs})


class ShownAgain(forms.BoundField):
    """What somebody typed, given back to them to go on with, except for secrets and personal data."""

    def value(self) -> Any:
        value = super().value()
        return without_secrets(value) if self.form.is_bound and isinstance(value, str) else value


def without_secrets(text: str) -> str:
    return masked(text)


class PageForm(forms.Form):
    """A form whose service may refuse it: the refusal's sentences go to the fields that they are about."""

    bound_field_class = ShownAgain

    # The names that services use, where the page has another or several for one.
    FIELD_OF: dict[str, str] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self.use_required_attribute = False

    @classmethod
    def carried(cls, parameters: QueryDict) -> str:
        """A filter as it goes from page to page: without a position in the list, and without empty values."""
        kept = QueryDict(mutable=True)
        for name, values in repeatable(parameters).lists():
            if name in cls.base_fields and values[-1].strip():
                kept[name] = values[-1]
        return kept.urlencode()

    def add_refusal(self, error: DomainError) -> None:
        """Show what a service refused. Everything it said is shown, next to its field or above the form."""
        for about in error.errors or [FieldError("", error.detail)]:
            self.add_error(self.field_of(about.field), about.message)

    def field_of(self, name: str) -> str | None:
        name = _INDEX.sub("", name).removeprefix("amendment.")
        name = self.FIELD_OF.get(name, name)
        return name if name in self.fields else None

    def focused(self) -> str | None:
        """The id of the first field with a complaint, for the link in the summary."""
        return next((self[name].id_for_label for name in self.fields if self.errors.get(name)), None)


def choices(rows: Iterable[tuple[str, str]], *, empty: str) -> list[tuple[str, str]]:
    return [("", empty), *rows]


class FilterForm(PageForm):
    """A filter in the address. A parameter that is not known here is refused, not passed over."""

    NOT_FILTERS: ClassVar = frozenset({"cursor"})
    # Said of a parameter that is not known: "… by “colour”. … by: kind, state."
    CANNOT: ClassVar[str]
    CAN: ClassVar[str] = "It can"

    def clean(self) -> dict[str, Any]:
        unknown = sorted(set(self.data) - set(self.fields) - self.NOT_FILTERS)
        if unknown:
            named = ", ".join(f"“{name[:40]}”" for name in unknown[:5])
            self.add_error(None, f"{self.CANNOT} by {named}. {self.CAN} by: {', '.join(self.fields)}.")
        self._require_one_value_each()
        return self.cleaned_data

    def _require_one_value_each(self) -> None:
        """Of several values a form would take the last one and pass over the others."""
        for name, values in self.data.lists() if isinstance(self.data, QueryDict) else ():
            if len(values) > 1 and (name in self.fields or name in self.NOT_FILTERS):
                self.add_error(self.field_of(name), f"{self._called(name)} takes one value; there are {len(values)}.")

    def _called(self, name: str) -> str:
        return "This" if name in self.fields else f"“{name}”"

    @property
    def given(self) -> int:
        """How many of the fields that are shown hold something, for where they lie folded."""
        return sum(bool(self.data.get(field.name, "").strip()) for field in self.visible_fields())

    @property
    def values(self) -> dict[str, Any]:
        """What was asked for, without whatever was left empty; call it on a valid form."""
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
