from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet, Value

from apps.accounts.models import Workspace
from apps.scopes.identity import Remote, parse_remote
from apps.scopes.models import Domain, Repository


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search may look at: ``everything`` is the whole workspace, said so to whoever asked."""

    everything: bool
    domain_ids: tuple[int, ...] = ()
    repo_ids: tuple[int, ...] = ()
    unknown: tuple[str, ...] = ()


def search_scope(workspace: Workspace, *, domains: Sequence[str], repos: Sequence[str]) -> SearchScope:
    """Resolve the names of a search. A repository brings its domains (and, in the filter, the firm) with it.

    Unknown names match nothing and are reported; they never widen the search.
    """
    if not domains and not repos:
        return SearchScope(everything=True)
    found = dict(
        Domain.objects.filter(workspace=workspace, slug__in=[d.strip() for d in domains]).values_list("slug", "pk")
    )
    unknown = [name for name in domains if name.strip() not in found]
    domain_ids = set(found.values())
    repo_ids = set()
    for name in repos:
        repository = find_repository(workspace, name.strip())
        if repository is None:
            unknown.append(name)
            continue
        repo_ids.add(repository.pk)
        domain_ids.update(repository.domain_ids)
    return SearchScope(
        everything=False,
        domain_ids=tuple(sorted(domain_ids)),
        repo_ids=tuple(sorted(repo_ids)),
        unknown=tuple(unknown),
    )


def scope_slugs(domain_ids: Iterable[int], repo_ids: Iterable[int]) -> tuple[dict[int, str], dict[int, str]]:
    """Names of domains and of repositories by id, in one query for both."""
    domains, repos = set(domain_ids), set(repo_ids)
    found: tuple[dict[int, str], dict[int, str]] = ({}, {})
    if not domains and not repos:
        return found
    of_domains = Domain.objects.filter(pk__in=domains).order_by().values_list(Value(0), "pk", "slug")
    of_repos = Repository.objects.filter(pk__in=repos).order_by().values_list(Value(1), "pk", "slug")
    for which, pk, slug in of_domains.union(of_repos, all=True):
        found[which][pk] = slug
    return found


def domain_slugs(ids: Iterable[int]) -> dict[int, str]:
    wanted = set(ids)
    return dict(Domain.objects.filter(pk__in=wanted).values_list("pk", "slug")) if wanted else {}


def repository_slugs(ids: Iterable[int]) -> dict[int, str]:
    wanted = set(ids)
    return dict(Repository.objects.filter(pk__in=wanted).values_list("pk", "slug")) if wanted else {}


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
