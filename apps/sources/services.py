from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from django.db.models import Q

from apps.accounts.models import Workspace
from apps.core.errors import FieldError
from apps.core.screening.text import check_text
from apps.sources.models import Source, SourceKind

MAX_SOURCES = 50
MAX_QUOTE = 500


@dataclass(frozen=True, slots=True)
class SourceInput:
    """A source as a proposer names it. ``quote`` is the passage that supports the statement."""

    kind: str
    reference: str
    url: str = ""
    title: str = ""
    occurred_at: datetime | None = None
    commit: str | None = None
    quote: str = field(default="", compare=False)

    @property
    def identity(self) -> tuple[str, str, str | None]:
        return self.kind, self.reference.strip(), self.commit or None


def check_sources(sources: Sequence[SourceInput], *, field: str = "sources") -> list[FieldError]:
    """What is wrong with them, one sentence a fault. A statement without a source is never taken."""
    if not sources:
        return [FieldError(field, "Name at least one source: where does this come from?")]
    if len(sources) > MAX_SOURCES:
        return [FieldError(field, f"Name at most {MAX_SOURCES} sources; there are {len(sources)}.")]
    return [error for at, source in enumerate(sources) for error in _check_source(source, f"{field}[{at}]")]


def _check_source(source: SourceInput, at: str) -> list[FieldError]:
    errors = check_text(source.reference, field=f"{at}.reference", max_length=500, multiline=False)
    if source.kind not in SourceKind.values:
        errors.append(FieldError(f"{at}.kind", f"Use one of: {', '.join(SourceKind.values)}."))
    errors += check_text(source.title, field=f"{at}.title", max_length=500, min_length=0, multiline=False)
    errors += check_text(source.quote, field=f"{at}.quote", max_length=MAX_QUOTE, min_length=0)
    errors += check_text(source.commit or "", field=f"{at}.commit", max_length=64, min_length=0, multiline=False)
    return errors + check_url(source.url, field=f"{at}.url")


def check_url(url: str, *, field: str) -> list[FieldError]:
    errors = check_text(url, field=field, max_length=2000, min_length=0, multiline=False)
    if errors or not url:
        return errors
    try:
        parts = urlsplit(url)
        acceptable = parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c.isspace() for c in url)
    except ValueError:
        acceptable = False
    return [] if acceptable else [FieldError(field, "Use an address that starts with http:// or https://.")]


def sources_record(workspace: Workspace, inputs: Sequence[SourceInput]) -> list[tuple[Source, SourceInput]]:
    """The rows for ``inputs``, made where they are new. A source that is known keeps what it said first."""
    distinct = {source.identity: source for source in reversed(inputs)}
    # In one order for everybody: two who name the same new sources would otherwise wait for each other.
    ordered = [distinct[identity] for identity in sorted(distinct, key=_order)]
    Source.objects.bulk_create((_build(workspace, source) for source in ordered), ignore_conflicts=True)
    rows = _find(workspace, distinct)
    return [(rows[identity], source) for identity, source in reversed(distinct.items())]


def _order(identity: tuple[str, str, str | None]) -> tuple[str, str, str]:
    kind, reference, commit = identity
    return kind, reference, commit or ""


def _find(
    workspace: Workspace, wanted: dict[tuple[str, str, str | None], SourceInput]
) -> dict[tuple[str, str, str | None], Source]:
    condition = Q()
    for kind, reference, commit in wanted:
        same_commit = Q(commit__isnull=True) if commit is None else Q(commit=commit)
        condition |= Q(kind=kind, reference=reference) & same_commit
    rows = Source.objects.filter(condition, workspace=workspace)
    return {(row.kind, row.reference, row.commit): row for row in rows}


def _build(workspace: Workspace, source: SourceInput) -> Source:
    kind, reference, commit = source.identity
    return Source(
        workspace=workspace,
        kind=kind,
        reference=reference,
        commit=commit,
        url=source.url,
        title=source.title.strip(),
        occurred_at=source.occurred_at,
    )
