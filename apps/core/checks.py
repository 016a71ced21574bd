from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register

from apps.core.database import DatabaseUnfit, check_database


@register(Tags.database)
def database_will_do(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Run by `migrate` and `check --database default`, before an unfit server fails in the middle of them."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        try:
            check_database(alias)
        except DatabaseUnfit as error:
            found.append(Error(error.detail, id="core.E001"))
    return found
