"""The parts of the benchmarks, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from apps.evals.benchmarks import corpus, dataset, server
from apps.evals.benchmarks.corpus import Corpus
from apps.evals.benchmarks.dataset import Dataset, Loaded
from apps.evals.benchmarks.results import Result

Say = Callable[[str], None]

QUICK_ROWS: Final = 5_000
SMALL_ROWS: Final = 1_000


@dataclass
class Bench:
    """What a part may use. The data is loaded by the first part that asks for it."""

    rows: int
    quick: bool
    folder: Path
    say: Say
    loaded: dict[str, Loaded] = field(default_factory=dict)

    @cached_property
    def corpus(self) -> Corpus:
        return corpus.load(self.folder, say=self.say)

    @cached_property
    def dataset(self) -> Dataset:
        """The many memories, in the database that we are connected to from the start."""
        found, self.loaded["main"] = dataset.ensure(self.corpus, self.rows, say=self.say)
        return found

    @cached_property
    def neighbour(self) -> Dataset:
        """A small workspace in the same tables."""
        _ = self.dataset
        rows = min(dataset.NEIGHBOUR_ROWS, self.rows)
        found, _loaded = dataset.ensure(self.corpus, rows, say=self.say, slug=dataset.NEIGHBOUR)
        return found

    @contextmanager
    def small(self) -> Iterator[tuple[Dataset, str]]:
        """Works with a thousand memories that are alone in a database; also gives its URL."""
        with server.using(server.data_database(SMALL_ROWS, corpus.key())) as url:
            found, _loaded = dataset.ensure(self.corpus, SMALL_ROWS, say=self.say)
            yield found, url

    def rounds(self, usual: int) -> int:
        return max(2, usual // 3) if self.quick else usual

    def some(self, usual: int) -> int:
        """How many questions to ask, or things to do."""
        return max(5, usual // 5) if self.quick else usual


@dataclass(frozen=True, slots=True)
class Part:
    title: str
    run: Callable[[Bench], Result]
    usual: bool = True  # whether it runs when no part is named


def all_parts() -> dict[str, Part]:
    from apps.evals.benchmarks.parts import (
        agents,
        busy,
        data,
        deciding,
        growth,
        importing,
        ingest,
        pages,
        pool,
        rest,
        start,
        stock,
        words,
    )

    return {
        "data": Part("The data", data.run),
        "pool": Part("Search in the pool against SQL by hand", pool.by_hand),
        "recall": Part("What the pool's search finds", pool.recall),
        "mem0": Part("Search in the pool against mem0 as it comes", stock.run),
        "past": Part("Questions about the past", pool.past),
        "words": Part("Search by words", words.run),
        "rest": Part("Search over HTTP", rest.run),
        "busy": Part("Many searches at once", busy.run),
        "agents": Part("What agents wait for", agents.run),
        "pages": Part("The pages that people browse by", pages.run),
        "growth": Part("Growth to a million rows", growth.run, usual=False),
        "import": Part("Import", importing.run),
        "approve": Part("An approval", deciding.approve),
        "propose": Part("Proposals", deciding.propose),
        "ingest": Part("Raw material", ingest.run),
        "start": Part("Start and memory", start.run, usual=False),
    }
