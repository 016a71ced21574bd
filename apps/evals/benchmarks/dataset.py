"""A workspace with as many memories as asked for, shaped like a firm's, loaded through the import's own code.

The statements lie in the order of where they come from, and each repository takes a stretch of that order. So what
a repository holds is about the same few subjects, and a search within it meets what filters meet in life: scope and
meaning go together. Where there are more rows than statements, a statement is told several times, each with a
sentence of a neighbour, and its vector is moved a little.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

import numpy as np
from django.contrib.auth.models import User
from django.db import connection

from apps.accounts.models import ApiToken, Role, TokenKind, Workspace
from apps.accounts.principal import Principal, operator
from apps.accounts.selectors import principal_for_user
from apps.accounts.services import DEFAULT_WORKSPACE, member_add, token_create, workspace_add
from apps.approvals.importing.records import Edge, Record
from apps.approvals.importing.services import Importer
from apps.approvals.services import memory_retire
from apps.evals.benchmarks.corpus import Corpus
from apps.evals.benchmarks.embedder import RecordedEmbedder
from apps.memories.models import Memory, MemoryEvidence, MemoryStatus, Supersession, Tier
from apps.memories.providers import registry
from apps.memories.providers.embedders.base import Matrix, unit_rows
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.retrieval.tasks import lexemes_count
from apps.scopes.models import Domain, Repository

Say = Callable[[str], None]

REVIEWER: Final = "bench"
NEIGHBOUR: Final = "neighbour"  # a small workspace in the same tables
NEIGHBOUR_ROWS: Final = 1_000
PAYMENTS: Final = "payments"
ONE: Final = "acme/payments-api"
NINE: Final = "acme/storefront"
FEW: Final = "acme/ledger-export"
SMALL: Final = "acme/receipt-printer"
SMALL_ROWS: Final = 30
FIRM_EVERY: Final = 200
_OTHERS = 40
_DOMAINS = ("search", "shipping", "identity", "billing", "catalogue", "support", "data", "platform")
_BATCH = 500
_JITTER = 0.4  # length of what is added to a vector of length one; the cosine to the original is about 0.93
_FIRST_DAY = datetime(2015, 1, 1, tzinfo=UTC)
_DAYS = 3_900


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows that lie together and share a scope. Firm-wide ones are strewn over all of them."""

    repos: tuple[str, ...]
    domains: tuple[str, ...]
    first: int
    after: int

    @property
    def middle(self) -> float:
        return (self.first + self.after) / 2


_Wanted = tuple[tuple[str, ...], tuple[str, ...], int]  # repositories, domains, rows


