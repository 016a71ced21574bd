"""What a memory provider is: the words it speaks and the promises it makes.

A provider keeps the *pool*, from which agents recall: text, embedding and what a search may filter by. The
ledger stays the system of record; the pool can be rebuilt from it at any time. Every provider passes the
same contract suite (``tests/memories/providers``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from typing import Final, Protocol
from uuid import UUID

Vector = tuple[float, ...]

TIERS: Final = frozenset({"durable", "index"})
STATUSES: Final = frozenset({"active", "disputed", "superseded", "retired"})
SERVED_STATUSES: Final = frozenset({"active", "disputed"})
REPLACED: Final = "superseded"

MAX_TEXT: Final = 20_000
MAX_LIMIT: Final = 1_000


class ProviderError(Exception):
    """The pool or the embedder could not do what was asked.

    ``permanent`` says whether asking again later can help: a wrong key or a missing table will not heal by
    itself, a time-out or a rate limit may. The message is a full sentence and never holds a text, a key or a
    URL.
    """

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.permanent = permanent


class ProviderTimeout(ProviderError):
    """No answer within the time allowed; asking again later may help."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=False)


class Unset(Enum):
    """Says "leave this as it is" where ``None`` is a value of its own."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One memory as the pool keeps it. ``content`` comes back exactly as it was put in."""

    id: UUID
    workspace: int
    content: str
    tier: str
    status: str
    type: str
    firm: bool
    recorded_at: datetime
    domain_ids: tuple[int, ...] = ()
    repo_ids: tuple[int, ...] = ()
    audience_ids: tuple[int, ...] = ()
    confidence: float | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    closed_at: datetime | None = None
    retired_at: datetime | None = None
    number: int | None = None
    fingerprint: str = ""

    def __post_init__(self) -> None:
        require_text("content", self.content)
        _require_known("tier", {self.tier}, TIERS)
        _require_known("status", {self.status}, STATUSES)
        if not self.type:
            raise ValueError("type must name the memory type by its slug.")
        _require_share("confidence", self.confidence)
        for name in ("recorded_at", "valid_from", "valid_to", "closed_at", "retired_at"):
            _require_aware(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a memory's text and its embedding of unit length."""

    text: str
    vector: Vector


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text made ready to be stored: its passages, at least one, and by which embedder they were made."""

    passages: tuple[Passage, ...]
    embedder: str
    dimensions: int

    def __post_init__(self) -> None:
        if not self.passages:
            raise ValueError("A prepared text has at least one passage.")
        if any(len(passage.vector) != self.dimensions for passage in self.passages):
            raise ValueError(f"Every passage's vector must have {self.dimensions} dimensions.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolQuery:
    """What to look for, and the filter that holds *inside* the look-up, never after it.

    A memory is admitted when all of these hold:

    - it belongs to ``workspace``;
    - its tier is in ``tiers``, its status in ``effective_statuses``, its type in ``types`` (``None``: any
      type);
    - it is in scope: ``everything``, or it is firm-wide, or it shares a domain with ``domain_ids`` or a
      repository with ``repo_ids``. A query that names no scope and does not say ``everything`` therefore
      admits firm-wide memories only;
    - every audience it was restricted to is among ``audiences``;
    - it was *known* at ``known_instant``: ``recorded_at <= known < retired_at``;
    - it was *valid* at ``valid_instant``: ``valid_from <= valid < valid_to``. No ``valid_from`` means
      "always", no ``valid_to`` means "still". A ``valid_to`` that became known later (``closed_at > known``)
      does not count yet; one without ``closed_at`` was known from the beginning.

    Both clocks stand at ``now`` unless set, each on its own: ``as_of`` alone asks, with what is known today,
    what held then; ``known_at`` alone asks what was believed then to hold today; both together ask what was
    believed at ``known_at`` about ``as_of``. Intervals are half open, ``[from, to)``.

    ``with_replaced`` admits besides, whatever ends them, those that something has replaced (status superseded), if
    they were known and had begun: they lead to what holds instead, and are no answer themselves.

    Statuses say how things stand today. They default to active and disputed; once ``as_of`` or ``known_at``
    is set they default to every status, and the intervals alone decide. Statuses named by the caller are
    always honoured. An empty ``tiers``, ``statuses`` or ``types`` is a ``ValueError``: it never means
    "everything".
    """

    vector: Vector
    workspace: int
    now: datetime
    everything: bool = False
    domain_ids: frozenset[int] = frozenset()
    repo_ids: frozenset[int] = frozenset()
    audiences: frozenset[int] = frozenset()
    tiers: frozenset[str] = TIERS
    statuses: frozenset[str] | None = None
    types: frozenset[str] | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    with_replaced: bool = False
    limit: int = 10

    def __post_init__(self) -> None:
        _require_known("tiers", self.tiers, TIERS)
        if self.statuses is not None:
            _require_known("statuses", self.statuses, STATUSES)
        if self.types is not None:
            _require_names("types", self.types)
        _require_direction(self.vector)
        _require_limit(self.limit)
        for name in ("now", "as_of", "known_at"):
            _require_aware(name, getattr(self, name))

    @property
    def effective_statuses(self) -> frozenset[str]:
        if self.statuses is not None:
            named = self.statuses
        else:
            named = STATUSES if self.as_of or self.known_at else SERVED_STATUSES
        return named | {REPLACED} if self.with_replaced else named

    @property
    def valid_instant(self) -> datetime:
        return self.as_of or self.now

    @property
    def known_instant(self) -> datetime:
        return self.known_at or self.now


@dataclass(frozen=True, slots=True)
class PoolHit:
    """A memory found, with the similarity of its best passage: ``max(0, 1 - cosine distance)``."""

    memory_id: UUID
    score: float
    passage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadPatch:
    """What may change about a stored memory. Its text, type, scope and vectors never do."""

    status: str | Unset = UNSET
    confidence: float | Unset | None = UNSET
    valid_to: datetime | Unset | None = UNSET
    closed_at: datetime | Unset | None = UNSET
    retired_at: datetime | Unset | None = UNSET
    audience_ids: tuple[int, ...] | Unset = UNSET

    def __post_init__(self) -> None:
        if not isinstance(self.status, Unset):
            _require_known("status", {self.status}, STATUSES)
        if not isinstance(self.confidence, Unset):
            _require_share("confidence", self.confidence)
        for name in ("valid_to", "closed_at", "retired_at"):
            value = getattr(self, name)
            if not isinstance(value, Unset):
                _require_aware(name, value)

    def changes(self) -> dict[str, object]:
        """The fields that were set, with their new values; ``None`` is a value."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: value for name, value in values.items() if value is not UNSET}


@dataclass(frozen=True, slots=True)
class PoolDescription:
    """What the pool is made of. ``rows`` are passages, ``memories`` are what a search returns."""

    provider: str
    embedder: str
    dimensions: int
    generation: int
    rows: int
    memories: int
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoteRecord:
    """Where a working note belongs: only a search of this task in this workspace finds it.

    The pool keeps its embedding and not its text. Whether it has expired, and who may see it, its own table says.
    """

    id: UUID
    workspace: int
    task: str

    def __post_init__(self) -> None:
        require_text("task", self.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuery:
    """What to look for among the working notes of exactly one task. A task is compared letter by letter."""

    vector: Vector
    workspace: int
    task: str
    limit: int = MAX_LIMIT

    def __post_init__(self) -> None:
        require_text("task", self.task)
        _require_direction(self.vector)
        _require_limit(self.limit)


@dataclass(frozen=True, slots=True)
class NoteHit:
    """A working note found, with the similarity of its best passage: ``max(0, 1 - cosine distance)``."""

    note_id: UUID
    score: float


class MemoryProvider(Protocol):
    """The store that agents recall from.

    Working notes are kept apart from memories, in a collection that ``search``, ``get``, ``statuses``, ``iterate`` and
    ``describe`` never look into: no filter could let one of them through.

    Writes raise ``ProviderError``; so do reads, and the caller decides how to go on without them. A provider
    tells no time of its own: every moment comes with the query or the record.
    """

    @property
    def unrelated_below(self) -> float:
        """The score below which a memory has nothing in common with the question; 0 where that is not known."""
        ...

    def reads(self, text: str) -> bool:
        """Whether similarity to ``text`` says anything: its model knows the script."""
        ...

    def warm_up(self) -> None:
        """Load what the first call would otherwise wait for; asks neither the network nor the database."""
        ...

    def prepare_many(self, texts: Sequence[str]) -> list[Prepared]:
        """Embed ``texts``, in order. May be slow and may use the network: call it outside any transaction."""
        ...

    def prepare(self, text: str) -> Prepared: ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, within the time a search may take for it."""
        ...

    def insert_many(self, records: Sequence[tuple[MemoryRecord, Prepared]]) -> None:
        """Store the records, verbatim. A record whose id is already there is left as it is.

        Refuses what another embedder prepared than the one that made the live pool.
        """
        ...

    def insert(self, record: MemoryRecord, prepared: Prepared) -> None: ...

    def search(self, query: PoolQuery) -> list[PoolHit]:
        """The admitted memories nearest to the query, best first, ties by id; one hit for each memory."""
        ...

    def get(self, memory_id: UUID) -> MemoryRecord | None: ...

    def statuses(self, memory_ids: Sequence[UUID]) -> dict[UUID, str]:
        """The status that the pool gives each of these memories; those it does not hold are left out."""
        ...

    def update(self, memory_id: UUID, patch: PayloadPatch) -> None:
        """Change what is filtered by, for all passages; an unknown id is a ``ProviderError``."""
        ...

    def iterate(self, batch: int = 500) -> Iterator[MemoryRecord]:
        """Every memory of every workspace, in the order of ids, a batch at a time: for rebuild and audit."""
        ...

    def describe(self) -> PoolDescription: ...

    def insert_notes(self, notes: Sequence[tuple[NoteRecord, Prepared]]) -> None:
        """Store the embeddings of working notes. One whose id is already there is left as it is."""
        ...

    def search_notes(self, query: NoteQuery) -> list[NoteHit]:
        """The working notes of that task nearest to the query, best first, ties by id; one hit for each note."""
        ...

    def delete_notes(self, note_ids: Sequence[UUID]) -> None:
        """Forget these working notes; those that are not there are none the less gone."""
        ...


def require_text(name: str, text: str) -> None:
    """Refuse what no provider can store and give back unchanged."""
    if not text.strip():
        raise ValueError(f"{name} must hold text, not only blanks.")
    if len(text) > MAX_TEXT:
        raise ValueError(f"{name} must have at most {MAX_TEXT:,} characters.")
    if "\x00" in text:
        raise ValueError(f"{name} must not contain NUL characters.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must not contain lone surrogates.") from None


def _require_names(name: str, values: frozenset[str]) -> None:
    if isinstance(values, str):
        raise ValueError(f"{name} must be a set of names, not one text.")
    if not values:
        raise ValueError(f"{name} must not be empty; leaving it out is how to ask for the default.")


def _require_known(name: str, values: set[str] | frozenset[str], known: frozenset[str]) -> None:
    _require_names(name, frozenset(values) if not isinstance(values, str) else values)
    if not values <= known:
        raise ValueError(f"{name} must be among: {', '.join(sorted(known))}.")


def _require_direction(vector: Vector) -> None:
    if not any(vector) or not all(map(math.isfinite, vector)):
        raise ValueError("vector must hold finite numbers, not all of them zero.")


def _require_limit(limit: int) -> None:
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"limit must be between 1 and {MAX_LIMIT}.")


def _require_share(name: str, value: float | None) -> None:
    if value is not None and not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1.")


def _require_aware(name: str, moment: datetime | None) -> None:
    if moment is not None and moment.tzinfo is None:
        raise ValueError(f"{name} must carry its time zone.")
