"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.core.problems import register_constraint


def register() -> None:
    register_constraint(
        "connection_same_workspace",
        message="A connection and its token belong to one workspace.",
        status=422,
        field="token",
    )
