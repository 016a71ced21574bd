"""`workspace add NAME`: one more firm on this installation."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.services import workspace_add
from apps.core.errors import DomainError


class Command(BaseCommand):
    help = "Add a workspace, seeded with the taxonomy."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="Add a workspace, seeded with the taxonomy.")
        add.add_argument("name", help="Letters, digits, hyphens and underscores.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = workspace_add(slug=options["name"])
        except DomainError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(workspace.slug)
