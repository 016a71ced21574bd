"""``manage.py capture status|report|retry``: how the inbox is, what its material cost, and another try."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from apps.accounts.principal import operator
from apps.accounts.selectors import workspace_get
from apps.accounts.services import DEFAULT_WORKSPACE
from apps.capture.budget import tokens_of_the_day
from apps.capture.models import CaptureEvent, EventState
from apps.capture.selectors import Cost, costs, inbox_state
from apps.capture.services import events_retry
from apps.core.errors import DomainError

SHOWN = 20


class Command(BaseCommand):
    help = "Look at raw material that was handed over, what it cost, and have what was given up tried again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE)
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("status", help="What waits, what failed and what was given up, with the reasons.")
        report = actions.add_parser("report", help="What became of the material of each kind, and what that cost.")
        report.add_argument("--days", type=int, default=30)
        retry = actions.add_parser("retry", help="Have what was given up tried again.")
        retry.add_argument("event", nargs="?", type=UUID, help="Only this one.")

    def handle(self, **options: Any) -> None:
        try:
            getattr(self, f"_{options['action']}")(options)
        except DomainError as error:
            raise CommandError(error.detail) from None

    def _status(self, options: dict[str, Any]) -> None:
        workspace, state = workspace_get(options["workspace"]), inbox_state()
        self.stdout.write(
            f"{state.waiting:,} wait, {state.processing:,} are being read, "
            f"{state.failed:,} failed and will be tried again, "
            f"{state.dead:,} were given up. The oldest that is not done came {state.oldest_seconds:,.0f} s ago. "
            f"Tokens of today: {tokens_of_the_day():,}."
        )
        troubled = CaptureEvent.objects.of(workspace).filter(state__in=(EventState.FAILED, EventState.DEAD))
        for event in troubled[:SHOWN]:
            self.stdout.write(f"{event.pk}  {event.state:<7} {event.kind} {event.external_id[:60]}: {event.reason}")

    def _report(self, options: dict[str, Any]) -> None:
        found = costs(workspace_get(options["workspace"]), days=options["days"])
        if not found:
            self.stdout.write(f"Nothing was finished in {options['days']} days.")
            return
        self.stdout.write(_HEAD)
        for cost in found:
            self.stdout.write(_line(cost))
        self.stdout.write(_equation(found))

    def _retry(self, options: dict[str, Any]) -> None:
        principal = operator(workspace_get(options["workspace"]))
        retried = events_retry(principal=principal, event_id=options["event"])
        if options["event"] and not retried:
            raise CommandError(f"{options['event']} was not given up, or is not of this workspace.")
        self.stdout.write(f"{retried:,} are tried again.")


_HEAD = "kind             messages     read  queued  quarantined  known  excluded  dropped  overruled  calls     tokens"


def _line(cost: Cost) -> str:
    return (
        f"{cost.kind:<15} {cost.messages:>9,} {cost.share_read:>8.0%} {cost.queued:>7,} {cost.quarantined:>12,} "
        f"{cost.duplicate:>6,} {cost.excluded:>9,} {cost.dropped:>8,} {cost.overruled:>10,} {cost.calls:>6,} "
        f"{cost.tokens:>10,}"
    )


def _equation(found: list[Cost]) -> str:
    """tokens = messages × share read × calls for each that is read × tokens of a call, with what was measured."""
    messages, read = sum(cost.messages for cost in found), sum(cost.read for cost in found)
    calls, tokens = sum(cost.calls for cost in found), sum(cost.tokens for cost in found)
    made = sum(cost.queued + cost.quarantined for cost in found)
    lines = [
        f"{messages:,} messages × {read / messages:.1%} read × {calls / read if read else 0:.2f} calls each × "
        f"{tokens / calls if calls else 0:,.0f} tokens a call = {tokens:,} tokens."
    ]
    if made:
        lines.append(f"{made:,} events brought candidates: {tokens / made:,.0f} tokens for each of them.")
    return "\n".join(lines)
