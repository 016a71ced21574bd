"""Why it does not work: each part looked at by itself, and for each failure what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final

from firm_memory_client.checkout import repository_of, slug_of
from firm_memory_client.client import API, Client
from firm_memory_client.config import Settings
from firm_memory_client.errors import FirmMemoryError, NotAuthenticated, ProblemError, Unreachable
from firm_memory_client.models import Me
from firm_memory_client.transport import USER_AGENT, Reply, Transport, is_open

API_VERSION: Final = "1"
PROTOCOL: Final = "2025-11-25"
MAX_SKEW_SECONDS: Final = 120
EXPIRES_SOON_DAYS: Final = 14
OK, WARN, FAIL, SKIPPED = "ok", "warn", "fail", "skipped"


@dataclass(frozen=True, slots=True)
class Check:
    """``state`` is ``ok``, ``warn``, ``fail`` or ``skipped``; ``kind`` makes the exit code of a failure."""

    name: str
    state: str
    said: str
    todo: str = ""
    kind: str = ""

    def as_dict(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "said": self.said, "todo": self.todo}


class Doctor:
    def __init__(self, settings: Settings, folder: Path, *, timeout: float) -> None:
        self.settings = settings
        self.folder = folder
        self.timeout = timeout
        self._open = Transport(settings.url, None, timeout=timeout, retries=0)
        self._client = (
            Client(settings.url, settings.token.reveal(), timeout=timeout, retries=0) if settings.token else None
        )
        self._me: Me | None = None

    def close(self) -> None:
        self._open.close()
        if self._client is not None:
            self._client.close()

    def examined(self) -> list[Check]:
        """All of them, in the order in which they depend on one another."""
        checks = [self._address(), self._token()]
        reached, date = self._reached()
        checks.append(reached)
        if reached.state == FAIL:
            return [*checks, *(Check(name, SKIPPED, "Not looked at: there is no answer.") for name in _AFTER_REACHED)]
        checks += [self._clock(date), self._ready()]
        if self._client is None:
            return [*checks, *(Check(name, SKIPPED, "Not looked at: there is no token.") for name in _WITH_TOKEN)]
        checks.append(self._who(self._client))
        if self._me is None:
            return [
                *checks,
                *(Check(name, SKIPPED, "Not looked at: the token is refused.") for name in _WITH_TOKEN[1:]),
            ]
        return [*checks, self._scope(self._client, self._me), self._version(self._client), self._mcp(self._client)]

    def _address(self) -> Check:
        said = f"{self.settings.url}, from {self.settings.url_from}."
        if is_open(self.settings.url):
            return Check(
                "address", WARN, said, "It is not encrypted: whoever is on the way can read the token. Use https."
            )
        return Check("address", OK, said)

    def _token(self) -> Check:
        if self.settings.token is None:
            why = f" One is kept, but in {self.settings.token_from}." if self.settings.token_from else ""
            return Check(
                "token",
                FAIL,
                f"There is none.{why}",
                "Ask for one (`manage.py token create NAME --kind agent` on the server), then set FIRM_MEMORY_TOKEN or "
                "run `fm configure`.",
                "usage",
            )
        return Check("token", OK, f"There is one, from {self.settings.token_from}.")

    def _reached(self) -> tuple[Check, str]:
        try:
            reply = self._open.probe("healthz", timeout=self.timeout)
        except Unreachable as error:
            todo = (
                "Is the address right, the service running (`make up`), and the way there open (proxy, VPN, firewall)?"
            )
            return Check("reached", FAIL, str(error), todo, "unreachable"), ""
        if reply.status != 200 or reply.body.strip() != b"ok":
            said = f"Something answers there with {reply.status}, and it is not Firm Memory."
            return Check("reached", FAIL, said, "Name the address of Firm Memory itself.", "unreachable"), ""
        return Check("reached", OK, "It answers."), reply.headers.get("date", "")

    def _clock(self, date: str) -> Check:
        try:
            skew = (datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds()
        except (ValueError, TypeError):
            return Check("clock", SKIPPED, "The service does not say its time.")
        if abs(skew) > MAX_SKEW_SECONDS:
            return Check(
                "clock",
                WARN,
                f"This machine is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} the service.",
                "Set the clock (timedatectl set-ntp true): what expires and what held when is told by it.",
            )
        return Check("clock", OK, "Agrees with the service's.")

    def _ready(self) -> Check:
        try:
            parts = _parts(self._open.probe("readyz", timeout=self.timeout))
        except Unreachable as error:
            return Check("ready", FAIL, str(error), "Ask whoever runs the service.", "unreachable")
        bad = {name: part for name, part in parts.items() if not part.get("ok")}
        told = " ".join(f"{name}: {part.get('detail', '')}" for name, part in bad.items())
        if any(part.get("required") for part in bad.values()):
            return Check("ready", FAIL, told, "Whoever runs the service mends that; its log says more.", "unreachable")
        if bad:
            return Check("ready", WARN, told, "Searches work; what is handed over may wait.")
        return Check("ready", OK, f"{', '.join(parts)}." if parts else "It is.")

    def _who(self, client: Client) -> Check:
        try:
            me = client.me()
        except NotAuthenticated as error:
            return Check(
                "who", FAIL, error.detail, "Ask for a new token, and put it in the place of this one.", "denied"
            )
        except FirmMemoryError as error:
            return Check("who", FAIL, str(error), "Ask whoever runs the service.", "unreachable")
        self._me = me
        said = f"{me.name} ({me.kind}) in {me.workspace}{', reading only' if me.read_only else ''}."
        days = _days_left(me.expires_at)
        if days is not None and days < EXPIRES_SOON_DAYS:
            return Check("who", WARN, f"{said} The token expires in {days:.0f} days.", "Ask for a new one in time.")
        if me.kind == "reviewer":
            return Check(
                "who", WARN, said, "A reviewer's token can decide. Give agents and jobs one of kind agent or bot."
            )
        return Check("who", OK, said)

    def _scope(self, client: Client, me: Me) -> Check:
        remote = repository_of(self.folder)
        if remote is None:
            return Check("scope", OK, "No repository is checked out here: the whole workspace is searched.")
        slug = slug_of(remote)
        if me.repositories and slug not in me.repositories:
            return Check(
                "scope",
                WARN,
                f"{slug} is checked out here, and the token is limited to {', '.join(me.repositories)}.",
                "Name one of these with --repo, or ask for a token that may look here.",
            )
        try:
            found = client.search("which repository is this", repos=[remote], limit=1, strict=True)
        except ProblemError as error:
            return Check("scope", WARN, error.detail, "Name a repository with --repo.")
        except FirmMemoryError as error:
            return Check("scope", FAIL, str(error), "Ask whoever runs the service.", "unreachable")
        if "not known" in found.note.lower() or "unknown" in found.note.lower():
            todo = "Nothing was proposed for it yet, or it has another name there: ask a curator for an alias."
            return Check("scope", WARN, f"{slug}: {found.note}", todo)
        return Check("scope", OK, f"{slug} is checked out here and known.")

    def _version(self, client: Client) -> Check:
        try:
            theirs = str(client.transport.get(f"{API}/schema/").json()["info"]["version"])
        except (FirmMemoryError, ValueError, KeyError, TypeError):
            return Check(
                "version", WARN, "The service does not say which it is.", "Is it an older one? Bring it up to date."
            )
        if theirs != API_VERSION:
            said = f"The service speaks version {theirs}, {USER_AGENT} version {API_VERSION}."
            return Check("version", WARN, said, "Install the client that comes with the service: pip install ./client.")
        return Check("version", OK, f"Version {theirs} on both sides ({USER_AGENT}).")

    def _mcp(self, client: Client) -> Check:
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": PROTOCOL,
                "capabilities": {},
                "clientInfo": {"name": "fm doctor", "version": "1"},
            },
        }
        headers = {"Accept": "application/json, text/event-stream"}
        try:
            reply = client.transport.post_once("mcp", hello, headers, timeout=self.timeout)
            server = reply.json()["result"]["serverInfo"]
        except Unreachable as error:
            return Check("mcp", FAIL, str(error), "A proxy before the service must let /mcp through.", "unreachable")
        except (ValueError, KeyError, TypeError):
            todo = "A proxy before the service must let POST /mcp through, and the Authorization header."
            return Check("mcp", FAIL, "The service does not answer agents.", todo, "unreachable")
        return Check("mcp", OK, f"{server.get('name', 'It')} answers agents at {self.settings.url}/mcp.")


_WITH_TOKEN: Final = ("who", "scope", "version", "mcp")
_AFTER_REACHED: Final = ("clock", "ready", *_WITH_TOKEN)


def _parts(reply: Reply) -> dict[str, Mapping[str, Any]]:
    try:
        parts = reply.json()["parts"]
    except (ValueError, KeyError, TypeError):
        raise Unreachable("What answers for readiness is not Firm Memory's.") from None
    return {str(name): part for name, part in parts.items() if isinstance(part, dict)}


def _days_left(expires_at: str | None) -> float | None:
    if expires_at is None:
        return None
    try:
        moment = datetime.fromisoformat(expires_at)
    except ValueError:
        return None
    return (moment - datetime.now(UTC)).total_seconds() / 86_400
