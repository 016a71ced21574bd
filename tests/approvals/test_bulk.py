"""Many decisions at once: the same as one by one, each with an outcome of its own."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from apps.accounts.models import Audience, AuditEvent, Workspace
from apps.accounts.services import workspace_add
from apps.approvals import bulk
from apps.approvals.bulk import Item, candidates_decide, matching
from apps.candidates.models import Candidate, Opened
from apps.candidates.proposal import ScopeInput
from apps.candidates.selectors import QueueFilter
from apps.core.errors import Invalid
from apps.memories.models import Action, Memory, MemoryEvidence, Supersession, Verdict
from apps.memories.providers.base import ProviderError
from apps.sources.models import Source
from apps.taxonomy.models import MemoryType
from tests.conftest import add_person, issue
from tests.ledger import a_source, approve, fresh, of_person, of_token, propose, reject, remember, report

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

URL = "/api/v1/candidates/bulk/"


@pytest.fixture
def proposer(robo):
    return of_token(robo.token)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


@pytest.fixture
def client(api, alice):
    return api(alice)


def items(*candidates: Candidate) -> list[dict]:
    return [{"id": str(row.pk), "version": fresh(row).version} for row in candidates]


def outcomes(response) -> list[str]:
    assert response.status_code == 200, response.json()
    return [row["outcome"] for row in response.json()["results"]]


# --- both ways are one way ----------------------------------------------------------------------------------
def a_world(slug: str) -> tuple[Workspace, dict[str, Candidate], object]:
    """The same candidates in a workspace of their own: plain ones, one that replaces, two reports."""
    workspace = workspace_add(slug=slug)
    reviewer = of_person(add_person(workspace, f"reviewer-of-{slug}", "reviewer"), workspace)
    proposer = of_token(issue(workspace, "robot", "agent").token)
    sources = (a_source("acme/pay!1", quote="As agreed."),)
    old, stale, moved = (
        remember(proposer, reviewer, f"Rule number {at} holds.", sources=sources) for at in ("one", "two", "three")
    )
    return (
        workspace,
        {
            "plain": propose(proposer, "Plain and simple.", sources=sources, confidence=0.7),
            "low": propose(proposer, "Hardly believed.", sources=sources, confidence=0.1),
            "wide": propose(
                proposer, "Firm-wide.", sources=sources, scope=ScopeInput(firm=True, domains=("payments",))
            ),
            "replacing": propose(proposer, "Rule number one is gone.", sources=sources, supersedes=(old.label,)),
            "bare report": report(proposer, stale, sources=sources, kind="wrong"),
            "report": report(proposer, moved, sources=sources, replacement="Rule number three moved."),
        },
        reviewer,
    )


def rows_of(workspace: Workspace) -> dict[str, list]:
    """Everything a decision writes, without ids, moments and the names of the workspace."""

    def without(row: dict, *names: str) -> dict:
        return {name: value for name, value in row.items() if name not in names and not isinstance(value, UUID)}

    def plain(value):
        return {key: plain(inner) for key, inner in value.items()} if isinstance(value, dict) else _masked(value)

    verdicts = Verdict.objects.filter(workspace=workspace).values(
        *("subject_kind", "action", "reason", "before", "after", "via", "second_person")
    )
    return {
        "memories": [
            without(row)
            for row in Memory.objects.filter(workspace=workspace)
            .order_by("number")
            .values(*("number", "content", "type__slug", "firm", "tier", "status", "confidence"))
        ],
        "evidence": sorted(
            MemoryEvidence.objects.filter(workspace=workspace).values_list(
                "memory__number", "source__reference", "quote"
            )
        ),
        "edges": sorted(
            Supersession.objects.filter(workspace=workspace).values_list("old__number", "new__number", "kind")
        ),
        "candidates": sorted(
            Candidate.objects.filter(workspace=workspace).values_list("content", "status", "version", "status_reason")
        ),
        "verdicts": sorted(str(plain(row)) for row in verdicts),
        "audit": sorted(
            str(plain(row))
            for row in AuditEvent.objects.filter(workspace=workspace, verb__in=("approve", "reject")).values(
                *("verb", "subject_kind", "before", "after")
            )
        ),
    }


def _masked(value):
    if isinstance(value, list):
        return [_masked(inner) for inner in value]
    try:
        return "an id" if UUID(str(value)) else value
    except ValueError:
        return value


@pytest.mark.parametrize("action", [Action.APPROVE, Action.REJECT])
def test_bulk_does_what_one_by_one_does(action):
    one, singly, reviewer = a_world("one")
    many, together, other_reviewer = a_world("many")
    for candidate in singly.values():
        (approve if action is Action.APPROVE else reject)(reviewer, candidate, "As agreed.")

    batch, results = candidates_decide(
        principal=other_reviewer,
        action=action,
        items=[Item(row.pk, row.version) for row in together.values()],
        reason="As agreed.",
    )

    assert [result.outcome for result in results] == ["done"] * 6, results
    assert rows_of(one) == rows_of(many)
    batches = set(Verdict.objects.filter(workspace=many, action=action.value).values_list("batch_id", flat=True))
    assert batches >= {batch}
    assert not Verdict.objects.filter(workspace=one).exclude(batch_id=None).exists()


def test_all_that_match_are_decided_as_one_by_one():
    one, singly, reviewer = a_world("one")
    many, together, other_reviewer = a_world("many")
    for candidate in singly.values():
        reject(reviewer, candidate, "As agreed.")

    pending = matching(other_reviewer, QueueFilter())
    quarantined = matching(other_reviewer, QueueFilter(status="quarantined"))
    found = [*pending.items, *quarantined.items]
    assert {item.id for item in found} == {row.pk for row in together.values()}
    candidates_decide(principal=other_reviewer, action=Action.REJECT, items=found, reason="As agreed.")

    assert rows_of(one) == rows_of(many)
    assert Verdict.objects.filter(workspace=many, action="reject").values("batch_id").distinct().count() == 1


def test_all_that_match_are_counted_and_bounded(monkeypatch, proposer, reviewer):
    rows = [propose(proposer, type="business_rules") for _ in range(3)]
    Opened.objects.create(candidate=rows[0], workspace=rows[0].workspace, user=reviewer.user, version=1)
    Opened.objects.create(candidate=rows[1], workspace=rows[1].workspace, user=reviewer.user, version=2)
    found = matching(reviewer, QueueFilter(type="business_rules"))
    assert ([row.pk for row in found.rows], found.unopened, found.more) == ([row.pk for row in rows], 2, False)
    monkeypatch.setattr(bulk, "MAX_ITEMS", 2)
    found = matching(reviewer, QueueFilter())
    assert ([row.pk for row in found.rows], found.more) == ([row.pk for row in rows[:2]], True)


def test_nothing_that_was_decided_matches(proposer, reviewer):
    reject(reviewer, propose(proposer))
    assert matching(reviewer, QueueFilter(status="rejected")).rows == []


def test_every_verdict_of_a_batch_carries_its_id(client, proposer, reviewer):
    old, stale = remember(proposer, reviewer), remember(proposer, reviewer)
    replacing, bare = propose(proposer, supersedes=(old.label,)), report(proposer, stale)

    answer = client.post(URL, {"action": "approve", "items": items(replacing, bare)}).json()

    decided = Verdict.objects.filter(batch_id=answer["batch"])
    assert sorted(decided.values_list("action", flat=True)) == ["approve", "approve", "retire", "supersede"]


# --- each for itself ----------------------------------------------------------------------------------------
def test_one_that_fails_leaves_the_others_alone(client, proposer, reviewer, alice, carol, workspace):
    good, another = propose(proposer), propose(proposer)
    decided = propose(proposer)
    reject(reviewer, decided)
    stale = propose(proposer)
    own = propose(of_person(alice))
    retired_type = propose(proposer, type="bug_fixes")
    MemoryType.objects.filter(slug="bug_fixes").update(is_active=False)
    missing = str(uuid4())
    asked = [
        *items(good, decided),
        {"id": str(stale.pk), "version": 9},
        *items(own, retired_type),
        {"id": missing, "version": 1},
        *items(another),
    ]

    response = client.post(URL, {"action": "approve", "items": asked})

    results = response.json()["results"]
    assert [row["id"] for row in results] == [row["id"] for row in asked]
    assert outcomes(response) == ["done", "conflict", "conflict", "forbidden", "invalid", "invalid", "done"]
    assert "M-1" in results[0]["detail"]
    assert "alice has already rejected" in results[1]["detail"]
    assert "changed since version 9" in results[2]["detail"]
    assert "You proposed this" in results[3]["detail"]
    assert "was retired" in results[4]["detail"]
    assert all(row["detail"].endswith(".") for row in results)
    assert Memory.objects.count() == 2
    assert {fresh(row).status for row in (stale, own, retired_type)} == {"pending"}


def test_two_rivals_in_one_batch_make_one_successor(client, proposer, reviewer):
    old = remember(proposer, reviewer)
    first, second = (propose(proposer, supersedes=(old.label,)) for _ in range(2))

    response = client.post(URL, {"action": "approve", "items": items(first, second)})

    assert outcomes(response) == ["done", "conflict"]
    assert Supersession.objects.count() == 1


def test_a_bulk_rejection_gives_each_its_reason(client, proposer):
    rows = [propose(proposer) for _ in range(3)]

    response = client.post(URL, {"action": "reject", "items": items(*rows), "reason": "All outdated."})

    assert outcomes(response) == ["done"] * 3
    assert set(Verdict.objects.values_list("action", "reason")) == {("reject", "All outdated.")}


def test_another_workspaces_candidate_is_not_there(client, proposer, other_workspace, charlie):
    theirs = propose(of_token(issue(other_workspace, "their robot", "agent").token))

    response = client.post(URL, {"action": "approve", "items": items(theirs)})

    assert outcomes(response) == ["invalid"]
    assert fresh(theirs).status == "pending"


def test_a_restricted_candidate_is_not_there_either(workspace, client, proposer):
    board = Audience.objects.create(workspace=workspace, name="board")
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    hidden = propose(proposer, sources=(a_source("#board/1", kind="chat"),))

    assert outcomes(client.post(URL, {"action": "approve", "items": items(hidden)})) == ["invalid"]
    assert fresh(hidden).status == "pending"


# --- always looked at by a person ---------------------------------------------------------------------------
@pytest.mark.parametrize("type_", ["ARCHITECTURE_DECISION", "CONVENTION", "BUSINESS_RULE", "PRODUCTION_ISSUE"])
def test_some_types_are_not_approved_in_bulk_unseen(client, proposer, type_):
    candidate = propose(proposer, type=type_)

    refused = client.post(URL, {"action": "approve", "items": items(candidate)})
    assert outcomes(refused) == ["forbidden"]
    assert "open this candidate first" in refused.json()["results"][0]["detail"]

    client.get(f"/api/v1/candidates/{candidate.pk}/")
    assert outcomes(client.post(URL, {"action": "approve", "items": items(candidate)})) == ["done"]


def test_another_reviewers_look_does_not_count(api, alice, carol, proposer):
    candidate = propose(proposer, type="BUSINESS_RULE")
    api(carol).get(f"/api/v1/candidates/{candidate.pk}/")

    assert outcomes(api(alice).post(URL, {"action": "approve", "items": items(candidate)})) == ["forbidden"]


def test_the_proposers_look_is_no_reviewers_look(api, robo, alice, proposer):
    candidate = propose(proposer, type="BUSINESS_RULE")
    api(robo).get(f"/api/v1/candidates/{candidate.pk}/")

    assert not Opened.objects.exists()
    assert outcomes(api(alice).post(URL, {"action": "approve", "items": items(candidate)})) == ["forbidden"]


def test_a_look_at_an_older_version_does_not_count(api, robo, client, proposer):
    candidate = propose(proposer, type="BUSINESS_RULE")
    client.get(f"/api/v1/candidates/{candidate.pk}/")
    api(robo).post(f"/api/v1/candidates/{candidate.pk}/revise/", {"version": 1, "content": "Something else."})

    assert outcomes(client.post(URL, {"action": "approve", "items": items(candidate)})) == ["forbidden"]
    assert fresh(candidate).status == "pending"


def test_a_look_at_the_list_is_no_look_at_the_candidate(client, proposer):
    candidate = propose(proposer, type="BUSINESS_RULE")
    client.get("/api/v1/candidates/")

    assert outcomes(client.post(URL, {"action": "approve", "items": items(candidate)})) == ["forbidden"]


def test_they_may_be_rejected_in_bulk_and_approved_singly(client, proposer):
    first, second = propose(proposer, type="BUSINESS_RULE"), propose(proposer, type="BUSINESS_RULE")

    assert outcomes(client.post(URL, {"action": "reject", "items": items(first), "reason": "r"})) == ["done"]
    assert client.post(f"/api/v1/candidates/{second.pk}/approve/", {"version": 1}).status_code == 200


# --- what will not do ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"action": "reopen"}, 422, "action"),
        ({"action": "APPROVE"}, 422, "action"),
        ({"action": None}, 422, "action"),
        ({"items": []}, 422, "items"),
        ({"items": None}, 422, "items"),
        ({"items": [{"id": "nonsense", "version": 1}]}, 422, "items[0].id"),
        ({"items": [{"id": str(UUID(int=1))}]}, 422, "items[0].version"),
        ({"items": [{"id": str(UUID(int=1)), "version": "1"}]}, 422, "items[0].version"),
        ({"items": [{"id": str(UUID(int=1)), "version": 1, "x": 1}]}, 400, "items[0].x"),
        ({"items": [{"id": str(UUID(int=1)), "version": 1}] * 2}, 422, "items"),
        ({"items": [{"id": str(UUID(int=at)), "version": 1} for at in range(1, 502)]}, 422, "items"),
        ({"action": "reject"}, 422, "reason"),
        ({"action": "reject", "reason": " "}, 422, "reason"),
        ({"action": "reject", "reason": "x" * 2_001}, 422, "reason"),
        ({"reason": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}, 422, "reason"),
        ({"reviewer": "alice"}, 400, "reviewer"),
        ({"batch": str(UUID(int=1))}, 400, "batch"),
    ],
)
def test_a_request_that_will_not_do_decides_nothing(client, proposer, changes, status, field):
    candidate = propose(proposer)
    body = {"action": "approve", "items": items(candidate)} | changes

    response = client.post(URL, body)

    assert response.status_code == status, response.json()
    assert field in {error["field"] for error in response.json()["errors"]}
    assert fresh(candidate).status == "pending"


def test_nothing_but_approve_and_reject_is_done_in_bulk(reviewer, proposer):
    with pytest.raises(Invalid):
        candidates_decide(principal=reviewer, action=Action.REOPEN, items=[Item(propose(proposer).pk, 1)])


def test_a_key_repeats_the_whole_answer(client, proposer):
    body = {"action": "approve", "items": items(propose(proposer), propose(proposer))}
    headers = {"Idempotency-Key": "bulk-1"}

    first = client.post(URL, body, headers=headers)
    again = client.post(URL, body, headers=headers)

    assert first.json() == again.json()
    assert outcomes(first) == ["done", "done"]
    assert Memory.objects.count() == 2


# --- the embedder -------------------------------------------------------------------------------------------
def test_what_is_approved_together_is_embedded_together(client, proposer, pool, monkeypatch):
    asked = []
    prepare_many = pool.prepare_many
    monkeypatch.setattr(pool, "prepare_many", lambda texts: asked.append(len(texts)) or prepare_many(texts))
    monkeypatch.setattr(bulk, "AT_ONCE", 4)
    rows = [propose(proposer) for _ in range(10)]

    response = client.post(URL, {"action": "approve", "items": items(*rows)})

    assert outcomes(response) == ["done"] * 10
    assert asked == [4, 4, 2]


def test_an_embedder_that_is_down_is_asked_once_and_everything_stays_open(client, proposer, pool, monkeypatch):
    asked = []

    def down(texts):
        asked.append(len(texts))
        raise ProviderError("The embedding model did not answer within 60 seconds.", permanent=False)

    monkeypatch.setattr(pool, "prepare_many", down)
    monkeypatch.setattr(bulk, "AT_ONCE", 4)
    rows = [propose(proposer) for _ in range(9)]

    response = client.post(URL, {"action": "approve", "items": items(*rows)})

    assert outcomes(response) == ["error"] * 9
    assert {row["detail"] for row in response.json()["results"]} == {
        "The candidate is still open. The embedding model did not answer within 60 seconds."
    }
    assert asked == [4]
    assert {fresh(row).status for row in rows} == {"pending"}


def test_one_text_that_the_embedder_refuses_does_not_take_the_others_with_it(client, proposer, pool, monkeypatch):
    prepare_many = pool.prepare_many

    def picky(texts):
        if any("poison" in text for text in texts):
            raise ProviderError("The model refuses this text.", permanent=True)
        return prepare_many(texts)

    monkeypatch.setattr(pool, "prepare_many", picky)
    rows = [propose(proposer), propose(proposer, "This one is poison."), propose(proposer)]

    response = client.post(URL, {"action": "approve", "items": items(*rows)})

    assert outcomes(response) == ["done", "error", "done"]


def test_rejecting_needs_no_embedder(client, proposer, pool, monkeypatch):
    def down(texts):
        raise AssertionError("not to be asked")

    monkeypatch.setattr(pool, "prepare_many", down)

    response = client.post(URL, {"action": "reject", "items": items(propose(proposer)), "reason": "r"})

    assert outcomes(response) == ["done"]


def test_a_fault_of_ours_in_one_row_is_logged_and_shown_as_such(client, proposer, monkeypatch, caplog):
    rows = [propose(proposer) for _ in range(3)]
    approve_one = bulk.candidate_approve

    def faulty(**options):
        if options["candidate_id"] == rows[1].pk:
            raise RuntimeError("a bug")
        return approve_one(**options)

    monkeypatch.setattr(bulk, "candidate_approve", faulty)

    response = client.post(URL, {"action": "approve", "items": items(*rows)})

    assert outcomes(response) == ["done", "error", "done"]
    assert "a bug" not in response.content.decode()
    assert "a bug" in caplog.text


def test_a_member_decides_nothing_in_bulk(api, bob, proposer):
    response = api(bob).post(URL, {"action": "approve", "items": items(propose(proposer))})

    assert response.status_code == 403
    assert AuditEvent.objects.filter(verb="was refused to approve candidates", actor="bob").count() == 1
