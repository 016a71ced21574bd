from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.db.models import QuerySet

from apps.accounts.models import Workspace
from apps.scopes.identity import Remote, parse_remote
from apps.scopes.models import Domain, Repository


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search may look at: ``everything`` is the whole workspace, said so to whoever asked.

    ``repos`` are the repositories that were named, as they are called here, and ``unknown`` is what names nothing.
    """

    everything: bool
    domain_ids: tuple[int, ...] = ()
    repo_ids: tuple[int, ...] = ()
    repos: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def search_scope(workspace: Workspace, *, domains: Sequence[str], repos: Sequence[str]) -> SearchScope:
    """Resolve the names of a search. A repository brings its domains (and, in the filter, the firm) with it.

    Unknown names match nothing and are reported; they never widen the search.
    """
    if not domains and not repos:
        return SearchScope(everything=True)
    found = _domains(workspace, [name.strip() for name in domains])
    unknown = [name for name in domains if name.strip() not in found]
    domain_ids = set(found.values())
    repositories = {}
    for name in repos:
        repository = find_repository(workspace, name.strip())
        if repository is None:
            unknown.append(name)
            continue
        repositories[repository.pk] = repository.slug
        domain_ids.update(repository.domain_ids)
    return SearchScope(
        everything=False,
        domain_ids=tuple(sorted(domain_ids)),
        repo_ids=tuple(sorted(repositories)),
        repos=tuple(repositories.values()),
        unknown=tuple(unknown),
    )


def _domains(workspace: Workspace, slugs: Sequence[str]) -> dict[str, int]:
    rows = Domain.objects.filter(workspace=workspace, slug__in=slugs)
    return dict(rows.values_list("slug", "pk")) if slugs else {}


_SLUGS: Final = """
SELECT 0, id, slug FROM scopes_domain WHERE id = ANY(%s)
UNION ALL SELECT 1, id, slug FROM scopes_repository WHERE id = ANY(%s)
"""


def scope_slugs(domain_ids: Iterable[int], repo_ids: Iterable[int]) -> tuple[dict[int, str], dict[int, str]]:
    """Names of domains and of repositories by id, in one query for both."""
    domains, repos = set(domain_ids), set(repo_ids)
    found: tuple[dict[int, str], dict[int, str]] = ({}, {})
    if domains or repos:
        with connection.cursor() as cursor:
            cursor.execute(_SLUGS, [list(domains), list(repos)])
            for which, pk, slug in cursor.fetchall():
                found[which][pk] = slug
    return found


def domain_named(workspace: Workspace, slug: str) -> Domain | None:
    return Domain.objects.filter(workspace=workspace, slug=slug).first()


def find_repository(workspace: Workspace, name: str) -> Repository | None:
    """The repository that a slug, an alias or a remote names, or ``None``."""
    rows = Repository.objects.filter(workspace=workspace)
    remote = parse_remote(name)
    if remote is not None:
        return _find_by_remote(rows, remote)
    exact = rows.filter(slug=name).first()
    return exact or rows.filter(aliases__contains=[name]).first()


def _find_by_remote(rows: QuerySet[Repository], remote: Remote) -> Repository | None:
    """By its remote first. A slug alone is enough unless that repository is known to live on another host."""
    return (
        rows.filter(remote=remote.identity).first()
        or rows.filter(aliases__contains=[remote.identity]).first()
        or rows.filter(slug=remote.path, remote="").first()
    )
