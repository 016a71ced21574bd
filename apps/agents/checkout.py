"""Which repository is checked out where an agent works."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from apps.scopes.identity import parse_remote

_SECONDS: Final = 5
_FIRST_TRIED: Final = ("origin", "upstream")


def remote_of(folder: Path) -> str | None:
    """The remote of the checkout that ``folder`` is in, without whoever it is fetched as; None where there is none."""
    names = _git(folder, "remote").split()
    for name in sorted(names, key=lambda each: (each not in _FIRST_TRIED, each != _FIRST_TRIED[0], names.index(each))):
        remote = parse_remote(_git(folder, "remote", "get-url", name))
        if remote is not None:
            return f"https://{remote.identity}"
    return None


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
