"""What a person says on the page that asks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from apps.accounts.models import Membership
from apps.core.forms import Names, PageForm
from apps.oauth.asking import Asked

PROPOSE, READ = "propose", "read"
ALL, SOME = "all", "some"


class ConsentForm(PageForm):
    workspace = forms.ChoiceField(label="In which workspace", widget=forms.RadioSelect)
    access = forms.ChoiceField(label="What it may do", widget=forms.RadioSelect)
    reach = forms.ChoiceField(
        label="In which repositories",
        widget=forms.RadioSelect,
        choices=[(ALL, "In all of them, and for the firm"), (SOME, "Only in these")],
    )
    repositories = Names(
        label="Repositories",
        help_text="With commas between, such as acme/pay, acme/web. Of use with “Only in these”.",
        max_length=4_000,
    )

    def __init__(self, data: Any, *, what: Asked, memberships: Sequence[Membership], current: str) -> None:
        initial = {
            "workspace": current,
            "access": PROPOSE if what.may_propose else READ,
            "reach": ALL,
        }
        super().__init__(data, initial=initial, auto_id="consent-%s")
        self.memberships = memberships
        self._choose("workspace", [(each.workspace.slug, each.workspace.slug) for each in memberships])
        self._choose("access", _accesses(what))

    def _choose(self, name: str, listed: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above
        field.choices = listed

    @property
    def membership(self) -> Membership:
        """The one in the chosen workspace; call it on a valid form."""
        return next(each for each in self.memberships if each.workspace.slug == self.cleaned_data["workspace"])

    @property
    def read_only(self) -> bool:
        return bool(self.cleaned_data["access"] == READ)

    @property
    def names(self) -> tuple[str, ...] | None:
        """The repositories it is limited to; None for all of them."""
        return None if self.cleaned_data["reach"] == ALL else tuple(self.cleaned_data["repositories"])


def _accesses(what: Asked) -> list[tuple[str, str]]:
    proposing = [(PROPOSE, "Search and read, and propose what a person then decides about")]
    return [*(proposing if what.may_propose else []), (READ, "Only search and read")]
