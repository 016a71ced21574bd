"""The token, time limits, repetitions and redirects, on a transport that plays the network."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2 as httpx
import pytest

from firm_memory_client import (
    Client,
    Conflict,
    Excluded,
    FirmMemoryError,
    InsecureWarning,
    Invalid,
    Malformed,
    Misconfigured,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    ServerFault,
    Source,
    TooMany,
    Unreachable,
)
from firm_memory_client.transport import Secret, retry_after

TOKEN = "fm_agent_a-secret-that-nobody-may-see"
URL = "https://memory.example.com"
EMPTY = {"results": [], "intent": "look-up", "degraded": False, "note": ""}


class Network:
    """Answers one after the other, and then the last one for ever."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.slept: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def client(self, url: str = URL, **options: object) -> Client:
        return Client(url, TOKEN, transport=httpx.MockTransport(self), sleep=self.slept.append, **options)


def problem(status: int, code: str = "invalid", **more: object) -> httpx.Response:
    headers = {"Retry-After": str(more.pop("retry_after"))} if "retry_after" in more else {}
    body = {"code": code, "detail": "It will not do.", "status": status, "request_id": "r1", **more}
    return httpx.Response(status, json=body, headers=headers)


def propose(client: Client) -> object:
    return client.propose("A.", type="ownership", sources=[{"kind": "issue", "reference": "1"}], firm=True)


def ok(body: object = EMPTY, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=body)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "unknown_keys", Malformed),
        (401, "token_unknown", NotAuthenticated),
        (403, "forbidden", NotAllowed),
        (404, "not_found", NotFound),
        (409, "stale", Conflict),
        (413, "too_large", Malformed),
        (422, "invalid", Invalid),
        (422, "excluded", Excluded),
        (429, "throttled", TooMany),
        (500, "broken", ServerFault),
        (503, "database_down", ServerFault),
    ],
)
def test_a_problem_becomes_an_error_that_tells_the_field(status, code, kind):
    errors = [{"field": "scope.repos[1]", "message": "It is too long."}]
    network = Network(problem(status, code, errors=errors, extra={"version": 3}))
    with pytest.raises(kind) as caught:
        network.client(retries=0).get("M-1")
    error = caught.value
    assert (error.status, error.code, error.fields, error.extra) == (status, code, ("scope.repos[1]",), {"version": 3})
    assert "scope.repos[1]: It is too long." in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_search_raises_for_what_its_caller_did_wrong(status):
    network = Network(problem(status))
    with pytest.raises(FirmMemoryError):
        network.client().search("why?")
    assert len(network.requests) == 1


DOWN = [
    pytest.param(lambda: httpx.ConnectError("refused"), id="no connection"),
    pytest.param(lambda: httpx.ReadTimeout("slow"), id="timeout"),
    pytest.param(lambda: httpx.RemoteProtocolError("garbage"), id="no HTTP"),
    pytest.param(lambda: problem(503, "database_down"), id="503"),
    pytest.param(lambda: problem(500, "broken"), id="500"),
    pytest.param(lambda: problem(429, "throttled"), id="429"),
    pytest.param(lambda: httpx.Response(502, text="<h1>Bad gateway</h1>"), id="a page of a proxy"),
    pytest.param(lambda: httpx.Response(200, text="<h1>Sign in</h1>"), id="a page of a portal"),
    pytest.param(lambda: httpx.Response(200, text="[" * 100_000), id="nested"),
]


@pytest.mark.parametrize("down", DOWN)
def test_a_recall_that_fails_is_an_empty_answer_that_says_so(down: Callable[[], httpx.Response | Exception]):
    client = Network(down()).client()
    found, context, answer = client.search("why?"), client.context("acme/pay"), client.ask("why?")
    assert (len(found), found.degraded, context.text, context.items, context.degraded) == (0, True, "", (), True)
    assert (answer.citations, answer.degraded, client.decisions("retries").degraded) == ((), True, True)
    assert all(each.note.startswith("Nothing could be looked at.") for each in (found, context, answer))


@pytest.mark.parametrize("down", DOWN)
def test_the_same_raises_when_asked_to(down):
    client = Network(down()).client()
    for call in (client.search, client.context, client.ask, client.decisions):
        with pytest.raises((Unreachable, ServerFault, TooMany)):
            call("why?", strict=True)


@pytest.mark.parametrize("down", DOWN[:3])
def test_what_is_written_raises(down):
    with pytest.raises(Unreachable):
        propose(Network(down()).client())


def test_what_is_written_is_sent_again_under_the_same_key():
    network = Network(httpx.ReadTimeout("slow"), problem(503), ok({"id": "1", "status": "pending"}, 201))
    assert propose(network.client()).created
    keys = {request.headers["Idempotency-Key"] for request in network.requests}
    assert (len(network.requests), len(keys)) == (3, 1)
    propose(network.client())
    assert network.requests[-1].headers["Idempotency-Key"] not in keys


