"""The trail as a person reads it: sentences, names instead of ids, and what changed side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse

from apps.accounts.principal import Principal
from apps.approvals.trail.forms import KINDS
from apps.approvals.trail.selectors import CAPTURED, Entry, beginnings_of_candidates, names_of_subjects
from apps.candidates.models import CandidateStatus
from apps.core.wording import words
from apps.memories.history import FIELDS, NOTHING, Change, Names, change_of, names_in
from apps.memories.models import Action, SubjectKind

# Counted on with every decision; they say nothing about it.
_UNSAID: Final = frozenset({"version"})
# What is known by a slug that has a form for people.
_SLUGGED: Final = frozenset({"memorytype", "exclusion"})
_PAST: Final = {
    "propose": "proposed",
    "add": "added",
    "change": "changed",
    "connect": "connected",
    "create": "created",
    "remove": "removed",
    "revoke": "revoked",
    "restrict": "restricted",
    "import": "imported",
    "overrule drop": "overruled the drop of",
    "retry capture": "tried again",
    "withdraw": "withdrew",
    "reopen by a new source": "reopened with a new source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    entry: Entry
    did: str
    kind: str
    name: str
    address: str
    became: str
    about: str
    changes: tuple[Change, ...]

    @property
    def given(self) -> list[Change]:
        """What there was nothing of before: said as it is, since nothing became it."""
        return [change for change in self.changes if change.before == NOTHING and not change.long]

    @property
    def changed(self) -> list[Change]:
        return [change for change in self.changes if change.before != NOTHING or change.long]


def entries_shown(principal: Principal, entries: Sequence[Entry]) -> list[Shown]:
    """Four queries at most, however many entries there are."""
    labels, beginnings = names_of_subjects(principal, entries), beginnings_of_candidates(principal, entries)
    names = names_in(principal, [state for entry in entries for state in _states(entry)])
    return [_shown(entry, labels, beginnings.get(entry.subject_id, ""), names) for entry in entries]


def _shown(entry: Entry, labels: dict[str, str], about: str, names: Names) -> Shown:
    label = labels.get(entry.subject_id, "")
    became = labels.get(entry.key, "") or str(entry.after.get("number") or "")
    return Shown(
        entry=entry,
        did=_did(entry.verb),
        kind=KINDS.get(entry.subject_kind, words(entry.subject_kind)).lower(),
        name=label or _name(entry),
        address=_address(entry, label),
        became=became if became != label else "",
        about=about,
        changes=tuple(_changes(entry, names)),
    )


def _did(verb: str) -> str:
    known = {action.value: action.label.lower() for action in Action}
    if verb.startswith("was refused to "):
        # What it was about is named behind it.
        return verb.removesuffix(" a candidate").removesuffix(" a memory")
    return _PAST.get(verb) or known.get(verb) or verb


def _name(entry: Entry) -> str:
    """What people know the subject by: its name where the event kept one, else the beginning of a long id."""
    keys = ("slug", "name") if entry.subject_kind in _SLUGGED else ("name", "slug")
    name = next((state[key] for state in (entry.after, entry.before) for key in keys if state.get(key)), None)
    if isinstance(name, str):
        return words(name) if entry.subject_kind in _SLUGGED else name
    return entry.subject_id[:8] if len(entry.subject_id) == 36 else entry.subject_id


def _address(entry: Entry, label: str) -> str:
    if entry.subject_kind == SubjectKind.MEMORY and label:
        return reverse("retrieval:memory", args=[label])
    if entry.subject_kind == SubjectKind.CANDIDATE and len(entry.subject_id) == 36:
        return reverse("approvals:candidate", args=[entry.subject_id])
    if entry.subject_kind == CAPTURED and len(entry.subject_id) == 36:
        return reverse("capture:event", args=[entry.subject_id])
    return ""


def _changes(entry: Entry, names: Names) -> Iterator[Change]:
    before, after = _states(entry)
    fields = [*FIELDS, *sorted((before.keys() | after.keys()) - FIELDS.keys() - _UNSAID)]
    for field in fields:
        if (field in before or field in after) and before.get(field) != after.get(field):
            yield change_of(field, before, after, names)


def _states(entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Before and after. A decision keeps all that was decided about on one side: what stayed is no change."""
    before, after = entry.before, entry.after
    if entry.is_verdict and entry.verb in _ONE_SIDED:
        shared = (before.keys() & after.keys()) | {"status"}
        before = {name: value for name, value in before.items() if name in shared}
        after = {name: value for name, value in after.items() if name in shared | {"kind", "candidate"}}
        if "status" in before and "status" not in after:
            # The verb says what became of it; where it leaves that open, nothing is said of the status.
            if entry.verb in _BECAME:
                after["status"] = _BECAME[entry.verb]
            else:
                del before["status"]
    return before, after


_BECAME: Final = {
    Action.APPROVE.value: CandidateStatus.APPROVED.value,
    Action.REJECT.value: CandidateStatus.REJECTED.value,
    Action.WITHDRAW.value: CandidateStatus.WITHDRAWN.value,
}
_ONE_SIDED: Final = frozenset(Action.values)
