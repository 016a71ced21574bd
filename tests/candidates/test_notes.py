"""The working notes of a task over REST: who may write, read, dispose of, delete and propose them, and for how long."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from apps.accounts.models import Audience
from apps.approvals.restrictions import source_restrict
from apps.candidates import notes
from apps.candidates.models import Candidate
from apps.core import clock
from apps.memories import notes as memory_notes
from apps.memories.models import Memory, TaskNote, TaskNoteEvidence
from apps.memories.providers.base import NoteQuery, ProviderError, ProviderTimeout
from apps.memories.tasks import notes_embed_late, notes_expire
from apps.scopes.models import Repository
from apps.sources.models import Source
from tests.at_once import in_background
from tests.conftest import issue
from tests.ledger import a_statement, approve, fresh, of_person, refused_as_immutable, refused_by, sql

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

TASK = "mr:4821"
NOTES = f"/api/v1/tasks/{TASK}/notes/"
SEARCH = "/api/v1/memories/search/"


def a_note(content: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "content": a_statement() if content is None else content,
        "type": "review_feedback",
        "scope": {"repos": ["acme/pay"]},
        "sources": [{"kind": "merge_request", "reference": "acme/pay!4821"}],
    } | changes


def noted(client: Any, content: str | None = None, path: str = NOTES, **changes: Any) -> dict[str, Any]:
    answer = client.post(path, a_note(content, **changes))
    assert answer.status_code == 201, answer.content
    found: dict[str, Any] = answer.json()
    return found


def listed(client: Any, path: str = NOTES, **query: Any) -> list[str]:
    answer = client.get(path, query)
    assert answer.status_code == 200, answer.content
    return [row["content"] for row in answer.json()["results"]]


def in_pool(task: str = TASK) -> int:
    ((count,),) = sql("SELECT count(DISTINCT note_id) FROM fm_notes_g1 WHERE task = %s", task)
    return int(count)


@pytest.fixture
def bot_api(api, botty):
    return api(botty)


@pytest.fixture
def later(monkeypatch):
    """``later(days=3)``: it is that much later now."""

    def move(**by: float) -> None:
        moment = clock.now() + timedelta(**by)
        for module in (
            "apps.memories.notes",
            "apps.candidates.notes",
            "apps.memories.tasks",
            "apps.retrieval.services",
        ):
            monkeypatch.setattr(f"{module}.now", lambda: moment)

    return move


# --- noting and reading -------------------------------------------------------------------------------------
def test_a_note_is_written_and_read_back_with_everything(bot_api):
    body = a_note(
        "The retry loop never gives up.",
        scope={"repos": ["acme/pay"], "domains": ["payments"]},
        disposition="open",
        ttl_days=3,
    )
    answer = bot_api.post(NOTES, body)

    assert answer.status_code == 201
    shown = answer.json()
    assert shown["note"] == ""
    assert {name: shown[name] for name in ("task", "content", "type", "category", "tier", "reviewed")} == {
        "task": TASK,
        "content": "The retry loop never gives up.",
        "type": "review_feedback",
        "category": "convention",
        "tier": "episodic",
        "reviewed": False,
    }
    assert shown["scope"] == {"firm": False, "domains": ["payments"], "repos": ["acme/pay"]}
    assert shown["origin"] == {"kind": "bot", "name": "botty"}
    assert (shown["disposition"], shown["disposed_by"], shown["proposed_as"]) == ("open", "botty", None)
    assert shown["sources"][0]["reference"] == "acme/pay!4821"
    row = TaskNote.objects.get()
    assert row.expires_at - row.created_at == timedelta(days=3)
    assert row.embedded_at is not None
    assert in_pool() == 1
    del shown["note"]
    assert bot_api.get(f"{NOTES}{shown['id']}/").json() == shown
    assert bot_api.get(NOTES).json() == {"results": [shown], "next": None, "previous": None}


@pytest.mark.parametrize(
    "task",
    [
        *(
            "mr:acme/pay!4821",
            "branch:feature/x",
            "branch:feature/notes/x",
            "session:0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b",
        ),
        *("branch:fix/ümlaut & spaces", "a" * 200),
    ],
)
def test_a_task_may_be_called_anything_on_one_line(bot_api, task):
    path = f"/api/v1/tasks/{task}/notes/"
    shown = noted(bot_api, path=path)

    assert shown["task"] == task
    assert listed(bot_api, path) == [shown["content"]]
    assert bot_api.get(f"{path}{shown['id']}/").status_code == 200
    assert bot_api.delete(f"{path}{shown['id']}/").status_code == 204


def test_notes_are_of_exactly_one_task(bot_api):
    mine = noted(bot_api)
    for task in ("mr:482", "mr:48210", "MR:4821", "mr:%", "mr:4821/notes", "mr:____"):
        path = f"/api/v1/tasks/{task}/notes/"
        assert listed(bot_api, path) == []
        assert bot_api.get(f"{path}{mine['id']}/").status_code == 404
        assert bot_api.delete(f"{path}{mine['id']}/").status_code == 404
        assert bot_api.post(f"{path}{mine['id']}/propose/", {}).status_code == 404
        assert bot_api.post(f"{path}{mine['id']}/disposition/", {"disposition": "fixed"}).status_code == 404
    assert TaskNote.objects.count() == 1


def test_the_list_is_newest_first_in_pages_and_by_disposition(bot_api):
    first, second, third = (noted(bot_api, disposition=each) for each in ("open", "fixed", "open"))

    page = bot_api.get(NOTES, {"limit": 2}).json()
    assert [row["id"] for row in page["results"]] == [third["id"], second["id"]]
    rest = bot_api.get(page["next"]).json()
    assert [row["id"] for row in rest["results"]] == [first["id"]]
    assert listed(bot_api, disposition="fixed") == [second["content"]]
    assert bot_api.get(NOTES, {"disposition": "lost"}).status_code == 422
    assert bot_api.get(NOTES, {"status": "open"}).status_code == 400


def test_the_same_by_the_same_origin_is_one_note_that_lives_on(bot_api, api, robo, later):
    first = noted(bot_api, "The retry loop never gives up.", disposition="open")
    later(days=1)
    again = bot_api.post(
        NOTES,
        a_note(
            "the retry loop never gives up",
            disposition="fixed",
            sources=[{"kind": "commit", "reference": "acme/pay@9f2c1e7", "commit": "9f2c1e7"}],
        ),
    )

    assert again.status_code == 200
    shown = again.json()
    assert shown["id"] == first["id"]
    assert "before" in shown["note"]
    assert shown["content"] == "The retry loop never gives up."
    assert shown["disposition"] == "fixed"
    assert shown["expires_at"] > first["expires_at"]
    assert [row["kind"] for row in shown["sources"]] == ["merge_request", "commit"]
    assert in_pool() == 1
    other = api(robo).post(NOTES, a_note("The retry loop never gives up."))
    assert other.status_code == 201
    assert other.json()["id"] != first["id"]


def test_another_type_or_scope_is_another_note(bot_api):
    noted(bot_api, "The retry loop never gives up.")
    noted(bot_api, "The retry loop never gives up.", type="bug_fixes")
    noted(bot_api, "The retry loop never gives up.", scope={"firm": True})

    assert TaskNote.objects.count() == 3
    notes_embed_late()
    assert in_pool() == 3


def test_a_request_that_is_repeated_has_one_effect(bot_api):
    body = a_note()
    answers = [bot_api.post(NOTES, body, headers={"Idempotency-Key": "k"}) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["Idempotent-Replay"] == "true"
    assert bot_api.post(NOTES, a_note(), headers={"Idempotency-Key": "k"}).status_code == 422
    assert TaskNote.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"content": "  "}, 422, "content"),
        ({"content": "a\x00b"}, 422, "content"),
        ({"content": "a\ud83d"}, 422, "content"),
        ({"content": "a" * 8_001}, 422, "content"),
        ({"content": 7}, 422, "content"),
        ({"type": "gossip"}, 422, "type"),
        ({"scope": {}}, 422, "scope"),
        ({"scope": {"teams": ["x"]}}, 400, "scope.teams"),
        ({"sources": []}, 422, "sources"),
        ({"sources": [{"kind": "rumour", "reference": "x"}]}, 422, "sources[0].kind"),
        ({"sources": [{"kind": "chat", "reference": "x", "url": "javascript:alert(1)"}]}, 422, "sources[0].url"),
        ({"disposition": "wontfix"}, 422, "disposition"),
        ({"disposition": None}, 422, "disposition"),
        ({"ttl_days": 0}, 422, "ttl_days"),
        ({"ttl_days": 91}, 422, "ttl_days"),
        ({"ttl_days": "3"}, 422, "ttl_days"),
        ({"ttl_days": True}, 422, "ttl_days"),
        ({"reviewed": True}, 400, "reviewed"),
        ({"tier": "durable"}, 400, "tier"),
        ({"origin": {"name": "alice"}}, 400, "origin"),
    ],
)
def test_a_value_that_will_not_do_is_named(bot_api, changes, status, field):
    answer = bot_api.post(NOTES, a_note(**changes))

    assert answer.status_code == status
    assert field in [error["field"] for error in answer.json()["errors"]]
    assert not TaskNote.objects.exists()


@pytest.mark.parametrize(
    "task", ["%00", "a%00b", "%20", "b" * 201, "a%0Db", "a%E2%80%A8b", "%0A", "a%0Ab", "a/%0A/b", "%0D%0A"]
)
def test_a_task_that_will_not_do_is_named_everywhere(bot_api, task):
    path = f"/api/v1/tasks/{task}/notes/"
    one = f"{path}{uuid4()}/"
    for answer in (
        bot_api.post(path, a_note()),
        bot_api.get(path),
        bot_api.get(one),
        bot_api.delete(one),
        bot_api.post(f"{one}propose/", {}),
        bot_api.post(f"{one}disposition/", {"disposition": "fixed"}),
    ):
        assert answer.status_code == 422
        assert {error["field"] for error in answer.json()["errors"]} == {"task"}


def test_secrets_are_refused_wherever_they_stand(bot_api):
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    for answer in (
        bot_api.post(NOTES, a_note(f"The token is {secret}.")),
        bot_api.post(f"/api/v1/tasks/session:{secret}/notes/", a_note()),
        bot_api.post(NOTES, a_note(scope={"repos": [secret]})),
        bot_api.post(NOTES, a_note(sources=[{"kind": "chat", "reference": "x", "quote": f"It is {secret}."}])),
    ):
        assert answer.status_code == 422
        assert answer.json()["code"] == "excluded"
        assert secret not in answer.json()["detail"] + str(answer.json()["errors"])
    assert not TaskNote.objects.exists()
    assert not Source.objects.exists()


def test_everything_that_is_wrong_is_said_at_once(bot_api):
    answer = bot_api.post(f"/api/v1/tasks/{'b' * 201}/notes/", a_note(" ", type="gossip", ttl_days=999))

    named = {error["field"] for error in answer.json()["errors"]}
    assert {"task", "content", "type", "ttl_days"} <= named


# --- who may ------------------------------------------------------------------------------------------------
def test_nobody_without_credentials(api, bot_api):
    mine = noted(bot_api)
    for method, path in (("get", NOTES), ("post", NOTES), ("delete", f"{NOTES}{mine['id']}/")):
        assert getattr(api(), method)(path).status_code == 401


def test_another_workspace_has_other_notes_of_the_same_task(api, bot_api, other_workspace, charlie):
    mine = noted(bot_api, "Only firm knows this.")
    theirs = api(issue(other_workspace, "their bot", "bot"))

    assert listed(theirs) == []
    assert listed(api(charlie)) == []
    for answer in (
        theirs.get(f"{NOTES}{mine['id']}/"),
        theirs.delete(f"{NOTES}{mine['id']}/"),
        theirs.post(f"{NOTES}{mine['id']}/propose/", {}),
        api(charlie).post(f"{NOTES}{mine['id']}/disposition/", {"disposition": "fixed"}),
    ):
        assert answer.status_code == 404
    their_own = noted(theirs, "Only firm knows this.")
    assert listed(theirs) == [their_own["content"]]
    for client, own in ((theirs, their_own), (bot_api, mine)):
        answer = client.get(SEARCH, {"q": "only firm knows", "tiers": "episodic", "task": TASK}).json()
        assert [row["id"] for row in answer["results"]] == [own["id"]]


def test_a_read_only_token_reads_and_changes_nothing(api, bot_api, workspace):
    mine = noted(bot_api)
    reader = api(issue(workspace, "reader", "agent", read_only=True))

    assert listed(reader) == [mine["content"]]
    for answer in (
        reader.post(NOTES, a_note()),
        reader.delete(f"{NOTES}{mine['id']}/"),
        reader.post(f"{NOTES}{mine['id']}/propose/", {}),
        reader.post(f"{NOTES}{mine['id']}/disposition/", {"disposition": "fixed"}),
    ):
        assert answer.status_code == 403
    assert TaskNote.objects.get().disposition == ""
    assert not Candidate.objects.exists()


def test_a_limited_token_stays_within_its_repositories(api, bot_api, workspace):
    shop = Repository.objects.create(workspace=workspace, slug="acme/shop")
    limited = api(issue(workspace, "shop bot", "bot", repository_ids=[shop.pk]))
    elsewhere = noted(bot_api, "The pay gateway retries.")
    firm = noted(bot_api, "The whole firm deploys on Mondays.", scope={"firm": True})
    mine = noted(limited, "The shop gateway retries.", scope={"repos": ["acme/shop"]})

    assert {*listed(limited)} == {mine["content"], firm["content"]}
    assert limited.get(f"{NOTES}{elsewhere['id']}/").status_code == 404
    assert limited.post(f"{NOTES}{elsewhere['id']}/propose/", {}).status_code == 404
    for scope in ({"repos": ["acme/pay"]}, {"firm": True}, {"repos": ["acme/shop"], "domains": ["payments"]}):
        assert limited.post(NOTES, a_note(scope=scope)).status_code == 403
    assert limited.post(f"{NOTES}{firm['id']}/propose/", {}).status_code == 403
    found = limited.get(SEARCH, {"q": "gateway retries", "tiers": "episodic", "task": TASK}).json()["results"]
    assert [row["id"] for row in found] == [mine["id"], firm["id"]]


def test_what_came_from_a_restricted_source_is_for_its_audience(api, workspace, bot_api, robo, alice, carol):
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(alice)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    mine = bot_api.post(NOTES, a_note("The merger is off.", sources=[{"kind": "chat", "reference": "#board/1"}])).json()
    late = noted(bot_api, "The bonus is off.", sources=[{"kind": "chat", "reference": "#pay/2"}])
    assert listed(api(carol)) == ["The bonus is off."]
    source = Source.objects.get(reference="#pay/2")
    source_restrict(principal=of_person(carol), source_id=source.pk, audience_id=board.pk)

    for client in (api(carol), api(robo)):
        assert listed(client) == []
        for note in (mine, late):
            assert client.get(f"{NOTES}{note['id']}/").status_code == 404
            assert client.post(f"{NOTES}{note['id']}/propose/", {}).status_code == 404
        answer = client.get(SEARCH, {"q": "what is off", "tiers": "episodic", "task": TASK})
        assert answer.json()["results"] == []
    members = api(alice)
    assert {*listed(members)} == {"The merger is off.", "The bonus is off."}
    found = members.get(SEARCH, {"q": "merger bonus off", "tiers": "episodic", "task": TASK}).json()["results"]
    assert {row["id"] for row in found} == {mine["id"], late["id"]}
    proposed = members.post(f"{NOTES}{mine['id']}/propose/", {})
    assert Candidate.objects.get(pk=proposed.json()["id"]).audience_ids == [board.pk]


def test_postgresql_keeps_notes_within_their_workspace_and_audience(workspace, other_workspace, bot_api, botty):
    noted(bot_api)
    board = Audience.objects.create(workspace=workspace, name="board")
    restricted = Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    foreign = Source.objects.create(workspace=other_workspace, kind="chat", reference="x")
    row = TaskNote.objects.get()

    with refused_by("note_inherits_audience"):
        TaskNoteEvidence.objects.create(note=row, source=restricted, workspace=workspace)
    with refused_by("note_evidence_same_workspace"):
        TaskNoteEvidence.objects.create(note=row, source=foreign, workspace=workspace)
    with refused_by("note_has_evidence"):
        copy = TaskNote.objects.get()
        copy.pk, copy.fingerprint = uuid4(), "f" * 64
        copy.save(force_insert=True)
    with refused_by("note_audience_only_grows"):
        TaskNote.objects.update(audience_ids=[board.pk])
        TaskNote.objects.update(audience_ids=[])
    with refused_as_immutable():
        TaskNote.objects.update(task="mr:1")


# --- dispositions -------------------------------------------------------------------------------------------
def test_a_finding_gets_its_disposition_from_its_origin_or_a_person(api, bot_api, robo, bob):
    mine = noted(bot_api, disposition="open")
    path = f"{NOTES}{mine['id']}/disposition/"

    assert bot_api.post(path, {"disposition": "accepted"}).json()["disposed_by"] == "botty"
    refused = api(robo).post(path, {"disposition": "dismissed"})
    assert (refused.status_code, refused.json()["code"]) == (403, "not_your_note")
    answer = api(bob).post(path, {"disposition": "dismissed"})
    assert (answer.status_code, answer.json()["disposition"], answer.json()["disposed_by"]) == (200, "dismissed", "bob")
    assert bot_api.post(path, {"disposition": "gone"}).status_code == 422
    assert bot_api.post(path, {}).status_code == 422
    assert bot_api.post(path, {"disposition": "open", "by": "alice"}).status_code == 400
    ((verb, before, after),) = sql("SELECT verb, before, after FROM accounts_auditevent WHERE subject_kind = 'note'")
    assert (verb, "accepted" in str(before), "dismissed" in str(after)) == ("change", True, True)


# --- deleting -----------------------------------------------------------------------------------------------
def test_its_origin_or_a_reviewer_deletes_a_note_and_nobody_else(api, bot_api, robo, botty, bob, alice):
    first, second = noted(bot_api), noted(bot_api)

    for client in (api(robo), api(bob)):
        refused = client.delete(f"{NOTES}{first['id']}/")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_your_note")
    assert bot_api.delete(f"{NOTES}{first['id']}/").status_code == 204
    assert bot_api.delete(f"{NOTES}{first['id']}/").status_code == 404
    assert in_pool() == 1
    assert api(alice).delete(f"{NOTES}{second['id']}/").status_code == 204
    assert (TaskNote.objects.count(), TaskNoteEvidence.objects.count(), in_pool()) == (0, 0, 0)
    assert sql("SELECT verb FROM accounts_auditevent WHERE subject_kind = 'note'") == [("remove",)]


def test_a_person_deletes_what_a_token_of_theirs_noted(api, workspace, bob):
    own = api(issue(workspace, "bob's agent", "agent", owner=bob))
    mine = noted(own)

    assert api(bob).delete(f"{NOTES}{mine['id']}/").status_code == 204


def test_what_the_pool_cannot_be_told_is_not_deleted(bot_api, pool, monkeypatch):
    mine = noted(bot_api)

    def down(*_: Any) -> None:
        raise ProviderError("The pool is away.", permanent=False)

    monkeypatch.setattr(pool, "delete_notes", down)
    answer = bot_api.delete(f"{NOTES}{mine['id']}/")
    assert (answer.status_code, answer.json()["code"]) == (503, "provider_unavailable")
    assert listed(bot_api) == [mine["content"]]


@pytest.mark.parametrize("method", ["put", "patch"])
def test_a_note_is_not_rewritten(bot_api, method):
    mine = noted(bot_api)
    assert getattr(bot_api, method)(f"{NOTES}{mine['id']}/", {"content": "x"}).status_code == 405


# --- caps ---------------------------------------------------------------------------------------------------
def test_a_bot_that_loops_fills_its_share_of_a_task_and_no_more(bot_api, api, robo, monkeypatch, embedder, settings):
    monkeypatch.setattr("apps.candidates.notes.MAX_OF_ORIGIN", 3)
    monkeypatch.setattr("apps.candidates.notes.MAX_OF_TASK", 4)
    for _ in range(3):
        noted(bot_api)
    before = len(embedder.documents)
    answer = bot_api.post(NOTES, a_note())

    assert (answer.status_code, answer.json()["code"]) == (429, "task_full")
    assert len(embedder.documents) == before
    assert bot_api.post(NOTES, a_note(listed(bot_api)[0])).status_code == 200
    noted(bot_api, path="/api/v1/tasks/mr:4822/notes/")
    noted(api(robo))
    assert api(robo).post(NOTES, a_note()).status_code == 429
    settings.FIRM_MEMORY_THROTTLE = False
    noted(bot_api)


# --- expiry -------------------------------------------------------------------------------------------------
def test_a_note_expires_as_its_category_says_or_as_the_service_is_set(bot_api, settings, workspace):
    from apps.taxonomy.models import Category

    settings.FIRM_MEMORY_NOTE_DAYS = 11
    Category.objects.filter(workspace=workspace, slug="project").update(ttl_days=5)
    Category.objects.filter(workspace=workspace, slug="reference").update(ttl_days=2_000_000_000)
    days = {}
    for type_ in ("bug_fixes", "review_feedback", "terminology"):
        row = TaskNote.objects.get(pk=noted(bot_api, type=type_)["id"])
        days[type_] = (row.expires_at - row.created_at).days
    assert days == {"bug_fixes": 5, "review_feedback": 11, "terminology": 90}


def test_what_has_expired_is_not_served_and_then_deleted(bot_api, later):
    short = noted(bot_api, "The short note says so.", ttl_days=1)
    long = noted(bot_api, "The long note says so.", ttl_days=9)
    later(days=2)

    assert listed(bot_api) == [long["content"]]
    found = bot_api.get(SEARCH, {"q": "which note says so", "tiers": "episodic", "task": TASK}).json()["results"]
    assert [row["id"] for row in found] == [long["id"]]
    for answer in (
        bot_api.get(f"{NOTES}{short['id']}/"),
        bot_api.delete(f"{NOTES}{short['id']}/"),
        bot_api.post(f"{NOTES}{short['id']}/propose/", {}),
        bot_api.post(f"{NOTES}{short['id']}/disposition/", {"disposition": "fixed"}),
    ):
        assert answer.status_code == 404
    assert (TaskNote.objects.count(), in_pool()) == (2, 2)
    assert notes_expire() == "1 notes have expired."
    assert notes_expire() == "0 notes have expired."
    assert (TaskNote.objects.count(), in_pool()) == (1, 1)


def test_what_had_expired_may_be_noted_anew(bot_api, later):
    first = noted(bot_api, "The retry loop never gives up.", ttl_days=1)
    later(days=2)
    second = noted(bot_api, "The retry loop never gives up.", ttl_days=1)

    assert second["id"] != first["id"]
    assert (TaskNote.objects.count(), in_pool()) == (1, 1)


def test_what_had_expired_and_cannot_be_deleted_is_no_crash(bot_api, later, pool, monkeypatch):
    noted(bot_api, "The retry loop never gives up.", ttl_days=1)
    later(days=2)

    def down(*_: Any) -> None:
        raise ProviderError("The pool is away.", permanent=False)

    monkeypatch.setattr(pool, "delete_notes", down)
    answer = bot_api.post(NOTES, a_note("The retry loop never gives up."))
    assert (answer.status_code, answer.json()["code"]) == (503, "provider_unavailable")


def test_what_has_expired_makes_room(bot_api, later, monkeypatch):
    monkeypatch.setattr("apps.candidates.notes.MAX_OF_ORIGIN", 1)
    noted(bot_api, ttl_days=1)
    assert bot_api.post(NOTES, a_note()).status_code == 429
    later(days=2)
    noted(bot_api)


# --- when embedding does not work ---------------------------------------------------------------------------
@pytest.mark.parametrize("what", ["prepare_many", "insert_notes"])
def test_a_note_is_kept_while_the_embedder_or_the_pool_is_down(bot_api, pool, monkeypatch, what):
    def down(*_: Any) -> None:
        raise ProviderTimeout("It did not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(pool, what, down)
        shown = noted(bot_api, "The retry loop never gives up.")
        assert "only its words find it" in shown["note"]
        assert notes_embed_late() == "0 of 1 notes that were late are embedded."
        assert listed(bot_api) == [shown["content"]]
    asked = {"q": "does the retry loop give up", "tiers": "episodic", "task": TASK}
    found = bot_api.get(SEARCH, asked).json()["results"]
    assert [set(row["scores"]) & {"vector", "text"} for row in found] == [{"text"}]
    assert in_pool() == 0

    assert notes_embed_late() == "1 of 1 notes that were late are embedded."
    assert notes_embed_late() == "0 of 0 notes that were late are embedded."
    assert in_pool() == 1
    found = bot_api.get(SEARCH, asked).json()["results"]
    assert {"vector", "text"} <= set(found[0]["scores"])


def test_a_note_that_was_deleted_while_it_was_embedded_stays_deleted(bot_api, pool, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(pool, "insert_notes", lambda _: (_ for _ in ()).throw(ProviderTimeout("Late.")))
        shown = noted(bot_api)
    prepare = pool.prepare_many

    def slow(texts: Any) -> Any:
        made = prepare(texts)
        assert bot_api.delete(f"{NOTES}{shown['id']}/").status_code == 204
        return made

    monkeypatch.setattr(pool, "prepare_many", slow)
    assert memory_notes.notes_embed([UUID(shown["id"])]) == 0
    assert in_pool() == 0


# --- proposing ----------------------------------------------------------------------------------------------
def test_a_note_is_proposed_as_any_other_proposal(api, bot_api, robo, alice):
    mine = noted(
        bot_api,
        "The retry loop never gives up.",
        sources=[{"kind": "merge_request", "reference": "acme/pay!4821", "quote": "It loops.", "title": "Retry"}],
    )
    agent = api(robo)
    answer = agent.post(f"{NOTES}{mine['id']}/propose/")

    assert answer.status_code == 201
    assert answer.json()["status"] == "pending"
    candidate = Candidate.objects.get(pk=answer.json()["id"])
    assert (candidate.content, candidate.type.slug, candidate.tier) == (mine["content"], "review_feedback", "durable")
    assert candidate.origin_name == "robo"
    assert {row.name for row in candidate.proposers.all()} == {"robo", "botty"}
    assert [(row.source.reference, row.quote) for row in candidate.evidence.all()] == [("acme/pay!4821", "It loops.")]
    assert not Memory.objects.exists()
    assert bot_api.get(f"{NOTES}{mine['id']}/").json()["proposed_as"] == answer.json()["id"]
    assert bot_api.get(f"/api/v1/candidates/{candidate.pk}/").status_code == 200
    again = agent.post(f"{NOTES}{mine['id']}/propose/", {})
    assert (again.status_code, again.json()["duplicate_of"]["id"]) == (200, str(candidate.pk))
    assert approve(of_person(alice), candidate).memory.content == mine["content"]


def test_what_is_proposed_may_say_it_otherwise(bot_api):
    mine = noted(bot_api, "line 12 loops forever")
    answer = bot_api.post(
        f"{NOTES}{mine['id']}/propose/",
        {
            "content": "Retries stop after five attempts.",
            "type": "CONVENTION",
            "scope": {"domains": ["payments"]},
            "confidence": 0.2,
        },
    )

    assert answer.json()["status"] == "quarantined"
    candidate = Candidate.objects.get(pk=answer.json()["id"])
    assert (candidate.content, candidate.type.slug) == ("Retries stop after five attempts.", "coding_conventions")
    assert candidate.domain_ids
    assert not candidate.repo_ids
    assert TaskNote.objects.get().content == "line 12 loops forever"


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"content": "The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a."}, 422, "content"),
        ({"type": "gossip"}, 422, "type"),
        ({"scope": {}}, 422, "scope"),
        ({"confidence": 2}, 422, "confidence"),
        ({"sources": []}, 400, "sources"),
        ({"status": "approved"}, 400, "status"),
        ({"reviewer": "alice"}, 400, "reviewer"),
    ],
)
def test_nothing_gets_round_the_checks_of_a_proposal(bot_api, body, status, field):
    mine = noted(bot_api)
    answer = bot_api.post(f"{NOTES}{mine['id']}/propose/", body)

    assert answer.status_code == status
    assert field in [error["field"] for error in answer.json()["errors"]]
    assert not Candidate.objects.exists()
    assert TaskNote.objects.get().proposed_as is None


def test_whoever_wrote_a_note_cannot_approve_it_though_another_proposed_it(api, bot_api, alice, carol):
    mine = noted(api(alice))
    proposed = bot_api.post(f"{NOTES}{mine['id']}/propose/", {}).json()
    path = f"/api/v1/candidates/{proposed['id']}/approve/"

    refused = api(alice).post(path, {"version": proposed["version"]})
    assert (refused.status_code, refused.json()["code"]) == (403, "own_proposal")
    assert api(carol).post(path, {"version": proposed["version"]}).status_code == 200


def test_whoever_wrote_a_note_cannot_approve_what_it_joined(api, bot_api, botty, robo, alice):
    """The version is raised: a decision that was under way saw another list of proposers."""
    statement = "The retry loop never gives up."
    note = noted(api(alice), statement)
    agent = api(robo)
    body = {"content": statement, "type": "review_feedback", "scope": {"repos": ["acme/pay"]}}
    first = agent.post(
        "/api/v1/candidates/", body | {"sources": [{"kind": "merge_request", "reference": "acme/pay!4821"}]}
    ).json()
    joined = agent.post(f"{NOTES}{note['id']}/propose/", {}).json()

    assert joined["id"] == first["id"]
    assert joined["version"] == first["version"] + 1
    refused = api(alice).post(f"/api/v1/candidates/{first['id']}/approve/", {"version": joined["version"]})
    assert refused.json()["code"] == "own_proposal"


def test_the_cap_on_open_candidates_holds_for_notes_too(bot_api, monkeypatch):
    monkeypatch.setattr("apps.candidates.services.MAX_OPEN_PER_ORIGIN", 1)
    first, second = noted(bot_api), noted(bot_api)
    assert bot_api.post(f"{NOTES}{first['id']}/propose/", {}).status_code == 201
    answer = bot_api.post(f"{NOTES}{second['id']}/propose/", {})
    assert (answer.status_code, answer.json()["code"]) == (429, "queue_full")


def test_what_was_rejected_is_not_proposed_again_by_way_of_a_note(api, bot_api, alice):
    mine = noted(bot_api)
    path = f"{NOTES}{mine['id']}/propose/"
    proposed = bot_api.post(path, {}).json()
    api(alice).post(f"/api/v1/candidates/{proposed['id']}/reject/", {"version": 1, "reason": "No."})

    again = bot_api.post(path, {})
    assert (again.status_code, again.json()["status"]) == (200, "rejected")
    assert not fresh(Candidate.objects.get()).is_open


# --- searching ----------------------------------------------------------------------------------------------
def episodic(client: Any, q: str, **query: Any) -> dict[str, Any]:
    answer = client.get(SEARCH, {"q": q, "tiers": "episodic", "task": TASK} | query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_search_of_a_task_finds_its_notes_by_meaning_and_words(bot_api):
    retry = noted(bot_api, "The retry loop never gives up.", disposition="open")
    noted(bot_api, "Invoices are numbered twice.")
    noted(bot_api, "The retry loop never gives up elsewhere.", path="/api/v1/tasks/mr:4822/notes/")
    answer = episodic(bot_api, "retry loop never gives up")

    assert answer["results"][0]["id"] == retry["id"]
    assert {row["task"] for row in answer["results"]} == {TASK}
    first = answer["results"][0]
    assert {name: first[name] for name in ("tier", "reviewed", "status", "number", "disposition", "confidence")} == {
        "tier": "episodic",
        "reviewed": False,
        "status": "unreviewed",
        "number": None,
        "disposition": "open",
        "confidence": None,
    }
    assert {"vector", "text", "fused", "unreviewed"} <= set(first["scores"])
    assert "nobody has reviewed" in answer["note"]
    stages = {stage["name"]: stage["detail"] for stage in answer["pipeline_stages"]}
    assert stages["vector"] == "Only the working notes of a task were asked for."
    assert "of the 2 notes of this task" in stages["episodic"]


def test_memories_and_notes_come_together_and_each_says_what_it_is(api, bot_api, remember):
    memory = remember("The retry loop gives up after five attempts.")
    note = noted(bot_api, "The retry loop never gives up.")
    answer = bot_api.get(
        SEARCH, {"q": "when does the retry loop give up", "tiers": ["durable", "episodic"], "task": TASK}
    )
    shown = {row["id"]: (row["tier"], row["reviewed"]) for row in answer.json()["results"]}

    assert shown == {str(memory.pk): ("durable", True), note["id"]: ("episodic", False)}
    assert [row["score"] for row in answer.json()["results"]] == sorted(
        (row["score"] for row in answer.json()["results"]), reverse=True
    )
    one = bot_api.get(
        SEARCH, {"q": "when does the retry loop give up", "tiers": ["durable", "episodic"], "task": TASK, "limit": 1}
    )
    assert len(one.json()["results"]) == 1
    assert sql("SELECT count(*) FROM retrieval_served WHERE memory <> %s", memory.pk) == [(0,)]


@pytest.mark.parametrize("more", ["", "&tiers=durable&tiers=index", "&tiers=index", "&limit=100", "&intent=history"])
def test_no_other_search_finds_a_note(bot_api, more):
    noted(bot_api, "The retry loop never gives up.")
    for address in (
        f"{SEARCH}?q=retry+loop+never+gives+up{more}",
        "/api/v1/ask/?q=why+does+the+retry+loop+never+give+up",
        "/api/v1/context/?repo=acme/pay&q=retry+loop+never+gives+up",
        "/api/v1/context/?repo=acme/pay",
        "/api/v1/candidates/",
    ):
        answer = bot_api.get(address)
        assert answer.status_code == 200
        assert "retry loop never gives up." not in answer.content.decode().lower(), address


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({"tiers": "episodic"}, {"task", "tiers"}),
        ({"tiers": ["durable", "episodic"]}, {"task", "tiers"}),
        ({"task": TASK}, {"task", "tiers"}),
        ({"task": TASK, "tiers": "durable"}, {"task", "tiers"}),
        ({"task": "", "tiers": "episodic"}, {"task"}),
        ({"task": "a\x00b", "tiers": "episodic"}, {"task"}),
        ({"task": "b" * 201, "tiers": "episodic"}, {"task"}),
        ({"task": TASK, "tiers": "working"}, {"tiers"}),
        ({"task": TASK, "tiers": "episodic", "as_of": "2026-01-01"}, {"as_of"}),
        ({"task": TASK, "tiers": ["durable", "episodic"], "known_at": "2026-01-01"}, {"known_at"}),
    ],
)
def test_notes_are_asked_for_by_both_words_and_of_now(bot_api, query, fields):
    answer = bot_api.get(SEARCH, {"q": "anything"} | query)

    assert answer.status_code == 422
    assert {error["field"].partition("[")[0] for error in answer.json()["errors"]} >= fields


def test_types_and_repositories_narrow_a_search_of_notes_too(bot_api):
    review = noted(bot_api, "The retry loop never gives up.")
    bug = noted(bot_api, "The retry loop never gives up here.", type="bug_fixes", scope={"repos": ["acme/shop"]})

    found = episodic(bot_api, "retry loop", types="bug_fixes")["results"]
    assert [row["id"] for row in found] == [bug["id"]]
    found = episodic(bot_api, "retry loop", repos="acme/pay")["results"]
    assert [row["id"] for row in found] == [review["id"]]


def test_what_has_nothing_to_do_with_the_question_is_no_answer(bot_api, monkeypatch, embedder):
    monkeypatch.setattr(type(embedder), "unrelated_below", 0.3)
    noted(bot_api, "The retry loop never gives up.")
    answer = episodic(bot_api, "invoices numbered gaps")

    assert answer["results"] == []
    assert answer["note"].endswith("No working note of this task answers this.")
    assert answer["degraded"] is False


@pytest.mark.parametrize("what", ["embed_query", "search_notes"])
def test_a_search_of_notes_degrades_and_says_so(bot_api, pool, monkeypatch, what):
    note = noted(bot_api, "The retry loop never gives up.")

    def down(*_: Any) -> None:
        raise ProviderTimeout("It did not answer.")

    monkeypatch.setattr(pool, what, down)
    answer = episodic(bot_api, "the retry loop")
    assert answer["degraded"] is True
    assert [row["id"] for row in answer["results"]] == [note["id"]]
    assert "Similar wording was not looked for" in answer["note"]


def test_an_embedder_that_is_down_is_waited_for_once(bot_api, pool, monkeypatch):
    noted(bot_api, "The retry loop never gives up.")
    asked: list[str] = []

    def down(text: str) -> None:
        asked.append(text)
        raise ProviderTimeout("It did not answer.")

    monkeypatch.setattr(pool, "embed_query", down)
    answer = bot_api.get(SEARCH, {"q": "retry", "tiers": ["durable", "episodic"], "task": TASK}).json()
    assert answer["degraded"] is True
    assert len(answer["results"]) == 1
    assert asked == ["retry"]


def test_the_pool_keeps_no_text_of_a_note(bot_api, pool):
    noted(bot_api, "The marmalade loop never gives up.")

    ((payloads,),) = sql("SELECT string_agg(payload::text, ' ') FROM fm_notes_g1")
    assert "marmalade" not in payloads
    assert sql("SELECT count(*) FROM fm_pool_g1") == [(0,)]
    query = NoteQuery(vector=pool.embed_query("marmalade"), workspace=TaskNote.objects.get().workspace_id, task=TASK)
    assert len(pool.search_notes(query)) == 1
    assert connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_a_note_that_expires_while_it_is_proposed_is_proposed_whole_and_then_deleted(bot_api, later, monkeypatch):
    note = noted(bot_api)
    expired: list[Any] = []
    scopes_shown = notes.scopes_shown

    def meanwhile(rows):
        later(days=400)
        expired.append(in_background(notes_expire))
        time.sleep(0.5)
        return scopes_shown(rows)

    monkeypatch.setattr(notes, "scopes_shown", meanwhile)
    answer = bot_api.post(f"{NOTES}{note['id']}/propose/", {})

    assert answer.status_code == 201, answer.json()
    assert expired[0]() == "1 notes have expired."
    candidate = Candidate.objects.get()
    assert (candidate.content, candidate.evidence.count()) == (note["content"], 1)
    assert not TaskNote.objects.exists()
    monkeypatch.undo()
    gone = bot_api.post(f"{NOTES}{note['id']}/propose/", {})
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")
