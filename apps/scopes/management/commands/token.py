"""`token create NAME --kind KIND` prints the token, and nothing else on standard output.

It stands in this room and not among the accounts, because a token can be limited to repositories, which are known here.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from apps.accounts.models import ApiToken, TokenKind, Workspace
from apps.accounts.principal import operator
from apps.accounts.selectors import workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE, token_create, token_revoke
from apps.core.clock import now
from apps.core.errors import DomainError
from apps.scopes.services import repositories_register

MAX_DAYS = 3650
OPTIONS = {"owner": "--user", "confidence_ceiling": "--ceiling", "repos": "--repo"}


class Command(BaseCommand):
    help = "Create, list and revoke tokens for REST and MCP."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        create = actions.add_parser("create", help="Create a token and print it, once.")
        create.add_argument("name")
        create.add_argument("--kind", required=True, choices=TokenKind.values)
        create.add_argument("--user", help="Who owns it. A token of kind reviewer acts for this person.")
        create.add_argument("--read-only", action="store_true")
        create.add_argument("--expires", type=_days, metavar="DAYS")
        create.add_argument(
            "--ceiling",
            type=float,
            default=1.0,
            metavar="SHARE",
            help="Its proposals count with at most this confidence, from 0 to 1.",
        )
        create.add_argument(
            "--repo",
            action="append",
            default=[],
            metavar="SLUG",
            help="Limit it to this repository: a slug, an alias or a remote. Repeats.",
        )
        revoke = actions.add_parser("revoke", help="End a token now.")
        revoke.add_argument("name")
        listing = actions.add_parser("list", help="List the tokens, without their secrets.")
        for action in (create, revoke, listing):
            action.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, *args: Any, **options: Any) -> None:
        action = {"create": self.create, "revoke": self.revoke, "list": self.show}[options["action"]]
        try:
            action(workspace_get(options["workspace"]), options)
        except DomainError as error:
            raise CommandError(_told(error)) from error

    @transaction.atomic  # a token that is refused registers no repository either
    def create(self, workspace: Workspace, options: dict[str, Any]) -> None:
        days: int | None = options["expires"]
        _, secret = token_create(
            principal=operator(workspace),
            name=options["name"],
            kind=options["kind"],
            owner=_person(options["user"]),
            read_only=options["read_only"],
            expires_at=now() + timedelta(days=days) if days else None,
            confidence_ceiling=options["ceiling"],
            repository_ids=self._repository_ids(workspace, options["repo"]),
        )
        self.stdout.write(secret)

    def revoke(self, workspace: Workspace, options: dict[str, Any]) -> None:
        token = ApiToken.objects.filter(workspace=workspace, name=options["name"]).first()
        if token is None:
            raise CommandError(f"There is no token named {options['name']} in {workspace}.")
        token_revoke(principal=operator(workspace), token=token)

    def show(self, workspace: Workspace, options: dict[str, Any]) -> None:
        for token in ApiToken.objects.filter(workspace=workspace).select_related("owner"):
            owner = token.owner.get_username() if token.owner else "-"
            self.stdout.write("\t".join([token.name, token.kind, owner, f"{token.prefix}…", _state(token)]))

    def _repository_ids(self, workspace: Workspace, names: list[str]) -> list[int]:
        found, new = repositories_register(workspace, names)
        for slug in new:
            self.stderr.write(f"The repository {slug} was not known and is now registered, unconfirmed.")
        return [row.pk for row in found]


def _person(name: str | None) -> User | None:
    if name is None:
        return None
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"There is nobody named {name}. Add the person with `manage.py member add {name}`.")
    return user


def _told(error: DomainError) -> str:
    """With the option that will not do, which is not always called like the field."""
    named = [(OPTIONS.get(each.field.partition("[")[0]), each.message) for each in error.errors]
    return " ".join(f"{option}: {message}" for option, message in named if option) or error.detail


def _days(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= MAX_DAYS:
        raise ArgumentTypeError(f"{text} is not a whole number of days from 1 to {MAX_DAYS}.")
    return int(text)


def _state(token: ApiToken) -> str:
    if token.revoked_at is not None:
        return f"revoked {token.revoked_at:%Y-%m-%d}"
    if token.expires_at is None:
        return "active"
    return f"{'expired' if token.expires_at <= now() else 'active until'} {token.expires_at:%Y-%m-%d}"
