"""What came from the files of a repository before, by whoever brought it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from apps.accounts.principal import Principal
from apps.agents.files.formats import place_of
from apps.candidates.models import OPEN, Candidate, CandidateEvidence, CandidateStatus
from apps.core.screening import normalise_for_fingerprint
from apps.memories.models import IN_FORCE, Memory
from apps.memories.selectors import memories_visible
from apps.sources.models import SourceKind

KINDS: Final = (SourceKind.RULES_FILE, SourceKind.DOCUMENT)
# So many words make a statement that is the same one wherever it stands; fewer mean what their heading makes of them.
WORDS_OF_A_STATEMENT: Final = 4


@dataclass(slots=True, eq=False)
class Known:
    """A candidate that came from a place in a file. ``memory`` is what its approval made, if this reader may see it."""

    candidate: Candidate
    heading: str
    key: str
    quote_key: str
    memory: Memory | None

    @property
    def is_open(self) -> bool:
        return self.candidate.status in OPEN

    @property
    def holds(self) -> bool:
        """It waits for a decision, or became a memory that is in force."""
        return self.is_open or (self.memory is not None and self.memory.status in IN_FORCE)


@dataclass(slots=True)
class KnownFiles:
    by_path: dict[str, list[Known]] = field(default_factory=lambda: defaultdict(list))
    by_key: dict[str, Known] = field(default_factory=dict)

    def add(self, path: str, known: Known) -> None:
        self.by_path[path].append(known)
        for key in {known.key, known.quote_key}:
            better = self.by_key.get(key)
            if len(key.split()) >= WORDS_OF_A_STATEMENT and (better is None or not better.holds):
                self.by_key[key] = known


def key_of(text: str) -> str:
    """The form in which two wordings count as one; emphasis makes no difference."""
    return normalise_for_fingerprint(text.replace("**", "").replace("__", ""))


def known_of(principal: Principal, repo: str) -> KnownFiles:
    """Everything that came from files of ``repo`` and that this principal's audiences admit, by path, oldest first."""
    rows = CandidateEvidence.objects.filter(
        workspace=principal.workspace,
        source__kind__in=KINDS,
        source__reference__startswith=f"{repo}:",
        candidate__corrects__isnull=True,
        candidate__in=Candidate.objects.visible_to(principal.audience_ids),
    )
    evidence = list(rows.select_related("candidate__type", "source").order_by("candidate__created_at", "pk"))
    memories = _memories(principal, {row.candidate_id for row in evidence if _was_approved(row.candidate)})
    found = KnownFiles()
    seen: set[tuple[str, UUID]] = set()
    for row in evidence:
        place = place_of(repo, row.source.reference)
        if place is None or (place[0], row.candidate_id) in seen or _was_taken_back(row.candidate):
            continue
        seen.add((place[0], row.candidate_id))
        memory = memories.get(row.candidate_id)
        known = Known(row.candidate, place[1], key_of(row.candidate.content), key_of(row.quote), memory)
        found.add(place[0], known)
    return found


def _was_approved(candidate: Candidate) -> bool:
    return candidate.status == CandidateStatus.APPROVED


def _was_taken_back(candidate: Candidate) -> bool:
    """Its proposer did not mean it any more; to say it again is to propose it again."""
    return candidate.status == CandidateStatus.WITHDRAWN


def _memories(principal: Principal, candidate_ids: set[UUID]) -> dict[UUID, Memory]:
    rows = memories_visible(principal).filter(verdict__subject_id__in=candidate_ids)
    return {row.verdict.subject_id: row for row in rows.select_related("verdict").order_by("number")}
