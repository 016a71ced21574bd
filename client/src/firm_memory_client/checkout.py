"""The checkout that somebody works in: its root, its repository, its commit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_SECONDS: Final = 5
_FIRST_TRIED: Final = ("origin", "upstream")
_SCP_LIKE: Final = re.compile(r"^(?:[^@/\s:]+@)?(?P<host>\[[^\]\s]+\]|[^/\s:@\[\]]{2,}):(?!//)(?P<path>[^\s]+)$")
_SCHEMES: Final = frozenset({"ssh", "git", "http", "https", "git+ssh", "git+https", "git+http", "ssh+git"})


def repository_of(folder: Path) -> str | None:
    """The remote of the checkout that ``folder`` is in, without whoever it is fetched as; None where there is none."""
    names = (_git(folder, "remote") or "").split()
    for name in sorted(names, key=lambda each: (each not in _FIRST_TRIED, each != _FIRST_TRIED[0], names.index(each))):
        identity = _identity(_git(folder, "remote", "get-url", name) or "")
        if identity is not None:
            return f"https://{identity}"
    return None


def slug_of(remote: str) -> str:
    """How a remote is called in scopes and sources: ``acme/pay``. A plain name is its own."""
    identity = _identity(remote)
    return identity.partition("/")[2] if identity else remote.strip()


def root_of(folder: Path) -> Path:
    """Where the checkout begins, or ``folder`` itself outside of one."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    return Path(top).resolve() if top else folder.resolve()


def commit_of(folder: Path) -> str | None:
    return _git(folder, "rev-parse", "--verify", "--quiet", "HEAD") or None


def tracked(root: Path) -> list[str] | None:
    """Paths from ``root`` that git knows or would add; None where git does not tell."""
    said = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    return None if said is None else [path for path in said.split("\0") if path]


def _identity(value: str) -> str | None:
    value = value.strip()
    if "://" in value:
        try:
            parts = urlsplit(value)
            host, path = parts.hostname or "", unquote(parts.path)
        except ValueError:
            return None
        if parts.scheme.lower() not in _SCHEMES or not host:
            return None
        return _joined(host, path)
    match = _SCP_LIKE.match(value)
    if match and ("@" in value.split(":", 1)[0] or "." in match["host"] or "/" in match["path"]):
        return _joined(match["host"], match["path"])
    return None


def _joined(host: str, path: str) -> str | None:
    path = re.sub(r"/{2,}", "/", path).strip("/").lower().removesuffix(".git").strip("/")
    return f"{host.strip('[]').lower().rstrip('.')}/{path}" if path else None


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout.decode().strip("\r\n ") if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
