"""What a proposer hands in, and whether its values will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from apps.accounts.models import Workspace
from apps.accounts.principal import Principal
from apps.core.clock import now
from apps.core.errors import Excluded, FieldError, Forbidden, Invalid, Refusals
from apps.core.screening import SOURCE_CODE, Flag, check_text, quotable, raise_if_refused
from apps.core.screening.exclusions import EXCLUSIONS, SEEMS, exclusion_of
from apps.core.screening.people import People
from apps.memories.models import MAX_CONTENT, Memory, Tier
from apps.memories.selectors import memories_by_reference
from apps.scopes.scope import ResolvedScope, Scope
from apps.scopes.services import check_scope
from apps.sources.models import Source
from apps.sources.services import SourceInput, check_sources
from apps.taxonomy.models import Exclusion, MemoryType
from apps.taxonomy.selectors import resolve_type

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
    # Why it must wait in quarantine whatever its confidence, as a sentence; said by no client, only by our own code.
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was looked up while values were checked. ``type`` is none where none was named."""

    type: MemoryType | None
    targets: tuple[Memory, ...]
    flags: tuple[dict[str, Any], ...]


def check_content(content: str, *, tier: str, field: str = "content") -> list[FieldError]:
    return check_text(content, field=field, max_length=max_content(tier))


def max_content(tier: str) -> int:
    return MAX_CONTENT.get(tier, MAX_CONTENT[Tier.DURABLE])


def check_confidence(value: float | None, *, field: str = "confidence") -> list[FieldError]:
    if value is None or 0 <= value <= 1:  # NaN fails both comparisons
        return []
    return [FieldError(field, "Give a number from 0 to 1.")]


def check_valid_from(value: datetime | None, *, field: str = "valid_from") -> list[FieldError]:
    latest = now() + MAX_YEARS_AHEAD
    if value is None or EARLIEST <= value <= latest:
        return []
    return [FieldError(field, f"Give a moment between {EARLIEST:%Y} and {latest:%Y}.")]


def check_proposal(principal: Principal, proposal: Proposal) -> Checked:
    """Raise ``Invalid`` or ``Excluded`` naming every value that will not do."""
    refusals = Refusals()
    values = {field.name: getattr(proposal, field.name) for field in fields(proposal)}
    checked = check_values(principal, values, limit=max_content(proposal.tier), refusals=refusals)
    refusals.raise_all("The proposal will not do.")
    return checked


def check_readable(principal: Principal, values: Mapping[str, Any], *, prefix: str = "") -> None:
    """The same for those values of a statement whose others cannot even be read."""
    refusals = Refusals()
    limit = max_content(values.get("tier", Tier.INDEX))
    check_values(principal, values, limit=limit, refusals=refusals, prefix=prefix)
    refusals.raise_all("Some values will not do.")


def check_values(
    principal: Principal, values: Mapping[str, Any], *, limit: int, refusals: Refusals, prefix: str = ""
) -> Checked:
    """Look at those values of a statement that are there, whoever gives them, and collect all that is wrong.

    ``limit`` is the most characters of ``content``; ``prefix`` stands before the names by which the sender knows them.
    """
    named = {name: f"{prefix}{name}" for name in (*values, *_OPTIONAL)}
    if "content" in values:
        refusals.add(check_text(values["content"], field=named["content"], max_length=limit))
    if "tier" in values and values["tier"] not in Tier.values:
        refusals.add([FieldError(named["tier"], f"Use one of: {', '.join(Tier.values)}.")])
    if "scope" in values:
        scope: ScopeInput = values["scope"]
        refusals.add(check_scope(firm=scope.firm, domains=scope.domains, repos=scope.repos, field=named["scope"]))
    if "sources" in values:
        refusals.add(check_sources(values["sources"], field=named["sources"]))
    refusals.add(check_confidence(values.get("confidence"), field=named["confidence"]))
    refusals.add(check_valid_from(values.get("valid_from"), field=named["valid_from"]))
    return _looked_up(principal, values, named, refusals)


_OPTIONAL = ("confidence", "valid_from")


def _looked_up(
    principal: Principal, values: Mapping[str, Any], named: Mapping[str, str], refusals: Refusals
) -> Checked:
    type_: MemoryType | None = None
    targets: list[Memory] = []
    flags: list[Flag] = []
    if "type" in values:
        with refusals.collecting():
            type_ = resolve_type(principal.workspace, values["type"], field=named["type"])
    if len(values.get("supersedes", ())) > MAX_SUPERSEDES:
        refusals.add([FieldError(named["supersedes"], f"Name at most {MAX_SUPERSEDES} memories.")])
    elif values.get("supersedes"):
        with refusals.collecting():
            targets = resolve_targets(principal, values["supersedes"], field=named["supersedes"])
    with refusals.collecting():
        flags = screened(principal.workspace, _texts(values, named))
        if "content" in values:
            flags += exclusion_flags(principal.workspace, values["content"], field=named["content"])
    return Checked(type_, tuple(targets), tuple(dict(flag.as_dict()) for flag in flags))


def _texts(values: Mapping[str, Any], named: Mapping[str, str]) -> dict[str, str]:
    """Every text by the name its sender knows it by."""
    texts = {named["content"]: values["content"]} if "content" in values else {}
    if "scope" in values:
        texts |= scope_texts(values["scope"], field=named["scope"])
    if "sources" in values:
        texts |= source_texts(values["sources"], field=named["sources"])
    return texts


def screened(workspace: Workspace, texts: Mapping[str, str]) -> list[Flag]:
    """Refuse secrets and what the workspace excludes; answer what a reviewer should see.

    Secrets are refused whatever the workspace says; the other exclusions are a curator's to switch off.
    """
    try:
        return raise_if_refused(texts)
    except Excluded:
        # What is in force is asked only where something was found, which is seldom.
        slugs = Exclusion.objects.filter(workspace=workspace, is_active=True, slug=SOURCE_CODE)
        return raise_if_refused(texts, exclusions=set(slugs.values_list("slug", flat=True)))


def exclusion_flags(workspace: Workspace, content: str, *, field: str) -> list[Flag]:
    """What a reviewer should see where a statement seems to be about an individual or of the moment.

    It is no refusal: whoever proposes means what they say, and words alone tell it seldom for certain.
    """
    looked_at = content[:_LOOKED_AT]
    if exclusion_of(looked_at, People(), EXCLUSIONS) is None:
        return []
    rows = Exclusion.objects.filter(workspace=workspace, is_active=True, slug__in=EXCLUSIONS)
    slug = exclusion_of(looked_at, People(), set(rows.values_list("slug", flat=True)))
    return [Flag(slug, field, 0, len(content), SEEMS[slug])] if slug else []


_LOOKED_AT: Final = 4_000


def scope_texts(scope: ScopeInput, *, field: str = "scope") -> dict[str, str]:
    listed = {f"{field}.domains": scope.domains, f"{field}.repos": scope.repos}
    return {f"{name}[{at}]": value for name, values in listed.items() for at, value in enumerate(values)}


def source_texts(sources: Sequence[SourceInput], *, field: str = "sources") -> dict[str, str]:
    return {
        f"{field}[{at}].{name}": value
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
        {
            "kind": "source-differs",
            "field": f"sources[{at}].{name}",
            "of": row.reference,
            "shown": getattr(given, name)[:200],
        }
        for at, (row, given) in enumerate(sources)
        for name in ("url", "title")
        if getattr(given, name) and getattr(given, name).strip() != getattr(row, name)
    ]


def memory_ids(memories: Sequence[Memory]) -> list[UUID]:
    return [memory.pk for memory in memories]
