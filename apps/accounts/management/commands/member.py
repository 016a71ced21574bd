"""`member add NAME --role ROLE` prints the password of somebody new, and nothing else on standard output."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import Membership, Role
from apps.accounts.principal import operator
from apps.accounts.selectors import workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE, member_add, member_remove
from apps.core.errors import DomainError


class Command(BaseCommand):
    help = "Add people to a workspace, change their role, list them or remove them."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="Add a person, or give one who exists a role.")
        add.add_argument("name")
        add.add_argument("--role", required=True, choices=Role.values)
        add.add_argument("--email", default="", help="With it the person can sign in by Google, if set up.")
        remove = actions.add_parser("remove", help="Take a person out of the workspace.")
        remove.add_argument("name")
        listing = actions.add_parser("list", help="List the members.")
        for action in (add, remove, listing):
            action.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, *args: Any, **options: Any) -> None:
        action = {"add": self.add, "remove": self.remove, "list": self.show}[options["action"]]
        try:
            action(options)
        except DomainError as error:
            raise CommandError(error.detail) from error

    def add(self, options: dict[str, Any]) -> None:
        workspace = workspace_get(options["workspace"])
        password = member_add(
            principal=operator(workspace),
            username=options["name"],
            role=options["role"],
            email=options["email"],
        )
        if password is not None:
            self.stdout.write(password)
        else:
            self.stderr.write(
                f"{options['name']} exists and is now {options['role']} in {workspace}. The password is as it was; "
                f"set another with `manage.py changepassword {options['name']}`."
            )

    def remove(self, options: dict[str, Any]) -> None:
        workspace = workspace_get(options["workspace"])
        user = User.objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(f"There is nobody named {options['name']}.")
        member_remove(principal=operator(workspace), user=user)

    def show(self, options: dict[str, Any]) -> None:
        rows = Membership.objects.filter(workspace=workspace_get(options["workspace"]))
        for row in rows.select_related("user").order_by("user__username"):
            self.stdout.write(f"{row.user.get_username()}\t{row.role}")