def test_a_first_request_that_still_runs_is_waited_for():
    network = Network(problem(409, "idempotency_in_progress"), ok({"id": "1", "status": "pending"}))
    assert not propose(network.client()).created
    with pytest.raises(Conflict):
        propose(Network(problem(409, "stale")).client())


def test_repetitions_are_few_and_further_and_further_apart():
    network = Network(problem(503))
    with pytest.raises(ServerFault):
        network.client(retries=3, timeout=60).get("M-1")
    assert len(network.requests) == 4
    assert network.slept == sorted(network.slept)
    assert 0.125 <= network.slept[0] <= 0.25


def test_what_cannot_pass_by_itself_is_not_repeated():
    network = Network(problem(500))
    with pytest.raises(ServerFault):
        network.client().get("M-1")
    assert len(network.requests) == 1


def test_the_service_says_how_long_to_wait():
    network = Network(problem(429, "throttled", retry_after=3), ok({"number": "M-1"}))
    assert network.client().get("M-1").number == "M-1"
    assert network.slept == [3]


def test_nobody_waits_longer_than_the_call_may_take():
    network = Network(problem(429, "throttled", retry_after=300))
    with pytest.raises(TooMany) as caught:
        network.client(timeout=5).get("M-1")
    assert (network.slept, len(network.requests), caught.value.retry_after) == ([], 1, 300)


def test_the_time_of_all_repetitions_is_bounded():
    moments = iter(range(0, 1000, 4))
    client = Network(httpx.ReadTimeout("slow")).client(timeout=10, retries=50)
    client.transport._clock = lambda: float(next(moments))
    with pytest.raises(Unreachable, match="in time"):
        client.get("M-1")
    assert next(moments) <= 24


def test_a_moment_to_come_back_at_is_read():
    later = datetime.now(UTC) + timedelta(seconds=90)
    assert 80 < (retry_after({"retry-after": format_datetime(later, usegmt=True)}) or 0) <= 90
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


# --- the token --------------------------------------------------------------------------------------------------------
def sent_to(network: Network, host: str) -> list[str | None]:
    return [each.headers.get("Authorization") for each in network.requests if each.url.host == host]


@pytest.mark.parametrize(
    "to",
    ["https://evil.example.net/api", "http://memory.example.com/api", "https://memory.example.com:444/", "//evil.x/"],
)
def test_a_redirect_elsewhere_is_not_followed(to):
    network = Network(httpx.Response(302, headers={"Location": to}))
    with pytest.raises(Unreachable, match="the token is not sent there"):
        network.client(retries=0).get("M-1")
    assert sent_to(network, "memory.example.com") == [f"Bearer {TOKEN}"]
    assert len(network.requests) == 1


def test_a_redirect_at_the_same_host_is_followed_and_never_in_circles():
    network = Network(httpx.Response(301, headers={"Location": "/api/v1/memories/M-1/?again"}), ok({"number": "M-1"}))
    assert network.client().get("M-1").number == "M-1"
    circle = Network(httpx.Response(301, headers={"Location": "/api/v1/memories/M-1/"}))
    with pytest.raises(Unreachable, match="circles"):
        circle.client(retries=0).get("M-1")


def test_what_is_sent_is_not_dropped_by_a_redirect():
    with pytest.raises(Unreachable, match="Name the address"):
        propose(Network(httpx.Response(301, headers={"Location": "/elsewhere/"})).client(retries=0))
    network = Network(httpx.Response(308, headers={"Location": "/elsewhere/"}), ok({"id": "1"}, 201))
    assert propose(network.client()).created
    assert network.requests[0].content == network.requests[1].content


def test_an_unencrypted_address_is_warned_about():
    with pytest.warns(InsecureWarning, match="not encrypted"):
        Network(ok()).client("http://memory.example.com")
    for local in ("http://127.0.0.1:8100", "http://localhost:8100", "http://[::1]:8100"):
        Network(ok()).client(local)


def test_the_token_shows_nowhere(caplog, monkeypatch):
    caplog.set_level("DEBUG")
    monkeypatch.setenv("FIRM_MEMORY_TOKEN", TOKEN)
    echo = problem(422, errors=[{"field": "content", "message": f"What is {TOKEN}?"}], extra={"was": TOKEN})
    shown: list[str] = []
    for answer in (echo, httpx.ConnectError(f"no way with {TOKEN}"), httpx.Response(503, text=TOKEN)):
        client = Network(answer).client(retries=1)
        try:
            client.get("M-1")
        except FirmMemoryError as error:
            assert error.__context__ is None
            trace = traceback.TracebackException.from_exception(error, capture_locals=True)
            ours = [frame for frame in trace.stack if "firm_memory_client" in frame.filename]
            assert len(ours) > 1
            shown += [str(frame.locals) for frame in ours]
            shown += ["".join(traceback.format_exception(error)), repr(error), str(vars(error))]
        shown += [repr(client), str(client), repr(client.transport), str(vars(client)), str(vars(client.transport))]
    found = Network(httpx.Response(503, text=TOKEN)).client(retries=0).search("why?")
    shown += [found.note, caplog.text]
    assert len(shown) > 12
    assert not [text for text in shown if TOKEN in text]
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(TOKEN))


