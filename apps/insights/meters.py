"""What a process counts while it serves. What can be read from tables is read from them: see ``collector``.

With several web processes the numbers of all of them are added up from files (``PROMETHEUS_MULTIPROC_DIR``, set by
``gunicorn.conf.py``); elsewhere a process counts for itself.
"""

from __future__ import annotations

import os
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from apps.memories.providers.embedding import Embedding
from apps.retrieval.pipeline import STAGES, Search, Shortfall
from apps.retrieval.stages import episodic, listing

REGISTRY: Final = CollectorRegistry()

# Seconds. A stage takes a millisecond on a small ledger and at most four where something hangs.
_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0)

SEARCH_SECONDS: Final = Histogram(
    "firm_memory_search_seconds", "Time of a whole search.", buckets=_BUCKETS, registry=REGISTRY
)
STAGE_SECONDS: Final = Histogram(
    "firm_memory_search_stage_seconds",
    "Time of each stage of a search that ran.",
    ["stage"],
    buckets=_BUCKETS,
    registry=REGISTRY,
)
SEARCHES: Final = Counter(
    "firm_memory_searches",
    "Searches: complete, degraded because something could not be looked at, or failed because the ledger could not.",
    ["outcome"],
    registry=REGISTRY,
)
SHORTFALLS: Final = Counter(
    "firm_memory_search_degraded",
    "Answers that fell short, by the stage that could not look and the reason. One answer may count several times.",
    ["stage", "reason"],
    registry=REGISTRY,
)
LEFT_OUT: Final = Counter(
    "firm_memory_search_left_out",
    "Hits not served because ledger and pool disagree about them, by which of the two does not let them through.",
    ["by"],
    registry=REGISTRY,
)
EMBEDDING_SECONDS: Final = Histogram(
    "firm_memory_embedding_seconds",
    "Time of each call of the embedding model, by what was embedded and how it ended.",
    ["what", "outcome"],
    buckets=_BUCKETS,
    registry=REGISTRY,
)
EMBEDDER_UP: Final = Gauge(
    "firm_memory_embedder_up",
    "Whether the last call of the embedding model succeeded; absent until the first one.",
    ["embedder"],
    multiprocess_mode="mostrecent",
    registry=REGISTRY,
)

# Zero is a statement, and a rate needs a beginning.
for _outcome in ("complete", "degraded", "failed"):
    SEARCHES.labels(_outcome)
for _shortfall in Shortfall:
    SHORTFALLS.labels(_shortfall.stage, _shortfall.reason)
for _by in ("ledger", "pool"):
    LEFT_OUT.labels(_by)
_STAGE: Final = {name: STAGE_SECONDS.labels(name) for name in (*STAGES, listing.NAME, episodic.NAME)}


def search_is_over(search: Search) -> None:
    """Observes searches."""
    SEARCHES.labels("failed" if search.failed else "degraded" if search.degraded else "complete").inc()
    SEARCH_SECONDS.observe(search.seconds)
    for stage in search.stages:
        if stage.ran:
            _STAGE[stage.name].observe(stage.ms / 1000)
    for shortfall in search.shortfalls:
        SHORTFALLS.labels(shortfall.stage, shortfall.reason).inc()
    if search.refused:
        LEFT_OUT.labels("ledger").inc(search.refused)
    if search.not_in_pool:
        LEFT_OUT.labels("pool").inc(search.not_in_pool)


def embedding_is_over(embedding: Embedding) -> None:
    """Observes the embedding model."""
    EMBEDDING_SECONDS.labels(embedding.what, embedding.outcome).observe(embedding.seconds)
    EMBEDDER_UP.labels(embedding.embedder).set(embedding.outcome == "done")


def counts_for_all() -> bool:
    return "PROMETHEUS_MULTIPROC_DIR" in os.environ


def counted() -> Collector:
    """What this process counted, or all web processes of this machine together."""
    return MultiProcessCollector(None) if counts_for_all() else REGISTRY
