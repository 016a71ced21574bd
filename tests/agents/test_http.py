"""The SDK's own client over HTTP, in both revisions of the protocol; and what is refused before any tool is called."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from apps.accounts.services import token_revoke
from apps.agents.server import TAXONOMY
from apps.agents.tools import TOOLS
from tests.agents.calling import ACCEPT, REVISIONS, over_http
from tests.agents.conftest import reply
from tests.conftest import issue
from tests.ledger import of_person

both = pytest.mark.parametrize("revision", REVISIONS)
live = pytest.mark.usefixtures("pool", "transactional_db")


@live
@both
def test_an_agent_finds_what_was_approved(live_server, robo, known, revision):
    async def work(client):
        listed = (await client.list_tools()).tools
        found = await client.call_tool("memory_search", {"query": "how do retries of payments wait"})
        return client.session.protocol_version, listed, found

    spoken, listed, found = over_http(live_server.url, robo, revision, work)

    assert spoken == revision
    assert [tool.name for tool in listed] == list(TOOLS)
    answer = reply("memory_search", found)
    assert not answer.is_error
    assert [each["number"] for each in answer.results] == [known.new.label]
    assert "whole workspace" in answer.note


@live
@both
def test_the_whole_way_from_a_proposal_to_an_answer(live_server, robo, api, alice, revision):
    statement = "Refunds above 500 euros need two approvals, because of the audit of 2025."
    source = {"kind": "merge_request", "reference": "acme/pay!77", "quote": "Two approvals above 500."}

    async def propose(client):
        given = {"content": statement, "type": "business_rules", "sources": [source], "repos": ["acme/pay"]}
        proposed = await client.call_tool("memory_propose", given)
        found = await client.call_tool("memory_search", {"query": "refunds above 500", "repo": "acme/pay"})
        return reply("memory_propose", proposed), reply("memory_search", found)

    proposed, found = over_http(live_server.url, robo, revision, propose)
    assert proposed.results[0]["status"] == "pending"
    assert "reviewer decides" in proposed.note
    assert found.results == []

    candidate = proposed.results[0]["id"]
    assert api(alice).post(f"/api/v1/candidates/{candidate}/approve/", {"version": 1}).status_code == 200

    async def ask(client):
        return reply("memory_search", await client.call_tool("memory_search", {"query": "refunds above 500"}))

    assert [each["content"] for each in over_http(live_server.url, robo, revision, ask).results] == [statement]


@live
@both
def test_a_bad_argument_and_an_unknown_tool_break_nothing(live_server, robo, revision):
    async def work(client):
        bad = await client.call_tool("memory_search", {"query": "x", "limit": 0})
        unknown = await client.call_tool("memory_approve", {"id": "M-1"})
        good = await client.call_tool("memory_search", {"query": "x"})
        return bad, unknown, good

    bad, unknown, good = over_http(live_server.url, robo, revision, work)

    assert bad.is_error and reply("memory_search", bad).fields == ["limit"]
    assert unknown.is_error
    assert not good.is_error


@live
@both
def test_the_taxonomy_is_a_resource(live_server, robo, revision):
    async def work(client):
        listed = await client.list_resources()
        return listed.resources, (await client.read_resource(TAXONOMY)).contents

    listed, (content,) = over_http(live_server.url, robo, revision, work)

    assert [str(each.uri) for each in listed] == [TAXONOMY]
    assert "architecture_decisions" in [each["slug"] for each in json.loads(content.text)["types"]]


@live
@both
def test_eight_at_once(live_server, robo, known, revision):
    def ask(number: int) -> int:
        async def work(client):
            answers = [await client.call_tool("memory_search", {"query": "retries of payments"}) for _ in range(4)]
            return sum(len(reply("memory_search", answer).results) for answer in answers)

        return over_http(live_server.url, robo, revision, work)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [4] * 8


# --- what is refused before any tool is called ----------------------------------------------------------------
pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("method", ["get", "put", "patch", "delete", "head", "options"])
def test_only_post(agent, robo, method):
    for who in (robo, None):
        response = getattr(agent(who).client, method)("/mcp")
        assert response.status_code == 405
        assert response["Allow"] == "POST"


def test_without_a_token(agent):
    response = agent().ask("tools/list")

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["code"] == "not_authenticated"


def test_a_session_opens_nothing(browser, alice):
    response = browser(alice).post("/mcp", {}, content_type="application/json", headers={"Accept": ACCEPT})

    assert response.status_code == 401


def test_a_token_that_is_wrong_or_over(agent, robo, workspace, dave):
    for secret in ("fm_agent_wrong", "nonsense"):
        robo_like = type(robo)(robo.token, secret)
        response = agent(robo_like).ask("tools/call", {"name": "memory_search", "arguments": {"query": "x"}})
        assert (response.status_code, response.json()["code"]) == (401, "token_unknown")

    token_revoke(principal=of_person(dave), token=robo.token)
    response = agent(robo).ask("tools/list")

    assert (response.status_code, response.json()["code"]) == (401, "token_revoked")
    assert response["WWW-Authenticate"].startswith("Bearer")


def test_pages_of_another_origin_are_refused(agent, robo):
    assert agent(robo).ask("tools/list", Origin="https://evil.example.com").status_code == 403
    assert agent(robo).ask("tools/list", Origin="http://testserver").status_code == 200


@pytest.mark.parametrize("body", ["{", "[]", "null", "7", '{"jsonrpc": "2.0"}', b"\xff\xfe", "[" * 5_000])
def test_what_is_no_message_is_refused_and_never_a_fault_of_ours(agent, robo, body):
    for revision in ({}, {"MCP-Protocol-Version": "2026-07-28"}):
        response = agent(robo).client.post("/mcp", body, headers={"Accept": ACCEPT} | revision)
        assert response.status_code in (400, 404)
        assert "error" in response.json()


def test_whoever_does_not_say_what_they_accept_is_answered(agent, robo):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    assert agent(robo).client.post("/mcp", body).status_code == 200
    assert agent(robo).client.post("/mcp", body, headers={"Accept": "text/html"}).status_code == 406


def test_notifications_and_unknown_methods(agent, robo):
    client = agent(robo)
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}

    assert client.client.post("/mcp", note, headers={"Accept": ACCEPT}).status_code == 202
    assert client.ask("prompts/list").json()["error"]["code"] == -32601
    assert client.ask("subscriptions/listen").json()["error"]["code"] == -32601


def test_rates_are_those_of_rest(agent, robo, settings):
    settings.FIRM_MEMORY_THROTTLE = True
    settings.FIRM_MEMORY_RATES = settings.FIRM_MEMORY_RATES | {"search": 2, "read": 2, "write": 1}
    client = agent(robo)

    assert [client.call("memory_search", query="x").is_error for _ in range(3)] == [False, False, True]
    assert client.call("memory_search", query="x").code == "throttled"
    assert [client.ask("tools/list").status_code for _ in range(3)] == [200, 200, 429]


def test_while_the_database_is_down_a_tool_says_so(agent, robo, monkeypatch):
    from django.db import OperationalError

    client = agent(robo)

    def down(*args, **kwargs):
        raise OperationalError("connection refused")

    monkeypatch.setattr("apps.accounts.authentication.principal_for_token", down)
    answer = client.call("memory_search", query="x")

    assert answer.is_error
    assert "does not answer" in answer.text
    assert client.ask("tools/list").status_code == 200
    assert "does not answer" in client.ask("resources/read", {"uri": TAXONOMY}).json()["error"]["message"]


def test_it_is_down_in_the_middle_of_a_call(agent, robo, monkeypatch):
    from django.db import OperationalError

    def down(**kwargs):
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr("apps.agents.reading.search", down)
    answer = agent(robo).call("memory_search", query="x")

    assert answer.is_error and "does not answer" in answer.text


def test_a_fault_of_ours_is_logged_and_tells_nothing(agent, robo, monkeypatch, caplog):
    def broken(**kwargs):
        raise RuntimeError("the inside of it")

    monkeypatch.setattr("apps.agents.reading.search", broken)
    answer = agent(robo).call("memory_search", query="x")

    assert answer.is_error and answer.code == "internal_error"
    assert "inside" not in answer.text
    assert "the inside of it" in caplog.text


def test_a_reviewers_token_reads_and_proposes_and_decides_nothing_here(agent, workspace, alice):
    client = agent(issue(workspace, "alice here", "reviewer", owner=alice))

    assert not client.call("memory_search", query="x").is_error
    assert client.call("memory_approve", id="x").is_error
