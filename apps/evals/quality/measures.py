"""Measures of rankings, taken from ir-measures; and how sure a mean is, by resampling the questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from apps.evals.quality.figures import Figure
from apps.evals.quality.missing import require

Qrels = Mapping[str, Mapping[str, int]]
Rankings = Mapping[str, Sequence[str]]
Values = dict[str, float]  # of one measure, by question

DEPTH: Final = 10
RESAMPLED: Final = 2_000
_SEED: Final = 20_240_501


def figure(values: Sequence[float]) -> Figure:
    """Where all values are the same, so are the ends of the interval: resampling cannot know better."""
    if not values:
        raise ValueError("Nothing was measured.")
    rows = np.asarray(values, np.float64)
    picked = np.random.default_rng(_SEED).integers(0, len(rows), (RESAMPLED, len(rows)))
    low, high = np.quantile(rows[picked].mean(axis=1), [0.025, 0.975])
    return Figure(float(rows.mean()), float(low), float(high), len(rows))


def difference(ours: Values, other: Values) -> Figure:
    """Ours minus the other's, question by question. An interval without zero means that it is no chance."""
    return figure([ours[name] - other[name] for name in sorted(ours)])


def ranked(qrels: Qrels, rankings: Rankings, *, several: bool) -> dict[str, Values]:
    """Every measure's value for each question of ``qrels``; an unanswered question counts as zero."""
    library: Any = require("ir_measures", package="ir-measures")
    names = _measures(library, several=several)
    run = {
        query: {reference: float(len(found) - at) for at, reference in enumerate(found)}
        for query, found in rankings.items()
        if query in qrels
    }
    values: dict[str, Values] = {name: dict.fromkeys(qrels, 0.0) for name in names.values()}
    for metric in library.iter_calc(list(names), {query: dict(rows) for query, rows in qrels.items()}, run):
        values[names[metric.measure]][metric.query_id] = float(metric.value)
    return values


def _measures(library: Any, *, several: bool) -> dict[Any, str]:
    """With one relevant record precision@5 cannot pass 0.2, and says nothing that hit@5 does not."""
    found = {
        library.Success @ 1: "hit@1",
        library.Success @ 5: "hit@5",
        library.R @ 5: "recall@5",
        library.R @ 10: "recall@10",
        library.P @ 5: "precision@5",
        library.nDCG @ 10: "nDCG@10",
        library.RR @ 10: "MRR@10",
    }
    return {measure: name for measure, name in found.items() if several or name not in ("precision@5", "recall@5")}
