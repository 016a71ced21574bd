"""With the switch off there is nothing; with it on, only what is sound starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import reload
from pathlib import Path

import pytest
from django.conf import settings as project_settings

from apps.core.environment import Environment, base_url
from tests.agents.calling import Agent
from tests.conftest import ApiClient
from tests.oauth.conftest import Program

ROOT = Path(project_settings.BASE_DIR)
ADDRESSES = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-protected-resource/api/v1",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
    "/oauth/authorize",
    "/oauth/token",
    "/oauth/revoke",
    "/oauth/register",
    "/accounts/agents/",
    "/accounts/agents/1/disconnect/",
)


@pytest.fixture
def off(settings):
    settings.ROOT_URLCONF = "firmmemory.urls"
    settings.FIRM_MEMORY_OAUTH = False


def test_every_address_is_known_to_this_test():
    from apps.oauth.urls import urlpatterns

    listed = {"/" + str(each.pattern).replace("<int:connection_id>", "1") for each in urlpatterns}

    assert listed == set(ADDRESSES)


@pytest.mark.django_db
@pytest.mark.parametrize("address", ADDRESSES)
def test_switched_off_there_is_nothing_at_these_addresses(off, browser, alice, address):
    for client in (ApiClient(), browser(alice)):
        assert client.get(address).status_code == 404
        assert client.post(address, {}).status_code == 404


@pytest.mark.django_db
def test_switched_off_a_token_of_before_opens_nothing_and_ours_do(tokens, alice, robo, browser, settings):
    held = tokens(alice)
    settings.ROOT_URLCONF = "firmmemory.urls"
    settings.FIRM_MEMORY_OAUTH = False

    refused = Agent(held["access_token"]).ask("tools/list")

    assert refused.status_code == 401
    assert refused["WWW-Authenticate"] == 'Bearer realm="firm-memory"'
    assert Agent(robo.secret).ask("tools/list").status_code == 200
    assert "Connected agents" not in browser(alice).get("/memories/").content.decode()


@pytest.mark.django_db
def test_switched_on_the_menu_leads_to_what_is_connected(browser, alice):
    assert "Connected agents" in browser(alice).get("/memories/").content.decode()


def test_the_project_serves_these_addresses_only_while_it_is_switched_on(settings):
    from firmmemory import urls

    def served() -> bool:
        return "oauth:authorize" in {
            f"{each.app_name}:authorize" for each in urls.urlpatterns if hasattr(each, "app_name")
        }

    assert not served()
    try:
        reload(urls)
        assert served()
    finally:
        settings.FIRM_MEMORY_OAUTH = False
        reload(urls)
    assert not served()


def started(tmp_path: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"], "FIRM_MEMORY_ENV_FILE": "", "FIRM_MEMORY_DATA_DIR": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=kept | environment, capture_output=True, text=True, check=False
    )


def test_switched_off_none_of_its_libraries_is_loaded(tmp_path):
    code = (
        "import json, sys, django; django.setup()\nimport firmmemory.urls, firmmemory.wsgi\n"
        "print(json.dumps([name for name in ('oauthlib.oauth2', 'oauthlib.openid', 'apps.oauth.issuing', "
        "'apps.oauth.views', 'allauth.idp.oidc.views') if name in sys.modules]))"
    )

    done = started(tmp_path, code, DJANGO_SETTINGS_MODULE="firmmemory.settings.dev")

    assert json.loads(done.stdout) == [], done.stderr


PRODUCTION = {
    "DJANGO_SETTINGS_MODULE": "firmmemory.settings.prod",
    "SECRET_KEY": "k" * 60,
    "ALLOWED_HOSTS": "memory.example.com",
    "DATABASE_URL": "postgresql://u:p@db.example/firm",
}


@pytest.mark.parametrize(
    ("environment", "sound"),
    [
        ({"FIRM_MEMORY_OAUTH": "on"}, False),
        ({"FIRM_MEMORY_OAUTH": "on", "FIRM_MEMORY_BASE_URL": "http://memory.example.com"}, False),
        ({"FIRM_MEMORY_OAUTH": "on", "FIRM_MEMORY_BASE_URL": "https://memory.example.com/"}, True),
        ({"FIRM_MEMORY_OAUTH": "off"}, True),
    ],
    ids=["unset", "http", "https", "off"],
)
def test_production_starts_with_a_https_issuer_alone(tmp_path, environment, sound):
    code = "from django.conf import settings; print(settings.FIRM_MEMORY_BASE_URL)"

    done = started(tmp_path, code, **PRODUCTION, **environment)

    assert (done.returncode == 0) is sound, done.stderr
    assert sound or "FIRM_MEMORY_BASE_URL" in done.stderr


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("", "http://127.0.0.1:8100"),
        ("https://Memory.Example.com/", "https://memory.example.com"),
        ("https://memory.example.com:8443", "https://memory.example.com:8443"),
        ("https://[::1]:8443", "https://[::1]:8443"),
        ("memory.example.com", None),
        ("ftp://memory.example.com", None),
        ("https://memory.example.com/path", None),
        ("https://memory.example.com?x", None),
        ("https://memory.example.com#x", None),
        ("https://user@memory.example.com", None),
        ("https://memory.example.com:port", None),
        ("https://", None),
        ("https://a b", None),
    ],
)
def test_the_address_is_scheme_and_host(written, read):
    environment = Environment({"FIRM_MEMORY_BASE_URL": written})

    found = base_url(environment, "127.0.0.1", 8100)

    assert (found if not environment.problems else None) == read


@pytest.mark.parametrize(
    ("values", "hosts", "schemes", "problems"),
    [
        ({"H": "vscode.dev, Insiders.vscode.dev", "S": "cursor"}, ["vscode.dev", "insiders.vscode.dev"], ["cursor"], 0),
        ({"H": "", "S": ""}, [], [], 0),
        ({"H": "https://vscode.dev"}, None, [], 1),
        ({"H": "*.vscode.dev"}, None, [], 1),
        ({"H": "localhost"}, None, [], 1),
        ({"S": "javascript"}, [], [], 1),
        ({"S": "http"}, [], [], 1),
        ({"S": "cursor:"}, [], None, 1),
    ],
)
def test_hosts_and_schemes_are_plain_names(values, hosts, schemes, problems):
    environment = Environment(values)

    found = environment.hosts("H"), environment.schemes("S")

    assert len(environment.problems) == problems
    assert hosts is None or found[0] == hosts
    assert schemes is None or found[1] == schemes


@pytest.mark.django_db
def test_nobody_who_is_told_apart_by_a_session_alone_comes_in_at_mcp(program, alice):
    client: Program = program(alice)

    assert client.person.post("/mcp", {}, content_type="application/json").status_code == 401
