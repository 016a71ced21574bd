"""The filter of the audit trail, as it stands in the address."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from apps.approvals.trail.selectors import CAPTURED, REFUSED, TrailFilter
from apps.core.forms import Day, FilterForm, Text, choices
from apps.memories.models import Action

VERBS = (
    *((action.value, action.label) for action in Action),
    ("propose", "Proposed"),
    ("reopen by a new source", "Reopened by a new source"),
    ("add", "Added"),
    ("change", "Changed"),
    ("connect", "Connected"),
    ("create", "Created"),
    ("remove", "Removed"),
    ("revoke", "Revoked"),
    ("restrict", "Restricted"),
    ("import", "Imported"),
    ("overrule drop", "Overruled a drop"),
    ("retry capture", "Had material tried again"),
    (REFUSED, "Was refused"),
)
KINDS = {
    "candidate": "Candidate",
    "memory": "Memory",
    "source": "Source",
    "note": "Working note",
    CAPTURED: "Captured material",
    "memorytype": "Type",
    "category": "Category",
    "exclusion": "Exclusion",
    "domain": "Domain",
    "repository": "Repository",
    "token": "Token",
    "membership": "Member",
    "audience": "Audience",
    "workspace": "Workspace",
}


class TrailForm(FilterForm):
    """A parameter that is not known here is refused, not passed over."""

    actor = Text(label="Who", help_text="The name as it was then.", max_length=200)
    verb = Text(label="Did what", widget=forms.Select(choices=choices(VERBS, empty="Anything")), max_length=60)
    kind = Text(label="To what kind", widget=forms.Select(choices=choices(KINDS.items(), empty="Any")), max_length=40)
    subject = Text(label="To which", help_text="An id, or a number such as M-12.", max_length=64)
    since = Day(label="From")
    until = Day(label="Until", help_text="This day too.")
    request = Text(label="Request", help_text="The id that an answer carries.", max_length=64)
    batch = forms.UUIDField(
        label="Batch",
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"invalid": "Give the id of a bulk decision."},
    )

    CANNOT = "The audit trail cannot be filtered"

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data, auto_id="filter-%s")

    def asked(self) -> TrailFilter:
        """``None`` for whatever was left empty; call it on a valid form."""
        return TrailFilter(**self.values)

    @property
    def narrows(self) -> bool:
        return any(self.data.get(name, "").strip() for name in self.fields)

    @property
    def narrows_in_detail(self) -> bool:
        return any(self.data.get(name, "").strip() for name in ("since", "until", "request", "batch"))
