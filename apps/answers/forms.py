from __future__ import annotations

from django.http import QueryDict

from apps.core.forms import FilterForm, Text


class AskForm(FilterForm):
    """The question in the address, so that it can be kept and passed on."""

    q = Text(label="Question")
    repo = Text(label="Repository")

    CANNOT = "Questions cannot be narrowed"
    CAN = "They can"
    FIELD_OF = {"repos": "repo"}

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data, auto_id="ask-%s")
        self.fields["q"].widget.attrs["placeholder"] = "Why do payment retries wait?"

    @property
    def asks(self) -> bool:
        """Whether anything was sent at all; a page that is only opened asks nothing."""
        return "q" in self.data
