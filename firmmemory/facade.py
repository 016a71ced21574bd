"""Firm Memory from Python, in a process that reaches its database: the services behind REST, without HTTP.

Importing this sets nothing up; the first ``FirmMemory(…)`` sets Django up, unless that was done before. Like any other
door it acts as a token, and like for any token of kind agent or bot there is nothing here that decides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from firmmemory.results import Answer, Context, Found, Handed, Memory, Proposed, Raw

if TYPE_CHECKING:
    from apps.accounts.principal import Principal

TOKEN: Final = "FIRM_MEMORY_TOKEN"  # noqa: S105 - the name of a variable
VIA: Final = "python"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Secret:
    value: str

    def __repr__(self) -> str:
        return "…"


class FirmMemory:
    """Acts as ``token``, or as the one in FIRM_MEMORY_TOKEN, with its rights at each call.

    Every method is synchronous and raises ``apps.core.errors.DomainError``, with ``code``, ``detail``, ``errors`` and,
    as ``status``, the HTTP status that REST would give. ``search``, ``context`` and ``ask`` return an empty result that
    is ``degraded`` where the database does not answer; ``strict=True`` raises instead.
    """

    def __init__(self, token: str | None = None) -> None:
        given: object = token if token is not None else os.environ.get(TOKEN, "")
        secret = given.strip() if isinstance(given, str) else ""
        if not secret:
            raise ValueError(f"There is no token. Give one, or set {TOKEN}; `manage.py token create` makes it.")
        self._secret = _Secret(secret)
        _set_up()

    def __repr__(self) -> str:
        return "FirmMemory(…)"

    # --- recall ---------------------------------------------------------------------------------------------------
    def search(
        self,
        q: str,
        *,
        repos: Sequence[str] | None = None,
        domains: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        tiers: Sequence[str] | None = None,
        limit: int | None = None,
        as_of: str | None = None,
        known_at: str | None = None,
        intent: str | None = None,
        strict: bool = False,
    ) -> Found:
        """What answers ``q``. Without ``repos`` and ``domains`` the whole workspace is searched."""
        given = _given(
            q=q,
            repos=_listed(repos),
            domains=_listed(domains),
            types=_listed(types),
            tiers=_listed(tiers),
            limit=limit,
            as_of=as_of,
            known_at=known_at,
            intent=intent,
        )
        return self._recalled(lambda who: _search(who, given), _not_found, strict)

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
        given = _given(repo=repo, path=path, task=task, q=q, budget_tokens=budget_tokens)
        return self._recalled(lambda who: _context(who, given), _no_context, strict)

    def ask(self, q: str, *, repos: Sequence[str] | None = None, strict: bool = False) -> Answer:
        """An answer of which each sentence has its citations."""
        given = _given(q=q, repos=_listed(repos))
        return self._recalled(lambda who: _ask(who, given), _no_answer, strict)

    def get(self, reference: str) -> Memory:
        """One memory in any status, by id or number; ``NotFound`` where this token sees none."""
        return self._asked(lambda who: _get(who, reference), reads=True)

    # --- what waits for a person -----------------------------------------------------------------------------------
    def propose(
        self,
        content: str,
        *,
        type: str,
        sources: Sequence[Raw],
        repos: Sequence[str] = (),
        domains: Sequence[str] = (),
        firm: bool = False,
        confidence: float | None = None,
        supersedes: Sequence[str] = (),
        valid_from: str | None = None,
    ) -> Proposed:
        """Put a statement into the queue. ``sources`` are as in REST: ``{kind, reference, url?, …}``."""
        given = _given(
            content=content,
            type=type,
            scope=_scope(repos, domains, firm),
            sources=_sources(sources),
            confidence=confidence,
            supersedes=_listed(supersedes),
            valid_from=valid_from,
        )
        return self._asked(lambda who: _propose(who, given))

    def correct(
        self, reference: str, *, kind: str, reason: str, sources: Sequence[Raw], replacement: str | None = None
    ) -> Proposed:
        """Report a memory as ``stale`` or ``wrong``; it stays, marked as disputed, until a reviewer decides."""
        given = _given(kind=kind, reason=reason, sources=_sources(sources), replacement=replacement)
        return self._asked(lambda who: _correct(who, reference, given))

    def ingest(
        self,
        content: str,
        *,
        kind: str,
        sources: Sequence[Raw],
        repos: Sequence[str] = (),
        domains: Sequence[str] = (),
        firm: bool = False,
        external_id: str | None = None,
    ) -> Handed:
        """Hand raw material over; a worker looks for what is worth remembering."""
        given = _given(
            content=content,
            kind=kind,
            scope=_scope(repos, domains, firm),
            sources=_sources(sources),
            external_id=external_id,
        )
        return self._asked(lambda who: _ingest(who, given))

    # --- below ------------------------------------------------------------------------------------------------------
    def _asked(self, call: Callable[[Principal], T], *, reads: bool = False) -> T:
        from apps.core import problems
        from apps.core.errors import DomainError

        try:
            with _patience(reads):
                return call(_identified(self._secret.value))
        except DomainError:
            raise
        except Exception as error:
            ours = problems.as_domain_error(error)
            if ours is None:
                raise
            raise ours from error

    def _recalled(self, call: Callable[[Principal], T], nothing: Callable[[str], T], strict: bool) -> T:
        from apps.core.errors import TooMany, Unavailable

        try:
            return self._asked(call, reads=True)
        except (Unavailable, TooMany) as error:
            if strict:
                raise
            return nothing(f"Nothing could be looked at. {error.detail}")


def _set_up() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "firmmemory.settings.dev")
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()


def _identified(secret: str) -> Principal:
    """Anew for each call: the token may have been revoked, and the database restarted, since the last one."""
    from django.db import connections

    from apps.accounts.selectors import principal_for_token
    from apps.core import request_id

    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:  # whoever calls this in a transaction keeps it
            each.close_if_unusable_or_obsolete()
    request_id.current.set(request_id.accept(None))
    return principal_for_token(secret, VIA, request_id.current.get())


def _patience(reads: bool) -> AbstractContextManager[Any]:
    from apps.core.patience import READ_SECONDS, WRITE_SECONDS, patience

    return patience(READ_SECONDS if reads else WRITE_SECONDS)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _listed(values: object) -> Any:
    """What is no list stays what it is, and is then refused by its name; a text would become one of letters."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return values
    return list(values)


