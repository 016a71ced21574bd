"""A workspace sees only its own rows: through every address, and in every table.

Both tests walk what there is. A new address or model that they do not know about makes them fail until somebody
has said how it is kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from django.apps import apps
from django.db.models import ForeignKey, Model
from django.urls import URLPattern, URLResolver, get_resolver

from apps.accounts.models import Audience
from apps.agents.tools import TOOLS
from apps.approvals.services import memory_retire
from apps.candidates.models import Candidate
from apps.candidates.proposal import ScopeInput
from apps.memories.models import Memory, Verdict
from apps.sources.models import Source
from tests.agents.calling import Agent
from tests.capture.doubles import an_event
from tests.conftest import issue
from tests.ledger import (
    a_body,
    a_source,
    approve,
    fresh,
    noted,
    of_person,
    of_token,
    propose,
    reject,
    remember,
    report,
    sql,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

MARK = "Zanzibar"
TASK = "branch:feature/x"


# --- addresses ----------------------------------------------------------------------------------------------
def addresses(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address with its pattern, in the form in which ``path()`` wrote it."""
    for each in (resolver or get_resolver()).url_patterns:
        path = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from addresses(each, path)
        else:
            yield path, each


REST = sorted(
    {(path, pattern.name) for path, pattern in addresses() if path.startswith("api/v1/")}, key=lambda each: each[0]
)

# What each address takes, so that what is refused is refused for its workspace and nothing else.
BODIES = {
    "ask": {},
    "candidates": a_body(),
    "candidate": {},
    "candidate-approve": {"version": 1},
    "candidate-reject": {"version": 1, "reason": "r"},
    "candidate-reopen": {"version": 2, "reason": "r"},
    "candidate-revise": {"version": 1, "content": "Taken over."},
    "candidate-withdraw": {"version": 1},
    "candidates-bulk": {"action": "reject", "reason": "r"},
    "ingest": {
        "content": "We decided to deploy on Mondays, because nobody is around on Fridays.",
        "kind": "chat",
        "scope": {"firm": True},
        "sources": [{"kind": "chat", "reference": "x"}],
    },
    "context": {},
    "event": {},
    "export": {},
    "files-export": {},
    "files-import": {"repo": "acme/pay", "files": [{"path": "AGENTS.md", "content": "- Deploy on Mondays only.\n"}]},
    "memory": {},
    "memories-search": {},
    "memory-retire": {"reason": "r"},
    "memory-restore": {"reason": "r"},
    "memory-corrections": {"kind": "stale", "reason": "r", "sources": [{"kind": "chat", "reference": "x"}]},
    "me": {},
    "note": {},
    "note-disposition": {"disposition": "dismissed"},
    "note-propose": {},
    "notes": {
        "content": "Deploys wait for the clean-up.",
        "type": "review_feedback",
        "scope": {"firm": True},
        "sources": [{"kind": "chat", "reference": "x"}],
    },
    "schema": {},
    "taxonomy": {},
}
QUERIES = {
    "ask": {"q": MARK},
    "context": {"repo": "acme/pay", "q": MARK, "intent": "implement"},
    "files-export": {"repo": "acme/pay"},
    "memories-search": {"q": MARK, "limit": "100"},
}


@pytest.fixture
def firm(workspace, robo, alice):
    """One of everything, with the mark in every text."""
    proposer, reviewer = of_token(robo.token), of_person(alice)

    def made(text: str, **options):
        return propose(
            proposer,
            f"{text} in {MARK}.",
            scope=ScopeInput(domains=(f"{MARK} domain",), repos=(f"acme/{MARK}",)),
            sources=(a_source(f"acme/{MARK}!1", title=f"About {MARK}", quote=f"As in {MARK}."),),
            **options,
        )

    memory = approve(reviewer, made("Deploys happen"), note=f"Agreed in {MARK}.").memory
    retired = approve(reviewer, made("Retired things happen")).memory
    memory_retire(principal=reviewer, reference=retired.pk, reason=f"Moot in {MARK}.")
    rejected = made("Rejected things happen")
    reject(reviewer, rejected, f"Not in {MARK}.")
    return {
        "candidate_id": [
            made("Pending things happen"),
            made("Quarantined things happen", confidence=0.1),
            fresh(rejected),
            Candidate.objects.get(pk=memory.verdict.subject_id),
            report(proposer, memory, reason=f"No more in {MARK}."),
        ],
        "reference": [memory, retired],
        "event_id": [
            an_event(
                proposer,
                f"In {MARK} we decided to deploy on Mondays.",
                scope=ScopeInput(domains=(f"{MARK} domain",), repos=(f"acme/{MARK}",)),
                sources=(a_source(f"acme/{MARK}!1", title=f"About {MARK}"),),
                external_id=f"acme/{MARK}!1",
            )
        ],
        "note_id": [
            noted(
                proposer,
                f"Deploys hang in {MARK}.",
                task=TASK,
                scope=ScopeInput(domains=(f"{MARK} domain",), repos=(f"acme/{MARK}",)),
                sources=(a_source(f"acme/{MARK}!1", title=f"About {MARK}", quote=f"As in {MARK}."),),
            )
        ],
    }


