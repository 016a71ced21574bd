"""Forgetting: the same questions, asked again while the pool grows around their answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from apps.approvals.importing.records import Record
from apps.approvals.importing.services import Importer
from apps.evals.benchmarks import server
from apps.evals.quality import corpora
from apps.evals.quality.arms import make_arm
from apps.evals.quality.arms.base import Question
from apps.evals.quality.asking import Asker, Latencies, embed_before
from apps.evals.quality.corpora import Say
from apps.evals.quality.figures import Figure
from apps.evals.quality.measures import Values, figure, ranked
from apps.evals.quality.suites import Suite, SuiteError
from apps.evals.quality.vectors import KeptEmbedder
from apps.retrieval.scope_sizes import forget_sizes
from apps.retrieval.tasks import lexemes_count

DATABASE: Final = f"{server.EVALUATION}_growth"
_MEASURE: Final = "hit@5"


@dataclass(slots=True)
class Grown:
    """Of one arm: hit@5 by the size of the pool, and the share of what was answered at first and is lost at last."""

    sizes: list[tuple[int, Figure]] = field(default_factory=list)
    first: Values = field(default_factory=dict)
    last: Values = field(default_factory=dict)
    latencies: dict[str, Any] = field(default_factory=dict)

    def add(self, size: int, values: Values, latencies: Latencies) -> None:
        self.sizes.append((size, figure(list(values.values()))))
        self.first, self.last = self.first or values, values
        self.latencies = latencies.as_dict()

    @property
    def forgotten(self) -> Values:
        """For each question that was answered at first, whether it is not any more."""
        return {name: 1.0 - self.last[name] for name, value in self.first.items() if value}


def grow(suite: Suite, arms: Sequence[str], embedder: KeptEmbedder, *, say: Say) -> dict[str, Grown]:
    """The answers alone, then ``grow_by`` records more at a time, all arms asked everything after each step."""
    step = suite.definition.grow_by
    if step is None:
        raise SuiteError(f"The suite {suite.name} does not say by how many records it grows.")
    grown = {name: Grown() for name in arms}
    with server.using(DATABASE, fresh=True):
        importer, size = Importer(corpora.curator()), 0
        for more in _steps(suite, step):
            corpora.take(importer, more, say=lambda _: None)
            size += len(more)
            lexemes_count(importer.workspace)
            forget_sizes()
            corpus = corpora.as_loaded("growth", embedder)
            embed_before(query.text for query in suite.queries)
            for name in arms:
                grown[name].add(size, *_asked(suite, name, corpus))
            say(f"{suite.name}: asked again with {size:,} records.")
    server.drop_database(DATABASE)
    return grown


def _steps(suite: Suite, step: int) -> Iterator[list[Record]]:
    answers = {reference for found in suite.qrels.values() for reference, grade in found.items() if grade}
    needed: list[Record] = []
    others: list[Record] = []
    for record in corpora.records(suite.definition):
        if isinstance(record, Record):
            (needed if record.reference in answers else others).append(record)
    yield needed
    # In no order of their files, so that every step brings something of everything.
    rest = iter(sorted(others, key=lambda record: hashlib.sha256(record.reference.encode()).digest()))
    while more := list(islice(rest, step)):
        yield more


def _asked(suite: Suite, name: str, corpus: corpora.Corpus) -> tuple[Values, Latencies]:
    arm = make_arm(name, corpus)
    try:
        asker = Asker(arm)
        rankings = {query.id: asker.ask(Question(query.text, query.repos, query.domains)) for query in suite.queries}
    finally:
        arm.close()
    return ranked(suite.qrels, rankings, several=suite.several_relevant)[_MEASURE], asker.latencies
