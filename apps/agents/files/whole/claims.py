"""What a file says about decisions, held against what an export can say.

Whoever can write a file can make its sum fit, so this finds no lie that hangs together: the person who answers for the
file does. It refuses what no reviewer can have decided, and what would count as approved without such a decision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from apps.agents.files.whole.reading import Row
from apps.approvals import services
from apps.approvals.amendments import Amendment
from apps.core.screening import check_text
from apps.memories.models import IN_FORCE, Action, EdgeKind, Memory, MemoryStatus, Supersession, Verdict

# The doors through which people decide. Agents and bots come through others, and decide nothing.
DOORS: Final = ("ui", "rest", "admin", "command", "import")
# Clocks differ; what lies further ahead than this was never measured.
AHEAD: Final = timedelta(days=1)
_MAX_NAME: Final = 200
# Twice what a reviewer may write: what is masked may become longer.
MAX_REASON: Final = 2 * services.MAX_REASON


def check_verdict(row: Row, *, bots: Collection[str], second_person: bool, at: datetime) -> None:
    """Who decided, through which door, and what the verdict holds beside it."""
    reviewer = row.text("reviewer")
    if problems := check_text(reviewer, field="reviewer", max_length=_MAX_NAME, multiline=False):
        raise row.refuse(f"{row.at('reviewer')} names nobody who decided. {problems[0].message}")
    if reviewer.strip() in bots:
        raise row.refuse(f"{row.at('reviewer')} names a bot, and only people decide.")
    if row.text("via") not in DOORS:
        raise row.refuse(f"{row.at('via')} is none of {', '.join(DOORS)}, through which people decide.")
    if len(row.text("reason")) > MAX_REASON:
        raise row.refuse(f"{row.at('reason')} is longer than {MAX_REASON:,} characters.")
    if not row.flag("second_person") and row.text("action") == Action.APPROVE and second_person:
        raise row.refuse(
            f"{row.at('second_person')} says that whoever proposed it approved it, and this workspace demands a second "
            "person. An admin of a one-person firm switches that off first."
        )
    if row.moment("at") > at + AHEAD:
        raise row.refuse(f"{row.at('at')} lies in the future.")
    row.flag("restored")
    if not set(row.texts("amended")) <= Amendment.ALLOWED:
        raise row.refuse(f"{row.at('amended')} names something else than {', '.join(sorted(Amendment.ALLOWED))}.")
    _check_change(row)


def _check_change(row: Row) -> None:
    """What a verdict on a memory changed; what a proposal said before and after is in no export."""
    on_memory = row.text("on") == "memory"
    for name, keys in (("before", ("status",)), ("after", ("status", "by", "kind", "stale", "report"))):
        held = row.object(name)
        allowed = keys if on_memory else ()
        if not set(held) <= set(allowed):
            raise row.refuse(f"{row.at(name)} holds {', '.join(allowed) if allowed else 'nothing'}, and nothing else.")
        for key, value in held.items():
            if not _is_change(key, value):
                raise row.refuse(f"{row.at(name)}.{key} is nothing that a verdict changes it to.")


def _is_change(key: str, value: Any) -> bool:
    if key == "stale":
        return isinstance(value, bool)
    if key == "status":
        return value in MemoryStatus.values
    if key == "kind":
        return value in EdgeKind.values
    return _is_uuid(value)


def _is_uuid(value: Any) -> bool:
    try:
        return str(UUID(value)) == value
    except (ValueError, TypeError, AttributeError):
        return False


def check_memory(row: Row, memory: Memory, verdicts: Sequence[Verdict], *, at: datetime) -> None:
    """That what is in force was approved, and that this was not taken back. ``verdicts`` are in the order of time."""
    approved = next(verdict for verdict in verdicts if verdict.action == Action.APPROVE)
    if memory.recorded_at < approved.created_at:
        raise row.refuse("recorded_at lies before the verdict that approved it.")
    for name in ("recorded_at", "closed_at", "retired_at"):
        moment = getattr(memory, name)
        if moment is not None and moment > at + AHEAD:
            raise row.refuse(f"{name} lies in the future.")
    if (memory.valid_to is None) != (memory.closed_at is None):
        raise row.refuse("closed_at says when valid_to became known, so there are both or neither.")
    if memory.retired_at is not None and memory.status != MemoryStatus.RETIRED:
        raise row.refuse(f"status is {memory.status}, and retired_at says that it was retired.")
    if memory.status in IN_FORCE:
        _require_standing(row, memory.status, verdicts)


def _require_standing(row: Row, status: str, verdicts: Sequence[Verdict]) -> None:
    if any(verdict.action == Action.REOPEN for verdict in verdicts):
        raise row.refuse(f"status is {status}, and a verdict says that its approval was taken back.")
    last = [verdict.action for verdict in verdicts if verdict.action in (Action.RETIRE, Action.RESTORE)][-1:]
    if last == [Action.RETIRE]:
        raise row.refuse(f"status is {status}, and the last verdict on it says that it was retired.")


def check_edge(row: Row, edge: Supersession, memories: Mapping[UUID, Memory], verdicts: Mapping[UUID, Verdict]) -> None:
    """That an edge was made by the approval of the new memory, or by a verdict on the old one."""
    for name in ("old", "new"):
        if getattr(edge, f"{name}_id") not in memories:
            raise row.refuse(f"{name} is no memory of this file.")
    if edge.old_id == edge.new_id:
        raise row.refuse("old and new are one memory.")
    old, new = memories[edge.old_id], memories[edge.new_id]
    verdict = verdicts.get(edge.verdict_id)
    if verdict is None or not (verdict.pk == new.verdict_id or _replaces(verdict, old, new)):
        raise row.refuse("verdict neither approved the new memory nor says that it replaces the old one.")
    if edge.voided_by_id is not None:
        undone = verdicts.get(edge.voided_by_id)
        if undone is None or undone.action != Action.REOPEN or undone.subject_id != new.verdict.subject_id:
            raise row.refuse("voided_by is no verdict that took back the approval of the new memory.")
    elif edge.kind == EdgeKind.FULL and (old.valid_to is None or old.valid_to > edge.holds_from):
        raise row.refuse(f"holds_from ends M-{old.number}, and its line has a later valid_to, or none.")


def _replaces(verdict: Verdict, old: Memory, new: Memory) -> bool:
    on_old = verdict.action == Action.SUPERSEDE and verdict.subject_id == old.pk
    return on_old and verdict.after.get("by", str(new.pk)) == str(new.pk)
