"""`oauth add NAME --redirect URI` prints the id of the client, and nothing else on standard output."""

from __future__ import annotations

from typing import Any

from allauth.idp.oidc.models import Client
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Count, Q

from apps.accounts.principal import operator
from apps.accounts.selectors import workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE
from apps.core.errors import DomainError
from apps.oauth.clients import client_add, shown_name
from apps.oauth.redirects import place
from apps.oauth.services import connections_end


class Command(BaseCommand):
    help = "Add and list clients of OAuth, and end what people have connected."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        add = actions.add_parser("add", help="Add a client that need not register itself, and print its id.")
        add.add_argument("name")
        add.add_argument(
            "--redirect", action="append", required=True, metavar="URI", help="Where a code may be sent. Repeats."
        )
        actions.add_parser("list", help="List the clients, with how many connections of each are living.")
        end = actions.add_parser("end", help="End every connection in a workspace now, or those of one person.")
        end.add_argument("--user", help="Only those of this person.")
        end.add_argument("--workspace", default=DEFAULT_WORKSPACE)

    def handle(self, *args: Any, **options: Any) -> None:
        action = {"add": self.add, "list": self.show, "end": self.end}[options["action"]]
        try:
            action(options)
        except DomainError as error:
            raise CommandError(error.detail) from error

    def add(self, options: dict[str, Any]) -> None:
        redirects = [place(uri) for uri in options["redirect"]]
        sound = [each for each in redirects if each is not None]
        if len(sound) < len(redirects):
            raise CommandError(
                "A redirect address must be https, http on this computer, or of a scheme in FIRM_MEMORY_OAUTH_SCHEMES."
            )
        self.stdout.write(client_add(name=shown_name(options["name"]), redirects=sound).pk)

    def show(self, options: dict[str, Any]) -> None:
        living = Count("connections", filter=Q(connections__token__revoked_at__isnull=True))
        for client in Client.objects.annotate(living=living).order_by("created_at"):
            kind = (client.data or {}).get("kind", "added")
            self.stdout.write(
                "\t".join([client.pk, kind, str(client.living), client.name, *client.get_redirect_uris()])
            )

    def end(self, options: dict[str, Any]) -> None:
        ended = connections_end(principal=operator(workspace_get(options["workspace"])), username=options["user"])
        self.stdout.write(f"{ended} ended.")