def _sources(values: object) -> Any:
    listed = _listed(values)
    if not isinstance(listed, list):
        return listed
    return [dict(each) if isinstance(each, Mapping) else each for each in listed]


def _scope(repos: Sequence[str], domains: Sequence[str], firm: bool) -> dict[str, Any]:
    return {"repos": _listed(repos), "domains": _listed(domains), "firm": firm}


def _not_found(note: str) -> Found:
    return Found((), "", True, note, {})


def _no_context(note: str) -> Context:
    return Context("", (), 0, True, note, {})


def _no_answer(note: str) -> Answer:
    return Answer("", (), (), True, note, {})


def _search(principal: Principal, given: dict[str, Any]) -> Found:
    from apps.accounts.throttling import SEARCH, spend
    from apps.core.serializers import utc_note
    from apps.retrieval.api import SearchQuery
    from apps.retrieval.receipts import served_record
    from apps.retrieval.request import SearchRequest
    from apps.retrieval.services import search
    from apps.taxonomy.selectors import find_types

    spend(principal, SEARCH)
    asked = SearchQuery.read(given)
    find_types(principal.workspace, asked.get("types", []), field="types", active_only=False)
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}
    note = utc_note(given, "as_of", "known_at")
    answer = search(principal=principal, request=SearchRequest(**values, notes=(note,) if note else ()))
    served_record(principal, "search", results=answer.results, question=asked["q"])
    results = tuple(Memory.of(each) for each in answer.results)
    return Found(results, answer.intent, answer.degraded, answer.note, answer.as_dict())


