"""Make the first person and tokens of a new installation; do nothing on any other."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from apps.accounts.services import first_start


class Command(BaseCommand):
    help = "Create and print, once, a first reviewer and tokens where there is nobody yet."

    def handle(self, *args: Any, **options: Any) -> None:
        made = first_start()
        if made is None:
            return
        self.stdout.write(
            "\n".join(
                [
                    "",
                    "First start. This is shown once and kept nowhere:",
                    f"  reviewer     {made.username}",
                    f"  password     {made.password}",
                    f"  bot token    {made.bot_token}   (proposes from CI)",
                    f"  agent token  {made.agent_token}   (searches and proposes)",
                    "More people and tokens: `manage.py member add`, `manage.py token create`.",
                    "",
                ]
            )
        )
