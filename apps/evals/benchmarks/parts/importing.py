"""How much an import adds to the embedding, which it cannot be faster than."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from apps.approvals.importing.records import Record
from apps.approvals.importing.services import Importer
from apps.evals.benchmarks import dataset, server
from apps.evals.benchmarks.measuring import spread
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Promise, Result, Table
from apps.memories.models import Tier
from apps.memories.providers.registry import get_embedder, get_provider

BATCH: Final = 64  # as many as the command takes at a time
ROUNDS: Final = 12
LEAST_SHARE: Final = 0.6


def run(bench: Bench) -> Result:
    statements = bench.corpus.statements
    alone, imported = [], []
    with server.using(server.SCRATCH, fresh=True):
        _, principal = dataset.workspace_with_reviewer()
        importer = Importer(principal)
        get_provider().prepare(statements[-1])  # loads the libraries and the model
        for turn in range(bench.rounds(ROUNDS)):
            texts = statements[turn * BATCH : (turn + 1) * BATCH]
            records = [_record(turn * BATCH + at, text) for at, text in enumerate(texts)]
            alone.append(_rate(get_embedder().embed_documents, texts))
            imported.append(_rate(importer.take, records))
        count = importer.report.counts["imported"]
    server.drop_database(server.SCRATCH)
    share = spread(both / single for single, both in zip(alone, imported, strict=True))
    table = Table(("", "documents a second", "lowest", "highest"))
    for name, rates in (("embedding alone", alone), ("import", imported)):
        found = spread(rates)
        table.add(name, f"{found.value:.1f}", f"{found.low:.1f}", f"{found.high:.1f}")
    return Result(
        [table],
        promises=[Promise.at_least("import against embedding alone", LEAST_SHARE, share.value, shown=str(share))],
        notes=[
            f"{count:,} records in batches of {BATCH}, in turn with embedding the same texts and nothing else. The "
            "import cuts and embeds each record and stores it with its source, proposal, verdict and evidence in the "
            "ledger, and with its vector in the pool."
        ],
    )


def _rate(work: Callable[[Any], object], items: Sequence[Any]) -> float:
    started = time.perf_counter()
    work(items)
    return len(items) / (time.perf_counter() - started)


def _record(number: int, text: str) -> Record:
    return Record(
        line=number,
        reference=f"imported-{number}",
        title=text[:60],
        content=text,
        tier=Tier.DURABLE,
        repos=(dataset.ONE,),
        domains=(),
        held_from=None,
        is_turned_down=False,
        commit=None,
        notes=(),
    )
