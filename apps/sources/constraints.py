"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.core.problems import register_constraint


def register() -> None:
    register_constraint("source_same_workspace", message="There is no such audience in this workspace.", status=404)
    register_constraint(
        "source_stays_restricted",
        message="A source keeps its audience: taking one off would show what was hidden.",
        code="immutable",
    )
    register_constraint(
        "source_one_audience",
        message="The same source is open to others at another commit; restrict all of it.",
        code="source_restricted",
        status=409,
    )