@pytest.mark.parametrize("token", ["", "  ", "fm agent", "fm_agent_\n1", "fm_agent_ü"])
def test_a_token_that_is_none_is_said_before_anything_is_sent(token):
    with pytest.raises(Misconfigured) as caught:
        Client(URL, token)
    assert token.strip() == "" or token not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "memory.example.com",
        "ftp://memory",
        "https://",
        "https://anna:secret@memory.example.com",
        "https://m/?q=1",
        "http://[::1",
    ],
)
def test_an_address_that_is_none(url):
    with pytest.raises(Misconfigured) as caught:
        Client(url, TOKEN)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("more", ["", "/", "/mcp", "/api/v1/"])
def test_an_address_with_what_people_copy_along(more):
    network = Network(ok({"number": "M-1"}))
    network.client(f"{URL}/memory{more}").get("M-1")
    assert str(network.requests[0].url) == f"{URL}/memory/api/v1/memories/M-1/"


# --- arguments --------------------------------------------------------------------------------------------------------
def test_lists_repeat_and_what_is_not_said_is_not_sent():
    network = Network(ok())
    network.client().search("why?", repos=["a&b", "c"], limit=3)
    assert network.requests[0].url.query == b"q=why%3F&repos=a%26b&repos=c&limit=3"


def test_an_empty_list_never_means_everything():
    client = Network(ok()).client()
    with pytest.raises(Misconfigured, match="repos is empty"):
        client.search("why?", repos=[])
    with pytest.raises(Misconfigured, match="a list of names"):
        client.search("why?", repos="acme/pay")


@pytest.mark.parametrize("reference", ["../me", "M-1/retire", "a b?x#y"])
def test_a_name_stays_one_part_of_the_address(reference):
    network = Network(ok({"number": "M-1"}))
    network.client().get(reference)
    path = network.requests[0].url.raw_path.decode()
    assert path.startswith("/api/v1/memories/")
    assert path.removeprefix("/api/v1/memories/").removesuffix("/").count("/") == 0


def test_a_task_may_hold_slashes_and_leads_nowhere_else():
    network = Network(ok({"id": "1"}, 201))
    network.client().note(
        "acme/pay#12", "A.", type="task_learnings", sources=[{"kind": "issue", "reference": "1"}], firm=True
    )
    assert network.requests[0].url.raw_path == b"/api/v1/tasks/acme/pay%2312/notes/"
    with pytest.raises(Misconfigured):
        network.client().note("acme/../../me", "A.", type="task_learnings", sources=[])


def test_notes_are_read_page_by_page():
    pages = [ok({"results": [{"id": str(at)}], "next": f"{URL}/x?cursor=c{at}"}) for at in range(2)]
    network = Network(*pages, ok({"results": [{"id": "2"}], "next": None}))
    assert [note.id for note in network.client().notes("t")] == ["0", "1", "2"]
    assert network.requests[2].url.params["cursor"] == "c1"


def test_many_pieces_go_in_requests_of_a_thousand():
    def answer(request: httpx.Request) -> httpx.Response:
        lines = request.content.split(b"\n")
        return httpx.Response(202, json={"events": [str(at) for at in range(len(lines))], "notes": [""] * len(lines)})

    client = Client(URL, TOKEN, transport=httpx.MockTransport(answer))
    piece = {"content": "x", "kind": "chat", "scope": {"firm": True}, "sources": []}
    assert [len(batch) for batch in client.ingest_many([piece] * 2_100)] == [1000, 1000, 100]


def test_files_go_in_requests_of_a_hundred_and_three_megabytes():
    sizes = []

    def answer(request: httpx.Request) -> httpx.Response:
        sizes.append(len(json.loads(request.content)["files"]))
        return httpx.Response(200, json={"files": [], "candidates": [], "notes": ["Once."]})

    client = Client(URL, TOKEN, transport=httpx.MockTransport(answer))
    small = [(f"a/{at}/AGENTS.md", "- x") for at in range(150)]
    large = [(f"b/{at}/AGENTS.md", "x" * 1_000_000) for at in range(5)]
    assert client.import_files("acme/pay", [*small, *large]).notes == ("Once.",)
    assert sizes == [100, 53, 2]


def test_waiting_ends_with_the_event_or_with_the_time():
    received = ok({"event": "1", "state": "received"})
    done = ok({"event": "1", "state": "done", "outcome": "queued", "candidates": ["2"], "notes": []})
    event = Network(received, received, done).client().wait("1")
    assert (event.is_finished, event.outcome, event.candidates) == (True, "queued", ("2",))
    assert not Network(received).client().wait("1", timeout=0).is_finished
    client = Network(received, done, done).client()
    handed = client.ingest("We decided to wait.", kind="chat", sources=[Source("chat", "1")], firm=True)
    assert client.wait(handed).is_finished and client.event(handed).is_finished
