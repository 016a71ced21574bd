"""What it means when PostgreSQL refuses a row of this room."""

from __future__ import annotations

from apps.core.problems import register_constraint
from apps.memories.models import NOTE_ONCE


def register() -> None:
    for name in ("verdict_by_a_reviewer", "verdict_by_a_person"):
        register_constraint(
            name, message="Only a person who reviews in this workspace decides.", code="not_a_reviewer", status=403
        )
    for name in (
        *("verdict_same_workspace", "verdict_of_a_subject"),
        *("memory_same_workspace", "memory_evidence_same_workspace"),
        *("note_same_workspace", "note_evidence_same_workspace"),
    ):
        register_constraint(name, message="There is nothing of this kind in this workspace.", status=404)
    register_constraint(
        "memory_second_person",
        message="You proposed this, yourself or with a token of yours; somebody else has to approve it.",
        code="own_proposal",
        status=403,
    )
    register_constraint("memory_was_approved", message="A memory needs the approval of a reviewer.", status=403)
    register_constraint(
        "memory_has_evidence", message="A memory needs at least one source.", status=422, field="sources"
    )
    register_constraint(
        "memory_inherits_audience",
        message="One of the sources was restricted at this moment. Look at it again.",
        code="source_restricted",
    )
    register_constraint("note_has_evidence", message="A note needs at least one source.", status=422, field="sources")
    register_constraint(
        "note_inherits_audience",
        message="One of the sources was restricted at this moment. Try again.",
        code="source_restricted",
    )
    register_constraint(NOTE_ONCE, message="This origin noted the same at the same moment. Try again.")
    register_constraint("note_audience_only_grows", message="A restriction is never taken off.", code="immutable")
    register_constraint("memory_audience_only_grows", message="A restriction is never taken off.", code="immutable")
    register_constraint(
        "memory_number_once", message="Another memory was given this number at the same moment. Try again."
    )
    register_constraint(
        "supersession_no_cycle", message="This would make a memory replace its own successor.", code="cycle"
    )
    register_constraint("supersession_not_of_itself", message="A memory cannot replace itself.", code="cycle")
    register_constraint("supersession_once_while_live", message="This replacement is on record already.")
    register_constraint("supersession_same_workspace", message="There is no such memory.", status=404)
    register_constraint(
        "supersession_approved", message="Only a reviewer's verdict makes or voids a replacement.", status=403
    )
    register_constraint("supersession_voided_once", message="What was voided stays voided.", code="immutable")