def filled(path: str, firm: dict[str, list]) -> Iterator[str]:
    """The address with ids of the firm's rows in every place that takes one."""
    path = path.replace("<task:task>", TASK)
    for name, rows in firm.items():
        for converter in ("uuid", "str"):
            place = f"<{converter}:{name}>"
            if place in path:
                for row in rows:
                    yield f"/{path.replace(place, str(row.pk))}"
                    if isinstance(row, Memory):
                        yield f"/{path.replace(place, row.label)}"
                return
    assert "<" not in path, f"{path} takes something that this test has no value for"
    yield f"/{path}"


def everything() -> dict[str, list]:
    """All rows of the ledger and the queue."""
    return {
        table: sql(f"SELECT * FROM {table} ORDER BY 1")
        for table in (
            *("memories_memory", "memories_verdict", "memories_supersession", "memories_memoryevidence"),
            *("candidates_candidate", "candidates_candidateevidence", "candidates_proposer", "candidates_opened"),
            *("sources_source", "fm_pool_g1", "capture_captureevent"),
            *("memories_tasknote", "memories_tasknoteevidence", "fm_notes_g1"),
        )
    }


def test_every_address_is_known_to_this_test():
    assert {name for _, name in REST} == set(BODIES)


@pytest.mark.parametrize("who", ["reviewer", "admin", "agent"])
@pytest.mark.parametrize(("path", "name"), REST, ids=[name for _, name in REST])
def test_no_address_shows_or_changes_another_workspaces_rows(api, other_workspace, charlie, firm, who, path, name):
    if who == "admin":
        from apps.accounts.models import Membership

        Membership.objects.filter(user=charlie).update(role="admin")
    client = api(issue(other_workspace, "their robot", "agent") if who == "agent" else charlie)
    before = everything()
    body = BODIES[name]
    if name == "candidates-bulk":
        body = body | {"items": [{"id": str(row.pk), "version": row.version} for row in firm["candidate_id"]]}

    for address in filled(path, firm):
        takes_an_id = "<" in path.replace("<task:task>", "")  # any task may be named, and has notes of each workspace
        for method, response in (
            ("get", client.get(address, QUERIES.get(name))),
            ("post", client.post(address, body)),
            ("put", client.put(address, body)),
            ("delete", client.delete(address)),
        ):
            assert MARK not in response.getvalue().decode(), (method, address)
            assert response.status_code < 500, (method, address)
            if takes_an_id:
                allowed = (403, 404, 405) if who == "agent" else (404, 405)
                assert response.status_code in allowed, (method, address, response.status_code)

    after = everything()
    for table in before:
        kept = [row for row in after[table] if row in before[table]]
        assert kept == before[table], table
    assert not Verdict.objects.filter(workspace=other_workspace).exists()


SOURCES = [{"kind": "chat", "reference": "x"}]
TOOLS_TAKE = {
    "memory_search": {"query": MARK, "limit": 100, "task": TASK},
    "memory_get": {"id": None},
    "memory_propose": {"content": "Deploys happen.", "type": "tooling_setup", "firm": True, "sources": SOURCES},
    "memory_correct": {"id": None, "kind": "stale", "reason": "r", "sources": SOURCES},
    "memory_ingest": {"content": "We decided to deploy on Mondays.", "kind": "chat", "sources": SOURCES},
    "memory_context": {"repo": "acme/pay", "path": MARK},
    "memory_decisions": {"subject": MARK},
}


@pytest.mark.parametrize("who", ["reviewer", "agent"])
@pytest.mark.parametrize("tool", list(TOOLS))
def test_no_tool_shows_or_changes_another_workspaces_rows(other_workspace, charlie, firm, who, tool):
    owner = charlie if who == "reviewer" else None
    agent = Agent(issue(other_workspace, "theirs", who, owner=owner).secret)
    before = everything()

    rows = [*firm["candidate_id"], *firm["reference"], *firm["event_id"], *firm["note_id"]]
    references = [str(row.pk) for row in rows] + [row.label for row in firm["reference"]]
    takes = TOOLS_TAKE[tool]
    for reference in references if "id" in takes else [""]:
        answer = agent.call(tool, **takes | ({"id": reference} if "id" in takes else {}))
        assert not [row for row in answer.results if MARK in str(row)]
        assert MARK not in answer.text
        assert answer.is_error is ("id" in takes)

    after = everything()
    for table in before:
        assert [row for row in after[table] if row in before[table]] == before[table], table
    assert not Verdict.objects.filter(workspace=other_workspace).exists()


