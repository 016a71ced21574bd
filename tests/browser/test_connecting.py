"""Letting an agent in by OAuth, where people see it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import User
from playwright.sync_api import expect

from apps.accounts.models import Membership, Role
from apps.accounts.services import workspace_add
from apps.oauth.models import Connection
from firmmemory import urls as switched_off  # noqa: F401 - read now, before a test switches it on
from tests.browser.checks import faults_of
from tests.browser.conftest import SIZES, Watched
from tests.conftest import ApiClient
from tests.oauth.conftest import CALLBACK, Program

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = "<img src=x onerror=alert(1)>" + "x" * 200
Window = Callable[..., Watched]


@pytest.fixture(autouse=True)
def switched_on(settings: Any, live_server: Any) -> None:
    settings.ROOT_URLCONF = "tests.oauth.urls"
    settings.FIRM_MEMORY_OAUTH = True
    settings.FIRM_MEMORY_BASE_URL = live_server.url


def asks(settings: Any, name: str) -> str:
    client = Program(ApiClient(), name=name)
    client.register()
    return client.address(resource=f"{settings.FIRM_MEMORY_BASE_URL}/mcp")


def faults_in_every_light(seen: Watched, name: str) -> dict[str, Any]:
    """In both themes, on a desk and on a phone."""
    faults: dict[str, Any] = {}
    for size, (width, height) in SIZES.items():
        seen.page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            seen.page.emulate_media(color_scheme=theme)
            found = faults_of(seen.page)
            if folder := os.environ.get("FIRM_MEMORY_PICTURES"):
                found.pop("inline style or script", None)  # which taking pictures leaves behind
                seen.page.screenshot(path=Path(folder) / f"{name}-{size}-{theme}.png", full_page=True)
            if found:
                faults[f"{name} {size} {theme}"] = found
    violations = Axe().run(seen.page, options={"runOnly": ["wcag2a", "wcag2aa"]}).response["violations"]
    return faults | {f"{name} axe": [each["id"] for each in violations] for _ in violations[:1]}


def test_the_pages_are_well_made(window: Window, alice: User, settings: Any) -> None:
    Membership.objects.create(workspace=workspace_add(slug="other"), user=alice, role=Role.MEMBER)
    seen = window(alice)
    faults = {}
    for name, called in (("plain", "Claude Code"), ("hostile", HOSTILE)):
        seen.go(asks(settings, called))
        faults |= faults_in_every_light(seen, f"consent-{name}")
    seen.page.get_by_label("Only in these").check()
    seen.page.get_by_role("button", name="Allow it", exact=True).click()
    expect(seen.page.get_by_text("Name at least one repository")).to_be_visible()
    faults |= faults_in_every_light(seen, "consent-refused")
    seen.go("/accounts/agents/")
    faults |= faults_in_every_light(seen, "agents-none")
    allow(seen, asks(settings, HOSTILE))
    seen.go("/accounts/agents/")
    faults |= faults_in_every_light(seen, "agents")
    assert faults == {}


def allow(seen: Watched, address: str) -> str:
    """Where the browser was sent."""
    seen.page.route(f"{CALLBACK}*", lambda route: route.fulfill(body="done"))
    seen.go(address)
    seen.page.get_by_role("button", name="Allow it", exact=True).click()
    seen.page.wait_for_url(f"{CALLBACK}*")
    sent = seen.page.url
    seen.asked = [url for url in seen.asked if not url.startswith(CALLBACK)]
    return sent


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_person_lets_an_agent_in_and_out_again(window: Window, alice: User, settings: Any, javascript: bool) -> None:
    seen = window(alice, javascript=javascript)

    sent = allow(seen, asks(settings, "Claude Code"))

    assert "code=" in sent and "state=s-1" in sent
    assert seen.page.evaluate("document.referrer") == ""
    connection = Connection.objects.get()
    seen.go("/accounts/agents/")
    seen.page.get_by_role("button", name="Disconnect Claude Code").click()
    expect(seen.page.get_by_text("Claude Code is disconnected.")).to_be_visible()
    connection.token.refresh_from_db()
    assert connection.token.revoked_at is not None
