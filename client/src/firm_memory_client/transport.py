"""HTTP to one Firm Memory: the token, time limits, repetitions and redirects.

The token is put into a request at the last moment and only for the address that it is for. No error of the HTTP library
leaves this module, since those carry the request, and the request carries the token.
"""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urljoin, urlsplit, urlunsplit
from uuid import uuid4

import httpx2 as httpx

from firm_memory_client.about import __version__
from firm_memory_client.errors import (
    FieldProblem,
    FirmMemoryError,
    InsecureWarning,
    Misconfigured,
    Unreachable,
    kind_of,
)

_CONNECT_SECONDS: Final = 5.0
_MAX_ANSWER: Final = 64 * 1024 * 1024
_MAX_REDIRECTS: Final = 3
_LATER: Final = frozenset({429, 502, 503, 504})
_BACKOFF: Final = 0.25
_MOST_BACKOFF: Final = 5.0

Query = Mapping[str, str | int | Sequence[str] | None]


USER_AGENT: Final = f"firm-memory-client/{__version__}"


class Secret:
    """A token that shows itself nowhere but in ``reveal``."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("A token is not pickled.")

    def reveal(self) -> str:
        return self._value

    def masked(self, text: str) -> str:
        """``text`` without the token, should somebody have sent it back."""
        return text.replace(self._value, "[token]") if self._value else text


def checked_token(value: str | None) -> Secret:
    """``Misconfigured`` for one that could not be a header; its own text is in no message."""
    token = (value or "").strip()
    if not token:
        raise Misconfigured("There is no token. Set FIRM_MEMORY_TOKEN, or run `fm configure`.")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise Misconfigured("The token holds spaces or characters that no token has. Copy it anew: fm_<kind>_…")
    return Secret(token)


def checked_url(value: str) -> str:
    """The address without a slash at its end and without the paths that people copy along."""
    try:
        parts = urlsplit(value.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Misconfigured("The address cannot be read. Write it like https://memory.example.com.") from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise Misconfigured("The address is no web address. Write it like https://memory.example.com.")
    if parts.username is not None or parts.password is not None:
        raise Misconfigured("The address holds a name or a password. Leave them out; the token is enough.")
    if parts.query or parts.fragment:
        raise Misconfigured("The address holds a query or a fragment. Write it like https://memory.example.com.")
    del port
    path = parts.path.rstrip("/").removesuffix("/mcp").removesuffix("/api/v1").rstrip("/")
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, "", ""))


def is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_open(url: str) -> bool:
    """Whether a token for ``url`` would go over a network unencrypted."""
    return url.startswith("http://") and not is_local(url)


class _Bearer(httpx.Auth):
    """Also keeps the HTTP library from looking for credentials of its own."""

    def __init__(self, token: Secret | None) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._token is not None:
            request.headers["Authorization"] = f"Bearer {self._token.reveal()}"
        yield request


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> Any:
        return json.loads(self.body)


class Transport:
    """``timeout`` bounds a call with all its repetitions, in seconds; it is repeated ``retries`` times at most."""

    def __init__(
        self,
        base_url: str,
        token: Secret | None,
        *,
        timeout: float,
        retries: int,
        verify: Any = True,
        handler: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if timeout <= 0:
            raise Misconfigured("The timeout must be more than 0 seconds.")
        self.base_url = checked_url(base_url)
        self.timeout = timeout
        self.retries = max(0, retries)
        self._token = token
        self._sleep = sleep
        self._clock = clock
        self._http = httpx.Client(
            verify=verify, transport=handler, follow_redirects=False, headers={"User-Agent": USER_AGENT}
        )
        if token and is_open(self.base_url):
            warnings.warn(
                f"{self.base_url} is not encrypted: whoever is on the way can read the token. Use https.",
                InsecureWarning,
                stacklevel=4,
            )

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, query: Query | None = None, *, timeout: float | None = None) -> Reply:
        return self._call("GET", path, query=query, repeat=True, timeout=timeout)

    def post(
        self, path: str, body: Any, *, key: str | None = None, timeout: float | None = None, lines: bool = False
    ) -> Reply:
        """``key`` is the Idempotency-Key; one is made where there is none, so that it is safe to send again."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {
            "Content-Type": "application/x-ndjson" if lines else "application/json",
            "Idempotency-Key": key or uuid4().hex,
        }
        return self._call("POST", path, content=content, headers=headers, repeat=True, timeout=timeout)

    def post_once(self, path: str, body: Any, headers: Mapping[str, str], *, timeout: float | None = None) -> Reply:
        """Never repeated: for what the service does not know again."""
        content = json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **headers}
        return self._call("POST", path, content=content, headers=sent, repeat=False, timeout=timeout, raising=False)

    def delete(self, path: str) -> Reply:
        return self._call("DELETE", path, repeat=False)

    def probe(self, path: str, *, timeout: float | None = None) -> Reply:
        """One GET whatever its status, such as of ``/readyz``."""
        return self._call("GET", path, repeat=False, timeout=timeout, raising=False)

    # --- one call, with its repetitions -------------------------------------------------------------------------
    def _call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool,
        timeout: float | None = None,
        raising: bool = True,
    ) -> Reply:
        until = self._clock() + (timeout or self.timeout)
        url = f"{self.base_url}/{path.lstrip('/')}"
        parameters = _pairs(query)
        for attempt in range(self.retries + 1):
            wait: float | None = None
            try:
                reply = self._once(method, url, parameters, content, headers, until)
            except Unreachable as error:
                fault: FirmMemoryError = error
            else:
                if reply.status < 400 or not raising:
                    return reply
                fault = self._problem(reply)
                wait = retry_after(reply.headers)
                if not _may_pass(reply.status, fault):
                    raise fault
            if not repeat or attempt == self.retries:
                break
            pause = wait if wait is not None else _backoff(attempt)
            if self._clock() + pause >= until:
                break
            self._sleep(pause)
        raise fault

    def _once(
        self,
        method: str,
        url: str,
        parameters: list[tuple[str, str]],
        content: bytes | None,
        headers: Mapping[str, str] | None,
        until: float,
    ) -> Reply:
        for _ in range(_MAX_REDIRECTS + 1):
            reply = self._send(method, url, parameters, content, headers, until)
            if reply.status not in (301, 302, 303, 307, 308):
                return reply
            url, parameters = self._redirected(method, url, reply), []
        raise Unreachable(f"{self.base_url} redirects in circles.")

    def _send(
        self,
        method: str,
        url: str,
        parameters: list[tuple[str, str]],
        content: bytes | None,
        headers: Mapping[str, str] | None,
        until: float,
    ) -> Reply:
        left = until - self._clock()
        if left <= 0:
            raise Unreachable(f"{self.base_url} did not answer in time.")
        limits = httpx.Timeout(left, connect=min(left, _CONNECT_SECONDS))
        extra: dict[str, Any] = {"params": parameters} if parameters else {}
        try:
            with self._http.stream(
                method, url, content=content, headers=headers, timeout=limits, auth=_Bearer(self._token), **extra
            ) as response:
                body = self._read(response, until)
                return Reply(response.status_code, dict(response.headers.items()), body)
        except httpx.TimeoutException:
            fault = f"{self.base_url} did not answer in time."
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            fault = self._masked(f"{self.base_url} cannot be reached: {_reason(error)}.")
        # Raised here, so that it does not carry the library's error as its context.
        raise Unreachable(fault)

    def _read(self, response: httpx.Response, until: float) -> bytes:
        parts, size = [], 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > _MAX_ANSWER:
                raise Unreachable(f"{self.base_url} answered with more than {_MAX_ANSWER // 1024 // 1024} MiB.")
            if self._clock() > until:
                raise Unreachable(f"{self.base_url} did not answer in time.")
        return b"".join(parts)

    def _redirected(self, method: str, url: str, reply: Reply) -> str:
        """Where to go on: at the same host alone, and never from https to http."""
        to = urljoin(url, reply.headers.get("location", ""))
        here, there = urlsplit(url), urlsplit(to)
        upgraded = (here.scheme, there.scheme) == ("http", "https") and here.hostname == there.hostname
        same = (here.scheme, here.hostname, here.port) == (there.scheme, there.hostname, there.port)
        if not (same or upgraded) or there.username is not None:
            raise Unreachable(
                f"{self.base_url} redirects to {there.hostname or 'nowhere'}, and the token is not sent there. If "
                "that is the service, name its address."
            )
        if method != "GET" and reply.status not in (307, 308):
            raise Unreachable(f"{self.base_url} redirects what is sent to it. Name the address that it redirects to.")
        return to

    def _masked(self, text: str) -> str:
        return self._token.masked(text) if self._token else text

    def _problem(self, reply: Reply) -> FirmMemoryError:
        try:
            said = json.loads(self._masked(reply.body.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            said = None
        known = isinstance(said, dict) and isinstance(said.get("detail"), str)
        problem: dict[str, Any] = said if known else {}
        code = str(problem.get("code", ""))
        errors = problem.get("errors")
        return kind_of(reply.status, code)(
            problem.get("detail") or _without_problem(self.base_url, reply.status),
            status=reply.status,
            code=code,
            errors=tuple(
                FieldProblem(str(each.get("field", "")), str(each.get("message", "")))
                for each in (errors if isinstance(errors, list) else [])
                if isinstance(each, dict)
            ),
            extra=problem["extra"] if isinstance(problem.get("extra"), dict) else {},
            request_id=str(problem.get("request_id", "")),
            retry_after=retry_after(reply.headers),
        )


def _without_problem(base_url: str, status: int) -> str:
    if status == 404:
        return f"There is no Firm Memory at {base_url}, or it is an older one that does not know this."
    return f"{base_url} answered with {status} and did not say why."


def _may_pass(status: int, fault: FirmMemoryError) -> bool:
    """Whether the same request may succeed in a moment."""
    return status in _LATER or getattr(fault, "code", "") == "idempotency_in_progress"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as ``Retry-After`` says them, or as the moment that it names."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _backoff(attempt: int) -> float:
    most = min(_MOST_BACKOFF, _BACKOFF * 2**attempt)
    return float(most / 2 + random.random() * most / 2)  # noqa: S311 - spreads load, guards nothing


def _pairs(query: Query | None) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        values = [str(value)] if isinstance(value, str | int) else [str(each) for each in value]
        pairs += [(name, each) for each in values]
    return pairs


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
