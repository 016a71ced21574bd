"""Writes to workspaces, memberships and tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q

from apps.accounts.audit import audit_record
from apps.accounts.models import ApiToken, Membership, Role, TokenKind, Workspace
from apps.accounts.principal import Principal, operator
from apps.core.clock import now
from apps.core.errors import Conflict, Forbidden, Invalid, NotFound

DEFAULT_WORKSPACE = "firm"
SECRET_BYTES = 24
PASSWORD_BYTES = 18
USED_AT_RESOLUTION_SECONDS = 60

_seeds: list[Callable[[Workspace], None]] = []


def on_workspace_added(seed: Callable[[Workspace], None]) -> Callable[[Workspace], None]:
    """Have ``seed`` fill every new workspace, in the transaction that adds it; called in ``ready()``."""
    if seed not in _seeds:
        _seeds.append(seed)
    return seed


def workspace_add(*, slug: str) -> Workspace:
    workspace = Workspace(slug=slug)
    try:
        workspace.clean_fields()
    except ValidationError:
        raise Invalid.field(
            "slug",
            f"{slug!r} will not do as the name of a workspace: use 1 to 100 letters, digits, hyphens and underscores.",
        ) from None
    try:
        with transaction.atomic():
            workspace.save(force_insert=True)
            for seed in _seeds:
                seed(workspace)
            audit_record(operator(workspace), "add", subject_kind="workspace", subject_id=workspace.slug)
    except IntegrityError:
        if Workspace.objects.filter(slug=slug).exists():
            raise Conflict(f"The workspace {slug} exists already.", code="workspace_exists") from None
        raise
    return workspace


def workspace_ensure(*, slug: str) -> Workspace:
    """The workspace with this slug, added without seeds when missing. For ``post_migrate``."""
    return Workspace.objects.get_or_create(slug=slug)[0]


@transaction.atomic
def workspace_set_second_person(*, principal: Principal, required: bool) -> Workspace:
    _require_admin(principal, to="change the settings of the workspace")
    workspace = Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
    before = workspace.second_person
    if before != required:
        workspace.second_person = required
        workspace.save(update_fields=["second_person"])
        audit_record(
            principal,
            "change",
            subject_kind="workspace",
            subject_id=workspace.slug,
            before={"second_person": before},
            after={"second_person": required},
        )
    return workspace


@transaction.atomic
def member_add(*, principal: Principal, username: str, role: Role | str, email: str = "") -> str | None:
    """Give a person ``role`` in the principal's workspace.

    Returns the password of a person who is new, and None for one who exists: nothing but the role is changed.
    """
    _require_admin(principal, to="add members")
    role = _role(role)
    _check_person(username, email)
    user = User.objects.filter(username=username).first()
    password = None
    if user is None:
        user, password = _person_create(username, email)
    _membership_set(principal, user, role)
    return password


@transaction.atomic
def member_remove(*, principal: Principal, user: User) -> None:
    """Take a person out of the workspace; their sessions and tokens are refused from the next request on."""
    _require_admin(principal, to="remove members")
    membership = _membership_lock(principal, user)
    if membership is None:
        raise NotFound(f"{user.get_username()} is not a member of {principal.workspace}.")
    _keep_an_admin(principal, membership, becomes=None)
    before = membership.role
    membership.delete()
    audit_record(
        principal,
        "remove",
        subject_kind="membership",
        subject_id=user.get_username(),
        before={"role": before},
    )


@transaction.atomic
def token_create(
    *,
    principal: Principal,
    name: str,
    kind: TokenKind | str,
    owner: User | None = None,
    read_only: bool = False,
    expires_at: datetime | None = None,
    confidence_ceiling: float = 1.0,
    repository_ids: Iterable[int] = (),
) -> tuple[ApiToken, str]:
    """Make a token and return it with its secret, which is kept nowhere.

    On the web an admin makes tokens in their own name only: with the secret of somebody else's token, or of
    an ownerless one, a single person could propose and approve.
    """
    _require_admin(principal, to="create tokens")
    kind = _kind(kind)
    if not principal.is_operator and (owner is None or owner != principal.user):
        raise Forbidden("A token made here is owned by the person who makes it. Others are made on the server.")
    _check_owner(principal.workspace, kind, owner)
    _check_token(name, expires_at, confidence_ceiling)
    secret = f"fm_{kind.value}_{secrets.token_urlsafe(SECRET_BYTES)}"
    token = ApiToken(
        workspace=principal.workspace,
        name=name.strip(),
        kind=kind,
        owner=owner,
        digest=token_digest(secret),
        prefix=secret[: len(f"fm_{kind.value}_") + 4],
        read_only=read_only,
        expires_at=expires_at,
        confidence_ceiling=confidence_ceiling,
        repository_ids=sorted(set(repository_ids)),
    )
    if ApiToken.objects.filter(workspace=principal.workspace, name=token.name).exists():
        raise Conflict(
            f"A token named {token.name} exists already in {principal.workspace}, perhaps a revoked one. "
            "Choose another name.",
            code="token_exists",
        )
    token.save(force_insert=True)
    audit_record(
        principal,
        "create",
        subject_kind="token",
        subject_id=token.pk,
        after={"name": token.name, **token_facts(token)},
    )
    return token, secret


def token_lend(*, principal: Principal, name: str, read_only: bool, repository_ids: Iterable[int] = ()) -> ApiToken:
    """A token of kind agent, owned by the person who asks, that nobody knows the secret of.

    It stands behind what a client is lent by OAuth: nobody can send it as a bearer. Any member may have one made, since
    it may do less than they may and decides nothing.
    """
    person = principal.user
    if principal.kind != "person" or person is None:
        raise Forbidden("Only a person who has signed in connects an agent.")
    _check_owner(principal.workspace, TokenKind.AGENT, person)
    _check_token(name, None, 1.0)
    return ApiToken.objects.create(
        workspace=principal.workspace,
        name=name.strip(),
        kind=TokenKind.AGENT,
        owner=person,
        digest=token_digest(secrets.token_urlsafe(SECRET_BYTES)),
        prefix="OAuth",
        read_only=read_only,
        repository_ids=sorted(set(repository_ids)),
    )


def builtin_bot(workspace: Workspace, name: str) -> ApiToken:
    """The ownerless bot that stands behind what operators bring in by a command. Nobody knows its secret."""
    known = ApiToken.objects.filter(workspace=workspace, name=name).first()
    if known is not None:
        if known.kind != TokenKind.BOT or known.owner_id is not None:
            raise Invalid.field(name, f"A token named {name} exists already and is no ownerless bot. Rename it.")
        return known
    token, _ = token_create(principal=operator(workspace), name=name, kind=TokenKind.BOT)
    return token


@transaction.atomic
def token_revoke(*, principal: Principal, token: ApiToken) -> ApiToken:
    """End a token now. Revoking it again changes nothing."""
    _require_admin(principal, to="revoke tokens")
    return token_end(principal=principal, token=token)


@transaction.atomic
def token_end(*, principal: Principal, token: ApiToken, why: str = "") -> ApiToken:
    """The same for callers that know by what right: whoever lent a token, and whoever finds that it was stolen."""
    locked = ApiToken.objects.select_for_update(of=("self",)).filter(pk=token.pk, workspace=principal.workspace).first()
    if locked is None:
        raise NotFound("There is no such token in this workspace.")
    if locked.revoked_at is None:
        locked.revoked_at = now()
        locked.save(update_fields=["revoked_at"])
        audit_record(
            principal,
            "revoke",
            subject_kind="token",
            subject_id=locked.pk,
            after={"name": locked.name, "revoked_at": locked.revoked_at.isoformat()} | ({"why": why} if why else {}),
        )
    return locked


def token_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def token_facts(token: ApiToken) -> dict[str, Any]:
    """What the audit trail keeps of a token; nothing of its secret."""
    return {
        "kind": token.kind,
        "owner": token.owner.get_username() if token.owner else None,
        "read_only": token.read_only,
        "confidence_ceiling": token.confidence_ceiling,
        "repository_ids": list(token.repository_ids),
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
    }


def token_touch(token: ApiToken) -> None:
    """Note that the token is in use, at most once a minute: most requests write nothing."""
    moment = now()
    seen = token.last_used_at
    if seen is not None and (moment - seen).total_seconds() < USED_AT_RESOLUTION_SECONDS:
        return
    unchanged = Q(last_used_at=seen) if seen is not None else Q(last_used_at__isnull=True)
    ApiToken.objects.filter(unchanged, pk=token.pk).update(last_used_at=moment)


@dataclass(frozen=True, slots=True)
class FirstStart:
    """What a new installation shows once."""

    workspace: str
    username: str
    password: str
    bot_token: str
    agent_token: str


@transaction.atomic
def first_start() -> FirstStart | None:
    """Make the first person and two ownerless tokens, or None where any person or token exists.

    The person is an admin, so that whoever installed this can also curate, invite and review.
    """
    workspace = workspace_ensure(slug=DEFAULT_WORKSPACE)
    # Two processes may start at the same moment: the second one waits here, then finds the first one's rows.
    Workspace.objects.select_for_update().get(pk=workspace.pk)
    if User.objects.exists() or ApiToken.objects.exists():
        return None
    by = operator(workspace)
    password = member_add(principal=by, username="reviewer", role=Role.ADMIN)
    if password is None:  # pragma: no cover - no user existed a moment ago, under the lock
        raise Conflict("A person named reviewer appeared meanwhile.")
    _, bot_token = token_create(principal=by, name="ci-bot", kind=TokenKind.BOT)
    _, agent_token = token_create(principal=by, name="agent", kind=TokenKind.AGENT)
    return FirstStart(workspace.slug, "reviewer", password, bot_token, agent_token)


def _require_admin(principal: Principal, *, to: str) -> None:
    if not principal.is_operator:
        principal.require_role(Role.ADMIN, to=to)


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise Invalid.field("role", f"{role!r} is no role. Choose one of: {', '.join(Role.values)}.") from None


def _kind(kind: TokenKind | str) -> TokenKind:
    try:
        return TokenKind(kind)
    except ValueError:
        raise Invalid.field(
            "kind", f"{kind!r} is no kind of token. Choose one of: {', '.join(TokenKind.values)}."
        ) from None


def _check_person(username: str, email: str) -> None:
    try:
        User(username=username, email=email, password="unset").clean_fields()  # noqa: S106
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise Invalid.field(field, " ".join(messages)) from None


def _person_create(username: str, email: str) -> tuple[User, str]:
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    user = User(username=username, email=User.objects.normalize_email(email))
    user.set_password(password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        raise Conflict(f"A person named {username} was added at the same moment.") from None
    return user, password


def _membership_lock(principal: Principal, user: User) -> Membership | None:
    # The workspace row is locked too: of two admins who remove each other at once, one must fail.
    Workspace.objects.select_for_update().get(pk=principal.workspace.pk)
    return Membership.objects.filter(workspace=principal.workspace, user=user).first()


def _membership_set(principal: Principal, user: User, role: Role) -> None:
    membership = _membership_lock(principal, user)
    before = membership.role if membership else None
    if before == role:
        return
    if membership is None:
        Membership.objects.create(workspace=principal.workspace, user=user, role=role)
    else:
        _keep_an_admin(principal, membership, becomes=role)
        membership.role = role
        membership.save(update_fields=["role"])
    audit_record(
        principal,
        "change" if before else "add",
        subject_kind="membership",
        subject_id=user.get_username(),
        before={"role": before} if before else {},
        after={"role": role.value},
    )


def _keep_an_admin(principal: Principal, membership: Membership, *, becomes: Role | None) -> None:
    if principal.is_operator or membership.role != Role.ADMIN or becomes == Role.ADMIN:
        return
    others = Membership.objects.filter(workspace=principal.workspace, role=Role.ADMIN, user__is_active=True).exclude(
        pk=membership.pk
    )
    if not others.exists():
        raise Conflict(
            f"{principal.workspace} would be left without an admin. Make somebody else an admin first.",
            code="last_admin",
        )


def _check_owner(workspace: Workspace, kind: TokenKind, owner: User | None) -> None:
    if owner is None:
        if kind == TokenKind.REVIEWER:
            raise Invalid.field("owner", "A token of kind reviewer acts for a person: name its owner.")
        return
    if not owner.is_active:
        raise Invalid.field("owner", f"{owner.get_username()} has been deactivated and can own no token.")
    if not Membership.objects.filter(workspace=workspace, user=owner).exists():
        raise Invalid.field(
            "owner",
            f"{owner.get_username()} is not a member of {workspace}. Add the person as a member first.",
        )


def _check_token(name: str, expires_at: datetime | None, ceiling: float) -> None:
    if not name.strip() or len(name) > 100 or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", name):
        raise Invalid.field("name", "Give the token a name of 1 to 100 characters, without control characters.")
    if expires_at is not None and expires_at <= now():
        raise Invalid.field("expires_at", "The token would have expired already. Choose a time in the future.")
    if not 0 <= ceiling <= 1:
        raise Invalid.field("confidence_ceiling", f"{ceiling} is out of range. Choose a number from 0 to 1.")
