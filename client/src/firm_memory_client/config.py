"""Where the address and the token come from: the environment, else a file that only its owner can read."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomlkit

from firm_memory_client.client import DEFAULT_URL
from firm_memory_client.errors import Misconfigured
from firm_memory_client.transport import Secret, checked_token, checked_url
from firm_memory_client.writing import write_atomically

URL: Final = "FIRM_MEMORY_URL"
TOKEN: Final = "FIRM_MEMORY_TOKEN"  # noqa: S105 - the name of a variable
_KEYS: Final = frozenset({"url", "token"})
_REFERENCE: Final = re.compile(r"\$?\{[^{}]*\}|\$\w+")


@dataclass(frozen=True, slots=True)
class Settings:
    """``said_by`` tells of each value where it comes from."""

    url: str
    token: Secret | None
    url_from: str
    token_from: str


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    return folder / "firm-memory" / "config.toml"


def state_path(environ: Mapping[str, str] = os.environ) -> Path:
    base = environ.get("XDG_STATE_HOME", "")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "state"
    return folder / "firm-memory"


def settings(url: str | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """From ``url``, else the environment, else the file. Raises ``Misconfigured`` with what to do.

    The token in the file goes to the address in the file and to no other, so that an address that a checkout brings
    along gets none.
    """
    path = config_path(environ)
    kept = _read(path)
    named = url or environ.get(URL, "").strip()
    address = checked_url(named or kept.get("url") or DEFAULT_URL)
    url_from = "--url" if url else URL if named else str(path) if kept.get("url") else "the default"
    if is_set(environ.get(TOKEN)):
        return Settings(address, checked_token(environ[TOKEN]), url_from, TOKEN)
    if kept.get("token") and address == checked_url(kept.get("url") or DEFAULT_URL):
        return Settings(address, checked_token(kept["token"]), url_from, str(path))
    return Settings(address, None, url_from, f"{path}, for another address" if kept.get("token") else "")


def kept_url(environ: Mapping[str, str] = os.environ) -> str:
    """The address in the file. Not that in the environment, which a checkout may bring along."""
    return _read(config_path(environ)).get("url", "")


def is_set(value: str | None) -> bool:
    """Whether there is something in a variable. An agent's client that knows no ``X`` may pass on ``${X}`` itself."""
    said = (value or "").strip()
    return bool(said) and _REFERENCE.fullmatch(said) is None


def settings_write(url: str, token: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Keep both in the file, with mode 600; other keys and comments in it stay."""
    path = config_path(environ)
    _read(path)
    document = tomlkit.parse(path.read_text(encoding="utf-8")) if path.exists() else tomlkit.document()
    document["url"] = checked_url(url)
    document["token"] = checked_token(token).reveal()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(path, tomlkit.dumps(document).encode(), mode=0o600)
    return path


def _read(path: Path) -> dict[str, str]:
    try:
        raw = path.read_bytes()
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Misconfigured(f"{path} cannot be read: {error.strerror}.") from None
    try:
        values: dict[str, Any] = tomllib.loads(raw.decode())
    except ValueError:
        raise Misconfigured(f"{path} is no TOML. Mend it, or remove it and run `fm configure`.") from None
    unknown = sorted(set(values) - _KEYS)
    if unknown or not all(isinstance(value, str) for value in values.values()):
        raise Misconfigured(f"{path} may hold the texts url and token, and nothing else.")
    if os.name == "posix" and values.get("token") and mode & 0o077:
        raise Misconfigured(f"{path} holds a token and others can read it. Run: chmod 600 {path}")
    return values
