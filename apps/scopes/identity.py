"""Which repository a git remote names."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_SCP_LIKE = re.compile(r"^(?:[^@/\s:]+@)?(?P<host>\[[^\]\s]+\]|[^/\s:@\[\]]{2,}):(?!//)(?P<path>[^\s]+)$")
_SCHEMES = frozenset({"ssh", "git", "http", "https", "git+ssh", "git+https", "git+http", "ssh+git"})


class Remote(NamedTuple):
    """Where a repository lives: host in lower case without port or user, path without ``.git``."""

    host: str
    path: str

    @property
    def identity(self) -> str:
        return f"{self.host}/{self.path}"


def parse_remote(value: str) -> Remote | None:
    """Read a remote in URL or scp form; ``None`` when ``value`` is a plain name such as ``acme/pay``."""
    value = value.strip()
    if "://" in value:
        return _parse_url(value)
    match = _SCP_LIKE.match(value)
    if match and ("@" in value.split(":", 1)[0] or "." in match["host"] or "/" in match["path"]):
        return _remote(match["host"], match["path"])
    return None


def _parse_url(value: str) -> Remote | None:
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
    except ValueError:
        return None
    if parts.scheme.lower() not in _SCHEMES or not host:
        return None
    return _remote(host, unquote(parts.path))


def _remote(host: str, path: str) -> Remote | None:
    path = re.sub(r"/{2,}", "/", path).strip("/").lower()
    path = path.removesuffix(".git").strip("/")
    return Remote(host.strip("[]").lower().rstrip("."), path) if path else None


def repository_identity(remote: str) -> str:
    """The slug of the repository that ``remote`` names.

    Deterministic: scheme, user, port, host, case and a trailing ``.git`` make no difference, so that a checkout
    over ssh and one over https are the same repository. A plain name is its own identity.
    """
    parsed = parse_remote(remote)
    return parsed.path if parsed else remote.strip()
