from __future__ import annotations

import pytest
from allauth.idp.oidc.models import Client
from django.core.management import CommandError

from apps.accounts.models import AuditEvent
from tests.accounts.test_commands import run
from tests.agents.calling import Agent
from tests.oauth.conftest import CALLBACK, Program

pytestmark = pytest.mark.django_db


def test_an_operator_adds_a_client_where_none_registers_itself(browser, alice, settings):
    settings.FIRM_MEMORY_OAUTH_REGISTRATION = "off"

    out, err = run("oauth", "add", "Our agent", "--redirect", CALLBACK)

    assert err == ""
    client = Program(browser(alice), client_id=out.strip())
    assert client.exchange(client.code()).status_code == 200
    assert f"{out.strip()}\tadded\t1\tOur agent\t{CALLBACK}\n" == run("oauth", "list")[0]


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "http://evil.example/", "cursor://x", "https://a.example/#x"])
def test_a_hostile_address_is_not_added_either(uri):
    with pytest.raises(CommandError):
        run("oauth", "add", "Our agent", "--redirect", uri)

    assert not Client.objects.exists()


def test_an_operator_ends_everything_or_what_one_person_has(tokens, alice, bob, other_workspace):
    hers, his = tokens(alice), tokens(bob)

    assert run("oauth", "end", "--workspace", "other")[0] == "0 ended.\n"
    assert run("oauth", "end", "--user", "alice")[0] == "1 ended.\n"
    assert Agent(hers["access_token"]).ask("tools/list").status_code == 401
    assert Agent(his["access_token"]).ask("tools/list").status_code == 200
    assert run("oauth", "end")[0] == "1 ended.\n"
    assert Agent(his["access_token"]).ask("tools/list").status_code == 401
    assert his["program"].refresh(his["refresh_token"]).json()["error"] == "invalid_grant"
    assert AuditEvent.objects.filter(verb="revoke", actor="operator").count() == 2
