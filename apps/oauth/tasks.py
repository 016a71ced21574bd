"""What the worker clears away: tokens and codes that have run out, and clients that nobody connected."""

from __future__ import annotations

from allauth.idp.oidc.models import Token

from apps.oauth.clients import clients_forget


def sweep() -> int:
    """How many rows are gone."""
    gone, _ = Token.objects.expired().delete()
    return gone + clients_forget()
