"""What reviewers send: the queue's filter and their decisions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.http import QueryDict

from apps.approvals.amendments import Amendment
from apps.approvals.bulk import Item
from apps.approvals.models import MAX_NAME
from apps.candidates.models import CandidateStatus
from apps.candidates.proposal import ScopeInput
from apps.candidates.selectors import QueueFilter
from apps.core.errors import DomainError, FieldError, Malformed
from apps.core.forms import Day, FilterForm, Lines, Names, PageForm, Share, Text, choices
from apps.core.screening import HIDDEN_CHARACTERS, INSTRUCTIONS
from apps.core.screening.exclusions import INDIVIDUALS, TRANSIENT
from apps.core.wording import words
from apps.taxonomy.models import MemoryType

MAX_AGE = 36_500
# In the address of a candidate: the number of a memory that a suggestion says it replaces, put into the form.
TAKEN_UP = "replaces"
MAX_VERSION = 2_147_483_647

FLAGS = {
    HIDDEN_CHARACTERS: "Hidden characters",
    INSTRUCTIONS: "Speaks to its reader",
    INDIVIDUALS: "About an individual",
    TRANSIENT: "Of the moment",
    "new-repository": "New repository",
    "new-domain": "New domain",
    "target-not-in-force": "Target not in force",
    "source-differs": "Source differs",
    "joined-differs": "Proposers differ",
}


class QueueFilterForm(FilterForm):
    """The filter in the address. A parameter that is not known here is refused, not passed over."""

    q = Text(label="Words", help_text="Every word has to occur.", max_length=8_000)
    type = Text(label="Type", widget=forms.Select)
    repo = Text(label="Repository")
    domain = Text(label="Domain")
    origin = Text(label="Origin", help_text="A name, or one of agent, bot, reviewer, person.")
    age = forms.IntegerField(
        label="Waiting for at least (days)",
        required=False,
        min_value=0,
        max_value=MAX_AGE,
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
        error_messages={"invalid": "Give a whole number of days, such as 7."},
    )
    confidence = Share(label="Confidence of at least", min_value=0, max_value=1)
    flag = forms.ChoiceField(label="Flag", required=False, choices=choices(FLAGS.items(), empty="Any"))
    status = forms.ChoiceField(
        label="Status",
        required=False,
        choices=choices(CandidateStatus.choices, empty=""),
        widget=forms.HiddenInput,
    )

    CANNOT = "The queue cannot be filtered"

    def __init__(self, data: QueryDict, *, types: Sequence[MemoryType]) -> None:
        super().__init__(_with_slug(data, types), auto_id="filter-%s")
        self.fields["type"].widget.choices = choices(((row.slug, words(row.slug)) for row in types), empty="Any")
        for name in ("flag", "status"):
            known = [value for value, _ in self.fields[name].choices if value]  # type: ignore[attr-defined]
            message = f"“%(value)s” is not a {name}. Use one of: {', '.join(known)}."
            self.fields[name].error_messages["invalid_choice"] = message

    def asked(self) -> QueueFilter:
        """``None`` for whatever was left empty; call it on a valid form."""
        return QueueFilter(**self.values)

    def complaints(self) -> list[FieldError]:
        """What is wrong with it, for a service that keeps filters."""
        return [FieldError(name, str(message)) for name, messages in self.errors.items() for message in messages]

    @property
    def narrows(self) -> bool:
        """Whether it asks for anything beyond a status."""
        return any(self.data.get(name, "").strip() for name in self.fields if name != "status")

    @property
    def narrows_in_detail(self) -> bool:
        return any(self.data.get(name, "").strip() for name in ("origin", "age", "confidence", "flag"))


def _with_slug(data: QueryDict, types: Iterable[MemoryType]) -> QueryDict:
    """Either spelling of a type shows as selected."""
    if len(data.getlist("type")) > 1:
        return data  # which of them is meant is for the form to ask
    slug = {row.name.lower(): row.slug for row in types}.get(data.get("type", "").strip().lower())
    if slug is None:
        return data
    data = data.copy()
    data["type"] = slug
    return data


class SaveFilterForm(PageForm):
    """A name for the filter that stands in the address."""

    name = Text(label="Name", max_length=MAX_NAME)
    is_default = forms.BooleanField(label="Open the queue with it", required=False)

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="save-%s")


class VersionField(forms.IntegerField):
    def __init__(self) -> None:
        missing = "This form does not say which version of the candidate it is about. Open the candidate again."
        super().__init__(
            min_value=1,
            max_value=MAX_VERSION,
            widget=forms.HiddenInput,
            error_messages={"required": missing, "invalid": missing},
        )


class ApproveForm(PageForm):
    """Approve as it is, or with what was changed. A field that is not sent stays as it was proposed."""

    FIELD_OF = {"scope": "firm", "scope.domains": "domains", "scope.repos": "repos", "note": "reason"}
    SCOPE = frozenset({"firm", "domains", "repos"})

    version = VersionField()
    content = Text(label="Statement", rows=9)
    type = Text(label="Type", widget=forms.Select)
    firm = forms.BooleanField(label="It holds for the whole firm", required=False)
    domains = Lines(label="Domains", help_text="One a line.")
    repos = Lines(label="Repositories", help_text="One a line.")
    confidence = Share(label="Confidence", help_text="From 0 to 1.")
    valid_from = Day(label="Valid from")
    supersedes = Names(label="Replaces", help_text="Numbers of memories, such as M-12.")
    reason = Text(label="Note", rows=2, help_text="Kept with the verdict. May stay empty.")

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        initial: Mapping[str, Any],
        types: Sequence[MemoryType],
        taken_up: bool = False,
    ) -> None:
        """``taken_up`` says that ``initial`` holds more than was proposed: a suggestion that somebody took up."""
        super().__init__(data, initial=dict(initial), auto_id="approve-%s")
        self.taken_up = taken_up
        live = [(row.slug, words(row.slug)) for row in types if row.is_active]
        if not initial.get("type"):
            live.insert(0, ("", "Choose a type"))
        self.fields["type"].widget.choices = live
        if data is not None:
            self.data = self._with_what_was_not_sent(data)

    def _with_what_was_not_sent(self, data: QueryDict) -> QueryDict:
        """What was not sent reads as it was proposed. An empty checkbox is sent by not being there, so whether the
        firm was meant shows by the fields beside it."""
        filled = data.copy()
        meant = set(data) | {"version", "reason"} | ({"firm"} if {"domains", "repos"} <= set(data) else set())
        for name in self.fields.keys() - meant:
            value = self.fields[name].prepare_value(self.initial.get(name))
            if name != "firm" or value:
                filled[name] = "" if value is None else str(value)
        return filled

    def amendment(self) -> Amendment:
        changed = set(self.changed_data) - {"version", "reason"}
        values = {name: self.cleaned_data[name] for name in changed - self.SCOPE}
        if changed & self.SCOPE:
            values["scope"] = ScopeInput(**{name: self.cleaned_data[name] for name in self.SCOPE})
        return Amendment(values)

    @property
    def amends(self) -> bool:
        """Whether the part with the fields should be open: something in it was changed or complained about."""
        return self.taken_up or (self.is_bound and bool((set(self.changed_data) | set(self.errors)) - {"version"}))


class DecideForm(PageForm):
    """Reject or reopen."""

    version = VersionField()
    reason = Text(label="Reason", rows=3)


class RejectForm(DecideForm):
    """Why it is not to be remembered; without a reason the field says what one is for."""

    def add_refusal(self, error: DomainError) -> None:
        blank = [about for about in error.errors if about.field == "reason" and getattr(about, "kind", "") == "blank"]
        if not blank:
            super().add_refusal(error)
        else:
            self.add_error("reason", "Write a reason first: rejecting needs one.")


_ITEM = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([0-9]{1,12})")


def bulk_items(posted: QueryDict) -> list[Item]:
    """The ticked rows, each as ``id:version``."""
    return [_item(value) for value in posted.getlist("item")]


def _item(value: str) -> Item:
    match = _ITEM.fullmatch(value)
    if match is None:
        raise Malformed(f"“{value[:60]}” is not a candidate and its version. Send the form of the queue.")
    item = Item(UUID(match[1]), int(match[2]))
    if not 1 <= item.version <= MAX_VERSION:
        raise Malformed("A version is a whole number from 1. Send the form of the queue.")
    return item
