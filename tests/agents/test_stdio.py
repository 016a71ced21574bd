"""``manage.py mcp`` as a process of its own, with the SDK's client at the other end, in both revisions."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from apps.accounts.services import token_revoke
from apps.agents.checkout import remote_of
from apps.agents.tools import TOOLS
from apps.candidates.models import Candidate
from apps.candidates.proposal import ScopeInput
from apps.scopes.models import Repository
from tests.agents.calling import REVISIONS, ROOT, environment, over_stdio
from tests.agents.conftest import reply
from tests.conftest import issue
from tests.ledger import of_person

both = pytest.mark.parametrize("revision", REVISIONS)
live = pytest.mark.usefixtures("pool", "transactional_db")
SHOP = ScopeInput(repos=("acme/shop",))
SOURCES = [{"kind": "merge_request", "reference": "acme/pay!9"}]


@pytest.fixture
def checkout(tmp_path):
    """A checkout of acme/pay, and a folder inside it."""
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "remote", "add", "origin", "https://robot:hunter2@git.example.com/acme/pay.git"], check=True)
    inside = tmp_path / "src" / "payments"
    inside.mkdir(parents=True)
    return inside


@live
@both
def test_it_looks_in_the_repository_that_is_checked_out(robo, remember, known, checkout, tmp_path, revision):
    remember("Retries of shop wait a minute.", scope=SHOP)

    async def work(client):
        tools = (await client.list_tools()).tools
        found = await client.call_tool("memory_search", {"query": "how do retries wait"})
        here = await client.call_tool("memory_context", {})
        proposed = await client.call_tool(
            "memory_propose", {"content": "Payouts are made daily.", "type": "business_rules", "sources": SOURCES}
        )
        bad = await client.call_tool("memory_search", {"query": "x", "foo": 1})
        return client.session.protocol_version, tools, found, here, proposed, bad

    spoken, tools, found, here, proposed, bad = over_stdio(robo, revision, checkout, work, log=tmp_path / "log")

    assert spoken == revision
    assert [tool.name for tool in tools] == list(TOOLS)
    answer = reply("memory_search", found)
    assert [each["number"] for each in answer.results] == [known.new.label]
    assert "The repository checked out here, acme/pay" in answer.note
    assert reply("memory_context", here).results
    assert "checked out here, acme/pay" in reply("memory_propose", proposed).note
    (candidate,) = Candidate.objects.filter(content="Payouts are made daily.")
    assert candidate.repo_ids == [Repository.objects.get(slug="acme/pay").pk]
    assert bad.is_error
    log = (tmp_path / "log").read_text()
    assert "for acme/pay" in log and "hunter2" not in log and robo.secret not in log


@live
def test_outside_of_a_checkout_the_whole_workspace(robo, known, tmp_path):
    async def work(client):
        missing = await client.call_tool("memory_context", {})
        return await client.call_tool("memory_search", {"query": "how do retries wait"}), missing

    found, missing = over_stdio(robo, "2025-11-25", tmp_path, work)

    assert "whole workspace" in reply("memory_search", found).note
    assert reply("memory_context", missing).fields == ["repo"]


@live
def test_a_token_revoked_meanwhile_opens_nothing_more(robo, dave, known, tmp_path):
    admin = of_person(dave)

    def revoke() -> None:
        token_revoke(principal=admin, token=robo.token)
        connection.close()

    async def work(client):
        before = await client.call_tool("memory_search", {"query": "how do retries wait"})
        await sync_to_async(revoke)()
        return before, await client.call_tool("memory_search", {"query": "how do retries wait"})

    before, after = over_stdio(robo, "2026-07-28", tmp_path, work)

    assert not before.is_error
    assert after.is_error and "revoked" in reply("memory_search", after).text


@live
def test_a_limited_token_in_another_checkout(workspace, known, checkout, remember):
    remember("Retries of shop wait a minute.", scope=SHOP)
    limited = issue(workspace, "limited", "agent", repository_ids=[Repository.objects.get(slug="acme/shop").pk])

    async def work(client):
        return await client.call_tool("memory_search", {"query": "how do retries wait"})

    answer = reply("memory_search", over_stdio(limited, "2026-07-28", checkout, work))

    assert [each["scope"]["repos"] for each in answer.results] == [["acme/shop"]]
    assert "acme/pay, is not among them" in answer.note


def started(secret: str, folder) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "mcp"],
        env=environment(secret),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@live
def test_without_a_token_that_will_do_it_says_so_and_ends(workspace, tmp_path):
    for secret, said in (
        ("", "FIRM_MEMORY_TOKEN is not set"),
        ("fm_agent_wrong", "not known here"),
        ("${FIRM_MEMORY_TOKEN}", "no such variable"),
        ("{env:FIRM_MEMORY_TOKEN}", "no such variable"),
    ):
        done = started(secret, tmp_path)
        assert done.returncode != 0
        assert said in done.stderr and "Traceback" not in done.stderr
        assert done.stdout == ""


@live
def test_nothing_but_the_protocol_is_on_standard_output(robo, tmp_path):
    lines = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "resources/list", "params": {"cursor": "half \ud83d"}},
    ]
    command = [sys.executable, str(ROOT / "manage.py"), "mcp"]
    with subprocess.Popen(
        command,
        env=environment(robo.secret),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        process.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdin.close()
        rest = process.stdout.read()

    assert {answer["id"] for answer in answers} == {1, 2, 3}
    assert answers[0]["result"]["protocolVersion"] == "2025-11-25"
    assert (rest, process.returncode) == ("", 0)


@live
def test_while_the_database_is_down_it_serves_and_says_so(robo, tmp_path, monkeypatch):
    from tests.agents import calling

    real = calling.environment
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    monkeypatch.setattr(calling, "environment", lambda secret: real(secret) | nowhere)

    async def work(client):
        return await client.list_tools(), await client.call_tool("memory_search", {"query": "x"})

    listed, found = over_stdio(robo, "2026-07-28", tmp_path, work, log=tmp_path / "log")

    assert len(listed.tools) == len(TOOLS)
    assert found.is_error and "does not answer" in reply("memory_search", found).text


# --- which repository is checked out ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("remotes", "expected"),
    [
        ({"origin": "git@github.com:Acme/Pay.git"}, "https://github.com/acme/pay"),
        ({"origin": "ssh://git@host:2222/acme/pay"}, "https://host/acme/pay"),
        ({"fork": "git@host:me/pay.git", "origin": "git@host:acme/pay.git"}, "https://host/acme/pay"),
        ({"fork": "git@host:me/pay.git", "upstream": "git@host:acme/pay.git"}, "https://host/acme/pay"),
        ({"mine": "git@host:me/pay.git"}, "https://host/me/pay"),
        ({"origin": "/srv/git/pay.git"}, None),
        ({}, None),
    ],
)
def test_the_remote_of_a_checkout(tmp_path, remotes, expected):
    subprocess.run(["git", "-C", str(tmp_path), "init", "--quiet"], check=True)
    for name, url in remotes.items():
        subprocess.run(["git", "-C", str(tmp_path), "remote", "add", name, url], check=True)

    assert remote_of(tmp_path) == expected


def test_no_checkout_and_no_folder(tmp_path):
    assert remote_of(tmp_path) is None
    assert remote_of(tmp_path / "missing") is None
