"""What curators change about domains and repositories. Slugs stay: memories are found by them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.accounts.curation import row_add, row_change
from apps.accounts.models import Role, Workspace
from apps.accounts.principal import Principal
from apps.core.errors import FieldError, Invalid, NotFound
from apps.core.screening import check_text
from apps.scopes.identity import Remote, parse_remote
from apps.scopes.models import Domain, Repository
from apps.scopes.services import MAX_NAME_LENGTH, MAX_REMOTE_LENGTH

MAX_ALIASES: Final = 50
EXAMPLE: Final = "https://git.example.com/acme/pay.git"


@transaction.atomic
def domain_add(*, principal: Principal, slug: str) -> Domain:
    """Register a domain before anybody proposes for it; it counts as confirmed."""
    workspace = _begin(principal)
    _raise_if_any(check_domain(workspace, slug))
    row = Domain(workspace=workspace, slug=slug, confirmed=True)
    return row_add(principal, row, shown={"slug": slug, "confirmed": True})


@transaction.atomic
def domain_change(*, principal: Principal, domain_id: int, confirmed: bool) -> Domain:
    row: Domain = _locked(Domain, _begin(principal), domain_id)
    return row_change(principal, row, {"confirmed": confirmed})


def check_domain(workspace: Workspace, slug: str) -> list[FieldError]:
    errors = _check_slug(slug)
    if not errors and Domain.objects.filter(workspace=workspace, slug=slug).exists():
        errors.append(FieldError("slug", f"There is a domain “{slug}” already."))
    return errors


@transaction.atomic
def repository_add(
    *,
    principal: Principal,
    slug: str,
    remote: str = "",
    aliases: Sequence[str] = (),
    domain_ids: Sequence[int] = (),
) -> Repository:
    """Register a repository before anybody proposes for it; it counts as confirmed."""
    workspace = _begin(principal)
    _raise_if_any(check_repository(workspace, slug=slug, remote=remote, aliases=aliases, domain_ids=domain_ids))
    values = _stored(remote, aliases, domain_ids) | {"confirmed": True}
    row = Repository(workspace=workspace, slug=slug, **values)
    return row_add(principal, row, shown={"slug": slug, **_shown(values)})


@transaction.atomic
def repository_change(
    *,
    principal: Principal,
    repository_id: int,
    remote: str,
    aliases: Sequence[str],
    domain_ids: Sequence[int],
    confirmed: bool,
) -> Repository:
    workspace = _begin(principal)
    row: Repository = _locked(Repository, workspace, repository_id)
    _raise_if_any(
        check_repository(workspace, slug=row.slug, remote=remote, aliases=aliases, domain_ids=domain_ids, row=row)
    )
    return row_change(principal, row, _stored(remote, aliases, domain_ids) | {"confirmed": confirmed})


@transaction.atomic
def scopes_confirm(*, principal: Principal, model: type[Domain] | type[Repository], ids: Collection[int]) -> int:
    """Confirm domains or repositories; how many were not confirmed before."""
    workspace = _begin(principal)
    rows: QuerySet[Any] = model._default_manager.select_for_update(no_key=True)
    waiting = list(rows.filter(workspace=workspace, pk__in=ids, confirmed=False))
    for row in waiting:
        row_change(principal, row, {"confirmed": True})
    return len(waiting)


def check_repository(
    workspace: Workspace,
    *,
    slug: str,
    remote: str,
    aliases: Sequence[str],
    domain_ids: Sequence[int],
    row: Repository | None = None,
) -> list[FieldError]:
    """Every name must lead to one repository only. ``row`` is the one that is there already."""
    errors = [] if row else _check_slug(slug)
    if not row and parse_remote(slug):
        errors.append(FieldError("slug", "This is a remote. Give its short name here and the remote below."))
    if remote and _remote(remote) is None:
        errors.append(FieldError("remote", f"Write it as `git clone` takes it, such as {EXAMPLE}."))
    errors += check_text(remote, field="remote", max_length=MAX_REMOTE_LENGTH, min_length=0, multiline=False)
    errors += _check_aliases(aliases)
    known = Domain.objects.filter(workspace=workspace, pk__in=domain_ids).count()
    if known != len(set(domain_ids)):
        errors.append(FieldError("domain_ids", "One of these is no domain of this workspace."))
    return errors or _check_taken(workspace, slug, remote, aliases, row)


def _check_aliases(aliases: Sequence[str]) -> list[FieldError]:
    if len(aliases) > MAX_ALIASES:
        return [FieldError("aliases", f"Name at most {MAX_ALIASES}; there are {len(aliases)}.")]
    return [
        error
        for position, alias in enumerate(aliases)
        for error in check_text(
            _alias(alias), field=f"aliases[{position}]", max_length=MAX_NAME_LENGTH, multiline=False
        )
    ]


def _check_taken(
    workspace: Workspace, slug: str, remote: str, aliases: Sequence[str], row: Repository | None
) -> list[FieldError]:
    others = Repository.objects.filter(workspace=workspace)
    if row is not None:
        others = others.exclude(pk=row.pk)
    stored = _stored(remote, aliases, ())
    wanted = [("slug", slug)] if row is None else []
    wanted += [("remote", stored["remote"])] if stored["remote"] else []
    wanted += [("aliases", alias) for alias in stored["aliases"]]
    named = {name for _, name in wanted}
    conflicting = (
        others.filter(Q(slug__in=named) | Q(remote__in=named) | Q(aliases__overlap=sorted(named)))
        if named
        else others.none()
    )
    taken = {name: other.slug for other in conflicting for name in (other.slug, other.remote, *other.aliases)}
    return [
        FieldError(field, f"“{name}” leads to the repository {taken[name]} already.")
        for field, name in wanted
        if name in taken
    ]


def _stored(remote: str, aliases: Sequence[str], domain_ids: Sequence[int]) -> dict[str, Any]:
    """As look-ups compare them: remotes without scheme, user, port and ``.git``."""
    parsed = _remote(remote) if remote else None
    return {
        "remote": parsed.identity if parsed else "",
        "aliases": list(dict.fromkeys(_alias(alias) for alias in aliases)),
        "domain_ids": sorted(set(domain_ids)),
    }


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _remote(value: str) -> Remote | None:
    """A remote as git takes it, or as it is stored: ``git.example.com/acme/pay``."""
    return parse_remote(value) or (parse_remote(f"https://{value.strip()}") if "/" in value else None)


def _alias(value: str) -> str:
    parsed = parse_remote(value)
    return parsed.identity if parsed else value.strip()


def _check_slug(slug: str) -> list[FieldError]:
    return check_text(slug, field="slug", max_length=MAX_NAME_LENGTH, multiline=False)


def _begin(principal: Principal) -> Workspace:
    """One change at a time, because the rules about names span the workspace's rows."""
    principal.require_role(Role.CURATOR, to="change domains and repositories")
    return Workspace.objects.select_for_update(no_key=True).get(pk=principal.workspace.pk)


def _locked(model: type[Any], workspace: Workspace, pk: int) -> Any:
    row = model.objects.select_for_update(no_key=True).filter(workspace=workspace, pk=pk).first()
    if row is None:
        raise NotFound(f"There is no such {model._meta.verbose_name} in this workspace.")
    return row


def _raise_if_any(errors: Sequence[FieldError]) -> None:
    if errors:
        raise Invalid("The values will not do.", errors=errors)
