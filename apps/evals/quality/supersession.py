"""Whether a replaced record is served, whether its successor is found, and what held at a moment in the past."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from apps.evals.quality.arms.base import Question
from apps.evals.quality.asking import Asker
from apps.evals.quality.corpora import Corpus
from apps.evals.quality.measures import Values
from apps.evals.quality.suites import Case, Suite
from apps.memories.models import Memory, Supersession

FIRST: Final = 5


@dataclass(frozen=True, slots=True)
class Graph:
    """Which record was replaced by which, from when on, as the ledger has it after the import."""

    successors: Mapping[str, tuple[tuple[str, datetime | None], ...]]
    intervals: Mapping[str, tuple[datetime | None, datetime | None]]

    @property
    def replaced(self) -> list[str]:
        return sorted(self.successors)

    def heads(self, reference: str, *, at: datetime | None = None) -> set[str]:
        """The ends of all chains that lead on from it by replacements in force at this moment; itself without any."""
        ends, seen, ahead = set(), set(), [reference]
        while ahead:
            here = ahead.pop()
            if here in seen:
                continue
            seen.add(here)
            further = [new for new, since in self.successors.get(here, ()) if at is None or not since or since <= at]
            if further:
                ahead.extend(further)
            else:
                ends.add(here)
        return ends

    def holds(self, reference: str, at: datetime) -> bool:
        if reference not in self.intervals:
            return False  # the import did not take it
        begins, ends = self.intervals[reference]
        return (begins is None or begins <= at) and (ends is None or at < ends)


def graph_of(corpus: Corpus) -> Graph:
    names: Mapping[UUID, str] = corpus.references
    successors: dict[str, list[tuple[str, datetime | None]]] = defaultdict(list)
    rows = Supersession.objects.live().full().filter(workspace=corpus.workspace)
    for old, new, since in rows.order_by("pk").values_list("old_id", "new_id", "holds_from"):
        successors[names[old]].append((names[new], since))
    intervals = Memory.objects.of(corpus.workspace).values_list("pk", "valid_from", "valid_to")
    return Graph(
        {old: tuple(found) for old, found in successors.items()},
        {names[pk]: (begins, ends) for pk, begins, ends in intervals},
    )


def replaced_records(suite: Suite, graph: Graph, asker: Asker) -> dict[str, Values]:
    """Asked with the title of each replaced record: is it served, and is what replaced it found?"""
    values: dict[str, Values] = defaultdict(dict)
    full = {claim.old for claim in suite.claims if claim.effective and claim.kind == "supersedes"}
    full -= {claim.old for claim in suite.claims if claim.needs_review}
    for old in sorted(full & set(graph.replaced)):
        title = suite.entries[old].title
        if not title.strip():
            continue
        everywhere = asker.ask(Question(title))[:FIRST]
        inside = asker.ask(_in_repository(suite, old, title))[:FIRST]
        heads = graph.heads(old)
        values["stale@5"][old] = float(old in everywhere)
        values["stale@5 in repository"][old] = float(old in inside)
        values["live@5"][old] = float(bool(heads & set(everywhere)))
        values["live@5 in repository"][old] = float(bool(heads & set(inside)))
    for old in sorted(_claimed_only(suite, graph)):
        inside = asker.ask(_in_repository(suite, old, suite.entries[old].title))[:FIRST]
        values["claimed kept@5"][old] = float(old in inside)
    return dict(values)


def _claimed_only(suite: Suite, graph: Graph) -> Iterator[str]:
    """Records that somebody claims to replace who was not accepted: they stay as they are."""
    claims = {claim.old for claim in suite.claims if not claim.effective and not claim.needs_review}
    return (old for old in claims if old in suite.entries and old not in graph.successors and suite.entries[old].title)


def graph_heads(suite: Suite, graph: Graph) -> dict[str, Values]:
    """Whether the ledger itself says what each case says: these hold at that moment, and those do not."""
    return {"heads as of": {_key(case): float(_is_right(suite, case, graph)) for case in suite.cases}}


def _is_right(suite: Suite, case: Case, graph: Graph) -> bool:
    live = set(case.expect_live)
    return (
        (not live or graph.heads(case.about, at=case.at) == live)
        and all(graph.holds(reference, case.at) for reference in live)
        and not any(graph.holds(reference, case.at) for reference in _replaced(suite, case))
    )


def _replaced(suite: Suite, case: Case) -> set[str]:
    """What must not be served. Who merely claims to replace the record must not hide it, and may be found beside it."""
    claim_only = {claim.new for claim in suite.claims if claim.old == case.about and not claim.effective}
    return set(case.must_not_serve) - claim_only


def as_of(suite: Suite, asker: Asker) -> dict[str, Values]:
    """Each case asked at its moment, over everything and in the repository of the record that it is about."""
    values: dict[str, Values] = defaultdict(dict)
    for case in suite.cases:
        everywhere = asker.ask(Question(case.query, as_of=case.at))[:FIRST]
        inside = asker.ask(_in_repository(suite, case.about, case.query, at=case.at))[:FIRST]
        if stale := _replaced(suite, case):
            values["stale@5 as of"][_key(case)] = float(bool(stale & {*everywhere, *inside}))
        if case.expect_live:
            values["live@5 as of"][_key(case)] = float(bool({*case.expect_live} & {*everywhere}))
            values["live@5 as of, in repository"][_key(case)] = float(bool({*case.expect_live} & {*inside}))
    return dict(values)


def questions(suite: Suite) -> Iterable[str]:
    """Everything that will be asked about replacements, to be embedded before."""
    yield from (case.query for case in suite.cases)
    yield from (suite.entries[claim.old].title for claim in suite.claims if claim.old in suite.entries)


def _in_repository(suite: Suite, reference: str, text: str, *, at: datetime | None = None) -> Question:
    repo = suite.entries[reference].repo
    return Question(text, repos=(repo,) if repo else (), as_of=at)


def _key(case: Case) -> str:
    return f"{case.line} {case.about}"
