"""What calls answer. Each holds the whole answer in ``raw``, with whatever a newer service adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a statement comes from. ``kind`` is one of ``merge_request issue chat incident …``."""

    kind: str
    reference: str
    url: str = ""
    title: str = ""
    occurred_at: str | None = None
    commit: str = ""
    quote: str = ""

    @classmethod
    def of(cls, raw: Json) -> Source:
        return cls(
            kind=str(raw.get("kind", "")),
            reference=str(raw.get("reference", "")),
            url=raw.get("url") or "",
            title=raw.get("title") or "",
            occurred_at=raw.get("occurred_at"),
            commit=raw.get("commit") or "",
            quote=raw.get("quote") or "",
        )

    def as_dict(self) -> dict[str, Any]:
        """Without what is empty."""
        names = ("kind", "reference", "url", "title", "occurred_at", "commit", "quote")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


@dataclass(frozen=True, slots=True)
class Scope:
    firm: bool = False
    domains: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()

    @classmethod
    def of(cls, raw: Json) -> Scope:
        return cls(bool(raw.get("firm")), tuple(raw.get("domains", ())), tuple(raw.get("repos", ())))

    def as_dict(self) -> dict[str, Any]:
        given = {"firm": self.firm, "domains": list(self.domains), "repos": list(self.repos)}
        return {name: value for name, value in given.items() if value}

    def __str__(self) -> str:
        return ", ".join([*(["the firm"] if self.firm else []), *self.domains, *self.repos])


@dataclass(frozen=True, slots=True)
class Memory:
    """One approved statement. ``score`` is 0 to 1 in a search, else none; moments are ISO 8601.

    A working note of a task, which nobody has reviewed, has no ``number`` and the status ``unreviewed``.
    """

    id: str
    number: str
    content: str
    type: str
    category: str
    status: str
    scope: Scope
    sources: tuple[Source, ...]
    confidence: float | None
    valid_from: str | None
    valid_to: str | None
    score: float | None
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Memory:
        return cls(
            id=str(raw.get("id", "")),
            number=str(raw.get("number") or ""),
            content=str(raw.get("content", "")),
            type=str(raw.get("type", "")),
            category=str(raw.get("category", "")),
            status=str(raw.get("status", "")),
            scope=Scope.of(raw.get("scope") or {}),
            sources=tuple(Source.of(each) for each in raw.get("sources", ())),
            confidence=raw.get("confidence"),
            valid_from=raw.get("valid_from"),
            valid_to=raw.get("valid_to"),
            score=raw.get("score"),
            raw=raw,
        )

    @property
    def chain(self) -> tuple[Json, ...]:
        """What it replaced and what replaced it, the oldest first, where the answer brings it."""
        return tuple(self.raw.get("chain", ()))


@dataclass(frozen=True, slots=True)
class Found:
    """Answers to a question. ``degraded``: not everything could be looked at, or nothing; ``note`` says what."""

    results: tuple[Memory, ...]
    intent: str
    degraded: bool
    note: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Found:
        return cls(
            results=tuple(Memory.of(each) for each in raw.get("results", ())),
            intent=str(raw.get("intent", "")),
            degraded=bool(raw.get("degraded")),
            note=str(raw.get("note", "")),
            raw=raw,
        )

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