def _context(principal: Principal, given: dict[str, Any]) -> Context:
    from apps.accounts.throttling import SEARCH, spend
    from apps.retrieval.context import ContextRequest, context
    from apps.retrieval.context_api import ContextQuery
    from apps.retrieval.receipts import served_record

    spend(principal, SEARCH)
    wanted = ContextRequest(**ContextQuery.read(given))
    found = context(principal=principal, request=wanted).as_dict()
    served_record(principal, "context", results=found["items"], question=wanted.question)
    items = tuple(Memory.of(each) for each in found["items"])
    return Context(found["text"], items, found["used_tokens"], found["degraded"], found["note"], found)


def _ask(principal: Principal, given: dict[str, Any]) -> Answer:
    from apps.accounts.throttling import SEARCH, spend
    from apps.answers.services import ask
    from apps.retrieval.api import QuestionQuery
    from apps.retrieval.receipts import served_record

    spend(principal, SEARCH)
    asked = QuestionQuery.read(given)
    answer = ask(principal=principal, q=asked["q"], repos=tuple(asked["repos"]) if "repos" in asked else None)
    served_record(principal, "ask", results=answer.results, question=answer.question)
    raw = answer.as_dict()
    citations = tuple(str(each) for each in raw["citations"])
    results = tuple(Memory.of(each) for each in answer.results)
    return Answer(raw["answer"], citations, results, raw["degraded"], raw["note"], raw)


def _require_reference(reference: object) -> None:
    from apps.core.errors import Invalid

    if not isinstance(reference, str):
        raise Invalid.field("reference", "Name a memory by its id or its number, as a text.")


def _get(principal: Principal, reference: str) -> Memory:
    from apps.accounts.throttling import READ, spend
    from apps.memories.selectors import memory_for, memory_shown
    from apps.retrieval.receipts import served_record

    spend(principal, READ)
    _require_reference(reference)
    shown = memory_shown(principal, memory_for(principal, reference))
    served_record(principal, "get", results=[shown])
    return Memory.of(shown)


def _propose(principal: Principal, given: dict[str, Any]) -> Proposed:
    from apps.accounts.throttling import WRITE, spend
    from apps.candidates.api import ProposeIn, also_of, values_from
    from apps.candidates.proposal import Proposal
    from apps.candidates.services import candidate_propose

    spend(principal, WRITE)
    values = values_from(ProposeIn.read(given, also=also_of(principal)))
    values["supersedes"] = tuple(values.get("supersedes", ()))
    proposed = candidate_propose(principal=principal, proposal=Proposal(**values))
    return Proposed(str(proposed.candidate.pk), proposed.status, proposed.reason, proposed.created)


def _correct(principal: Principal, reference: str, given: dict[str, Any]) -> Proposed:
    from apps.accounts.throttling import WRITE, spend
    from apps.candidates.api import CorrectionIn, values_from
    from apps.candidates.corrections import Report, check_readable_report, memory_correct

    spend(principal, WRITE)
    _require_reference(reference)
    data = CorrectionIn.read(given, also=lambda good: check_readable_report(principal, values_from(good)))
    reported = memory_correct(principal=principal, reference=reference, report=Report(**values_from(data)))
    return Proposed(str(reported.candidate.pk), reported.status, reported.reason, reported.created)


def _ingest(principal: Principal, given: dict[str, Any]) -> Handed:
    from apps.accounts.throttling import WRITE, spend
    from apps.candidates.api import values_from
    from apps.capture.api import IngestIn
    from apps.capture.inbox import RawMaterial, event_receive

    spend(principal, WRITE)
    received = event_receive(principal=principal, material=RawMaterial(**values_from(IngestIn.read(given))))
    notes = tuple(filter(None, [*(received.event.notes if received.created else ()), received.note]))
    return Handed(str(received.event.pk), received.created, notes)
