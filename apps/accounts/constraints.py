"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.core.problems import register_constraint


def register() -> None:
    register_constraint("membership_once_per_workspace", message="This person is a member of the workspace already.")
    register_constraint(
        "token_name_once_per_workspace",
        message="A token of this name exists already in the workspace, perhaps a revoked one. Choose another.",
        code="token_exists",
        field="name",
    )
    register_constraint(
        "audience_name_once", message="An audience of this name exists already in the workspace.", field="name"
    )
    register_constraint(
        "accounts_workspace_slug_key",
        message="A workspace of this name exists already.",
        code="workspace_exists",
        field="slug",
    )
    register_constraint(
        "token_reviewer_has_person",
        message="A token of kind reviewer acts for a person: name one.",
        status=422,
        field="owner",
    )
    register_constraint(
        "token_same_workspace",
        message="A token is limited to repositories of its own workspace.",
        status=422,
        field="repository_ids",
    )
