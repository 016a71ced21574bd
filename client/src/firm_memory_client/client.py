"""``Client``: Firm Memory from Python, by its REST interface."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import httpx2 as httpx

from firm_memory_client.errors import Misconfigured, ServerFault, TooMany, Unreachable
from firm_memory_client.models import (
    Answer,
    Context,
    Event,
    Exported,
    Found,
    Imported,
    Json,
    Me,
    Memory,
    Proposed,
    Scope,
    Source,
    TaskNote,
    Taxonomy,
)
from firm_memory_client.transport import Reply, Transport, checked_token

API: Final = "api/v1"
DEFAULT_URL: Final = "http://127.0.0.1:8100"
WHY: Final = "explain-why"
# Limits of the service: how much one request takes.
MAX_LINES: Final = 1_000
MAX_BODY: Final = 31 * 1024 * 1024
MAX_IMPORT_FILES: Final = 100
MAX_IMPORT_BYTES: Final = 3 * 1024 * 1024
_FIRST_POLL: Final = 0.3
_LAST_POLL: Final = 3.0

SourceLike = Source | Json
Model = TypeVar("Model")


@dataclass(frozen=True, slots=True)
class Material:
    """Raw material to hand over: a discussion, a write-up, a transcript, as it is."""

    content: str
    kind: str
    scope: Scope
    sources: tuple[SourceLike, ...]
    external_id: str | None = None

    def as_dict(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "content": self.content,
            "kind": self.kind,
            "scope": self.scope.as_dict(),
            "sources": _sources(self.sources),
        }
        return body | ({"external_id": self.external_id} if self.external_id else {})


APPROVED_TIERS: Final = ("durable", "index")
EPISODIC: Final = "episodic"


class Client:
    """One Firm Memory, as one token. Safe to share between threads; close it, or use it in a ``with``.

    ``timeout`` is in seconds and bounds each call with all its repetitions; a server that stalls in the middle of an
    answer can double it. Reads, and writes under an Idempotency-Key that is made here, are repeated up to ``retries``
    times when there is no answer, or 429, 502, 503 or 504, after the ``Retry-After`` that the service names if that is
    in time.

    ``search``, ``context``, ``ask`` and ``decisions`` do not fail their caller's job: where the service cannot be
    reached, does not answer in time, or answers 429 or 5xx, they return an empty result that is ``degraded``, with a
    ``note`` that says why. ``strict=True`` raises instead. What the caller did wrong is raised either way: 400, 401,
    403, 404, 422.
    """

    def __init__(
        self,
        base_url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 10.0,
        retries: int = 2,
        verify: Any = True,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Without ``base_url`` and ``token``: FIRM_MEMORY_URL (else this machine) and FIRM_MEMORY_TOKEN.

        ``verify`` is what the HTTP library takes: an ``ssl.SSLContext`` for an authority of your own. Raises
        ``Misconfigured``.
        """
        secret = checked_token(token if token is not None else os.environ.get("FIRM_MEMORY_TOKEN"))
        url = base_url or os.environ.get("FIRM_MEMORY_URL") or DEFAULT_URL
        self._sleep = sleep
        self._http = Transport(
            url, secret, timeout=timeout, retries=retries, verify=verify, handler=transport, sleep=sleep
        )

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    @property
    def base_url(self) -> str:
        return self._http.base_url

    @property
    def transport(self) -> Transport:
        return self._http

    # --- recall: never fails the caller's job unless asked to -------------------------------------------------------
    def search(
        self,
        q: str,
        *,
        repos: Sequence[str] | None = None,
        domains: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        tiers: Sequence[str] | None = None,
        task: str | None = None,
        limit: int | None = None,
        as_of: str | None = None,
        known_at: str | None = None,
        intent: str | None = None,
        strict: bool = False,
    ) -> Found:
        """What answers ``q``. Without ``repos`` and ``domains`` the whole workspace is searched.

        With ``task`` its working notes are searched too, which nobody has reviewed, or only they by ``tiers``.
        """
        if task is not None and tiers is None:
            tiers = [*APPROVED_TIERS, EPISODIC]
        query = {
            "q": q,
            "repos": _listed("repos", repos),
            "domains": _listed("domains", domains),
            "types": _listed("types", types),
            "tiers": _listed("tiers", tiers),
            "task": task,
            "limit": limit,
            "as_of": as_of,
            "known_at": known_at,
            "intent": intent,
        }
        return self._recall(lambda: self._get("memories/search/", query), Found.of, strict)

    def context(
        self,
        repo: str,
        *,
        path: str | None = None,
        task: str | None = None,
        q: str | None = None,
        budget_tokens: int | None = None,
        strict: bool = False,
    ) -> Context:
        """What to know before working in ``repo``, within a number of tokens."""
        query = {"repo": repo, "path": path, "task": task, "q": q, "budget_tokens": budget_tokens}
        return self._recall(lambda: self._get("context/", query), Context.of, strict)

    def ask(self, q: str, *, repos: Sequence[str] | None = None, strict: bool = False) -> Answer:
        """An answer of which each sentence has its citations."""
        query = {"q": q, "repos": _listed("repos", repos)}
        return self._recall(lambda: self._get("ask/", query), Answer.of, strict)

    def decisions(self, subject: str, *, repos: Sequence[str] | None = None, strict: bool = False) -> Found:
        """What was decided about ``subject``, each with the chain of what it replaced."""
        found = self.search(subject, repos=repos, limit=30, intent=WHY, strict=strict)
        kept = tuple(each for each in found if each.category == "decision" or len(each.chain) > 1)
        raw = dict(found.raw) | {"results": [each.raw for each in kept]}
        return Found(kept, found.intent, found.degraded, found.note, raw)

    def _recall(self, call: Callable[[], Json], make: Callable[[Json], Model], strict: bool) -> Model:
        try:
            return make(call())
        except (Unreachable, ServerFault, TooMany) as error:
            if strict:
                raise
            return make({"degraded": True, "note": f"Nothing could be looked at. {error}"})

    # --- reads that raise -------------------------------------------------------------------------------------------
    def get(self, reference: str) -> Memory:
        """One memory in any status, by id or number (``M-12``). ``NotFound`` where there is none for this token."""
        return Memory.of(self._get(f"memories/{_segment(reference)}/"))

    def candidate(self, candidate_id: str) -> Json:
        """An own proposal as it stands, with its verdicts."""
        return self._get(f"candidates/{_segment(candidate_id)}/")

    def me(self) -> Me:
        return Me.of(self._get("me/"))

    def taxonomy(self) -> Taxonomy:
        return Taxonomy.of(self._get("taxonomy/"))

    # --- proposals: a person decides about each ---------------------------------------------------------------------
    def propose(
        self,
        content: str,
        *,
        type: str,
        sources: Sequence[SourceLike],
        repos: Sequence[str] = (),
        domains: Sequence[str] = (),
        firm: bool = False,
        confidence: float | None = None,
        supersedes: Sequence[str] = (),
        valid_from: str | None = None,
        tier: str | None = None,
        idempotency_key: str | None = None,
    ) -> Proposed:
        """Put a statement into the queue. The same again joins what waits already and says so (``created``)."""
        optional = {
            "confidence": confidence,
            "supersedes": list(supersedes) or None,
            "valid_from": valid_from,
            "tier": tier,
        }
        body = {
            "content": content,
            "type": type,
            "scope": Scope(firm, tuple(domains), tuple(repos)).as_dict(),
            "sources": _sources(sources),
        } | {name: value for name, value in optional.items() if value is not None}
        reply = self._http.post(f"{API}/candidates/", body, key=idempotency_key)
        return Proposed.of(self._object(reply), created=reply.status == 201)

    def correct(
        self,
        reference: str,
        *,
        kind: str,
        reason: str,
        sources: Sequence[SourceLike],
        replacement: str | None = None,
        idempotency_key: str | None = None,
    ) -> Proposed:
        """Report a memory as ``stale`` or ``wrong``; it stays, marked as disputed, until a reviewer decides."""
        body: dict[str, Any] = {"kind": kind, "reason": reason, "sources": _sources(sources)}
        if replacement is not None:
            body["replacement"] = replacement
        reply = self._http.post(f"{API}/memories/{_segment(reference)}/corrections/", body, key=idempotency_key)
        return Proposed.of(self._object(reply), created=reply.status == 201)

    # --- raw material -----------------------------------------------------------------------------------------------
    def ingest(
        self,
        content: str,
        *,
        kind: str,
        sources: Sequence[SourceLike],
        repos: Sequence[str] = (),
        domains: Sequence[str] = (),
        firm: bool = False,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Event:
        """Hand raw material over; a worker looks for what is worth remembering. ``wait`` tells what came of it."""
        scope = Scope(firm, tuple(domains), tuple(repos))
        body = Material(content, kind, scope, tuple(sources), external_id).as_dict()
        return Event.of(self._object(self._http.post(f"{API}/ingest/", body, key=idempotency_key)))

    def ingest_many(self, materials: Iterable[Material | Json]) -> Iterator[list[Event]]:
        """Hand over many, in requests of at most 1,000 and 31 MiB. Yields the events of each request, in their order.

        The service takes all of a request or nothing: a line that will not do raises with the number of the line in its
        request, and what came before it is handed over already.
        """
        for lines in _batches(materials):
            answer = self._object(self._http.post(f"{API}/ingest/", b"\n".join(lines), lines=True))
            notes = list(answer.get("notes", ()))
            notes += [""] * (len(answer.get("events", ())) - len(notes))
            yield [
                Event.of({"event": event, "note": note})
                for event, note in zip(answer.get("events", ()), notes, strict=False)
            ]

    def event(self, event: Event | str) -> Event:
        """As it stands now. ``event`` is what handing over answered with, or its id."""
        event_id = event.id if isinstance(event, Event) else event
        return Event.of(self._get(f"ingest/{_segment(event_id)}/"))

    def wait(self, event: Event | str, *, timeout: float = 60.0) -> Event:
        """The event when it is finished, or as it stands after ``timeout`` seconds."""
        until, pause = time.monotonic() + timeout, _FIRST_POLL
        while True:
            event = self.event(event)
            left = until - time.monotonic()
            if event.is_finished or left <= 0:
                return event
            self._sleep(min(pause, left))
            pause = min(_LAST_POLL, pause * 1.5)

    # --- working notes of a task ------------------------------------------------------------------------------------
    def note(
        self,
        task: str,
        content: str,
        *,
        type: str,
        sources: Sequence[SourceLike],
        repos: Sequence[str] = (),
        domains: Sequence[str] = (),
        firm: bool = False,
        disposition: str | None = None,
        idempotency_key: str | None = None,
    ) -> TaskNote:
        body: dict[str, Any] = {"content": content, "type": type, "sources": _sources(sources)}
        body["scope"] = Scope(firm, tuple(domains), tuple(repos)).as_dict()
        if disposition is not None:
            body["disposition"] = disposition
        reply = self._http.post(f"{API}/tasks/{_task(task)}/notes/", body, key=idempotency_key)
        return TaskNote.of(self._object(reply))

    def notes(self, task: str) -> list[TaskNote]:
        """All of them, page by page."""
        notes: list[TaskNote] = []
        cursor: str | None = None
        while True:
            page = self._get(f"tasks/{_task(task)}/notes/", {"cursor": cursor})
            notes += [TaskNote.of(each) for each in page.get("results", ())]
            following = _cursor(page.get("next"))
            if following is None or following == cursor:
                return notes
            cursor = following

    # --- files that agents read -------------------------------------------------------------------------------------
    def import_files(
        self,
        repo: str,
        files: Iterable[tuple[str, str]],
        *,
        commit: str | None = None,
        dry_run: bool = False,
        on_batch: Callable[[int], None] | None = None,
    ) -> Imported:
        """Propose what rules files and decision records state. ``files`` are paths from the root, and texts.

        They are sent in requests of at most 100 files and 3 MiB; ``on_batch`` is told how many were taken so far.
        """
        answers: list[Json] = []
        done = 0
        for batch in _file_batches(files):
            body: dict[str, Any] = {"repo": repo, "dry_run": dry_run, "files": batch}
            if commit:
                body["commit"] = commit
            answers.append(self._object(self._http.post(f"{API}/files/import/", body, timeout=self._longer())))
            done += len(batch)
            if on_batch is not None:
                on_batch(done)
        return Imported.of(answers)

    def export_files(
        self, repo: str, *, format: str = "agents_md", max_lines: int | None = None, per_folder: bool = False
    ) -> Exported:
        """The blocks that files of ``repo`` should hold; ``known`` says whether there is such a repository.

        Raises where the service cannot be reached.
        """
        query = {"repo": repo, "format": format, "max_lines": max_lines, "per_folder": "true" if per_folder else None}
        return Exported.of(self._get("export/files/", query))

    # --- below ------------------------------------------------------------------------------------------------------
    def _longer(self) -> float:
        """Many statements at once take a while."""
        return max(self._http.timeout, 120.0)

    def _get(self, path: str, query: Any = None) -> Json:
        return self._object(self._http.get(f"{API}/{path}", query))

    def _object(self, reply: Reply) -> Json:
        try:
            said = reply.json()
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise Unreachable(f"What {self.base_url} answers is not Firm Memory's. Is the address right?")
        return said


def _sources(sources: Sequence[SourceLike]) -> list[dict[str, Any]]:
    return [each.as_dict() if isinstance(each, Source) else dict(each) for each in sources]


def _listed(name: str, values: Sequence[str] | None) -> Sequence[str] | None:
    """An empty list is a mistake: it would search everywhere."""
    if values is None:
        return None
    if isinstance(values, str):
        raise Misconfigured(f"{name} is a list of names; put the one into a list.")
    if not values:
        raise Misconfigured(f"{name} is empty, which never means everything. Leave it out to look everywhere.")
    return values


def _segment(value: str) -> str:
    """One part of a path, whatever is in it."""
    if value.strip() in ("", ".", ".."):
        raise Misconfigured("Name a memory by its number, M-12, or its id.")
    return quote(value.strip(), safe="")


def _task(value: str) -> str:
    """A task's name may hold slashes."""
    if not value.strip() or any(part in ("", ".", "..") for part in value.strip().split("/")):
        raise Misconfigured("Name the task by words or a path, such as acme/pay#12.")
    return quote(value.strip(), safe="/")


def _cursor(following: Any) -> str | None:
    if not isinstance(following, str):
        return None
    cursor = parse_qs(urlsplit(following).query).get("cursor")
    return cursor[0] if cursor else None


def _batches(materials: Iterable[Material | Json]) -> Iterator[list[bytes]]:
    lines: list[bytes] = []
    size = 0
    for material in materials:
        line = json.dumps(material.as_dict() if isinstance(material, Material) else dict(material)).encode()
        if lines and (len(lines) == MAX_LINES or size + len(line) > MAX_BODY):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield lines


def _file_batches(files: Iterable[tuple[str, str]]) -> Iterator[list[dict[str, str]]]:
    batch: list[dict[str, str]] = []
    size = 0
    for path, content in files:
        length = len(content.encode("utf-8", "surrogatepass"))
        if batch and (len(batch) == MAX_IMPORT_FILES or size + length > MAX_IMPORT_BYTES):
            yield batch
            batch, size = [], 0
        batch.append({"path": path, "content": content})
        size += length
    if batch:
        yield batch
