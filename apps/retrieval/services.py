"""Search: from a question to the memories that hold, with an account of how they were found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.accounts.models import Role
from apps.accounts.principal import Principal
from apps.core.clock import now
from apps.core.errors import Forbidden
from apps.core.screening import masked
from apps.memories.models import Memory
from apps.memories.selectors import chain_entry, chains_of, domains_of, memories_shown
from apps.retrieval.filters import Admission
from apps.retrieval.ledger import Weighting, amendments_of, ledger_in_time
from apps.retrieval.pipeline import STAGES, Hit, Search, observed
from apps.retrieval.recipes import Recipe, recipe_named
from apps.retrieval.request import SearchRequest
from apps.retrieval.stages import (
    collapse,
    decay,
    episodic,
    fuse,
    identifier,
    intent,
    rerank,
    text,
    vector,
    visibility,
    weight,
)
from apps.scopes.models import Repository
from apps.scopes.selectors import SearchScope, search_scope
from apps.taxonomy.selectors import find_types

WITH_CHAINS = frozenset({"explain-why", "history"})


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """``scope`` is what was looked at."""

    results: list[dict[str, Any]]
    scope: SearchScope
    intent: str
    pipeline_stages: list[dict[str, Any]]
    degraded: bool
    note: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "results": self.results,
            "intent": self.intent,
            "pipeline_stages": self.pipeline_stages,
            "degraded": self.degraded,
            "note": self.note,
        }


def search(
    *, principal: Principal, request: SearchRequest, tried: Mapping[str, Weighting] | None = None
) -> SearchAnswer:
    """The memories that answer a question best, for this principal.

    ``tried`` are weightings by the slug of a category, to be used instead of the taxonomy's own.

    Degrades instead of failing: what could not be looked at is said in ``note``, ``degraded`` and the stages. Raises
    ``Invalid`` for values that will not do, ``Forbidden`` outside the token's limits or for a curator's recipe, and
    ``Unavailable`` when the ledger does not answer, since nothing is served that it has not let through.
    """
    request.check()
    return served(principal, request, look=look, tried=tried)


def served(
    principal: Principal,
    request: SearchRequest,
    *,
    look: Callable[[Search], None],
    tried: Mapping[str, Weighting] | None = None,
) -> SearchAnswer:
    """What ``look`` finds, weighed and let through as in any search; ``request`` has been checked."""
    run = _begin(principal, request, _recipe(principal, request), tried)
    with observed(run):
        results = _memories(principal, run, look=look)
        if request.task is not None:
            results = _with_notes(principal, run, results, task=request.task)
    return SearchAnswer(
        results=results,
        scope=run.admission.scope,
        intent=run.intent,
        pipeline_stages=[stage.as_dict() for stage in run.stages],
        degraded=run.degraded,
        note=" ".join(run.notes),
    )


def _memories(principal: Principal, run: Search, *, look: Callable[[Search], None]) -> list[dict[str, Any]]:
    if run.admission.tiers:
        look(run)
        return _let_through(principal, run)
    reached = {stage.name for stage in run.stages}
    for name in STAGES:
        if name not in reached:
            run.skip(name, "Only the working notes of a task were asked for.")
    return []


def _with_notes(
    principal: Principal, run: Search, results: Sequence[dict[str, Any]], *, task: str
) -> list[dict[str, Any]]:
    """Memories and notes of a task together, best first. Each says which of the two it is."""
    notes = episodic.run(run, principal, task)
    if notes:
        run.notes.append("What is of tier episodic are working notes of this task, which nobody has reviewed.")
    elif not run.degraded:
        run.notes.append("No working note of this task answers this.")
    return sorted([*results, *notes], key=lambda each: -each["score"])[: run.limit]


def look(run: Search) -> None:
    """By meaning, by words and by identifiers."""
    vector.run(run)
    text.run(run)
    identifier.run(run)
    fuse.run(run)
    if run.degraded and not run.arms:
        run.notes.append("Nothing could be searched, so an empty answer does not mean that nothing is known.")


def _let_through(principal: Principal, run: Search) -> list[dict[str, Any]]:
    """Of the hits, what the ledger lets through, as answers show it."""
    with ledger_in_time():
        weight.run(run)
        collapse.run(run)
        decay.run(run)
        visibility.check(run)
        rerank.run(run)
        if not run.hits and not run.degraded:
            run.notes.append("Nothing that is known here answers this.")
        return _results(principal, run)


def _recipe(principal: Principal, request: SearchRequest) -> Recipe:
    if request.recipe is not None and not principal.has_role(Role.CURATOR):
        raise Forbidden("Only a person with the curator role may choose a recipe.")
    return recipe_named(request.recipe)


def _begin(
    principal: Principal, request: SearchRequest, recipe: Recipe, tried: Mapping[str, Weighting] | None
) -> Search:
    workspace = principal.workspace
    types = None
    if request.types is not None:
        types = tuple(find_types(workspace, list(request.types), field="types", active_only=False))
    scope = _limited(principal, search_scope(workspace, domains=request.domains or (), repos=request.repos or ()))
    asked = request.q.strip()
    run = Search(
        # Before it is embedded, logged or counted: nobody finds a secret here, as none is kept.
        question=masked(asked),
        admission=Admission(
            workspace_id=workspace.pk,
            scope=scope,
            audiences=principal.audience_ids,
            now=now(),
            tiers=request.memory_tiers,
            types=types,
            as_of=request.as_of,
            known_at=request.known_at,
        ),
        recipe=recipe,
        limit=request.limit,
        intent=request.intent or "",
        notes=list(request.notes),
        tried=tried or {},
    )
    intent.run(run)
    if run.question != asked:
        run.notes.append("Secrets and personal data in the question were masked before anything was searched.")
    _describe_scope(run, scope)
    return run


def _limited(principal: Principal, scope: SearchScope) -> SearchScope:
    """A token limited to repositories searches within them, whatever it asks for."""
    limit = set(principal.repository_limit)
    if not limit:
        return scope
    if scope.everything:
        return SearchScope(everything=False, repo_ids=tuple(sorted(limit)), domain_ids=tuple(sorted(domains_of(limit))))
    outside = set(scope.repo_ids) - limit
    if outside or set(scope.domain_ids) - domains_of(limit):
        names = ", ".join(Repository.objects.filter(pk__in=outside).values_list("slug", flat=True))
        raise Forbidden(f"This token is limited to some repositories and may not search {names or 'those domains'}.")
    return scope


def _describe_scope(run: Search, scope: SearchScope) -> None:
    with run.stage("scope") as stage:
        if scope.everything:
            stage.detail = "The whole workspace."
            run.notes.append("No repository or domain was named, so the whole workspace was searched.")
            return
        stage.detail = f"The firm, {len(scope.domain_ids)} domains and {len(scope.repo_ids)} repositories."
        if scope.unknown:
            listed = ", ".join(f"“{masked(name)[:80]}”" for name in scope.unknown)
            run.notes.append(f"Not known here: {listed}. Nothing was searched for under that name.")


def _results(principal: Principal, run: Search) -> list[dict[str, Any]]:
    """As answers show them: for those who ask why or for the history, each with its whole chain."""
    hits = run.hits[: run.limit]
    ids = [hit.memory_id for hit in hits]
    shown = memories_shown(principal, ids)
    amended = amendments_of(run.admission, [pk for pk in ids if run.facts[pk].is_amended])
    chains = _chains(principal, run, hits) if run.intent in WITH_CHAINS else {}
    return [
        entry
        | {
            "reviewed": True,
            "amended_by": amended.get(hit.memory_id, []),
            "instead_of": [run.facts[old].label for old in hit.instead_of],
            "score": round(hit.score, 6),
            "scores": {name: round(value, 6) for name, value in hit.scores.items()},
        }
        | ({"chain": chains[hit.memory_id]} if run.intent in WITH_CHAINS else {})
        for entry, hit in zip(shown, hits, strict=True)
    ]


def _chains(principal: Principal, run: Search, hits: Sequence[Hit]) -> dict[UUID, list[dict[str, Any]]]:
    """Of a question about the past, no more of a chain than had begun, and was known, by then."""
    valid, known = run.admission.valid_instant, run.admission.known_instant

    def had_begun(row: Memory) -> bool:
        return row.recorded_at <= known and (row.valid_from is None or row.valid_from <= valid)

    chains = chains_of(principal, [hit.memory_id for hit in hits])
    past = run.admission.is_about_the_past
    return {pk: [chain_entry(row) for row in chain if not past or had_begun(row)] for pk, chain in chains.items()}
