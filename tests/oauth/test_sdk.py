"""The SDK's own OAuth client against a live server, with a browser that a person signs in with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from apps.accounts.models import ApiToken
from apps.accounts.services import token_end
from apps.oauth.models import Connection
from tests.ledger import of_person
from tests.oauth.conftest import CALLBACK, query_of
from tests.pages import form

PASSWORD = "correct horse battery staple"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]


@dataclass
class Kept:
    """What the client keeps between calls."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class Person:
    """Signs in where the client sends them, and allows what it asks for."""

    url: str
    led_to: list[str] = field(default_factory=list)
    answer: dict[str, str] = field(default_factory=dict)

    async def open(self, address: str) -> None:
        self.led_to.append(address)
        async with httpx2.AsyncClient(base_url=self.url, timeout=60) as browser:
            login = await browser.get(address)
            assert login.status_code == 302
            page = await browser.get(login.headers["location"])
            sent = await _send(browser, page, "/accounts/login/", login="alice", password=PASSWORD)
            consent = await browser.get(sent.headers["location"])
            assert consent.status_code == 200
            done = await _send(browser, consent, "/oauth/authorize", to=address, decision="allow")
            assert done.headers["location"].startswith(CALLBACK), done.text
            self.answer = query_of(done.headers["location"])

    async def came_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.answer)


async def _send(browser: Any, page: Any, action: str, *, to: str = "", **values: str) -> Any:
    token = browser.cookies["csrftoken"]
    fields = form(page, action) | values | {"csrfmiddlewaretoken": token}
    return await browser.post(
        to or action, data=fields, headers={"Referer": f"{page.url}", "Origin": browser_origin(page)}
    )


def browser_origin(page: Any) -> str:
    return f"{page.url.scheme}://{page.url.netloc.decode()}"


def as_client(url: str, kept: Kept, person: Person, work: Callable[[Client, Any], Awaitable[Any]]) -> Any:
    provider = OAuthClientProvider(
        f"{url}/mcp",
        OAuthClientMetadata(client_name="The SDK", redirect_uris=[CALLBACK]),
        kept,
        redirect_handler=person.open,
        callback_handler=person.came_back,
    )

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(auth=provider, timeout=60) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return await work(client, provider)

    return asyncio.run(run())


def test_the_sdk_comes_in_refreshes_and_is_out_once_it_is_revoked(live_server, settings, alice):
    settings.FIRM_MEMORY_BASE_URL = live_server.url
    alice.set_password(PASSWORD)
    alice.save()
    kept, person = Kept(), Person(live_server.url)

    async def call_and_refresh(client: Client, provider: OAuthClientProvider) -> list[Any]:
        first = await client.call_tool("memory_search", {"query": "deploys"})
        before = kept.tokens
        provider.context.token_expiry_time = 1.0  # long ago
        second = await client.call_tool("memory_search", {"query": "deploys"})
        return [first, before, second]

    first, before, second = as_client(live_server.url, kept, person, call_and_refresh)

    assert not first.is_error and not second.is_error
    assert kept.client.token_endpoint_auth_method == "none"
    assert len(person.led_to) == 1
    assert kept.tokens.refresh_token != before.refresh_token
    assert kept.tokens.access_token != before.access_token
    token = ApiToken.objects.get(owner=alice)
    token_end(principal=of_person(alice), token=token)

    class Asked(Exception):
        """The client needs the person again."""

    async def ask_again(address: str) -> None:
        raise Asked

    async def call(client: Client, provider: OAuthClientProvider) -> Any:
        return await client.call_tool("memory_search", {"query": "deploys"})

    person.open = ask_again  # type: ignore[method-assign]
    with pytest.RaisesGroup(Asked, allow_unwrapped=True, flatten_subgroups=True):
        as_client(live_server.url, kept, person, call)
    assert Connection.objects.count() == 1