def test_the_tools_show_the_firm_its_rows(robo, firm):
    agent = Agent(robo.secret)

    for tool in ("memory_search", "memory_context"):
        assert MARK in agent.call(tool, **TOOLS_TAKE[tool] | ({"repo": f"acme/{MARK}"})).text
    assert MARK in agent.call("memory_get", id=str(firm["reference"][0].pk)).text


@pytest.mark.parametrize(("path", "name"), REST, ids=[name for _, name in REST])
def test_no_address_answers_anybody_without_credentials(api, firm, path, name):
    before = everything()

    for address in filled(path, firm):
        for response in (api().get(address, QUERIES.get(name)), api().post(address, BODIES[name])):
            assert response.status_code in (401, 405, 429), (address, response.status_code)
            assert MARK not in response.content.decode()

    assert everything() == before


def test_the_firm_itself_is_shown_its_rows(api, alice, firm):
    """The mark is found where it may be: otherwise the tests above would hold for an empty answer too."""
    client = api(alice)

    for row in firm["candidate_id"]:
        assert MARK in client.get(f"/api/v1/candidates/{row.pk}/").content.decode()
    for row in firm["event_id"]:
        assert MARK in client.get(f"/api/v1/ingest/{row.pk}/").content.decode()
    for row in firm["note_id"]:
        assert MARK in client.get(f"/api/v1/tasks/{TASK}/notes/{row.pk}/").content.decode()
    assert MARK in client.get(f"/api/v1/tasks/{TASK}/notes/").content.decode()
    for row in firm["reference"]:
        assert MARK in client.get(f"/api/v1/memories/{row.pk}/").content.decode()
    assert MARK in client.get(f"/api/v1/memories/search/?q={MARK}").content.decode()
    assert MARK in client.get(f"/api/v1/ask/?q={MARK}").json()["answer"]
    assert MARK in client.get(f"/api/v1/context/?repo=acme/{MARK}").json()["text"]


def test_names_and_sources_of_one_workspace_mean_nothing_in_another(api, other_workspace, firm, charlie):
    """The same names make rows of their own; nothing says that they exist elsewhere."""
    client = api(issue(other_workspace, "their robot", "agent"))

    answer = client.post(
        "/api/v1/candidates/",
        a_body(
            f"Deploys happen in {MARK}.",
            scope={"domains": [f"{MARK} domain"], "repos": [f"acme/{MARK}"]},
            sources=[{"kind": "merge_request", "reference": f"acme/{MARK}!1"}],
        ),
    )

    assert answer.status_code == 201
    assert answer.json()["near"] == []
    shown = client.get(f"/api/v1/candidates/{answer.json()['id']}/").json()
    assert [flag["kind"] for flag in shown["flags"]] == ["new-domain", "new-repository"]
    assert [source["title"] for source in shown["sources"]] == [""]


def test_a_search_in_another_workspace_knows_no_repository_of_this_one(api, firm, charlie):
    answer = api(charlie).get(f"/api/v1/memories/search/?q=deploys&repos=acme/{MARK}").json()

    assert answer["results"] == []
    assert "Not known here" in answer["note"]


def test_a_person_in_both_acts_in_the_one_they_came_for(api, workspace, firm, charlie):
    from apps.accounts.models import Membership

    Membership.objects.create(workspace=workspace, user=charlie, role="reviewer")
    theirs = api(charlie)
    ours = api(issue(workspace, "charlie here", "reviewer", owner=charlie))
    candidate = firm["candidate_id"][0]

    assert theirs.get(f"/api/v1/candidates/{candidate.pk}/").status_code == 404
    assert ours.get(f"/api/v1/candidates/{candidate.pk}/").status_code == 200


# --- tables -------------------------------------------------------------------------------------------------
ROOMS = (
    *("accounts", "oauth", "taxonomy", "scopes", "sources", "memories", "candidates", "retrieval", "capture"),
    "answers",
)
OURS = [model for model in apps.get_models() if model._meta.app_label in ROOMS]

# Belong to no workspace: the workspace itself, and the pool's tables, whose rows name theirs.
OUTSIDE = {"accounts.Workspace", "memories.PoolGeneration"}

