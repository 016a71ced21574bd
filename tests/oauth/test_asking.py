"""What a client may ask a person for, and what it is refused before anybody is asked."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest
from allauth.idp.oidc.models import Client, Token

from apps.accounts.models import ApiToken, Membership
from apps.oauth.models import Connection
from tests.oauth.conftest import BASE, CALLBACK, CHALLENGE, Program, query_of
from tests.pages import text, words

pytestmark = pytest.mark.django_db


def nothing_was_made() -> bool:
    return not Token.objects.exists() and not Connection.objects.exists() and not ApiToken.objects.exists()


# --- where the answer goes -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "redirect",
    [
        "https://evil.example/callback",
        "http://evil.example:3118/callback",
        "http://localhost:3118/callback/more",
        "http://localhost:3118/callback/../other",
        "http://localhost:3118/callback?next=x",
        "http://localhost:3118/callback#x",
        "http://localhost:3118/Callback",
        "http://LOCALHOST:3118/callback",
        "http://localhost.:3118/callback",
        "http://127.0.0.1:3118/callback",
        "http://[::1]:3118/callback",
        "http://alice@localhost:3118/callback",
        "http://localhost:3118@evil.example/callback",
        "http://localhost:99999/callback",
        "http://localhost:3118/callback\r\nX: y",
        "http://localhost:3118/callback\x00",
        "http://localhost:3118\\@evil.example/callback",
        "https://localhost:3118/callback",
        "//localhost:3118/callback",
        "/callback",
        "javascript:alert(1)",
        "callback",
        "",
        None,
    ],
)
def test_no_address_but_a_registered_one_gets_an_answer(program, alice, redirect):
    client = program(alice)

    for address in (client.address(redirect_uri=redirect), client.address(redirect_uri=redirect, response_type="x")):
        shown = client.person.get(address)
        posted = client.person.post(address, {"decision": "allow", "access": "read", "reach": "all"})

        for answer in (shown, posted):
            assert answer.status_code == 400
            assert "Location" not in answer
            assert "Nothing was allowed" in words(answer)
    assert nothing_was_made()


@pytest.mark.parametrize("redirect", ["http://localhost/callback", "http://localhost:49152/callback"])
def test_a_program_on_this_computer_listens_where_a_port_is_free(program, alice, redirect):
    client = program(alice)
    client.redirect = redirect

    code = client.code()

    assert client.exchange(code).status_code == 200


def test_elsewhere_the_port_is_part_of_the_address(program, alice, settings):
    settings.FIRM_MEMORY_OAUTH_HOSTS = ["agents.example"]
    client = program(alice, redirect="https://agents.example/callback")

    assert client.person.get(client.address(redirect_uri="https://agents.example:8443/callback")).status_code == 400
    assert client.person.get(client.address()).status_code == 200


def test_an_operator_who_takes_a_host_back_is_obeyed(program, alice, settings):
    settings.FIRM_MEMORY_OAUTH_HOSTS = ["agents.example"]
    client = program(alice, redirect="https://agents.example/callback")
    settings.FIRM_MEMORY_OAUTH_HOSTS = []

    assert client.person.get(client.address()).status_code == 400


def test_two_addresses_are_none(program, alice):
    client = program(alice)

    answer = client.person.get(client.address(redirect_uri=[CALLBACK, "https://evil.example/"]))

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "client_id",
    [
        "unknown",
        "",
        pytest.param("a" * 500, id="long"),
        "https://claude.ai/oauth/claude-code-client-metadata",
        "https://127.0.0.1/client.json",
        "https://localhost/client.json",
        "https://[::1]/client.json",
        "https://[::ffff:127.0.0.1]/client.json",
        "https://[::ffff:a9fe:a9fe]/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://metadata.google.internal/computeMetadata/v1/",
        "https://10.0.0.1/client.json",
        "https://192.168.1.1/client.json",
        "https://172.16.0.1/client.json",
        "https://100.64.0.1/client.json",
        "https://[fe80::1]/client.json",
        "https://[fd00::1]/client.json",
        "https://0x7f000001/client.json",
        "https://2130706433/client.json",
        "https://0/client.json",
        "https://evil.example@127.0.0.1/client.json",
        "https://evil.example/redirects-to-loopback",
        "http://evil.example/client.json",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
    ],
)
def test_a_client_that_is_an_address_is_never_fetched(program, alice, monkeypatch, client_id):
    """Nobody is asked for what a client says about itself, so there is nothing to lead this service anywhere by."""
    client = program(alice)
    asked_for: list[object] = []

    def note(*arguments, **options):
        asked_for.append(arguments)
        raise OSError("no")

    for name in ("getaddrinfo", "create_connection", "gethostbyname"):
        monkeypatch.setattr(socket, name, note)
    monkeypatch.setattr(socket.socket, "connect", note)

    shown = client.person.get(client.address(client_id=client_id))
    client.client_id = client_id
    answer = client.exchange("x")

    assert shown.status_code == 400
    assert answer.status_code in (400, 401)
    assert asked_for == []


# --- what it asks for ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": CHALLENGE + "="}, "invalid_request"),
        ({"code_challenge": [CHALLENGE, CHALLENGE]}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"scope": "memory:approve"}, "invalid_scope"),
        ({"scope": "memory:read openid"}, "invalid_scope"),
        ({"scope": ["memory:read", "memory:propose"]}, "invalid_request"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"resource": f"{BASE}/mcp/../admin"}, "invalid_target"),
        ({"resource": f"{BASE}.evil.example/mcp"}, "invalid_target"),
        ({"resource": f"{BASE}/mcp#x"}, "invalid_target"),
        ({"resource": [f"{BASE}/mcp", "https://evil.example/"]}, "invalid_target"),
        ({"resource": ""}, "invalid_target"),
        ({"request": "eyJhbGciOiJub25lIn0.e30."}, "request_not_supported"),
        ({"request_uri": "https://evil.example/"}, "request_not_supported"),
        ({"prompt": "none"}, "interaction_required"),
    ],
)
def test_what_will_not_do_goes_back_to_the_client(program, alice, changes, error):
    client = program(alice)

    answer = client.person.get(client.address(**changes))

    back = query_of(answer["Location"])
    assert answer["Location"].startswith(f"{CALLBACK}?")
    assert (back["error"], back["state"], back["iss"]) == (error, "s-1", BASE)
    assert nothing_was_made()


@pytest.mark.parametrize("state", ["x" * 1_001, "a\x00b", "a\nb", "é"], ids=["long", "nul", "lines", "letter"])
def test_a_state_that_no_client_makes_is_not_repeated(program, alice, state):
    client = program(alice)

    back = query_of(client.person.get(client.address(state=state))["Location"])

    assert back["error"] == "invalid_request"
    assert "state" not in back


def test_a_state_comes_back_word_for_word_and_as_one_value(program, alice):
    client = program(alice)
    state = "a&code=forged&iss=https://evil.example#?\"'<>"

    back = query_of(client.decide(client.address(state=state))["Location"])

    assert back["state"] == state
    assert back["code"] != "forged"
    assert back["iss"] == BASE


def test_without_a_scope_and_a_resource_the_person_chooses_and_it_is_for_mcp(program, alice):
    client = program(alice)

    given = client.exchange(client.code(client.address(scope=None, resource=None)), resource=None).json()

    assert given["scope"].split() == ["memory:read", "memory:propose"]
    assert Token.objects.get(type="at").get_resources() == [f"{BASE}/mcp"]


def test_who_asks_to_read_is_not_offered_more(program, alice):
    client = program(alice)
    address = client.address(scope="memory:read")

    shown = client.person.get(address)
    forged = client.decide(address, access="propose")
    given = client.exchange(client.code(address)).json()

    assert 'value="propose"' not in text(shown)
    assert forged.status_code == 422
    assert given["scope"] == "memory:read"
    assert ApiToken.objects.get().read_only


# --- the page ------------------------------------------------------------------------------------------------
def test_whoever_is_not_signed_in_signs_in_first_and_comes_back_word_for_word(program, alice, browser):
    client = program(alice)
    address = client.address(state="eyJhbGciOiJIUzI1NiJ9.state-that-looks-like-a-token.0123456789abcdef")

    for answer in (browser().get(address), browser().post(address, {"decision": "allow"})):
        assert answer.status_code == 302
        assert query_of(answer["Location"])["next"] == address
        assert urlsplit(answer["Location"]).path == "/accounts/login/"
    assert nothing_was_made()


def test_the_page_says_who_where_and_what(program, alice):
    client = program(alice)

    shown = words(client.person.get(client.address()))

    assert "calls itself Claude Code" in shown
    assert "in the name of alice" in shown
    assert "http://localhost:3118, a program on the computer that you sit at" in shown
    assert "Nobody has checked the name" in shown
    assert "Search and read, and propose what a person then decides about" in shown
    assert "In the workspace firm" in shown


def test_nobody_frames_the_page_keeps_it_or_learns_where_it_was(program, alice):
    client = program(alice)

    shown = client.person.get(client.address())

    policy = shown["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self'" in policy
    assert "form-action 'self' http://localhost:3118" in policy
    assert shown["X-Frame-Options"] == "DENY"
    assert shown["Referrer-Policy"] == "same-origin"  # with none at all browsers send the form without an origin
    assert "no-store" in shown["Cache-Control"]
    assert "<script>" not in text(shown) and "onclick" not in text(shown)
    sent = client.decide()
    assert sent["Referrer-Policy"] == "no-referrer"
    assert "no-store" in sent["Cache-Control"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('"><img src=x onerror=alert(1)>', "&quot;&gt;&lt;img src=x onerror=alert(1)&gt;"),
        ("{{ settings.SECRET_KEY }}", "{{ settings.SECRET_KEY }}"),
        ("Claude\u202eedoC\u200b\x07", "ClaudeedoC"),
        ("two\nlines\tand  more", "two lines and more"),
        pytest.param("x" * 5_000, "x" * 59 + "…", id="long"),
        ("\u200b\u202e", "A client without a name"),
        ("", "A client without a name"),
        (None, "A client without a name"),
        (["a"], "A client without a name"),
        ("half \ud83d", "half"),
        ("key sk-ant-api03-" + "a1B2" * 20, "key [secret"),
    ],
)
def test_a_hostile_name_is_one_short_line_of_text(alice, browser, name, shown):
    client = Program(browser(alice))
    assert client.register(client_name=name).status_code == 201

    page = client.person.get(client.address())
    code = client.code()

    assert f"<bdi>{shown}" in text(page)
    assert "<script>alert" not in text(page) and "<img" not in text(page)
    assert client.exchange(code).status_code == 200
    assert len(Client.objects.get().name) <= 60
    listed = client.person.get("/accounts/agents/")
    assert f"<bdi>{shown}" in text(listed)


def test_saying_no_makes_nothing(program, alice):
    client = program(alice)

    back = query_of(client.decide(decision="refuse")["Location"])

    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "s-1", BASE)
    assert nothing_was_made()


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ({"decision": ""}, 400),
        ({"access": "approve"}, 422),
        ({"access": ""}, 422),
        ({"reach": "nowhere"}, 422),
        ({"reach": "some"}, 422),
        ({"reach": "some", "repositories": "acme/unknown"}, 422),
        ({"reach": "some", "repositories": "x" * 5_000}, 422),
        ({"workspace": "other"}, 422),
        ({"workspace": ""}, 422),
        ({"workspace": "a\x00b"}, 422),
    ],
)
def test_an_answer_that_will_not_do_is_asked_for_again(program, alice, other_workspace, answers, status):
    answer = program(alice).decide(**answers)

    assert answer.status_code == status
    assert "Location" not in answer
    assert nothing_was_made()


# --- whose consent it is -------------------------------------------------------------------------------------
def test_no_other_page_consents_for_somebody(program, alice, bob, browser):
    """Without the token of the person's own session nothing happens, whatever else is right."""
    address = program(alice).address()
    fields = {"decision": "allow", "workspace": "firm", "access": "propose", "reach": "all"}
    strict, bobs = browser(alice, enforce_csrf_checks=True), browser(bob, enforce_csrf_checks=True)
    bobs.get(address)
    stolen = bobs.cookies["csrftoken"].value

    for forged in (fields, fields | {"csrfmiddlewaretoken": stolen}, fields | {"csrfmiddlewaretoken": "x" * 64}):
        assert strict.post(address, forged).status_code == 403

    assert nothing_was_made()


def test_asking_by_get_allows_nothing(program, alice):
    client = program(alice)

    assert client.person.get(client.address(decision="allow", access="propose", reach="all")).status_code == 200
    assert nothing_was_made()


def test_a_person_of_no_workspace_connects_nothing(program, alice, browser):
    client = program(alice)
    Membership.objects.filter(user=alice).delete()

    assert client.person.get(client.address()).status_code == 403
    assert client.person.post(client.address(), {"decision": "allow"}).status_code == 403
    assert nothing_was_made()


def test_a_person_connects_at_most_twenty(program, alice, monkeypatch):
    monkeypatch.setattr("apps.oauth.services.MOST_LIVING", 1)
    client = program(alice)
    client.code()

    refused = client.decide()

    assert refused.status_code == 409
    assert "Disconnect one that you no longer use" in words(refused)
    assert Connection.objects.count() == 1
