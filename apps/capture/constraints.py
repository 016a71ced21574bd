"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.core.problems import register_constraint


def register() -> None:
    register_constraint(
        "capture_event_same_workspace", message="There is nothing of this kind in this workspace.", status=404
    )
    register_constraint("capture_event_once", message="This material was handed over before.", code="received_before")
    register_constraint("capture_event_stays_done", message="What became of this material stands.", code="immutable")