# Foreign keys that the same trigger need not look at, because another one does, or because nothing follows from them.
LOOKED_AT_ELSEWHERE = {
    ("candidates.Candidate", "decision"),  # candidate_decided_by_verdict wants a verdict on this very candidate
    ("memories.PoolGeneration", "number"),
    ("accounts.AuditEvent", "token"),  # written by one function, from the principal
}


def triggers_of(model: type[Model]) -> str:
    return " ".join(str(getattr(trigger, "func", "")) for trigger in getattr(model._meta, "triggers", []))


def has_workspace(model: type[Model]) -> bool:
    return any(field.name == "workspace" for field in model._meta.fields)


@pytest.mark.parametrize("model", OURS, ids=[model._meta.label for model in OURS])
def test_every_model_belongs_to_a_workspace(model):
    assert has_workspace(model) is (model._meta.label not in OUTSIDE)


@pytest.mark.parametrize("model", OURS, ids=[model._meta.label for model in OURS])
def test_postgresql_looks_at_the_workspace_of_everything_that_a_row_names(model):
    functions = triggers_of(model)
    for field in model._meta.fields:
        names_rows = isinstance(field, ForeignKey) and field.name != "workspace" and has_workspace(field.related_model)
        lists_rows = field.get_internal_type() == "ArrayField" and field.name.endswith(("_ids", "supersedes"))
        if (names_rows or lists_rows) and (model._meta.label, field.name) not in LOOKED_AT_ELSEWHERE:
            assert f"NEW.{field.column}" in functions, f"{model._meta.label}.{field.name}"


@pytest.mark.parametrize(
    "table",
    [
        *("memories_memory", "memories_memoryevidence", "memories_verdict", "memories_supersession"),
        *("candidates_candidate", "candidates_candidateevidence", "candidates_proposer"),
        *("sources_source", "scopes_domain", "scopes_repository"),
        *("taxonomy_memorytype", "taxonomy_category", "taxonomy_exclusion", "accounts_apitoken"),
        *("accounts_auditevent", "capture_captureevent"),
        *("memories_tasknote", "memories_tasknoteevidence"),
    ],
)
def test_no_row_moves_to_another_workspace(firm, other_workspace, robo, alice, table):
    from django.db import DatabaseError, transaction

    remember(of_token(robo.token), of_person(alice), supersedes=[firm["reference"][0]])
    assert sql(f"SELECT count(*) FROM {table}") != [(0,)]

    with pytest.raises(DatabaseError) as refusal, transaction.atomic():
        sql(f"UPDATE {table} SET workspace_id = %s", other_workspace.pk)
    assert refusal.value.__cause__.sqlstate in ("P0001", "23000")


# --- what is done for one is done to no other ----------------------------------------------------------------
def test_counting_words_for_one_leaves_the_others_rows_as_they_are(workspace, other_workspace, firm, charlie):
    from apps.retrieval.tasks import lexemes_count

    theirs = of_token(issue(other_workspace, "their robot", "agent").token)
    remember(theirs, of_person(charlie), "Backups are encrypted at rest.")
    lexemes_count(other_workspace)
    before = sql("SELECT * FROM memories_lexeme WHERE workspace_id = %s ORDER BY 1", other_workspace.pk)
    assert before

    lexemes_count(workspace)
    remember(of_token(issue(workspace, "another", "agent").token), of_person(firm_reviewer(workspace)), "More words.")
    lexemes_count(workspace)

    assert sql("SELECT * FROM memories_lexeme WHERE workspace_id = %s ORDER BY 1", other_workspace.pk) == before
    assert not sql("SELECT 1 FROM memories_lexeme WHERE workspace_id = %s AND word ILIKE %s", other_workspace.pk, MARK)


def firm_reviewer(workspace):
    return workspace.memberships.get(user__username="alice").user


def test_an_audience_of_another_workspace_opens_nothing(workspace, other_workspace, api, robo, alice, charlie):
    """Even the same person in an audience of the same name elsewhere sees nothing more here."""
    here = Audience.objects.create(workspace=workspace, name="board")
    elsewhere = Audience.objects.create(workspace=other_workspace, name="board")
    elsewhere.members.add(alice, charlie)
    here.members.add(charlie)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=here)
    candidate = propose(of_token(robo.token), sources=(a_source("#board/1", kind="chat"),))

    assert api(alice).get(f"/api/v1/candidates/{candidate.pk}/").status_code == 404
    assert api(charlie).get(f"/api/v1/candidates/{candidate.pk}/").status_code == 404


def test_ids_cannot_be_guessed():
    assert {type(model._meta.pk).__name__ for model in (Memory, Candidate, Verdict)} == {"UUIDField"}
    assert UUID(str(Memory().pk)).version == 4
