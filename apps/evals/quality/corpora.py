"""A suite's corpus in a database of its own, loaded through the import and kept for the next run.

A database is named after what was loaded into it and how: other records, and other code on their way in, make another
one, and the one before is dropped.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection

from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal, operator
from apps.accounts.selectors import principal_for_user
from apps.accounts.services import member_add, workspace_add
from apps.approvals.importing.records import Record, Refused, read_edges, read_records
from apps.approvals.importing.report import Report
from apps.approvals.importing.services import Importer
from apps.evals.benchmarks import server
from apps.evals.quality.suites import Definition
from apps.evals.quality.vectors import KeptEmbedder
from apps.memories.models import Memory, MemoryEvidence
from apps.memories.providers import registry
from apps.memories.providers.mem0.provider import Mem0Provider
from apps.memories.providers.registry import get_embedder
from apps.retrieval.scope_sizes import forget_sizes
from apps.retrieval.tasks import lexemes_count
from apps.scopes.models import Domain, Repository

Say = Callable[[str], None]

PREFIX: Final = f"{server.EVALUATION}_"
WORKSPACE: Final = "evaluation"
PERSON: Final = "evaluation"
BATCH: Final = 64
_VERSION: Final = 1
_SAID_EVERY: Final = 1_024

# What a record goes through on its way in; changed, it may leave something else in the database.
_ON_THE_WAY: Final = (
    *("apps/approvals/importing/*.py", "apps/taxonomy/*.py", "apps/core/screening/*.py"),
    *("apps/memories/lifecycle.py", "apps/memories/providers/embedding.py", "apps/memories/providers/embedders/*.py"),
)


@dataclass(frozen=True, slots=True)
class Document:
    """One memory as it was stored, for searches that are not ours."""

    id: UUID
    reference: str
    content: str
    firm: bool
    repos: tuple[str, ...]
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was loaded, and who may ask it: a curator, so that recipes can be chosen."""

    key: str
    workspace: Workspace
    principal: Principal
    documents: tuple[Document, ...]
    embedder: KeptEmbedder

    @property
    def references(self) -> Mapping[UUID, str]:
        return {document.id: document.reference for document in self.documents}


@contextmanager
def embedding(folder: Path) -> Iterator[KeptEmbedder]:
    """Search and import with the configured embedder, its documents' vectors kept in ``folder``."""
    embedder = KeptEmbedder(get_embedder(), folder)
    try:
        with registry.override(Mem0Provider(embedder)):
            yield embedder
    finally:
        embedder.close()


@contextmanager
def ready(definition: Definition, embedder: KeptEmbedder, *, say: Say, fresh: bool = False) -> Iterator[Corpus]:
    """Work in the database of the suite's corpus, which is loaded first where it is not there."""
    name = database_of(definition)
    with _alone(name):
        _drop_earlier(name)
        with server.using(name, fresh=fresh or not _is_loaded(name)):
            if not _says_loaded():
                load(records(definition), definition, say=say)
                _settle()
    with server.moved_to(name):
        # What this process remembers of scopes, it remembers of another database.
        forget_sizes()
        yield as_loaded(name.removeprefix(PREFIX), embedder)


def load(rows: Iterable[Record | Refused], definition: Definition, *, say: Say) -> Report:
    """Import the records and their edges, as ``import_records`` would."""
    importer = Importer(curator())
    take(importer, rows, say=say)
    for sets in _sets_of(definition) if definition.edges else ():
        assert definition.edges is not None  # noqa: S101
        importer.link(read_edges(definition.edges, only_set=sets))
    for refused in importer.report.refused:
        say(f"The import refused line {refused.line} ({refused.reference or 'no id'}): {refused.reason}")
    lexemes_count(importer.workspace)
    return importer.report


def take(importer: Importer, rows: Iterable[Record | Refused], *, say: Say) -> None:
    queue, done = iter(rows), 0
    while batch := list(islice(queue, BATCH)):
        importer.take(batch)
        done += len(batch)
        if done % _SAID_EVERY == 0:
            say(f"{done:,} records are loaded.")


def records(definition: Definition) -> Iterator[Record | Refused]:
    """The records as the import reads them, in the order of their files."""
    return chain.from_iterable(
        read_records(part.path, only_set=one) for part in definition.corpus for one in part.sets or (None,)
    )


def curator() -> Principal:
    """Who answers for the records and asks the questions, in a workspace of its own."""
    workspace = Workspace.objects.filter(slug=WORKSPACE).first() or workspace_add(slug=WORKSPACE)
    member_add(principal=operator(workspace), username=PERSON, role=Role.CURATOR)
    return principal_for_user(User.objects.get(username=PERSON), workspace, "import")


def as_loaded(key: str, embedder: KeptEmbedder) -> Corpus:
    principal = curator()
    return Corpus(key, principal.workspace, principal, tuple(_documents(principal.workspace)), embedder)


def _documents(workspace: Workspace) -> Iterator[Document]:
    repos = dict(Repository.objects.filter(workspace=workspace).values_list("pk", "slug"))
    domains = dict(Domain.objects.filter(workspace=workspace).values_list("pk", "slug"))
    references = dict(MemoryEvidence.objects.filter(workspace=workspace).values_list("memory_id", "source__reference"))
    for memory in Memory.objects.of(workspace).order_by("number"):
        yield Document(
            id=memory.pk,
            reference=references[memory.pk],
            content=memory.content,
            firm=memory.firm,
            repos=tuple(repos[pk] for pk in memory.repo_ids),
            domains=tuple(domains[pk] for pk in memory.domain_ids),
        )


# --- databases ------------------------------------------------------------------------------------------------
def database_of(definition: Definition) -> str:
    """Named by where the corpus comes from, then by what is in it."""
    paths = [part.path for part in definition.corpus] + ([definition.edges] if definition.edges else [])
    where = [str(path.resolve()) for path in paths] + [str(part.sets) for part in definition.corpus]
    content = [path.read_bytes() for path in paths] + [str(_VERSION).encode(), *_code()]
    return f"{PREFIX}{_digest(one.encode() for one in where)}_{_digest(content)}"


def _code() -> Iterator[bytes]:
    for pattern in _ON_THE_WAY:
        for path in sorted(settings.BASE_DIR.glob(pattern)):
            yield path.read_bytes()


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()[:12]


def _sets_of(definition: Definition) -> list[str | None]:
    return list(dict.fromkeys(one for part in definition.corpus for one in part.sets or (None,)))


def _drop_earlier(name: str) -> None:
    """The same corpus as it was before; nobody will ask it again."""
    family = name.rsplit("_", 1)[0] + "_"
    for other in server.databases(family):
        if other != name:
            server.drop_database(other)


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process loads it, and another that wants the same waits and finds it there."""
    with (settings.DATA_DIR / f"{name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_loaded(name: str) -> bool:
    """Whether it is there and whole. What was stopped half-way is begun anew."""
    if name not in server.databases(name):
        return False
    with server.moved_to(name):
        return _says_loaded()


_MARK: Final = "evaluation_loaded"


def _says_loaded() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [_MARK])
        return bool(cursor.fetchone()[0])


def _settle() -> None:
    """What PostgreSQL does by itself in time; then the mark that everything is there."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (ANALYZE)")
        cursor.execute(f"CREATE TABLE {_MARK} ()")
