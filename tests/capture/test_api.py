"""Raw material over REST."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.accounts.models import Audience
from apps.capture.models import CaptureEvent, EventState
from apps.sources.models import Source
from tests.capture.doubles import DECISION
from tests.conftest import issue

pytestmark = pytest.mark.django_db
INGEST = "/api/v1/ingest/"


def a_body(content: str = DECISION, **changes: Any) -> dict[str, Any]:
    return {
        "content": content,
        "kind": "merge_request",
        "scope": {"repos": ["acme/pay"]},
        "sources": [{"kind": "merge_request", "reference": "acme/pay!7"}],
    } | changes


def lines(*bodies: Any) -> str:
    return "\n".join(body if isinstance(body, str) else json.dumps(body) for body in bodies)


def test_material_is_taken_and_answered_at_once(api, botty):
    client = api(botty)
    answer = client.post(INGEST, a_body(external_id="acme/pay!7"))
    assert answer.status_code == 202
    event = answer.json()["event"]
    shown = client.get(f"{INGEST}{event}/").json()
    assert {name: shown[name] for name in ("state", "outcome", "reason", "attempts", "candidates", "external_id")} == {
        "state": "received",
        "outcome": None,
        "reason": None,
        "attempts": 0,
        "candidates": [],
        "external_id": "acme/pay!7",
    }


def test_the_same_twice_is_the_same_event_and_says_so(api, botty):
    client = api(botty)
    first, again = (client.post(INGEST, a_body(external_id="acme/pay!7")) for _ in range(2))
    assert first.json()["event"] == again.json()["event"]
    assert again.status_code == 202
    assert "handed over before" in again.json()["note"]


def test_an_idempotency_key_gets_the_same_answer(api, botty):
    client = api(botty)
    headers = {"Idempotency-Key": "k1"}
    first = client.post(INGEST, a_body(), headers=headers)
    again = client.post(INGEST, a_body(), headers=headers)
    other = client.post(INGEST, a_body("We never do that again, because it broke."), headers=headers)
    assert first.json() == again.json()
    assert other.status_code == 422
    assert CaptureEvent.objects.count() == 1


@pytest.mark.parametrize(
    "media_type", ["application/x-ndjson", "application/jsonl", "application/x-ndjson; charset=utf-8"]
)
def test_json_lines_are_events_in_their_order(api, botty, media_type):
    client = api(botty)
    body = lines(a_body(external_id="1"), "", a_body("lgtm", external_id="2"), a_body(external_id="1"))
    answer = client.post(INGEST, body, content_type=media_type)
    assert answer.status_code == 202
    events = answer.json()["events"]
    assert [CaptureEvent.objects.get(pk=event).external_id for event in events] == ["1", "2", "1"]
    assert CaptureEvent.objects.count() == 2


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("\n\n", 400, "no line"),
        (lines(a_body(), "{"), 400, "Line 2: "),
        (lines(a_body(), "[]"), 400, "Line 2: "),
        (lines(a_body(), a_body(workspace="other")), 400, "workspace"),
        (lines(a_body(), a_body(kind="gossip"), a_body(" ")), 422, "[2].kind"),
        (lines(a_body(), a_body(kind="gossip"), a_body(" ")), 422, "Nothing was kept"),
        (lines(*(a_body(str(at)) for at in range(1_001))), 400, "1,000 lines"),
    ],
)
def test_of_lines_with_a_fault_none_is_kept_and_the_line_is_named(api, botty, body, status, said):
    answer = api(botty).post(INGEST, body, content_type="application/x-ndjson")
    assert answer.status_code == status
    assert said in answer.content.decode()
    assert not CaptureEvent.objects.exists()


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"workspace": "other"}, 400, "workspace"),
        ({"status": "approved"}, 400, "status"),
        ({"content": ""}, 422, "content"),
        ({"content": 7}, 422, "content"),
        ({"kind": "gossip"}, 422, "kind"),
        ({"scope": {}}, 422, "scope"),
        ({"sources": []}, 422, "sources"),
        ({"sources": [{"kind": "chat", "reference": "C1", "url": "javascript:alert(1)"}]}, 422, "sources[0].url"),
        ({"external_id": ""}, 422, "external_id"),
        ({"external_id": "x" * 501}, 422, "external_id"),
    ],
)
def test_what_will_not_do_is_named(api, botty, change, status, field):
    answer = api(botty).post(INGEST, a_body() | change)
    assert answer.status_code == status
    assert field in answer.content.decode()
    assert not CaptureEvent.objects.exists()


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"kind": "gossip"}, "kind"),
    "no kind": ({"kind": None}, "kind"),
    "blank": ({"content": " \n "}, "content"),
    "content": ({"content": 7}, "content"),
    "scope": ({"scope": {}}, "scope"),
    "firm": ({"scope": {"firm": "yes"}}, "scope.firm"),
    "repository": ({"scope": {"repos": [" "]}}, "scope.repos[0]"),
    "sources": ({"sources": []}, "sources"),
    "url": ({"sources": [{"kind": "chat", "reference": "C1", "url": "javascript:alert(1)"}]}, "sources[0].url"),
    "source's kind": ({"sources": [{"kind": "gossip", "reference": "C1"}]}, "sources[0].kind"),
    "name": ({"external_id": "x" * 501}, "external_id"),
}
PAIRS = [
    (one, other)
    for one, (change, _) in FAULTS.items()
    for other, (another, _) in FAULTS.items()
    if one < other and not change.keys() & another.keys()
]


def named(answer: Any) -> list[str]:
    assert answer.status_code == 422, answer.json()
    return sorted(error["field"] for error in answer.json()["errors"])


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_any_two_faults_of_one_piece_are_said_together(api, botty, one, other):
    (change, field), (another, further) = FAULTS[one], FAULTS[other]
    body = a_body() | change | another
    client = api(botty)
    assert named(client.post(INGEST, body)) == sorted([field, further])
    sent = lines(a_body(), body, a_body(scope={}))
    answer = client.post(INGEST, sent, content_type="application/x-ndjson")
    assert named(answer) == sorted([f"[2].{field}", f"[2].{further}", "[3].scope"])
    assert not CaptureEvent.objects.exists()


def test_all_faults_of_all_lines_are_said_in_their_order(api, botty):
    everything = [a_body(content=" ", scope={}), a_body(), a_body(kind="gossip", scope={}, external_id="x" * 501)]
    answer = api(botty).post(INGEST, lines(*everything), content_type="application/x-ndjson")
    fields = [error["field"] for error in answer.json()["errors"]]
    assert [field.partition(".")[0] for field in fields] == ["[1]"] * 2 + ["[3]"] * 3


@pytest.mark.parametrize(
    ("method", "path"),
    [("post", INGEST), ("get", f"{INGEST}{UUID(int=1)}/"), ("get", "/api/v1/me/"), ("post", "/api/v1/candidates/")],
)
def test_an_address_without_parameters_says_that_it_takes_none(api, botty, method, path):
    answer = getattr(api(botty), method)(f"{path}?approved=1&b=2", **({"data": {}} if method == "post" else {}))
    assert answer.status_code == 400
    assert answer.json()["detail"] == "Unknown: approved, b. This address takes no parameters."
    assert answer.json()["errors"][0]["message"] == "This name is not known here. This address takes no parameters."


def test_nul_and_lone_surrogates_are_cleaned_with_a_note(api, botty):
    body = json.dumps(a_body()).replace("We decided", "\\u0000We \\ud83d decided")
    answer = api(botty).post(INGEST, body)
    assert answer.status_code == 202
    assert len(answer.json()["notes"]) == 2


def test_large_material_is_taken_and_larger_is_refused(api, botty):
    client = api(botty)
    paragraph = "The discussion went on for a while and nothing of it matters here.\n"
    large = paragraph * (3_000_000 // len(paragraph)) + DECISION
    assert client.post(INGEST, a_body(large, kind="transcript")).status_code == 202
    assert CaptureEvent.objects.values_list("payload", flat=True).get().endswith(DECISION)
    answer = client.post(INGEST, b"x" * (32 * 1024 * 1024 + 1))
    assert answer.status_code == 413


def test_who_may_see_what_became_of_it(api, botty, robo, alice, bob, charlie, workspace):
    event = api(botty).post(INGEST, a_body()).json()["event"]
    address = f"{INGEST}{event}/"
    assert api(botty).get(address).status_code == 200
    assert api(alice).get(address).status_code == 200
    assert api(robo).get(address).status_code == 404
    assert api(bob).get(address).status_code == 404
    assert api(charlie).get(address).status_code == 404
    assert api().get(address).status_code == 401
    assert api(botty).get(f"{INGEST}{uuid4()}/").status_code == 404
    assert [len(api(who).get(INGEST).json()["results"]) for who in (botty, alice, robo, bob, charlie)] == [
        1,
        1,
        0,
        0,
        0,
    ]


def test_what_came_from_a_restricted_source_is_seen_by_its_audience_alone(api, botty, alice, carol, workspace):
    audience = Audience.objects.create(workspace=workspace, name="board")
    audience.members.add(carol)
    Source.objects.create(workspace=workspace, kind="merge_request", reference="acme/pay!7", audience=audience)
    event = api(botty).post(INGEST, a_body()).json()["event"]
    assert api(alice).get(f"{INGEST}{event}/").status_code == 404
    assert api(carol).get(f"{INGEST}{event}/").status_code == 200


def test_a_read_only_token_hands_nothing_over(api, workspace):
    answer = api(issue(workspace, "looker", "bot", read_only=True)).post(INGEST, a_body())
    assert answer.status_code == 403


def test_events_are_listed_by_what_became_of_them(api, botty):
    client = api(botty)
    for number in range(5):
        client.post(INGEST, a_body(external_id=str(number), kind="chat" if number % 2 else "issue"))
    CaptureEvent.objects.filter(external_id="0").update(
        state=EventState.DONE, outcome="dropped_prefilter", reason="Noise.", finished_at="2026-01-01T00:00Z"
    )
    listed = [row["external_id"] for row in client.get(INGEST).json()["results"]]
    assert listed == ["4", "3", "2", "1", "0"]
    assert [row["external_id"] for row in client.get(f"{INGEST}?outcome=dropped_prefilter").json()["results"]] == ["0"]
    assert [row["external_id"] for row in client.get(f"{INGEST}?kind=chat").json()["results"]] == ["3", "1"]
    assert len(client.get(f"{INGEST}?state=received&origin=botty&days=1").json()["results"]) == 4
    page = client.get(f"{INGEST}?limit=2").json()
    following = client.get(page["next"]).json()
    assert [row["external_id"] for row in (*page["results"], *following["results"])] == ["4", "3", "2", "1"]
    assert client.get(f"{INGEST}?outcome=lost").status_code == 422
    assert client.get(f"{INGEST}?status=received").status_code == 400


def test_an_event_stands_even_if_its_token_is_revoked_later(api, botty, principal, pool):
    from apps.accounts.principal import operator
    from apps.accounts.services import token_revoke
    from apps.candidates.models import Candidate
    from apps.capture.extractors.registry import override
    from apps.capture.tasks import drain
    from tests.capture.doubles import Canned, a_fact

    api(botty).post(INGEST, a_body())
    token_revoke(principal=operator(botty.token.workspace), token=botty.token)
    with override(Canned([a_fact()])):
        drain()
    assert Candidate.objects.get().origin_name == "botty"
