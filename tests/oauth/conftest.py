from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.client import ClientHandler

from firmmemory import urls as switched_off  # noqa: F401 - read now, before a test switches it on
from tests.conftest import ApiClient
from tests.pages import form

BASE = "http://testserver"
FORM = "application/x-www-form-urlencoded"
HANDLER = ClientHandler(enforce_csrf_checks=False)
CALLBACK = "http://localhost:3118/callback"
VERIFIER = "a-verifier-of-at-least-forty-three-characters-000"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@pytest.fixture(autouse=True)
def switched_on(settings: Any) -> None:
    settings.ROOT_URLCONF = "tests.oauth.urls"
    settings.FIRM_MEMORY_OAUTH = True
    settings.FIRM_MEMORY_BASE_URL = BASE


def query_of(location: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


@dataclass
class Program:
    """A client that speaks OAuth as a program does, with the browser of a person beside it."""

    person: Client
    client_id: str = ""
    redirect: str = CALLBACK
    name: str = "Claude Code"
    http: ApiClient = field(default_factory=ApiClient)

    def __post_init__(self) -> None:
        # Making one looks through all static files, which takes longer than the rest of a test.
        self.person.handler = self.http.handler = HANDLER

    def register(self, **changes: Any) -> Any:
        body = {"client_name": self.name, "redirect_uris": [self.redirect]} | changes
        answer = self.http.post("/oauth/register", body)
        self.client_id = answer.json().get("client_id", "")
        return answer

    def address(self, **changes: Any) -> str:
        asked = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect,
            "state": "s-1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "scope": "memory:read memory:propose",
            "resource": f"{BASE}/mcp",
        } | changes
        kept = {name: value for name, value in asked.items() if value is not None}
        return f"/oauth/authorize?{urlencode(kept, doseq=True)}"

    def decide(self, address: str | None = None, decision: str = "allow", **answers: str) -> Any:
        address = address or self.address()
        shown = self.person.get(address)
        assert shown.status_code == 200, shown.content
        return self.person.post(address, form(shown, "/oauth/authorize") | {"decision": decision} | answers)

    def code(self, address: str | None = None, **answers: str) -> str:
        sent = self.decide(address, **answers)
        assert sent.status_code == 302, sent.content.decode()
        return query_of(sent["Location"])["code"]

    def exchange(self, code: str, **changes: Any) -> Any:
        fields = {"code": code, "redirect_uri": self.redirect, "code_verifier": VERIFIER}
        return self.ask(**{"grant_type": "authorization_code", **fields, **changes})

    def refresh(self, secret: str, **changes: Any) -> Any:
        return self.ask(**{"grant_type": "refresh_token", "refresh_token": secret, **changes})

    def ask(self, **fields: Any) -> Any:
        body = {"client_id": self.client_id, "resource": f"{BASE}/mcp"} | fields
        kept = {name: value for name, value in body.items() if value is not None}
        return self.http.post("/oauth/token", urlencode(kept, doseq=True), content_type=FORM)

    def give_back(self, secret: str) -> Any:
        body = urlencode({"client_id": self.client_id, "token": secret})
        return self.http.post("/oauth/revoke", body, content_type=FORM)


@pytest.fixture
def program(browser: Callable[..., Client]) -> Callable[..., Program]:
    """``program(alice)``: registered, and nothing allowed yet."""

    def make(who: User, **options: Any) -> Program:
        made = Program(browser(who), **options)
        assert made.register().status_code == 201
        return made

    return make


@pytest.fixture
def tokens(program: Callable[..., Program]) -> Callable[..., dict[str, Any]]:
    """``tokens(alice)``: what a client holds after she allowed everything it asked for."""

    def make(who: User, **answers: str) -> dict[str, Any]:
        made = program(who)
        answer = made.exchange(made.code(**answers))
        assert answer.status_code == 200, answer.content
        return {"program": made, **answer.json()}

    return make
