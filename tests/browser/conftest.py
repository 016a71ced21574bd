"""A real Chromium in front of a live server.

Where none is installed these tests are skipped and say so; with FIRM_MEMORY_REQUIRE_BROWSER=1 that is a failure.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from apps.accounts.principal import Principal
from apps.candidates.models import Candidate
from apps.memories.providers.mem0.provider import Mem0Provider
from tests import ledger
from tests.conftest import Issued

PASSWORD = "correct horse battery staple"
SIZES = {"desk": (1280, 900), "narrow": (1025, 800), "tablet": (768, 1024), "phone": (390, 844)}
expect.set_options(timeout=15_000)  # as long as a busy machine may take
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium_path() -> str:
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is not None:
        return path
    missing = f"No browser is installed (looked for {', '.join(_NAMES)}); on Debian: apt-get install chromium."
    if os.environ.get("FIRM_MEMORY_REQUIRE_BROWSER") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="module")
def started_chromium(chromium_path: str) -> Iterator[Browser]:
    """Started once for a module: Playwright's event loop would stand in the way of other tests that have one.

    Django has connections of their own inside of the loop; none stays open on either side of it.
    """
    connections.close_all()
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=chromium_path, args=_ARGUMENTS)
        yield browser
        browser.close()
        connections.close_all()


@pytest.fixture
def chromium(started_chromium: Browser, live_server: LiveServer, pool: Mem0Provider) -> Iterator[Browser]:
    """A browser that knows nothing of other tests: all that they opened is closed."""
    yield started_chromium
    for context in started_chromium.contexts:
        context.close()


# A person looks before they press: what comes at once after a page, or a part of it, was meant for what stood there
# before. They see it once it is painted, which is a frame later.
_PAINTED = "new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))"
_NOTES_WHAT_COMES = f"""for (const name of ['DOMContentLoaded', 'htmx:afterSwap']) addEventListener(name, async () => {{
    window.seenFrom = Infinity;
    await {_PAINTED};
    window.seenFrom = performance.now();
}});"""
_LOOKED_AT: WeakSet[Page] = WeakSet()
_LOOKED = "() => !(performance.now() - window.seenFrom < 550)"


def looks_first(page: Page) -> None:
    """Have keys wait until a person would press them."""
    press = page.keyboard.press

    def after_a_look(key: str, **options: Any) -> None:
        look(page)
        press(key, **options)

    page.keyboard.press = after_a_look  # type: ignore[method-assign]


def clicks_look_first(patch: pytest.MonkeyPatch) -> None:
    """The same for what is clicked."""
    for name in ("click", "press"):
        acts = getattr(Locator, name)

        def after_a_look(self: Locator, *arguments: Any, acts: Any = acts, **options: Any) -> None:
            if self.page in _LOOKED_AT:
                look(self.page)
            acts(self, *arguments, **options)

        patch.setattr(Locator, name, after_a_look)


def look(page: Page) -> None:
    page.wait_for_function(_LOOKED)


def look_anew(page: Page) -> None:
    """At what something that was pressed has brought out on the same page."""
    page.evaluate(f"{_PAINTED}.then(() => new Promise((looked) => setTimeout(looked, 550)))")


@dataclass
class Watched:
    """A page, and everything that it said to the console or asked of the network."""

    page: Page
    base: str
    expect_failures: bool = False
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def go(self, path: str) -> int:
        response = self.page.goto(self.base + path)
        assert response is not None
        if not self.expect_failures:
            assert response.status < 500, self.page.locator("body").inner_text()
        return response.status

    def heard(self, message: ConsoleMessage) -> None:
        # Chromium itself notes every answer of 400 and above to a navigation; that is not the page speaking.
        refused = "the server responded with a status of 4" in message.text
        failed = self.expect_failures and re.search("Failed to load resource|htmx:|Error Code [45]", message.text)
        if message.type in ("error", "warning") and not refused and not failed:
            self.said.append(f"{message.type}: {message.text}")

    @property
    def foreign(self) -> list[str]:
        own = urlsplit(self.base).netloc
        return [url for url in self.asked if urlsplit(url).netloc != own and not url.startswith("data:")]


@pytest.fixture
def agent(robo: Issued) -> Principal:
    return ledger.of_token(robo.token)


@pytest.fixture
def window(chromium: Browser, live_server: LiveServer) -> Iterator[Callable[..., Watched]]:
    """``window(alice)``: signed in and at home. At the end every window must have been silent and asked nobody else.

    ``expect_failures`` is for those that lose the network or the server on purpose: the browser itself says so.
    """
    opened: list[Watched] = []

    def make(
        who: User | None = None,
        *,
        size: str = "desk",
        theme: str = "light",
        javascript: bool = True,
        fingers: bool = False,
        expect_failures: bool = False,
    ) -> Watched:
        width, height = SIZES[size]
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,  # type: ignore[arg-type]
            java_script_enabled=javascript,
            has_touch=fingers,
            is_mobile=fingers,
        )
        context.set_default_timeout(8_000)
        context.add_init_script(_NOTES_WHAT_COMES)
        watched = Watched(context.new_page(), live_server.url, expect_failures=expect_failures)
        if javascript:
            looks_first(watched.page)
            _LOOKED_AT.add(watched.page)
        watched.page.on("console", watched.heard)
        watched.page.on("pageerror", lambda error: watched.said.append(f"uncaught: {error}"))
        watched.page.on("dialog", lambda dialog: (watched.said.append("a dialog opened"), dialog.dismiss()))
        watched.page.on("request", lambda request: watched.asked.append(request.url))
        opened.append(watched)
        if who is not None:
            admit(watched, who)
        return watched

    with pytest.MonkeyPatch.context() as patch:
        clicks_look_first(patch)
        yield make
    for watched in opened:
        assert watched.said == []
        assert watched.foreign == []


def waiting(agent: Principal, count: int) -> list[Candidate]:
    """In the order of the queue: proposed at one moment, so that their ids decide."""
    return sorted(ledger.propose_many(agent, count), key=lambda row: row.pk)


def admit(watched: Watched, who: User) -> None:
    """Signed in without the form, which costs a second and has tests of its own."""
    client = Client()
    client.force_login(who)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": watched.base}
    watched.page.context.add_cookies([cookie])
    watched.go("/")


def sign_in(watched: Watched, who: User, path: str = "/accounts/login/") -> None:
    who.set_password(PASSWORD)
    who.save()
    watched.go(path)
    watched.page.get_by_label("Name or e-mail address").fill(who.username)
    watched.page.get_by_label("Password").fill(PASSWORD)
    watched.page.get_by_role("button", name="Sign in").click()


def evaluate(watched: Watched, script: str) -> Any:
    return watched.page.evaluate(script)
