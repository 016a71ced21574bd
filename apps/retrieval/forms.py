"""The memory browser's filter, and what people send from the page of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.http import QueryDict

from apps.core.forms import FilterForm, PageForm, Text, choices
from apps.core.wording import words
from apps.memories.models import MemoryStatus, Tier
from apps.sources.forms import SourceForms, WithSources
from apps.taxonomy.intents import INTENTS
from apps.taxonomy.models import Category, MemoryType
from apps.taxonomy.services import check_category

IN_FORCE = "in-force"
EVERY = "all"
STATUSES = ((IN_FORCE, "In force"), *MemoryStatus.choices, (EVERY, "All"))


class BrowseForm(FilterForm):
    """The filter in the address. A parameter that is not known here is refused, not passed over."""

    q = Text(label="Question")
    type = Text(label="Type", widget=forms.Select)
    repo = Text(label="Repository")
    domain = Text(label="Domain")
    tier = forms.ChoiceField(
        label="Tier", required=False, choices=choices(Tier.choices, empty=""), widget=forms.HiddenInput
    )
    status = forms.ChoiceField(
        label="Status", required=False, choices=choices(STATUSES, empty=""), widget=forms.HiddenInput
    )

    CANNOT = "Memories cannot be filtered"
    CAN = "They can"
    FIELD_OF = {"types": "type", "repos": "repo", "domains": "domain", "tiers": "tier"}

    def __init__(self, data: QueryDict, *, types: Sequence[MemoryType]) -> None:
        super().__init__(data, auto_id="filter-%s")
        self.fields["type"].widget.choices = choices(((row.slug, words(row.slug)) for row in types), empty="Any")
        for name, known in (("status", STATUSES), ("tier", Tier.choices)):
            listed = ", ".join(value for value, _ in known)
            message = f"“%(value)s” is not a {name}. Use one of: {listed}."
            self.fields[name].error_messages["invalid_choice"] = message

    @property
    def narrows(self) -> bool:
        return any(self.data.get(name, "").strip() for name in ("q", "type", "repo", "domain", "tier"))


class WeightsForm(FilterForm):
    """A question, and a weighting of one category to try on it. What is left empty stays as the taxonomy has it."""

    q = Text(label="Question")
    repo = Text(label="Repository")
    category = Text(label="Category", widget=forms.Select)
    half_life_days = forms.IntegerField(label="Half-life in days", required=False)

    CANNOT = "Nothing can be tried"
    CAN = "What can be given is"
    FIELD_OF = {"repos": "repo"}

    def __init__(self, data: QueryDict, *, categories: Sequence[Category]) -> None:
        self.categories = {row.slug: row for row in categories}
        super().__init__(data, auto_id="weights-%s")
        self.fields["category"].widget.choices = [(slug, slug) for slug in self.categories]
        for intent in INTENTS:
            self.fields[intent] = forms.FloatField(
                label=intent, required=False, widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"})
            )

    @property
    def intents(self) -> list[forms.BoundField]:
        return [self[intent] for intent in INTENTS]

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        if not self.errors:
            if values["category"] not in self.categories:
                self.add_error("category", f"Use one of: {', '.join(self.categories)}.")
            for refusal in check_category({"half_life_days": values["half_life_days"], "weights": self.weights}):
                self.add_error(self.field_of(refusal.field), refusal.message)
        return values

    @property
    def chosen(self) -> Category:
        return self.categories[self.cleaned_data["category"]]

    @property
    def weights(self) -> dict[str, float]:
        given = {intent: self.cleaned_data.get(intent) for intent in INTENTS}
        return {intent: weight for intent, weight in given.items() if weight is not None}


class ReasonForm(PageForm):
    """Retire or restore."""

    reason = Text(label="Reason", rows=3)


class CorrectForm(WithSources):
    """Report a memory. ``content`` is the wording that should stand instead, if there is one."""

    FIELD_OF = {"replacement": "content"}

    kind = Text(
        label="What is the matter with it?",
        widget=forms.RadioSelect(choices=[("stale", "It held once and does not any more"), ("wrong", "It never held")]),
        initial="stale",
    )
    reason = Text(label="Reason", rows=3, help_text="What do you know that the memory does not?")
    content = Text(
        label="Better wording",
        rows=4,
        help_text="If you have one. It replaces the memory once a reviewer agrees.",
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="correct-%s")
        self.sources = SourceForms(data, rows=1)
