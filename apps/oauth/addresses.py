"""Where things are, as others name them. All of it follows from one setting and nothing from a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from django.conf import settings
from django.urls import reverse

# What a client may ask for, and what of it a token must name to be let in by a door.
DOORS: Final = {"mcp": "/mcp", "rest": "/api/v1"}
EVERYTHING: Final = ""

READ: Final = "memory:read"
PROPOSE: Final = "memory:propose"
SCOPES: Final = (READ, PROPOSE)


def base() -> str:
    """Scheme and host, which is the issuer too."""
    address: str = settings.FIRM_MEMORY_BASE_URL
    return address


def absolute(name: str) -> str:
    return base() + reverse(name)


def resource(path: str) -> str:
    return base() + path


def known_resource(asked: str) -> str | None:
    """The resource as it is called here, or None for one that is elsewhere."""
    ours = [resource(path) for path in (EVERYTHING, *DOORS.values())]
    return next((each for each in ours if asked in (each, f"{each}/")), None)


def opens(resources: Iterable[str], via: str) -> bool:
    """Whether a token that was made for these resources is meant for this door."""
    door = DOORS.get(via)
    return door is not None and not {resource(EVERYTHING), resource(door)}.isdisjoint(resources)


def protected_resource_metadata(path: str) -> str:
    """Where RFC 9728 has a client look for what protects a resource."""
    return f"{base()}/.well-known/oauth-protected-resource{path}"


def challenge(path: str, *, error: str = "") -> str:
    """The value of ``WWW-Authenticate`` with which a client finds its way to the consent of a person."""
    parts = [
        'Bearer realm="firm-memory"',
        *([f'error="{error}"'] if error else []),
        f'resource_metadata="{protected_resource_metadata(path)}"',
        f'scope="{" ".join(SCOPES)}"',
    ]
    return ", ".join(parts)
