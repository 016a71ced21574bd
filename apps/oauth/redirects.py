"""Where a code may be sent. The rules are those of RFC 8252 and OAuth 2.1, compared letter by letter."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

MAX_LENGTH: Final = 500
LOOPBACK: Final = frozenset(("localhost", "127.0.0.1", "::1"))
OPEN: Final = "on"

# Printable ASCII without quotes, angle brackets, backslash, backtick, braces and wildcard: nothing that two readers of
# an address could take differently, and nothing that could end a header or a policy.
_PLAIN: Final = re.compile(r"[!#$%&'()+,\-./0-9:;=?@A-Z\[\]_a-z~]+")
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Place:
    """A redirect address, taken apart once."""

    uri: str
    scheme: str
    host: str
    port: int | None

    @property
    def is_loopback(self) -> bool:
        return self.scheme == "http" and self.host in LOOPBACK

    @property
    def is_web(self) -> bool:
        return self.scheme in ("http", "https")

    @property
    def origin(self) -> str:
        """Scheme, host and port of a page; of a program its scheme."""
        if not self.is_web:
            return f"{self.scheme}:"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")

    @property
    def source(self) -> str:
        """The origin as a content security policy writes it, which has no way to write an address of IPv6."""
        return f"{self.scheme}:" if ":" in self.host else self.origin


def place(uri: object) -> Place | None:
    """None for what is no address that a code may be sent to by anybody.

    That is what is relative, has a fragment, a user name or a wildcard, is plain http to another computer, or has a
    scheme that no operator allowed.
    """
    if not isinstance(uri, str) or len(uri) > MAX_LENGTH or not _PLAIN.fullmatch(uri) or "#" in uri:
        return None
    try:
        parts = urlsplit(uri)
        found = Place(uri, parts.scheme, parts.hostname or "", parts.port)
    except ValueError:
        return None
    return found if _is_sound(found, parts) else None


def _is_sound(found: Place, parts: SplitResult) -> bool:
    if not found.uri.startswith(f"{found.scheme}:") or "@" in parts.netloc:
        return False
    if found.scheme == "https":
        return bool(_HOST.fullmatch(found.host)) and parts.netloc == parts.netloc.lower()
    if found.scheme == "http":
        return found.is_loopback and parts.netloc == parts.netloc.lower()
    return found.scheme in settings.FIRM_MEMORY_OAUTH_SCHEMES


def may_register(found: Place) -> bool:
    """Whether a client that nobody here knows may have codes sent there."""
    if not found.is_web or found.is_loopback:
        return True
    return settings.FIRM_MEMORY_OAUTH_REGISTRATION == OPEN or found.host in settings.FIRM_MEMORY_OAUTH_HOSTS


def matches(asked: Place, registered: str) -> bool:
    """The same letter by letter; a program on this computer may listen on whatever port is free."""
    if asked.uri == registered:
        return True
    known = place(registered)
    if known is None or not (known.is_loopback and asked.is_loopback):
        return False
    return _without_port(asked) == _without_port(known)


def _without_port(found: Place) -> tuple[str, str, str]:
    parts = urlsplit(found.uri)
    return found.host, parts.path or "/", parts.query
