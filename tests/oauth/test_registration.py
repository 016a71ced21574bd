"""Who may register as a client, and what is kept of it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from allauth.idp.oidc.models import Client

from apps.core.clock import now
from apps.oauth import clients
from apps.oauth.tasks import sweep
from tests.oauth.conftest import BASE, CALLBACK, Program

pytestmark = pytest.mark.django_db


@pytest.fixture
def nobody(browser) -> Program:
    return Program(browser())


def uris(answer) -> list[str]:
    assert answer.status_code == 201, answer.content
    return answer.json()["redirect_uris"]


def test_a_client_is_told_what_was_registered(nobody):
    answer = nobody.register(
        grant_types=["authorization_code", "refresh_token", "implicit"],
        token_endpoint_auth_method="client_secret_basic",
        scope="openid admin",
        logo_uri="https://evil.example/pixel.png",
        software_id="x",
        unheard_of={"a": [1]},
    )

    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    said = answer.json()
    assert (said["client_name"], said["redirect_uris"]) == ("Claude Code", [CALLBACK])
    assert said["token_endpoint_auth_method"] == "none"
    assert said["grant_types"] == ["authorization_code", "refresh_token"]
    assert said["scope"] == "memory:read memory:propose"
    assert "client_secret" not in said
    kept = Client.objects.get()
    assert (kept.type, kept.skip_consent, kept.data) == ("public", False, {"kind": "registered"})
    assert not kept.check_secret("") and "evil.example" not in str(kept.__dict__)


CURSOR = [
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "https://www.cursor.com/agents/mcp/oauth/callback",
    "http://localhost:8787/callback",
]
VS_CODE = [
    "https://insiders.vscode.dev/redirect",
    "https://vscode.dev/redirect",
    "http://127.0.0.1/",
    "http://127.0.0.1:33418/",
]


@pytest.mark.parametrize("asked", [CURSOR, VS_CODE], ids=["cursor", "vscode"])
def test_of_several_addresses_those_that_are_known_are_registered(nobody, settings, asked):
    assert uris(nobody.register(redirect_uris=asked)) == [each for each in asked if each.startswith("http://")]

    settings.FIRM_MEMORY_OAUTH_HOSTS = ["vscode.dev", "insiders.vscode.dev", "www.cursor.com"]
    settings.FIRM_MEMORY_OAUTH_SCHEMES = ["cursor"]
    assert uris(nobody.register(redirect_uris=asked)) == asked


def test_switched_on_for_all_any_page_may_register_and_no_other_scheme(nobody, settings):
    settings.FIRM_MEMORY_OAUTH_REGISTRATION = "on"

    assert uris(nobody.register(redirect_uris=["https://agents.example/cb"])) == ["https://agents.example/cb"]
    assert nobody.register(redirect_uris=["cursor://x/y"]).json()["error"] == "invalid_redirect_uri"


def test_switched_off_nobody_registers_and_what_an_operator_added_works(nobody, settings, program, alice):
    settings.FIRM_MEMORY_OAUTH_REGISTRATION = "off"

    assert nobody.register().status_code == 403
    assert "registration_endpoint" not in nobody.http.get("/.well-known/oauth-authorization-server").json()
    assert not Client.objects.exists()


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "javascript://localhost/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://evil.example/x",
        "vbscript:x",
        "http://evil.example/callback",
        "http://127.0.0.1.evil.example/callback",
        "http://127.0.0.2/callback",
        "http://0.0.0.0/callback",
        "http://localhost.evil.example/callback",
        "http://localhost@evil.example/callback",
        "https://user:pass@agents.example/callback",
        "https://agents.example/callback#fragment",
        "https://agents.example/callback#",
        "https://*.agents.example/callback",
        "https://agents.example/a b",
        "https://agents.example/\r\nSet-Cookie:x",
        "https://agents.example/\x00",
        "https://agents.example\\@evil.example/",
        "https://аgents.example/callback",
        "https:///callback",
        "https:agents.example/callback",
        "https://agents.example:port/callback",
        'https://agents.example/"><script>',
        "//agents.example/callback",
        "/callback",
        "",
        pytest.param("x" * 5_000, id="long"),
        None,
        7,
        ["https://agents.example/"],
    ],
)
@pytest.mark.parametrize("mode", ["known", "on"])
def test_a_hostile_address_spoils_the_whole_registration(nobody, settings, mode, uri):
    settings.FIRM_MEMORY_OAUTH_REGISTRATION = mode
    settings.FIRM_MEMORY_OAUTH_HOSTS = ["agents.example"]

    answer = nobody.register(redirect_uris=[CALLBACK, uri])

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert not Client.objects.exists()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": CALLBACK}, "invalid_redirect_uri"),
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"http://localhost:{port}/" for port in range(1, 13)]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://unknown.example/cb"]}, "invalid_redirect_uri"),
        ({"grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"grant_types": "authorization_code"}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
        ({"response_types": None}, "invalid_client_metadata"),
    ],
)
def test_metadata_that_will_not_do_names_its_member(nobody, changes, error):
    answer = nobody.register(**changes)

    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert not Client.objects.exists()


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"{", b'"x"', b"\xff", b'{"redirect_uris":', b'{"a":1,"a":2}', b"[" * 5_000, b"x" * 20_000],
    ids=range(10),
)
def test_what_is_no_object_is_refused(nobody, body):
    answer = nobody.http.generic("POST", "/oauth/register", body, content_type="application/json")

    assert answer.status_code in (400, 413)
    assert set(answer.json()) == {"error", "error_description"}


def test_a_flood_is_slowed_by_its_address(nobody):
    statuses = [nobody.register().status_code for _ in range(13)]

    assert statuses[:10] == [201] * 10
    assert statuses[-1] == 429
    refused = nobody.register()
    assert refused["Retry-After"]
    assert refused.json()["error"] == "temporarily_unavailable"
    assert Client.objects.count() < 13


def test_a_flood_from_everywhere_is_bounded_and_locks_nobody_out(program, alice, nobody, monkeypatch, settings):
    settings.FIRM_MEMORY_THROTTLE = False
    monkeypatch.setattr(clients, "MOST_UNUSED", 5)
    connected = program(alice)
    connected.code()

    for number in range(12):
        assert nobody.register(client_name=f"flood {number}").status_code == 201

    assert Client.objects.filter(connections__isnull=True).count() == 5
    assert set(Client.objects.filter(connections__isnull=True).values_list("name", flat=True)) == {
        f"flood {number}" for number in range(7, 12)
    }
    assert Client.objects.filter(pk=connected.client_id).exists()


def test_who_is_not_connected_for_a_day_is_forgotten(program, alice, nobody):
    connected = program(alice)
    connected.code()
    nobody.register()
    kept = clients.client_add(name="Added", redirects=[clients.place(CALLBACK)])
    Client.objects.update(created_at=now() - timedelta(hours=25))

    sweep()

    assert set(Client.objects.values_list("pk", flat=True)) == {connected.client_id, kept.pk}


# --- what clients read ----------------------------------------------------------------------------------------
def test_the_way_in_is_told_step_by_step(nobody, robo):
    asked = nobody.http.post("/mcp", {})
    assert asked.status_code == 401
    assert f'resource_metadata="{BASE}/.well-known/oauth-protected-resource/mcp"' in asked["WWW-Authenticate"]
    assert 'scope="memory:read memory:propose"' in asked["WWW-Authenticate"]
    assert "error=" not in asked["WWW-Authenticate"]
    wrong = nobody.http.post("/mcp", {}, headers={"Authorization": "Bearer fm_agent_x"})
    assert 'error="invalid_token"' in wrong["WWW-Authenticate"]

    resource = nobody.http.get("/.well-known/oauth-protected-resource/mcp")
    assert resource.json()["resource"] == f"{BASE}/mcp"
    assert resource.json()["authorization_servers"] == [BASE]
    assert "Access-Control-Allow-Origin" not in resource
    assert nobody.http.get("/.well-known/oauth-protected-resource").json()["resource"] == BASE
    assert nobody.http.get("/.well-known/oauth-protected-resource/api/v1").json()["resource"] == f"{BASE}/api/v1"

    server = nobody.http.get("/.well-known/oauth-authorization-server").json()
    assert server == nobody.http.get("/.well-known/openid-configuration").json()
    assert server["issuer"] == BASE
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["token_endpoint_auth_methods_supported"] == ["none"]
    assert server["authorization_response_iss_parameter_supported"] is True
    assert all(address.startswith(f"{BASE}/oauth/") for name, address in server.items() if name.endswith("_endpoint"))


def test_a_host_that_a_request_names_changes_no_address(nobody, settings):
    settings.ALLOWED_HOSTS = ["*"]

    answer = nobody.http.get(
        "/.well-known/oauth-authorization-server", headers={"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    )

    assert "evil.example" not in json.dumps(answer.json())


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost/cb?token=ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "http://127.0.0.1:8000/ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "cursor://x/ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ],
    ids=["query", "path", "program"],
)
def test_an_address_with_a_secret_is_kept_nowhere_and_said_to_nobody(nobody, uri):
    answer = nobody.register(redirect_uris=[CALLBACK, uri])

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    assert "ghp_" not in answer.content.decode()
    assert not Client.objects.exists()