def layout(rows: int) -> list[Stretch]:
    """Who owns which rows: the scopes that are measured first, the rest by repositories of falling size."""
    small = min(SMALL_ROWS, rows // 10)
    wanted: list[_Wanted] = [
        ((ONE,), (), rows * 20 // 1000),
        ((), (PAYMENTS,), rows * 35 // 1000),
        ((NINE,), (), rows * 85 // 1000),
        ((FEW,), (), max(1, rows * 2 // 1000)),
        ((SMALL,), (), small),
    ]
    left = rows - sum(size for *_, size in wanted)
    weights = [1 / (at + 3) for at in range(_OTHERS)]
    for at, weight in enumerate(weights):
        domain = (_DOMAINS[at % len(_DOMAINS)],) if at % 3 == 0 else ()
        wanted.append(((f"acme/service-{at:02}",), domain, int(left * weight / sum(weights))))
    wanted.append((("acme/attic",), (), rows - sum(size for *_, size in wanted)))
    stretches, first = [], 0
    for repos, domains, size in _mixed(wanted):
        stretches.append(Stretch(repos, domains, first, first + size))
        first += size
    return stretches


def _mixed(wanted: list[_Wanted]) -> list[_Wanted]:
    """The measured scopes spread among the others, not side by side at the start of the order."""
    measured, others = wanted[:5], wanted[5:]
    step = len(others) // (len(measured) + 1)
    for at, stretch in enumerate(measured, start=1):
        others.insert(at * step + at - 1, stretch)
    return others


@dataclass(frozen=True, slots=True)
class Dataset:
    """What was loaded, and who may ask it."""

    rows: int
    workspace: Workspace
    principal: Principal
    corpus: Corpus
    stretches: list[Stretch]

    def stretch(self, name: str) -> Stretch:
        return next(one for one in self.stretches if name in (*one.repos, *one.domains))

    def questions_near(self, name: str) -> list[int]:
        """The questions, those first that were held back from where a scope's statements come from."""
        middle = self.stretch(name).middle / self.rows * len(self.corpus.statements)
        places = self.corpus.question_places
        return sorted(range(len(places)), key=lambda at: abs(places[at] - middle))

    def repository_id(self, slug: str) -> int:
        return Repository.objects.get(workspace=self.workspace, slug=slug).pk

    def domain_id(self, slug: str) -> int:
        return Domain.objects.get(workspace=self.workspace, slug=slug).pk


@dataclass(frozen=True, slots=True)
class Loaded:
    """How fast a load went; ``rows`` is zero where everything was there already."""

    rows: int
    seconds: float


def ensure(corpus: Corpus, rows: int, *, say: Say, slug: str = DEFAULT_WORKSPACE) -> tuple[Dataset, Loaded]:
    """Load what is missing of ``rows`` memories into a workspace, and go on where an earlier run stopped."""
    dataset = Dataset(rows, *workspace_with_reviewer(slug), corpus, layout(rows))
    done = Memory.objects.of(dataset.workspace).count()
    if done > rows:
        raise ValueError(f"The workspace {slug} holds {done:,} memories, more than the {rows:,} asked for.")
    started = time.perf_counter()
    if done < rows:
        say(f"Loading {rows - done:,} memories into the workspace {slug}.")
        _load(dataset, done, say)
    seconds = time.perf_counter() - started
    if not Supersession.objects.filter(workspace=dataset.workspace).exists():
        say("Replacing and retiring some of them.")
        _age(dataset)
    if done < rows:
        _settle(dataset)
    return dataset, Loaded(rows - done, seconds)


def workspace_with_reviewer(slug: str = DEFAULT_WORKSPACE) -> tuple[Workspace, Principal]:
    workspace = Workspace.objects.filter(slug=slug).first() or workspace_add(slug=slug)
    member_add(principal=operator(workspace), username=REVIEWER, role=Role.REVIEWER)
    return workspace, principal_for_user(User.objects.get(username=REVIEWER), workspace, "import")


def agent_secret(workspace: Workspace, name: str, kind: TokenKind = TokenKind.AGENT) -> str:
    """The secret of a new token; an earlier one of that name is renamed, since secrets are kept nowhere."""
    for token in ApiToken.objects.filter(workspace=workspace, name=name):
        token.name = f"{name} {token.pk}"
        token.save(update_fields=["name"])
    owner = User.objects.get(username=REVIEWER) if kind is TokenKind.REVIEWER else None
    _, secret = token_create(principal=operator(workspace), name=name, kind=kind, owner=owner)
    return secret


def _load(dataset: Dataset, done: int, say: Say) -> None:
    embedder = RecordedEmbedder()
    began = time.perf_counter()
    with registry.override(Mem0Provider(embedder)):
        importer = Importer(dataset.principal)
        rows = records(dataset, first=done)
        while batch := list(islice(rows, _BATCH)):
            embedder.known = {record.content: vector for record, vector in batch}
            importer.take([record for record, _ in batch])
            loaded = batch[-1][0].line + 1 - done
            rate = loaded / (time.perf_counter() - began)
            left = (dataset.rows - done - loaded) / rate
            if loaded % (10 * _BATCH) == 0 or left == 0:
                say(f"{done + loaded:,} of {dataset.rows:,}; {rate:,.0f} a second, {left / 60:.0f} min left.")


def records(dataset: Dataset, *, first: int = 0) -> Iterator[tuple[Record, Matrix]]:
    """The rows from ``first`` on, with their vectors; the same ones whenever they are asked for."""
    for stretch in dataset.stretches:
        for row in range(max(first, stretch.first), stretch.after):
            yield _record(dataset, stretch, row)


def _record(dataset: Dataset, stretch: Stretch, row: int) -> tuple[Record, Matrix]:
    statements = dataset.corpus.statements
    at = row * len(statements) // dataset.rows
    telling = row - -(-at * dataset.rows // len(statements))
    is_firm = row % FIRM_EVERY == 0
    dated = _FIRST_DAY + timedelta(days=row * 37 % _DAYS)
    record = Record(
        line=row,
        reference=_reference(row),
        title="",
        content=_told(statements, at, telling, row),
        tier=Tier.INDEX if row % 20 == 7 else Tier.DURABLE,
        repos=() if is_firm else stretch.repos,
        domains=() if is_firm else stretch.domains,
        held_from=None if row % 10 == 3 else dated,
        is_turned_down=row % 20 == 11,
        commit=None,
        notes=(),
    )
    return record, _moved(dataset.corpus.vectors[at], row) if telling else dataset.corpus.vectors[at]


def _reference(row: int) -> str:
    return f"record-{row}"


def _told(statements: list[str], at: int, telling: int, row: int) -> str:
    """A statement again, with half a neighbour's words in it, so that no two are the same."""
    if not telling:
        return statements[at]
    words = statements[(at + 3 * telling) % len(statements)].split()
    half = len(words) // 2
    borrowed = words[:half] if telling % 2 else words[half:]
    return f"{statements[at]} {' '.join(borrowed)} ({row})"


def _moved(vector: Matrix, row: int) -> Matrix:
    noise = np.random.default_rng(row).normal(size=vector.shape)
    moved: Matrix = unit_rows((vector + _JITTER * noise / np.linalg.norm(noise))[None, :].astype(np.float32))[0]
    return moved


def _age(dataset: Dataset) -> None:
    """Two in a hundred are replaced by the one after them, and five in a thousand retired."""
    workspace = dataset.workspace
    one, payments = dataset.repository_id(ONE), dataset.domain_id(PAYMENTS)
    Repository.objects.filter(pk=one).update(domain_ids=[payments])
    replaced = range(5, dataset.rows - 1, 50)
    with registry.override(Mem0Provider(RecordedEmbedder())):
        Importer(dataset.principal).link(
            Edge(row, _reference(row), _reference(row + 1), "supersedes", True, _FIRST_DAY + timedelta(days=_DAYS))
            for row in replaced
        )
        for row in range(9, dataset.rows, 200):
            source = MemoryEvidence.objects.filter(workspace=workspace, source__reference=_reference(row)).first()
            if source is not None and source.memory.status == MemoryStatus.ACTIVE:
                memory_retire(principal=dataset.principal, reference=source.memory_id, reason="No longer so.")


def _settle(dataset: Dataset) -> None:
    """What the worker and PostgreSQL do by themselves in time: count words, gather statistics."""
    lexemes_count(dataset.workspace)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
