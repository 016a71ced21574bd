"""From suites and arms to figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apps.evals.quality import corpora, detection, growth, supersession
from apps.evals.quality.arms import make_arm
from apps.evals.quality.arms.base import Question
from apps.evals.quality.arms.ours import Ours
from apps.evals.quality.asking import Asker, embed_before
from apps.evals.quality.corpora import Corpus, Say
from apps.evals.quality.measures import Values, difference, figure, ranked
from apps.evals.quality.results import LEDGER, ArmResult, SuiteResult
from apps.evals.quality.suites import Suite
from apps.retrieval.recipes import DEFAULT

# By these an arm is compared with the recipe that is used when none is named.
COMPARED = ("hit@5", "MRR@10", "nDCG@10")


def evaluate(suite: Suite, arms: Sequence[str], *, folder: Path, say: Say, fresh: bool = False) -> SuiteResult:
    """Ask every arm everything, in the database of the suite's corpus."""
    with corpora.embedding(folder) as embedder:
        if suite.definition.grow_by is not None:
            return _grown(suite, growth.grow(suite, arms, embedder, say=say))
        with corpora.ready(suite.definition, embedder, say=say, fresh=fresh) as corpus:
            return measure(suite, arms, corpus, say=say)


def measure(suite: Suite, arms: Sequence[str], corpus: Corpus, *, say: Say) -> SuiteResult:
    """The same on a corpus that is there."""
    result = _begun(suite, corpus.key, records=len(corpus.documents))
    if refused := sorted(suite.entries.keys() - {document.reference for document in corpus.documents}):
        result.notes.append(
            f"`{suite.name}`: the import refused {len(refused)} of {len(suite.entries):,} records ({refused[0]} for "
            "one), and what asks for them finds nothing."
        )
    embedded = embed_before([*(query.text for query in suite.queries), *supersession.questions(suite)])
    if suite.cases or suite.claims:
        result.arms[LEDGER] = _of_the_ledger(suite, corpus, result.notes)
    values: dict[str, dict[str, Values]] = {}
    for name in arms:
        say(f"{suite.name}: {name}")
        values[name], result.arms[name] = _asked(suite, name, corpus)
        if embedded and result.arms[name].stages.get("vector"):
            result.arms[name].stages["embedding a question"] = embedded
    _compare(result, values)
    return result


def _of_the_ledger(suite: Suite, corpus: Corpus, notes: list[str]) -> ArmResult:
    """What is asked of no arm: what the ledger says itself, and which supersessions would be suggested."""
    graph = supersession.graph_of(corpus)
    values = supersession.graph_heads(suite, graph) if suite.cases else {}
    suggest = detection.detector()
    if suggest is None:
        notes.append(detection.MISSING)
    elif suite.claims:
        values |= detection.suggestions(suite, corpus, graph, Ours(corpus, recipe=DEFAULT.name), suggest)
    return _result(values)


def _asked(suite: Suite, name: str, corpus: Corpus) -> tuple[dict[str, Values], ArmResult]:
    arm = make_arm(name, corpus)
    try:
        asker = Asker(arm)
        values: dict[str, Values] = {}
        if suite.queries:
            rankings = {
                query.id: asker.ask(Question(query.text, query.repos, query.domains)) for query in suite.queries
            }
            values |= ranked(suite.qrels, rankings, several=suite.several_relevant)
        if suite.claims:
            values |= supersession.replaced_records(suite, supersession.graph_of(corpus), asker)
        if suite.cases and arm.knows_time:
            values |= supersession.as_of(suite, asker)
    finally:
        arm.close()
    result = _result(values)
    result.stages = asker.latencies.as_dict()
    return values, result


def _result(values: dict[str, Values]) -> ArmResult:
    return ArmResult({name: figure(list(found.values())) for name, found in values.items() if found})


def _begun(suite: Suite, key: str, *, records: int) -> SuiteResult:
    return SuiteResult(
        name=suite.name,
        title=suite.definition.title,
        half=suite.half,
        records=records,
        queries=len(suite.queries) + len(suite.cases),
        corpus=key,
    )


def _compare(result: SuiteResult, values: dict[str, dict[str, Values]]) -> None:
    ours = values.get(DEFAULT.name)
    for name, theirs in values.items():
        if ours is not None and name != DEFAULT.name:
            result.arms[name].compared = {
                measure: difference(ours[measure], theirs[measure])
                for measure in COMPARED
                if measure in ours and measure in theirs
            }


def _grown(suite: Suite, grown: dict[str, growth.Grown]) -> SuiteResult:
    result = _begun(suite, "growth", records=len(suite.entries))
    for name, found in grown.items():
        measured = {"hit@5": found.last} | ({"forgotten": found.forgotten} if found.forgotten else {})
        result.arms[name] = _result(measured)
        result.arms[name].stages = found.latencies
        result.arms[name].growth = found.sizes
    return result
