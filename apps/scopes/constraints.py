"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.core.problems import register_constraint


def register() -> None:
    register_constraint(
        "repository_same_workspace",
        message="There is no such domain in this workspace.",
        status=404,
        field="domain_ids",
    )
