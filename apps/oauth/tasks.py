"""What the worker clears away: what has run out, and clients that nobody connected."""

from __future__ import annotations

from allauth.idp.oidc.models import Token

from apps.oauth.clients import clients_forget
from apps.oauth.services import connections_run_out


def sweep() -> int:
    """How many rows are gone."""
    gone, _ = Token.objects.expired().delete()
    connections_run_out()
    return gone + clients_forget()
