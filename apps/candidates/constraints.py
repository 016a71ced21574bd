"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.candidates.models import ONCE_WHILE_OPEN
from apps.core.problems import register_constraint


def register() -> None:
    register_constraint(
        ONCE_WHILE_OPEN,
        message="The same statement is waiting for review already.",
        code="duplicate",
    )
    register_constraint(
        "candidate_second_person",
        message="You proposed this, yourself or with a token of yours; somebody else has to approve it.",
        code="own_proposal",
        status=403,
    )
    for name in ("candidate_decided_by_verdict", "candidate_reopened_by_verdict"):
        register_constraint(name, message="Only a reviewer's verdict decides about a candidate.", status=403)
    for name in (
        *("candidate_same_workspace", "candidate_evidence_same_workspace"),
        *("proposer_same_workspace", "opened_same_workspace"),
    ):
        register_constraint(name, message="There is nothing of this kind in this workspace.", status=404)
    register_constraint("candidate_starts_open", message="A candidate starts open.", status=403)
    register_constraint(
        "candidate_has_evidence", message="A candidate needs at least one source.", status=422, field="sources"
    )
    register_constraint("candidate_has_proposer", message="A candidate needs somebody who proposed it.", status=422)
    register_constraint(
        "candidate_inherits_audience",
        message="One of the sources was restricted at this moment. Try again.",
        code="source_restricted",
    )
    for name in ("candidate_reworded_while_open", "candidate_only_grows"):
        register_constraint(name, message="What a verdict was given on stays as it was.", code="immutable")
