"""The whole way of a client: register, ask, exchange, call, refresh, give back."""

from __future__ import annotations

import pytest

from apps.accounts.models import ApiToken, AuditEvent
from tests.agents.calling import Agent
from tests.oauth.conftest import BASE, CALLBACK, query_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

PROPOSAL = {
    "content": "Deploys happen on Mondays, because nobody is around on Fridays.",
    "type": "tooling_setup",
    "firm": True,
    "sources": [{"kind": "chat", "reference": "#deploys/1"}],
}


def test_a_client_comes_in_after_a_person_allowed_it(program, alice):
    client = program(alice)

    sent = client.decide()

    back = query_of(sent["Location"])
    assert sent["Location"].startswith(f"{CALLBACK}?")
    assert (back["state"], back["iss"]) == ("s-1", BASE)
    answer = client.exchange(back["code"])
    given = answer.json()
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert given["token_type"] == "Bearer"
    assert given["expires_in"] == 900
    assert given["scope"].split() == ["memory:read", "memory:propose"]
    assert Agent(given["access_token"]).call("memory_search", query="deploys").results == []
    proposed = Agent(given["access_token"]).call("memory_propose", **PROPOSAL)
    assert not proposed.is_error, proposed.text
    token = ApiToken.objects.get(owner=alice)
    assert (token.kind, token.read_only) == ("agent", False)
    assert token.name.startswith("Claude Code · alice · ")
    assert token.last_used_at is not None
    made = AuditEvent.objects.get(verb="connect")
    assert (made.user, made.after["came_from"]) == (alice, "http://localhost:3118")
