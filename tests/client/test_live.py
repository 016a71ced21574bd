"""The client and `fm` against the real service, through its real HTTP interface."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import TokenKind
from apps.candidates.models import Candidate
from apps.capture.extractors.registry import override
from apps.capture.models import CaptureEvent
from apps.capture.tasks import drain
from apps.scopes.models import Repository
from firm_memory_client import (
    Client,
    Conflict,
    Excluded,
    Invalid,
    Malformed,
    Material,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    Scope,
    Source,
)
from firm_memory_client.bridge import Bridge
from tests.capture.doubles import Canned, a_fact
from tests.conftest import issue

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool")]

WHY = "Payment retries back off exponentially, because the bank blocks a merchant who retries at once."
SOURCE = Source("merge_request", "acme/pay!128", url="https://git.example.com/acme/pay/-/merge_requests/128")


@pytest.fixture
def client(live_server, robo):
    with Client(live_server.url, robo.secret) as made:
        yield made


@pytest.fixture
def env(live_server, robo):
    return {"FIRM_MEMORY_URL": live_server.url, "FIRM_MEMORY_TOKEN": robo.secret}


def propose(client: Client, content: str = WHY, **changes):
    values = {"type": "architecture_decisions", "sources": [SOURCE], "repos": ["acme/pay"], "confidence": 0.9}
    return client.propose(content, **values | changes)


def test_proposed_approved_and_found(client, api, alice, remember):
    first, again = propose(client), propose(client)
    assert (first.status, first.created, again.created, again.id) == ("pending", True, False, first.id)
    assert len(client.search("why do payment retries back off?", repos=["acme/pay"])) == 0
    approved = api(alice).post(f"/api/v1/candidates/{first.id}/approve/", {"version": again.version})
    assert approved.status_code == 200, approved.content
    (found,) = client.search("why do payment retries back off?", repos=["acme/pay"], limit=3, strict=True)
    assert (found.content, found.sources[0].reference, found.scope) == (
        WHY,
        SOURCE.reference,
        Scope(repos=("acme/pay",)),
    )
    assert 0 < (found.score or 0) <= 1
    assert client.get(found.number).id == found.id
    assert client.candidate(first.id)["status"] == "approved"
    context = client.context("https://git.example.com/acme/pay", budget_tokens=900, strict=True)
    assert (context.items[0].number, context.budget_tokens) == (found.number, 900)
    assert WHY in context.text
    answer = client.ask("why do payment retries back off?", strict=True)
    assert answer.cited[0].number == found.number
    assert [each.number for each in client.decisions("payment retries", strict=True)] == [found.number]
    report = client.correct(found.number, kind="stale", reason="It is six now.", sources=[SOURCE])
    assert (report.status, report.created) == ("pending", True)
    assert client.get(found.number).status == "disputed"


def test_what_the_service_refuses(client, live_server, workspace, other_workspace, remember):
    me, taxonomy = client.me(), client.taxonomy()
    assert (me.kind, me.name, me.workspace, me.read_only) == ("agent", "robo", "firm", False)
    assert len(taxonomy.types) == 13
    assert taxonomy.exclusions
    known = remember(WHY)
    with pytest.raises(Invalid) as caught:
        propose(client, type="nonsense")
    assert caught.value.fields == ("type",)
    secret = f"The key is AKIA{'ABCDEFGH23456789'}, never tell."
    with pytest.raises(Excluded) as excluded:
        propose(client, secret)
    assert "AKIA" not in str(excluded.value)
    with pytest.raises(Invalid):
        client.search("")
    with pytest.raises(Invalid):
        propose(client, "a\x00b \ud800")
    with pytest.raises(Malformed):
        client.ingest("x", kind="chat", sources=[{"kind": "chat", "reference": "1", "who": "me"}], firm=True)
    with pytest.raises(NotAuthenticated), Client(live_server.url, "fm_agent_nobody") as nobody:
        nobody.search("why?")
    reading = issue(workspace, "reading", TokenKind.AGENT, read_only=True)
    with Client(live_server.url, reading.secret) as reader:
        assert reader.get(str(known.pk)).content == WHY
        with pytest.raises(NotAllowed):
            propose(reader)
    elsewhere = issue(other_workspace, "elsewhere", TokenKind.AGENT)
    with Client(live_server.url, elsewhere.secret) as outsider:
        assert len(outsider.search(WHY)) == 0
        with pytest.raises(NotFound):
            outsider.get(str(known.pk))
    assert Candidate.objects.filter(status="pending").count() == 0


def test_a_key_makes_a_repetition_safe_and_material_is_waited_for(client):
    first = propose(client, idempotency_key="run-1")
    assert propose(client, idempotency_key="run-1") == first
    with pytest.raises(Invalid) as caught:
        propose(client, f"{WHY} Always.", idempotency_key="run-1")
    assert caught.value.code == "idempotency_key_reused"
    assert not isinstance(caught.value, Conflict)
    pieces = [Material(f"Line {at}. We never retry at once.", "chat", Scope(firm=True), (SOURCE,)) for at in range(3)]
    ((one, two, three),) = client.ingest_many(pieces)
    assert len({one.id, two.id, three.id}) == CaptureEvent.objects.count() == 3
    with override(Canned([a_fact("Nothing is retried at once.", quote="We never retry at once.")])):
        drain()
    event = client.wait(one.id, timeout=5)
    assert (event.state, event.outcome, len(event.candidates)) == ("done", "queued", 1)
    with pytest.raises(Invalid) as caught:
        list(client.ingest_many([pieces[0], {**pieces[1].as_dict(), "kind": "gossip"}]))
    assert caught.value.fields == ("[2].kind",)


# --- the command ------------------------------------------------------------------------------------------------------
def test_fm_from_a_proposal_to_a_cited_answer(fm, env, checkout, api, alice):
    proposed = fm(
        "propose", WHY, "--type", "architecture_decisions", "--source", *("merge_request", "acme/pay!1"), env=env
    )
    assert (proposed.code, "pending" in proposed.out) == (0, True)
    candidate = Candidate.objects.get()
    api(alice).post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": candidate.version})
    found = fm("search", "why do payment retries back off?", "--json", env=env)
    assert (found.code, found.data["results"][0]["content"]) == (0, WHY)
    number = found.data["results"][0]["number"]
    shown = fm("search", "why do payment retries back off?", env=env)
    assert shown.out.startswith(f"{number}  architecture_decisions")
    assert f"│ {WHY}" in shown.out
    assert "\x1b" not in shown.out + shown.err
    answer = fm("ask", "why do payment retries back off?", env=env)
    assert answer.code == 0
    assert f"\n{number}  {WHY[:20]}" in answer.out
    assert "  merge_request  acme/pay!1\n" in answer.out
    context = fm("context", "--budget-tokens", "900", env=env)
    assert (context.code, WHY in context.out) == (0, True)
    one = fm("get", number, env=env)
    assert (one.code, "approve by alice" in one.out) == (0, True)
    report = fm("correct", number, "--kind", "stale", "--reason", "It is six now.", env=env)
    assert report.code == 0
    assert Candidate.objects.get(corrects__isnull=False).evidence.get().source.reference.startswith("acme/pay@")


def test_how_it_ends_when_the_service_says_no(fm, env, checkout, live_server, workspace):
    reading = issue(workspace, "reading", TokenKind.AGENT, read_only=True)
    proposal = ["propose", "x", "--type", "ownership", "--source", "issue", "1"]
    for arguments, token, code in (
        (["search", "what is the colour of the moon?"], None, 1),
        (["get", "M-99"], None, 1),
        (["propose", "x", "--type", "nonsense", "--source", "issue", "1"], None, 3),
        (["search", "x", "--as-of", "yesterday"], None, 3),
        (["me"], "fm_agent_nobody", 4),
        (proposal, reading.secret, 4),
    ):
        more = {"FIRM_MEMORY_TOKEN": token} if token else {}
        told = fm(*arguments, "--json", env=env | more)
        assert (told.code, "error" in told.data) == (code, arguments[0] != "search" or code > 1), arguments
    assert fm(*proposal, env=env | more).err == "This token is read-only.\n"


def test_fm_hands_files_over(fm, env, checkout):
    (checkout / "call.md").write_text("Anna: We never retry at once, because the bank blocks us.")
    ended = fm("ingest", "call.md", "--kind", "transcript", env=env)
    assert ended.code == 0
    event = CaptureEvent.objects.get()
    assert (event.scope["repos"], event.sources[0]["reference"]) == (
        ["https://git.example.com/acme/pay"],
        "acme/pay call.md",
    )
    lines = "\n".join(
        json.dumps(
            {
                "content": f"{at}. We never retry.",
                "kind": "chat",
                "scope": {"firm": True},
                "sources": [SOURCE.as_dict()],
            }
        )
        for at in range(3)
    )
    told = fm("ingest", "--jsonl", "--json", text=lines, env=env)
    assert len(told.data["events"]) == 3
    broken = fm("ingest", "--jsonl", text=f"{lines}\n{{", env=env)
    assert (broken.code, "line 4, is no JSON object. Nothing was sent." in broken.err) == (2, True)
    assert CaptureEvent.objects.count() == 4
    (checkout / "docs").mkdir()
    (checkout / "docs" / "0007.md").write_text(f"# 7. Back off\n\n{WHY}\n")
    proposed = fm("propose", "--file", "docs/0007.md", "--type", "ARCHITECTURE_DECISION", "--json", env=env)
    assert proposed.code == 0
    candidate = Candidate.objects.get()
    assert candidate.evidence.get().source.reference == "acme/pay docs/0007.md"
    assert list(Repository.objects.values_list("slug", flat=True)) == ["acme/pay"]


def test_fm_names_the_file_and_the_line_that_will_not_do(fm, env, checkout, monkeypatch):
    """Also where many lines go in several requests, each of which the service counts from one."""
    monkeypatch.setattr("firm_memory_client.client.MAX_LINES", 2)
    piece = {"content": "We never retry.", "kind": "chat", "scope": {"firm": True}, "sources": [SOURCE.as_dict()]}
    for file, bad, said in (
        ("kinds.jsonl", {"kind": "gossip"}, "kind of kinds.jsonl:5: Use one of"),
        ("keys.jsonl", {"gossip": True}, "keys.jsonl:5: Unknown: gossip."),
    ):
        lines = [piece, piece, {}, piece, piece | bad, piece]
        text = "\n".join(json.dumps(each) if each else "" for each in lines)
        (checkout / file).write_text(text)
        ended = fm("ingest", "--jsonl", file, env=env)
        assert (ended.code, said in ended.err) == (3, True), ended.err
    (checkout / "call.md").write_text("Anna: We never retry at once, because the bank blocks us.")
    said = fm("ingest", "call.md", "--kind", "gossip", "--source", "chat", "C1", env=env).err
    assert "kind of call.md: Use one of" in said
    said = fm("ingest", "--kind", "gossip", "--source", "chat", "C1", text="Ben: We do.", env=env).err
    assert "kind of standard input: Use one of" in said


# --- doctor -----------------------------------------------------------------------------------------------------------
def states(ended) -> dict[str, str]:
    return {each["name"]: each["state"] for each in ended.data["checks"]}


def test_doctor_finds_all_well_or_says_what_is_not(fm, env, checkout, remember, workspace):
    remember(WHY)
    well = fm("doctor", "--json", env=env)
    found = states(well)
    assert (well.code, well.data["ok"]) == (0, True)
    assert {
        name: found[name] for name in ("address", "token", "reached", "clock", "who", "scope", "version", "mcp")
    } == dict.fromkeys(("address", "token", "reached", "clock", "who", "scope", "version", "mcp"), "ok")
    remember(scope=_repo("acme/shop"))
    shop = Repository.objects.get(slug="acme/shop")
    limited = issue(workspace, "limited", TokenKind.AGENT, repository_ids=[shop.pk])
    told = fm("doctor", "--json", env=env | {"FIRM_MEMORY_TOKEN": limited.secret})
    assert (told.code, states(told)["scope"]) == (0, "warn")
    nobody = fm("doctor", "--json", env=env | {"FIRM_MEMORY_TOKEN": "fm_agent_nobody"})
    assert (nobody.code, states(nobody)["who"], states(nobody)["mcp"]) == (4, "fail", "skipped")
    without = fm("doctor", env=env | {"FIRM_MEMORY_TOKEN": ""})
    assert (without.code, "fm configure" in without.out) == (2, True)
    down = fm("doctor", "--json", env=env | {"FIRM_MEMORY_URL": "http://127.0.0.1:9"})
    assert (down.code, states(down)["reached"], states(down)["who"]) == (5, "fail", "skipped")
    assert all(each["todo"] for each in down.data["checks"] if each["state"] == "fail")


# --- the bridge -------------------------------------------------------------------------------------------------------
def through_bridge(
    client: Client, *messages: object, repo: str | None = "https://git.example.com/acme/pay"
) -> list[dict]:
    out = io.BytesIO()
    bridge = Bridge(client.transport, out, repo=repo, timeout=20)
    bridge.serve([each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages])
    return [json.loads(line) for line in out.getvalue().splitlines()]


def call(number: int, method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HELLO = call(
    1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "test", "version": "1"}
)


def test_a_client_that_starts_a_process_reaches_the_tools(client, remember, live_server):
    here, elsewhere = remember(WHY), remember(WHY.replace("Payment", "Order"), scope=_repo("acme/shop"))
    answers = through_bridge(
        client,
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, "tools/list"),
        call(3, "tools/call", name="memory_search", arguments={"query": "why do retries back off?"}),
        call(
            4, "tools/call", name="memory_search", arguments={"query": "why do retries back off?", "repo": "acme/shop"}
        ),
        call(5, "tools/call", name="memory_context", arguments={}),
    )
    by_id = {each["id"]: each for each in answers}
    assert sorted(by_id) == [1, 2, 3, 4, 5]
    assert by_id[1]["result"]["serverInfo"]["name"] == "firm-memory"
    schemas = {tool["name"]: tool["inputSchema"] for tool in by_id[2]["result"]["tools"]}
    assert "repo" not in schemas["memory_context"].get("required", [])
    found = {
        number: [each["number"] for each in by_id[number]["result"]["structuredContent"]["results"]]
        for number in (3, 4)
    }
    assert found == {3: [here.label], 4: [elsewhere.label]}
    assert by_id[5]["result"]["structuredContent"]["results"][0]["number"] == here.label

    answers = through_bridge(client, b"{", b"[]", HELLO, call(2, "tools/call", name="nothing", arguments={}))
    assert [each.get("id") for each in answers] == [None, None, 1, 2]
    with Client(live_server.url, "fm_agent_nobody") as nobody:
        (refused,) = through_bridge(nobody, HELLO)
    assert (refused["id"], refused["error"]["message"]) == (1, "This token is not known here.")
    with Client("http://127.0.0.1:9", "fm_agent_x", timeout=1) as down:
        (lost,) = through_bridge(down, call(7, "tools/call", name="memory_search", arguments={"query": "x"}))
    assert (lost["id"], "cannot be reached" in lost["error"]["message"]) == (7, True)


def _repo(slug: str):
    from apps.candidates.proposal import ScopeInput

    return ScopeInput(repos=(slug,))


def test_the_sdk_of_agents_speaks_through_fm(live_server, robo, remember, checkout):
    import asyncio

    from mcp.client import Client as Agent
    from mcp.client.stdio import StdioServerParameters, stdio_client

    from tests.agents.calling import REVISIONS

    known = remember(WHY)
    source = Path(__file__).resolve().parents[2] / "client" / "src"
    env = {
        **os.environ,
        "FIRM_MEMORY_URL": live_server.url,
        "FIRM_MEMORY_TOKEN": robo.secret,
        "PYTHONPATH": str(source),
    }
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "firm_memory_client", "mcp"], env=env, cwd=checkout
    )

    async def work(revision: str) -> object:
        with Path(os.devnull).open("w") as log:
            async with Agent(stdio_client(server, errlog=log), mode=REVISIONS[revision]) as agent:
                return await agent.call_tool("memory_search", {"query": "why do payment retries back off?"})

    for revision in REVISIONS:
        answer = asyncio.run(work(revision))
        assert [each["number"] for each in answer.structured_content["results"]] == [known.label]


def test_notes_are_kept_listed_and_found_with_their_task_alone(client, env, fm):
    words = "The retry loop counts twice."
    added = fm("notes", "add", "mr:4821", words, "--type", "bug_fixes", "--repo", "acme/pay",
                "--source", "merge_request", "acme/pay!4821", "--disposition", "open", env=env)  # fmt: skip
    assert added.code == 0, added.err
    assert words in fm("notes", "list", "mr:4821", env=env).out
    nothing = fm("notes", "list", "MR:4821", env=env)
    assert (nothing.code, nothing.out) == (1, "") and "Nothing is noted of MR:4821" in nothing.err
    assert len(client.search(words, strict=True)) == 0
    (found,) = client.search(words, task="mr:4821", strict=True)
    assert (found.number, found.status, found.content) == ("", "unreviewed", words)
    shown = fm("search", words, "--everything", "--task", "mr:4821", env=env)
    assert shown.code == 0, shown.err
    assert f"note {found.id}" in shown.out and "unreviewed" in shown.out
    assert len(client.search(words, task="mr:4822", strict=True)) == 0


def test_what_is_exported_of_a_repository_that_is_mistyped_known_and_empty_or_closed(
    env, fm, checkout, remember, workspace, robo, client
):
    remember(WHY)
    assert fm("export", "--repo", "acme/pay", env=env).code == 0
    path = checkout / "AGENTS.md"
    before = path.read_bytes()
    assert WHY in before.decode()
    for repo in ("acme/pya", "Acme/Pay", "https://git.example.com/acme/other", "a b", "'; --"):
        for more in ((), ("--check",), ("--format", "claude_md")):
            ended = fm("export", "--repo", repo, *more, env=env)
            assert (ended.code, "no file was changed" in ended.err) == (1, True), (repo, ended.err)
        assert not client.export_files(repo).known
    Repository.objects.create(workspace=workspace, slug="acme/empty")
    pay = Repository.objects.get(slug="acme/pay")
    limited = issue(workspace, "limited", TokenKind.AGENT, repository_ids=[pay.pk])
    closed = fm("export", "--repo", "acme/empty", env=env | {"FIRM_MEMORY_TOKEN": limited.secret})
    assert closed.code == 4
    down = fm("export", "--repo", "acme/pay", env=env | {"FIRM_MEMORY_URL": "http://127.0.0.1:9"})
    assert down.code == 5
    assert path.read_bytes() == before
    assert client.export_files("acme/empty").known
    assert fm("export", "--repo", "acme/empty", env=env).code == 0
    assert "Nothing was approved yet" in path.read_text()


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["", "dry run"])
def test_fm_and_the_command_of_the_server_end_alike(env, fm, checkout, workspace, monkeypatch, dry):
    """Whether all was taken, screening refused some, or the queue had no room for some."""
    rules = "".join(f"- Rule {at} of the firm is kept by everybody.\n" for at in range(1, 6))
    secret = "- Log in as AKIA" + "Z7Q4K2M9X1B3N5V8 on the server.\n"
    for text, most, code in (
        (rules, 200, 0),
        (rules.replace("Rule", "Law") + secret, 200, 3),
        (f"- A new one.\n{rules.replace('Rule', 'Norm')}", 3, 3),
    ):
        monkeypatch.setattr("apps.candidates.services.MAX_OPEN_PER_ORIGIN", most)
        (checkout / "AGENTS.md").write_text(text)
        ended = fm("import", "--repo", "acme/pay", *dry, env=env)
        try:
            call_command(
                "import_files", str(checkout), "--repo", "acme/shop", *dry, stdout=io.StringIO(), stderr=io.StringIO()
            )
            returned = 0
        except CommandError as error:
            returned = error.returncode
        assert (ended.code, returned) == (code, code), ended.err


def test_files_are_taken_in_and_written_back(client, api, alice, env, fm, checkout):
    (checkout / "AGENTS.md").write_text(
        "# Style\n\n- Money is an integer of minor units.\n- Never log a card number.\n"
    )
    taken = fm("import", "--repo", "acme/pay", "--json", env=env)
    assert taken.code == 0, taken.err
    candidates = taken.data["candidates"]
    assert [each["status"] for each in candidates] == ["pending", "pending"]
    for each in candidates:
        approved = api(alice).post(f"/api/v1/candidates/{each['id']}/approve/", {"version": 1})
        assert approved.status_code == 200, approved.content
    assert fm("export", "--repo", "acme/pay", "--check", env=env).code == 1
    assert fm("export", "--repo", "acme/pay", env=env).code == 0
    written = (checkout / "AGENTS.md").read_text()
    assert written.startswith("# Style\n\n- Money is an integer")
    assert written.count("Never log a card number.") == 2
    assert fm("export", "--repo", "acme/pay", "--check", env=env).code == 0
    again = fm("import", "--repo", "acme/pay", "--json", env=env).data
    assert [(each["new"], each["unchanged"]) for each in again["files"]] == [(0, 2)]