@dataclass(frozen=True, slots=True)
class Context:
    """What to know before working somewhere. ``text`` is for an agent: every statement in it is data."""

    text: str
    items: tuple[Memory, ...]
    used_tokens: int
    budget_tokens: int
    degraded: bool
    note: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Context:
        return cls(
            text=str(raw.get("text", "")),
            items=tuple(Memory.of(each) for each in raw.get("items", ())),
            used_tokens=int(raw.get("used_tokens") or 0),
            budget_tokens=int(raw.get("budget_tokens") or 0),
            degraded=bool(raw.get("degraded")),
            note=str(raw.get("note", "")),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """``citations`` are ids of memories, in the order of the numbers in ``answer``; ``results`` those memories."""

    answer: str
    citations: tuple[str, ...]
    results: tuple[Memory, ...]
    degraded: bool
    note: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Answer:
        return cls(
            answer=str(raw.get("answer", "")),
            citations=tuple(str(each) for each in raw.get("citations", ())),
            results=tuple(Memory.of(each) for each in raw.get("results", ())),
            degraded=bool(raw.get("degraded")),
            note=str(raw.get("note", "")),
            raw=raw,
        )

    @property
    def cited(self) -> tuple[Memory, ...]:
        by_id = {memory.id: memory for memory in self.results}
        return tuple(by_id[each] for each in self.citations if each in by_id)


@dataclass(frozen=True, slots=True)
class Proposed:
    """What became of a proposal. ``created`` is false for one that was there before; ``reason`` says what then."""

    id: str
    status: str
    reason: str
    created: bool
    version: int
    note: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json, *, created: bool) -> Proposed:
        return cls(
            id=str(raw.get("id", "")),
            status=str(raw.get("status", "")),
            reason=str(raw.get("reason", "")),
            created=created,
            version=int(raw.get("version") or 0),
            note=str(raw.get("note", "")),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """Raw material and what became of it. ``state`` is ``received processing done failed dead``."""

    id: str
    state: str
    outcome: str | None
    reason: str
    candidates: tuple[str, ...]
    notes: tuple[str, ...]
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Event:
        return cls(
            id=str(raw.get("event", "")),
            state=str(raw.get("state", "received")),
            outcome=raw.get("outcome"),
            reason=raw.get("reason") or "",
            candidates=tuple(str(each) for each in raw.get("candidates", ())),
            notes=tuple(str(each) for each in [*raw.get("notes", ()), raw.get("note")] if each),
            raw=raw,
        )

    @property
    def is_finished(self) -> bool:
        return self.state in ("done", "dead")


@dataclass(frozen=True, slots=True)
class TaskNote:
    """A working note of one task; it is found by no search."""

    id: str
    content: str
    type: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> TaskNote:
        return cls(str(raw.get("id", "")), str(raw.get("content", "")), str(raw.get("type", "")), raw)


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """Counts of the statements in one file, and the lines that were left out, each with why."""

    path: str
    format: str
    statements: int
    new: int
    joined: int
    unchanged: int
    changed: int
    gone: int
    skipped: tuple[Json, ...]

    @classmethod
    def of(cls, raw: Json) -> ImportedFile:
        return cls(
            path=str(raw.get("path", "")),
            format=str(raw.get("format", "")),
            statements=int(raw.get("statements") or 0),
            new=int(raw.get("new") or 0),
            joined=int(raw.get("joined") or 0),
            unchanged=int(raw.get("unchanged") or 0),
            changed=int(raw.get("changed") or 0),
            gone=int(raw.get("gone") or 0),
            skipped=tuple(raw.get("skipped", ())),
        )


@dataclass(frozen=True, slots=True)
class Imported:
    """``refused`` counts the statements that will not do, ``not_taken`` those that there was no room for."""

    files: tuple[ImportedFile, ...]
    candidates: tuple[Json, ...]
    refused: int
    not_taken: int
    notes: tuple[str, ...]
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raws: list[Json]) -> Imported:
        """Of the answers to one or more requests."""
        files = [each for raw in raws for each in raw.get("files", ())]
        candidates = [each for raw in raws for each in raw.get("candidates", ())]
        notes = list(dict.fromkeys(str(each) for raw in raws for each in raw.get("notes", ())))
        refused, not_taken = (sum(int(raw.get(name) or 0) for raw in raws) for name in ("refused", "not_taken"))
        counts = {"refused": refused, "not_taken": not_taken}
        return cls(
            tuple(ImportedFile.of(each) for each in files),
            tuple(candidates),
            notes=tuple(notes),
            raw={"files": files, "candidates": candidates, "notes": notes} | counts,
            **counts,
        )


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """``block`` is the part between the markers, with them; ``whole`` is the file where there is none yet."""

    path: str
    block: str
    whole: str

    @classmethod
    def of(cls, raw: Json) -> ExportedFile:
        block = str(raw.get("block") or "")
        whole = raw.get("whole")
        return cls(str(raw.get("path", "")), block, whole if isinstance(whole, str) else "")


@dataclass(frozen=True, slots=True)
class Exported:
    """``known`` is false where the service has no such repository: its files then say nothing of it."""

    repo: str
    known: bool
    files: tuple[ExportedFile, ...]
    note: str
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Exported:
        files = tuple(ExportedFile.of(each) for each in raw.get("files", ()))
        # An older service does not say.
        known = raw.get("known") is not False
        return cls(str(raw.get("repo", "")), known, files, str(raw.get("note") or ""), raw)


@dataclass(frozen=True, slots=True)
class Me:
    """Who the token is, and what it may do. ``repositories`` is empty where it is not limited to any."""

    kind: str
    name: str
    workspace: str
    role: str | None
    read_only: bool
    repositories: tuple[str, ...]
    expires_at: str | None
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Me:
        return cls(
            kind=str(raw.get("kind", "")),
            name=str(raw.get("token") or raw.get("name", "")),
            workspace=str(raw.get("workspace", "")),
            role=raw.get("role"),
            read_only=bool(raw.get("read_only")),
            repositories=tuple(raw.get("repositories", ())),
            expires_at=raw.get("expires_at"),
            raw=raw,
        )


@dataclass(frozen=True, slots=True)
class Taxonomy:
    types: tuple[Json, ...]
    categories: tuple[Json, ...]
    exclusions: tuple[Json, ...]
    raw: Json = field(repr=False, compare=False)

    @classmethod
    def of(cls, raw: Json) -> Taxonomy:
        return cls(
            types=tuple(raw.get("types", ())),
            categories=tuple(raw.get("categories", ())),
            exclusions=tuple(raw.get("exclusions", ())),
            raw=raw,
        )
