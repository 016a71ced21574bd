"""What everything else is measured on, and how fast it went in."""

from __future__ import annotations

from django.db import connection

from apps.evals.benchmarks import dataset
from apps.evals.benchmarks.parts import Bench
from apps.evals.benchmarks.results import Result, Table

_SIZE = """
SELECT pg_size_pretty(pg_database_size(current_database())),
       pg_size_pretty(pg_total_relation_size('fm_pool_g1')), pg_size_pretty(pg_relation_size('fm_pool_g1_hnsw')),
       pg_size_pretty(pg_total_relation_size('memories_memory'))
"""


def run(bench: Bench) -> Result:
    data = bench.dataset
    with connection.cursor() as cursor:
        cursor.execute(_SIZE)
        whole, pool, hnsw, ledger = cursor.fetchone()
    table = Table(("scope", "memories in force or not", "share"))
    for name in (dataset.PAYMENTS, dataset.ONE, dataset.NINE, dataset.FEW, dataset.SMALL):
        stretch = data.stretch(name)
        size = stretch.after - stretch.first
        table.add(f"`{name}`", f"{size:,}", f"{size / data.rows:.2%}")
    table.add("the whole firm", f"{data.rows // dataset.FIRM_EVERY:,}", f"{1 / dataset.FIRM_EVERY:.2%}")
    notes = [
        f"{data.rows:,} memories from {len(data.corpus.statements):,} statements: {data.corpus.source}. Each "
        "repository holds a stretch of neighbouring statements, so that scope and meaning go together. Where a "
        "statement is told again it carries words of a neighbour, and its vector is moved to a cosine of about 0.93.",
        f"On disk: {whole} in all, the ledger's table with its indexes {ledger}, the pool {pool}, of which the HNSW "
        f"index {hnsw}.",
    ]
    loaded = bench.loaded["main"]
    if loaded.rows:
        notes.append(
            f"{loaded.rows:,} memories went through the import (proposal, verdict, memory, evidence, pool; vectors "
            f"made before) in {loaded.seconds / 60:.1f} minutes, {loaded.rows / loaded.seconds:,.0f} a second."
        )
    return Result([table], notes=notes)
