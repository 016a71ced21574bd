"""The rows in which people name where something comes from."""

from __future__ import annotations

import re

from django import forms
from django.http import QueryDict

from apps.core.errors import DomainError, FieldError
from apps.core.forms import PageForm, Text
from apps.sources.models import SourceKind
from apps.sources.services import SourceInput

SOURCE_ROWS = 3
_SOURCE = re.compile(r"sources(?:\[(\d+)\])?(?:\.(\w+))?")


class SourceForm(PageForm):
    kind = Text(label="Kind", widget=forms.Select(choices=SourceKind.choices), initial=SourceKind.MERGE_REQUEST)
    reference = Text(label="Reference", help_text="Its name in its own system, such as acme/pay!128.")
    url = Text(
        label="Link",
        widget=forms.TextInput(attrs={"inputmode": "url", "autocomplete": "off", "placeholder": "https://"}),
    )
    title = Text(label="Title")
    quote = Text(label="Quote", rows=2, help_text="The words that support the statement, at most 500 characters.")

    @property
    def is_blank(self) -> bool:
        return not any(self.data.get(self.add_prefix(name), "").strip() for name in self.fields if name != "kind")

    def source(self) -> SourceInput:
        return SourceInput(**self.cleaned_data)


class SourceForms:
    """Some rows for sources, of which those left blank do not count."""

    def __init__(self, data: QueryDict | None = None, *, rows: int = SOURCE_ROWS) -> None:
        self.rows = [SourceForm(data, prefix=f"source-{at}", auto_id="%s") for at in range(rows)]
        self._filled = [row for row in self.rows if data is not None and not row.is_blank]

    @property
    def are_named(self) -> bool:
        return bool(self._filled)

    def is_valid(self) -> bool:
        return not self.has_errors

    @property
    def has_errors(self) -> bool:
        return any(row.is_bound and row.errors for row in self.rows)

    def sources(self) -> tuple[SourceInput, ...]:
        return tuple(row.source() for row in self._filled)

    def take(self, error: FieldError) -> bool:
        """Show a service's complaint at the row that it is about; whether it was about a source at all."""
        match = _SOURCE.fullmatch(error.field)
        if match is None:
            return False
        at, name = match.groups()
        row = self._filled[int(at)] if at is not None and int(at) < len(self._filled) else self.rows[0]
        row.is_valid()  # a form takes a complaint only after it was validated
        row.add_error(name if name in row.fields else "reference", error.message)
        return True


class WithSources(PageForm):
    """A form whose statement needs sources; both are refused by the same service."""

    sources: SourceForms

    def is_valid(self) -> bool:
        own = super().is_valid()
        return self.sources.is_valid() and own

    def add_refusal(self, error: DomainError) -> None:
        complaints = error.errors or [FieldError("", error.detail)]
        others = [about for about in complaints if not self.sources.take(about)]
        for about in others:
            self.add_error(self.field_of(about.field), about.message)
