"""What a proposer hands in, and whether its values will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.core.clock import now
from apps.core.errors import Excluded, FieldError, Forbidden, Invalid
from apps.core.screening import SOURCE_CODE, Flag, check_text, quotable, raise_if_refused
from apps.memories.models import MAX_CONTENT, Memory, Tier
from apps.memories.selectors import memories_by_reference
from apps.scopes.scope import ResolvedScope, Scope
from apps.sources.models import Source
from apps.sources.services import SourceInput, check_sources
from apps.taxonomy.models import Exclusion

MAX_SUPERSEDES = 50
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
MAX_YEARS_AHEAD = timedelta(days=3660)


@dataclass(frozen=True, slots=True)
class ScopeInput:
    firm: bool = False
    domains: tuple[str, ...] = ()
    repos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A statement and everything a decision about it needs. Values are as they came, not yet trusted."""

    content: str
    type: str
    scope: ScopeInput
    sources: tuple[SourceInput, ...]
    confidence: float | None = None
    supersedes: tuple[str, ...] = ()
    valid_from: datetime | None = None
    tier: str = Tier.DURABLE


def check_content(content: str, *, tier: str, field: str = "content") -> list[FieldError]:
    return check_text(content, field=field, max_length=MAX_CONTENT.get(tier, MAX_CONTENT[Tier.DURABLE]))


def check_confidence(value: float | None, *, field: str = "confidence") -> list[FieldError]:
    if value is None or 0 <= value <= 1:  # NaN fails both comparisons
        return []
    return [FieldError(field, "Give a number from 0 to 1.")]


def check_valid_from(value: datetime | None, *, field: str = "valid_from") -> list[FieldError]:
    latest = now() + MAX_YEARS_AHEAD
    if value is None or EARLIEST <= value <= latest:
        return []
    return [FieldError(field, f"Give a moment between {EARLIEST:%Y} and {latest:%Y}.")]


def check_proposal(proposal: Proposal) -> None:
    """Raise ``Invalid`` naming every value that will not do."""
    errors = check_content(proposal.content, tier=proposal.tier)
    if proposal.tier not in Tier.values:
        errors.append(FieldError("tier", f"Use one of: {', '.join(Tier.values)}."))
    errors += check_sources(proposal.sources)
    errors += check_confidence(proposal.confidence)
    errors += check_valid_from(proposal.valid_from)
    if len(proposal.supersedes) > MAX_SUPERSEDES:
        errors.append(FieldError("supersedes", f"Name at most {MAX_SUPERSEDES} memories."))
    if errors:
        raise Invalid("The proposal will not do.", errors=errors)


def screened(workspace: Workspace, fields: Mapping[str, str]) -> list[Flag]:
    """Refuse secrets and what the workspace excludes; answer what a reviewer should see.

    Secrets are refused whatever the workspace says; the other exclusions are a curator's to switch off.
    """
    try:
        return raise_if_refused(fields)
    except Excluded:
        # What is in force is asked only where something was found, which is seldom.
        slugs = Exclusion.objects.filter(workspace=workspace, is_active=True, slug=SOURCE_CODE)
        return raise_if_refused(fields, exclusions=set(slugs.values_list("slug", flat=True)))


def texts_of(proposal: Proposal) -> dict[str, str]:
    """Every text of a proposal by the name its sender knows it by."""
    return {"content": proposal.content} | scope_texts(proposal.scope) | source_texts(proposal.sources)


def scope_texts(scope: ScopeInput) -> dict[str, str]:
    listed = {"scope.domains": scope.domains, "scope.repos": scope.repos}
    return {f"{field}[{at}]": name for field, names in listed.items() for at, name in enumerate(names)}


def source_texts(sources: Sequence[SourceInput]) -> dict[str, str]:
    return {
        f"sources[{at}].{name}": value
        for at, source in enumerate(sources)
        for name in ("reference", "url", "title", "quote", "commit")
        if (value := getattr(source, name))
    }


def resolve_targets(principal: Principal, references: Sequence[str], *, field: str = "supersedes") -> list[Memory]:
    """The memories that a proposal would replace. Raises ``Invalid`` for one that is not there (for this reader)."""
    found = memories_by_reference(principal, references)
    unknown = [(at, reference) for at, reference in enumerate(references) if reference not in found]
    if unknown:
        raise Invalid(
            "The proposal names memories that do not exist.",
            code="unknown_memory",
            errors=[
                FieldError(f"{field}[{at}]", f"There is no memory {quotable(reference)} in this workspace.")
                for at, reference in unknown
            ],
        )
    return list({memory.pk: memory for memory in found.values()}.values())


def require_within_limits(principal: Principal, scope: Scope) -> None:
    """A token limited to repositories proposes and decides for those alone."""
    limit = set(principal.repository_limit)
    if limit and (scope.firm or scope.domain_ids or not set(scope.repo_ids) <= limit):
        raise Forbidden("This token is limited to some repositories; this would hold beyond them.")


def scope_flags(resolved: ResolvedScope) -> list[dict[str, object]]:
    flags: list[dict[str, object]] = [
        {"kind": "new-domain", "field": "scope.domains", "shown": slug} for slug in resolved.new_domains
    ]
    return flags + [{"kind": "new-repository", "field": "scope.repos", "shown": slug} for slug in resolved.new_repos]


def source_flags(sources: Sequence[tuple[Source, SourceInput]]) -> list[dict[str, object]]:
    """A source keeps what it said first; a later proposer who says otherwise is shown to the reviewer."""
    return [
        {"kind": "source-differs", "field": f"sources[{at}].{name}", "shown": getattr(given, name)[:200]}
        for at, (row, given) in enumerate(sources)
        for name in ("url", "title")
        if getattr(given, name) and getattr(given, name).strip() != getattr(row, name)
    ]


def memory_ids(memories: Sequence[Memory]) -> list[UUID]:
    return [memory.pk for memory in memories]
