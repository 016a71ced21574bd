"""What people propose by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from apps.candidates.proposal import Proposal, ScopeInput
from apps.core.errors import FieldError
from apps.core.forms import Day, FilterForm, Lines, Names, PageForm, Share, Text, choices
from apps.core.screening import check_text
from apps.core.wording import words
from apps.memories.models import MAX_TASK
from apps.sources.forms import SourceForms, WithSources
from apps.taxonomy.models import MemoryType


class ProposeForm(WithSources):
    FIELD_OF = {"scope": "firm", "scope.domains": "domains", "scope.repos": "repos"}

    content = Text(
        label="Statement",
        rows=6,
        help_text="One thing, worded so that it makes sense alone: what holds, why, and since when.",
    )
    type = Text(label="Type", widget=forms.Select)
    firm = forms.BooleanField(label="It holds for the whole firm", required=False)
    domains = Lines(label="Domains", help_text="Subject areas such as payments. One a line.")
    repos = Lines(label="Repositories", help_text="Names such as acme/pay, or remotes. One a line.")
    confidence = Share(label="Confidence", help_text="How sure are you, from 0 to 1? Empty counts as sure.")
    supersedes = Names(label="Replaces", help_text="Numbers of memories that this makes obsolete, such as M-12.")
    valid_from = Day(label="Valid from", help_text="If it does not hold from the start.")

    def __init__(self, data: QueryDict | None = None, *, types: Sequence[MemoryType], **kwargs: Any) -> None:
        super().__init__(data, auto_id="propose-%s", **kwargs)
        live = ((row.slug, words(row.slug)) for row in types if row.is_active)
        self.fields["type"].widget.choices = choices(live, empty="Choose a type")
        self.sources = SourceForms(data)

    def clean(self) -> dict[str, Any]:
        """Say everything that is missing at once; what is there the service judges."""
        values = self.cleaned_data
        if not values.get("content", "?").strip():
            self.add_error("content", "Write the statement.")
        if not values.get("type", "?"):
            self.add_error("type", "Choose a type.")
        if not any(values.get(name, True) for name in ("firm", "domains", "repos")):
            self.add_error("firm", "Say where it holds: the whole firm, or at least one repository or domain.")
        if not self.sources.are_named:
            self.sources.take(FieldError("sources", "Name at least one source: where does this come from?"))
        return values

    def proposal(self) -> Proposal:
        values: Mapping[str, Any] = self.cleaned_data
        return Proposal(
            content=values["content"],
            type=values["type"],
            scope=ScopeInput(firm=values["firm"], domains=values["domains"], repos=values["repos"]),
            sources=self.sources.sources(),
            confidence=values["confidence"],
            supersedes=values["supersedes"],
            valid_from=values["valid_from"],
        )


class TaskForm(FilterForm):
    """Whose notes are shown; none: which tasks have any."""

    CANNOT, CAN = "Notes cannot be looked up", "They can be"

    task = Text(label="Task", help_text="Its name letter by letter, such as mr:acme/pay!4821 or branch:feature/x.")

    def clean_task(self) -> str:
        task: str = self.cleaned_data["task"]
        if problems := check_text(task, field="task", max_length=MAX_TASK, multiline=False) if task else []:
            raise forms.ValidationError([problem.message for problem in problems])
        return task


class DispositionForm(PageForm):
    disposition = Text(label="What became of it")


class WithdrawForm(PageForm):
    version = forms.IntegerField(
        min_value=1,
        widget=forms.HiddenInput,
        error_messages={"required": "This form does not say which version it is about. Load the page again."},
    )
