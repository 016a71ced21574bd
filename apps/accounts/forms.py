"""The form that people sign in by."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm


class EntranceForm(LoginForm):
    """The labels of the page say what goes where; a placeholder would say it in other words."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.pop("placeholder", None)
