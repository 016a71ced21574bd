"""What the environment says, refused in sentences where it will not do.

Every setting is read through one ``Environment``, which goes on with the default where a value will not do, so that
``refuse`` can name all of them at once: each by its variable, with what it is and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

_ON: Final = ("on", "true", "yes", "1")
_OFF: Final = ("off", "false", "no", "0")
_SHOWN: Final = 60
_HOST: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,62})(\.[a-z0-9]([a-z0-9-]{0,62}))+")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,39}")
SCHEMES_OF_BROWSERS: Final = frozenset(
    (
        *("http", "https", "javascript", "data", "file", "blob", "about", "vbscript", "ws", "wss", "ftp", "mailto"),
        *("tel", "sms", "view-source", "filesystem", "chrome", "content", "intent", "jar", "resource", "urn"),
    )
)


class Environment:
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.problems: list[str] = []

    def refuse(self) -> None:
        """Raise ``ImproperlyConfigured`` with a line for every value that will not do."""
        if self.problems:
            raise ImproperlyConfigured("\n".join(self.problems))

    def problem(self, sentence: str) -> None:
        self.problems.append(sentence)

    def text(self, name: str, default: str = "") -> str:
        return self._values.get(name, default).strip()

    def number(self, name: str, default: int, *, least: int = 0, most: int) -> int:
        text = self.text(name)
        if not text:
            return default
        if text.isascii() and text.isdecimal() and len(text) <= 18 and least <= int(text) <= most:
            return int(text)
        self._will_not_do(name, f"Write a whole number from {least:,} to {most:,}.")
        return default

    def switch(self, name: str, *, default: bool) -> bool:
        text = self.text(name).lower()
        if text not in ("", *_ON, *_OFF):
            self._will_not_do(name, "Write on or off.")
            return default
        return default if not text else text in _ON

    def choice(self, name: str, default: str, *, among: Sequence[str]) -> str:
        """One of these, in whatever case it is written."""
        text = self.text(name) or default
        found = next((known for known in among if known.lower() == text.lower()), None)
        if found is None:
            self._will_not_do(name, f"Write one of: {', '.join(among)}.")
        return default if found is None else found

    def listed(self, name: str, default: Sequence[str] = ()) -> list[str]:
        """Values with commas between them."""
        found = [part.strip() for part in self.text(name).split(",")]
        return [part for part in found if part] or list(default)

    def folder(self, name: str, default: Path) -> Path:
        """Made where it is missing, once it is needed; what is there already must be a folder."""
        path = Path(self.text(name) or default).absolute()
        above = next(place for place in (path, *path.parents) if place.exists())
        if not above.is_dir():
            self._will_not_do(name, f"{above} is no folder. Name one that exists, or that can be made.")
        return path.resolve()

    def origins(self, name: str, default: Sequence[str]) -> list[str]:
        found = self.listed(name, default)
        wrong = [origin for origin in found if not origin.startswith(("https://", "http://"))]
        if wrong:
            self._will_not_do(name, "Write each with its scheme, such as https://memory.example.com.")
        return found

    def hosts(self, name: str) -> list[str]:
        """Host names alone, in lower case."""
        found = [host.lower() for host in self.listed(name)]
        if any(not _HOST.fullmatch(host) for host in found):
            self._will_not_do(name, "Write host names alone, with commas between, such as vscode.dev.")
        return found

    def schemes(self, name: str) -> list[str]:
        """Schemes that programs register for themselves, such as ``cursor``; none that a browser acts upon."""
        found = [scheme.lower() for scheme in self.listed(name)]
        if any(not _SCHEME.fullmatch(scheme) or scheme in SCHEMES_OF_BROWSERS for scheme in found):
            self._will_not_do(name, "Write schemes of programs without colon, with commas between, such as cursor.")
        return [scheme for scheme in found if scheme not in SCHEMES_OF_BROWSERS]

    def _will_not_do(self, name: str, advice: str) -> None:
        self.problem(f"{name} is {self.text(name)[:_SHOWN]!r}. {advice}")


def listening(environment: Environment) -> tuple[str, int]:
    """The address and the port of the web."""
    host = environment.text("FIRM_MEMORY_BIND") or "127.0.0.1"
    if any(character.isspace() or character == "/" for character in host):
        environment.problem(f"FIRM_MEMORY_BIND is {host[:_SHOWN]!r}. Write one address, such as 127.0.0.1 or ::1.")
    return host, environment.number("FIRM_MEMORY_PORT", 8100, least=1, most=65_535)


def base_url(environment: Environment, host: str, port: int) -> str:
    """The address by which others reach this service, as scheme and host; where it listens, unless told."""
    written = environment.text("FIRM_MEMORY_BASE_URL").rstrip("/").lower()
    here = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if not written:
        return here
    try:
        parts = urlsplit(written)
        plain = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        plain = False
    if not plain or written != f"{parts.scheme}://{parts.netloc}" or "@" in written or any(map(str.isspace, written)):
        environment.problem(
            f"FIRM_MEMORY_BASE_URL is {written[:_SHOWN]!r}. Write scheme and host alone, such as https://memory.example.com."
        )
        return here
    return written


def web_processes(environment: Environment) -> tuple[int, int]:
    """How many processes serve the web, and how many threads each has."""
    workers = environment.number("FIRM_MEMORY_WEB_WORKERS", 1, least=1, most=256)
    return workers, environment.number("FIRM_MEMORY_WEB_THREADS", 8, least=1, most=1_024)
