from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from apps.accounts.models import Workspace
from apps.core.errors import FieldError, Invalid
from apps.core.screening import check_text, quotable, screen
from apps.scopes.identity import parse_remote, repository_identity
from apps.scopes.models import Domain, Repository
from apps.scopes.scope import ResolvedScope, Scope
from apps.scopes.selectors import find_repository

MAX_NAMES = 50
MAX_NAME_LENGTH = 200
MAX_REMOTE_LENGTH = 500
# What people put between the names of a list.
_SEVERAL: Final = re.compile(r"[\s,;]")


def scope_register(
    workspace: Workspace, *, firm: bool, domains: Sequence[str], repos: Sequence[str], field: str = "scope"
) -> ResolvedScope:
    """Turn names into a scope; names not seen before are registered as unconfirmed, verbatim.

    Raises ``Invalid`` naming ``field`` when nothing is named at all: an empty scope is never "everything".
    """
    errors = check_scope(firm=firm, domains=domains, repos=repos, field=field)
    if errors:
        raise Invalid("The scope will not do.", errors=errors)
    found_domains, new_domains = _register_domains(workspace, domains)
    found_repos, new_repos = _register_repositories(workspace, repos)
    scope = Scope(
        firm=firm,
        domain_ids=tuple(sorted({row.pk for row in found_domains})),
        repo_ids=tuple(sorted({row.pk for row in found_repos})),
    )
    return ResolvedScope(scope, new_domains=tuple(new_domains), new_repos=tuple(new_repos))


def repositories_register(
    workspace: Workspace, names: Sequence[str], *, field: str = "repos"
) -> tuple[list[Repository], list[str]]:
    """The repositories that somebody names one by one, such as those that a token is limited to, and which are new.

    One that was never heard of is registered as unconfirmed: a token may be made before its first proposal. Raises
    ``Invalid``, also for a new name that reads like several: what is limited to that would reach nothing.
    """
    errors = [error for at, name in enumerate(names) for error in _check_single(workspace, name, f"{field}[{at}]")]
    if errors:
        raise Invalid("The repositories will not do.", errors=errors)
    return _register_repositories(workspace, names)


def _check_single(workspace: Workspace, name: str, field: str) -> list[FieldError]:
    errors = [FieldError(field, error.message) for error in check_names(field, [name])]
    errors += screen({field: name}, exclusions=()).refusals
    if not errors and _SEVERAL.search(name.strip()) and find_repository(workspace, name.strip()) is None:
        message = (
            f"“{quotable(name)}” is not known in {workspace}, and a new repository that is named here has no spaces, "
            "commas or semicolons in its name. Name each repository by itself."
        )
        errors.append(FieldError(field, message))
    return errors


def check_scope(*, firm: bool, domains: Sequence[str], repos: Sequence[str], field: str = "scope") -> list[FieldError]:
    errors = check_names(f"{field}.domains", domains) + check_names(f"{field}.repos", repos)
    if not firm and not domains and not repos:
        message = "Say where this holds: for the whole firm, or in at least one domain or repository."
        errors.append(FieldError(field, message))
    return errors


def check_names(field: str, names: Sequence[str]) -> list[FieldError]:
    if len(names) > MAX_NAMES:
        return [FieldError(field, f"Name at most {MAX_NAMES}; there are {len(names)}.")]
    errors: list[FieldError] = []
    for position, name in enumerate(names):
        at = f"{field}[{position}]"
        remote = parse_remote(name)
        limit = MAX_REMOTE_LENGTH if remote else MAX_NAME_LENGTH
        errors += check_text(name, field=at, max_length=limit, multiline=False)
        if remote and len(remote.identity) > MAX_NAME_LENGTH:
            errors.append(FieldError(at, f"A repository's host and path have at most {MAX_NAME_LENGTH} characters."))
    return errors


def _register_domains(workspace: Workspace, names: Sequence[str]) -> tuple[list[Domain], list[str]]:
    wanted = _distinct(name.strip() for name in names)
    if not wanted:
        return [], []
    rows = Domain.objects.filter(workspace=workspace, slug__in=wanted)
    known = {row.slug for row in rows}
    missing = sorted(slug for slug in wanted if slug not in known)
    if missing:
        Domain.objects.bulk_create((Domain(workspace=workspace, slug=slug) for slug in missing), ignore_conflicts=True)
    return list(rows.all()) if missing else list(rows), missing


def _register_repositories(workspace: Workspace, names: Sequence[str]) -> tuple[list[Repository], list[str]]:
    found: list[Repository] = []
    created: list[str] = []
    # In one order for everybody: two who name the same new ones would otherwise wait for each other.
    for name in sorted(_distinct(name.strip() for name in names), key=repository_identity):
        row = find_repository(workspace, name)
        if row is None:
            row = _register_repository(workspace, name)
            created.append(row.slug)
        found.append(row)
    return found, created


def _register_repository(workspace: Workspace, name: str) -> Repository:
    remote = parse_remote(name)
    row, _ = Repository.objects.get_or_create(
        workspace=workspace, slug=_new_slug(workspace, name), defaults={"remote": remote.identity if remote else ""}
    )
    return row


def _new_slug(workspace: Workspace, name: str) -> str:
    remote = parse_remote(name)
    if remote is None:
        return name
    taken = Repository.objects.filter(workspace=workspace, slug=remote.path).exists()
    return remote.identity if taken else remote.path  # the short name may belong to a repository on another host


def slug_of(workspace: Workspace, name: str) -> str:
    """The slug of the repository that a slug, an alias or a remote names, or would get where it is not known."""
    row = find_repository(workspace, name.strip())
    return row.slug if row else _new_slug(workspace, name.strip())


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
