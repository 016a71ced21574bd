"""POST candidates/: what is queued, what it joins, what it is told."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from apps.accounts.models import Audience, AuditEvent
from apps.candidates import services
from apps.candidates.models import Candidate, CandidateStatus
from apps.candidates.services import MAX_OPEN_PER_ORIGIN
from apps.core import clock
from apps.memories.models import Memory
from apps.scopes.models import Domain, Repository
from apps.sources.models import Source
from apps.taxonomy.models import Exclusion, MemoryType
from tests.conftest import issue
from tests.ledger import (
    a_body,
    a_source,
    a_statement,
    approve,
    fresh,
    of_person,
    of_token,
    propose,
    proposed,
    reject,
    remember,
    reopen,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

URL = "/api/v1/candidates/"

_fillers = itertools.count()


@pytest.fixture
def agent(api, robo):
    return api(robo)


@pytest.fixture
def reviewer(alice):
    return of_person(alice)


def fields(response) -> set[str]:
    return {error["field"] for error in response.json()["errors"]}


# --- a new one ----------------------------------------------------------------------------------------------
def test_a_proposal_is_queued_with_everything_it_says(agent, robo):
    body = a_body(
        "Payments retry three times.",
        type="BUSINESS_RULE",
        scope={"firm": True, "domains": ["payments"], "repos": ["acme/pay"]},
        sources=[
            {
                "kind": "incident",
                "reference": "INC-7",
                "url": "https://example.com/INC-7",
                "title": "Double charge",
                "occurred_at": "2025-04-01T08:00:00+02:00",
                "commit": "abc123",
                "quote": "We retried forever.",
            }
        ],
        confidence=0.8,
        valid_from="2025-05-01",
        tier="index",
    )

    response = agent.post(URL, body)

    assert response.status_code == 201
    answer = response.json()
    assert {key: answer[key] for key in ("status", "reason", "duplicate_of", "near", "version")} == {
        "status": "pending",
        "reason": "",
        "duplicate_of": None,
        "near": [],
        "version": 1,
    }
    shown = agent.get(f"{URL}{answer['id']}/").json()
    assert shown["content"] == "Payments retry three times."
    assert shown["type"] == "business_rules"
    assert shown["scope"] == {"firm": True, "domains": ["payments"], "repos": ["acme/pay"]}
    assert shown["tier"] == "index"
    assert shown["confidence"] == 0.8
    assert shown["valid_from"] == "2025-05-01T00:00:00+00:00"
    assert shown["origin"] == {"kind": "agent", "name": "robo"}
    assert shown["supersedes"] == []
    assert shown["corrects"] is None
    assert shown["verdicts"] == []
    (source,) = shown["sources"]
    assert source["quote"] == "We retried forever."
    assert source["occurred_at"] == "2025-04-01T06:00:00+00:00"
    assert [flag["kind"] for flag in shown["flags"]] == ["new-domain", "new-repository"]
    assert AuditEvent.objects.filter(verb="propose", token=robo.token, subject_id=answer["id"]).count() == 1


def test_a_new_repository_and_domain_are_unconfirmed_and_kept_verbatim(agent):
    names = ["acme/billing-svc", "org/repo.name", "8b1c2f0e-3a55-4b6e-9a51-7d0c8d1f0a11", "a&b", "50%_off"]

    response = agent.post(URL, a_body(scope={"repos": names, "domains": ["支払いサービス", "決済サービス", "a_b"]}))

    assert response.status_code == 201
    assert set(Repository.objects.values_list("slug", flat=True)) == set(names)
    assert set(Domain.objects.values_list("slug", flat=True)) == {"支払いサービス", "決済サービス", "a_b"}
    assert not Repository.objects.filter(confirmed=True).exists()
    assert sorted(agent.get(f"{URL}{response.json()['id']}/").json()["scope"]["repos"]) == sorted(names)


def test_remotes_of_one_repository_name_one_repository(agent):
    for remote in (
        "git@github.com:Acme/Pay.git",
        "https://github.com/acme/pay",
        "ssh://git@github.com:22/acme/pay.git/",
    ):
        assert agent.post(URL, a_body(scope={"repos": [remote]})).status_code == 201

    assert list(Repository.objects.values_list("slug", flat=True)) == ["acme/pay"]


@pytest.mark.parametrize("spelling", ["business_rules", "business_rules ", " BUSINESS_RULE", "Business_Rules"])
def test_either_spelling_of_a_type_will_do(agent, spelling):
    response = agent.post(URL, a_body(type=spelling))

    assert response.status_code == 201
    assert Candidate.objects.get().type.slug == "business_rules"


@pytest.mark.parametrize("spelling", ["foo", "Business Rules", "business rules", "", "business-rules"])
def test_an_unknown_type_is_refused_with_the_list(agent, spelling):
    response = agent.post(URL, a_body(type=spelling))

    assert response.status_code == 422
    assert fields(response) == {"type"}
    if spelling:
        assert "architecture_decisions" in response.json()["detail"]
    assert not Candidate.objects.exists()


def test_a_retired_type_takes_nothing_new(agent):
    MemoryType.objects.filter(slug="ownership").update(is_active=False)

    response = agent.post(URL, a_body(type="ownership"))

    assert response.status_code == 422
    assert "retired" in response.json()["detail"]


# --- what will not do ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "extra",
    [
        {"workspace": "other", "status": "approved", "scope_firm": "1", "user_id": "x"},
        {"origin": "alice"},
        {"reviewer": "alice"},
        {"second_person": False},
        {"version": 3},
    ],
)
def test_unknown_keys_are_refused_by_name(agent, extra):
    response = agent.post(URL, a_body(**extra))

    assert response.status_code == 400
    assert response.json()["code"] == "unknown_keys"
    assert fields(response) == set(extra)
    assert not Candidate.objects.exists()


def test_unknown_keys_are_refused_at_any_depth(agent):
    body = a_body(scope={"repos": ["acme/pay"], "team": "x"}, sources=[{"kind": "chat", "reference": "r", "who": "y"}])

    response = agent.post(URL, body)

    assert response.status_code == 400
    assert fields(response) == {"scope.team", "sources[0].who"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n\t "}, "content"),
        ({"content": "a\x00b"}, "content"),
        ({"content": "x" * 20_001, "tier": "index"}, "content"),
        ({"content": "x" * 8_001}, "content"),
        ({"content": 7}, "content"),
        ({"content": None}, "content"),
        ({"type": None}, "type"),
        ({"type": 3}, "type"),
        ({"scope": {}}, "scope"),
        ({"scope": {"firm": False, "domains": [], "repos": []}}, "scope"),
        ({"scope": []}, "scope"),
        ({"scope": {"firm": 1}}, "scope.firm"),
        ({"scope": {"repos": [""]}}, "scope.repos[0]"),
        ({"scope": {"repos": ["a\x00"]}}, "scope.repos[0]"),
        ({"scope": {"repos": "acme/pay"}}, "scope.repos"),
        ({"scope": {"repos": ["x" * 201]}}, "scope.repos[0]"),
        ({"scope": {"repos": ["https://example.com/" + "x" * 300]}}, "scope.repos[0]"),
        ({"scope": {"domains": ["x" * 201]}}, "scope.domains[0]"),
        ({"scope": {"domains": [f"d{at}" for at in range(51)]}}, "scope.domains"),
        ({"sources": []}, "sources"),
        ({"sources": None}, "sources"),
        ({"sources": [{"kind": "merge_request"}]}, "sources[0].reference"),
        ({"sources": [{"kind": "rumour", "reference": "x"}]}, "sources[0].kind"),
        ({"sources": [{"kind": "chat", "reference": "x" * 501}]}, "sources[0].reference"),
        ({"sources": [{"kind": "chat", "reference": "x", "url": "javascript:alert(1)"}]}, "sources[0].url"),
        ({"sources": [{"kind": "chat", "reference": "x", "url": "ftp://x/y"}]}, "sources[0].url"),
        ({"sources": [{"kind": "chat", "reference": "x", "url": "https://"}]}, "sources[0].url"),
        ({"sources": [{"kind": "chat", "reference": "x", "url": "https://x/\x00"}]}, "sources[0].url"),
        ({"sources": [{"kind": "chat", "reference": "x", "quote": "q" * 501}]}, "sources[0].quote"),
        ({"sources": [{"kind": "chat", "reference": "x", "title": "t" * 501}]}, "sources[0].title"),
        ({"sources": [{"kind": "chat", "reference": "x", "commit": "c" * 65}]}, "sources[0].commit"),
        ({"sources": [{"kind": "chat", "reference": "x", "occurred_at": "yesterday"}]}, "sources[0].occurred_at"),
        ({"sources": [{"kind": "chat", "reference": f"r{at}"} for at in range(51)]}, "sources"),
        ({"confidence": 1.01}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"confidence": "0.9"}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"supersedes": ["not an id"]}, "supersedes[0]"),
        ({"supersedes": ["M-999999"]}, "supersedes[0]"),
        ({"supersedes": ["0190a1b2-7c3d-4e5f-8a9b-0c1d2e3f4a5b"]}, "supersedes[0]"),
        ({"supersedes": None}, "supersedes"),
        ({"valid_from": "soon"}, "valid_from"),
        ({"valid_from": "0001-01-01"}, "valid_from"),
        ({"valid_from": "9999-12-31T23:59:59-14:00"}, "valid_from"),
        ({"tier": "episodic"}, "tier"),
        ({"tier": ""}, "tier"),
    ],
)
def test_a_value_that_will_not_do_is_named_and_nothing_is_stored(agent, changes, field):
    response = agent.post(URL, a_body(**changes))

    assert response.status_code == 422, response.json()
    assert field in fields(response)
    assert not Candidate.objects.exists()
    assert not Source.objects.exists()
    assert not Repository.objects.exists()
    assert not Domain.objects.exists()


def test_a_limit_is_named(agent):
    assert "8,000" in str(agent.post(URL, a_body(content="x" * 8_001)).json()["errors"])
    assert "20,000" in str(agent.post(URL, a_body(content="x" * 20_001, tier="index")).json()["errors"])


def test_a_lone_surrogate_is_refused_by_name(agent):
    body = '{"content": "x \\ud83d y", "type": "tooling_setup", "scope": {"firm": true}, "sources": []}'

    response = agent.post(URL, body)

    assert response.status_code == 422
    assert "content" in fields(response)


def test_every_fault_is_named_at_once(agent):
    response = agent.post(URL, a_body(content="", confidence=7, sources=[]))

    assert fields(response) == {"content", "confidence", "sources"}


@pytest.mark.parametrize("body", ["nonsense", "[]", "null", '"text"', '{"content": "a", "content": "b"}'])
def test_a_body_that_is_no_object_is_malformed(agent, body):
    assert agent.post(URL, body).status_code == 400


def test_a_memory_of_another_workspace_is_not_there_to_supersede(agent, other_workspace, charlie):
    theirs = remember(of_token(issue(other_workspace, "their robot", "agent").token), of_person(charlie))

    response = agent.post(URL, a_body(supersedes=[str(theirs.pk)]))

    assert response.status_code == 422
    assert fields(response) == {"supersedes[0]"}


def test_a_memory_may_be_superseded_by_its_number(agent, robo, reviewer):
    memory = remember(of_token(robo.token), reviewer)

    response = agent.post(URL, a_body(supersedes=[memory.label, str(memory.pk)]))

    assert response.status_code == 201
    assert Candidate.objects.get(pk=response.json()["id"]).supersedes == [memory.pk]


# --- times --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("sent", "meant", "noted"),
    [
        ("2025-03-01T09:00:00", "2025-03-01T09:00:00+00:00", True),
        ("2025-03-01", "2025-03-01T00:00:00+00:00", True),
        ("2025-03-01T09:00:00Z", "2025-03-01T09:00:00+00:00", False),
        ("2025-03-01T09:00:00+09:00", "2025-03-01T00:00:00+00:00", False),
    ],
)
def test_without_an_offset_a_moment_is_utc_and_the_answer_says_so(agent, sent, meant, noted):
    answer = agent.post(URL, a_body(valid_from=sent)).json()

    assert agent.get(f"{URL}{answer['id']}/").json()["valid_from"] == meant
    assert ("UTC" in answer["note"]) is noted


# --- the gate by confidence ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ceiling", "reported", "status"),
    [
        (1.0, None, "pending"),
        (1.0, 0.6, "pending"),
        (1.0, 0.59, "quarantined"),
        (0.5, None, "quarantined"),
        (0.5, 1.0, "quarantined"),
        (0.6, 1.0, "pending"),
        (1.0, 0, "quarantined"),
    ],
)
def test_the_lower_of_what_is_reported_and_the_ceiling_counts(workspace, api, ceiling, reported, status):
    token = issue(workspace, "timid", "agent", confidence_ceiling=ceiling)

    answer = api(token).post(URL, a_body(**({} if reported is None else {"confidence": reported}))).json()

    assert answer["status"] == status
    assert ("below the 0.6 that its type, tooling setup, asks for" in answer["reason"]) is (status == "quarantined")


def test_each_type_asks_for_its_own_confidence(agent):
    MemoryType.objects.filter(slug="ownership").update(min_confidence=0.9)

    assert agent.post(URL, a_body(type="ownership", confidence=0.8)).json()["status"] == "quarantined"
    assert agent.post(URL, a_body(type="terminology", confidence=0.8)).json()["status"] == "pending"


def test_the_quarantined_are_listed_when_asked_for(agent, api, alice):
    low = agent.post(URL, a_body(confidence=0.1)).json()["id"]
    high = agent.post(URL, a_body()).json()["id"]
    reviewing = api(alice)

    assert [row["id"] for row in reviewing.get(URL).json()["results"]] == [high]
    assert [row["id"] for row in reviewing.get(f"{URL}?status=quarantined").json()["results"]] == [low]


def test_a_confidence_under_the_ceiling_is_what_is_remembered(workspace, alice):
    token = issue(workspace, "timid", "agent", confidence_ceiling=0.7).token

    memory = remember(of_token(token), of_person(alice), confidence=0.95)

    assert memory.confidence == 0.7


# --- the same again -----------------------------------------------------------------------------------------
def test_the_same_statement_joins_and_adds_its_source(agent, api, botty):
    first = agent.post(URL, a_body("Deploys happen on Tuesdays.")).json()

    response = api(botty).post(URL, a_body("  DEPLOYS happen   on tuesdays "))

    answer = response.json()
    assert response.status_code == 200
    assert answer["id"] == first["id"]
    assert answer["duplicate_of"] == {"what": "candidate", "id": first["id"]}
    assert answer["status"] == "pending"
    candidate = Candidate.objects.get()
    assert candidate.content == "Deploys happen on Tuesdays."
    assert candidate.evidence.count() == 2
    assert candidate.seen_count == 2
    assert candidate.version == answer["version"] == 2
    assert set(candidate.proposers.values_list("name", flat=True)) == {"robo", "botty"}
    assert api(botty).get(f"{URL}{first['id']}/").status_code == 200


def test_the_same_proposal_by_the_same_origin_disturbs_no_review(agent):
    body = a_body()
    first = agent.post(URL, body).json()

    again = agent.post(URL, body)

    assert again.status_code == 200
    assert again.json()["version"] == first["version"] == 1
    assert Candidate.objects.get().seen_count == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "bug_fixes"},
        {"scope": {"repos": ["acme/pay"], "firm": True}},
        {"scope": {"repos": ["acme/shop"]}},
        {"content": "Deploys happen on Wednesdays."},
        {"content": "Deploys happen on Tuesdays?"},
    ],
)
def test_another_scope_type_or_wording_is_another_statement(agent, changes):
    agent.post(URL, a_body("Deploys happen on Tuesdays."))

    assert agent.post(URL, a_body(**({"content": "Deploys happen on Tuesdays."} | changes))).status_code == 201


def test_reworded_it_is_its_own_candidate_near_the_first(agent):
    first = agent.post(URL, a_body("Payment retries back off exponentially, up to five times.")).json()

    again = agent.post(URL, a_body("Up to five times, retries of a payment back off exponentially."))

    assert again.status_code == 201
    (near,) = again.json()["near"]
    assert (near["id"], near["what"]) == (first["id"], "candidate")
    assert near["similarity"] > 0.8
    assert near["content"] == "Payment retries back off exponentially, up to five times."


def test_of_another_origins_candidate_a_proposer_learns_only_that_it_is_near(agent, api, botty, alice):
    first = agent.post(URL, a_body("Payment retries back off exponentially, up to five times.")).json()

    answer = api(botty).post(URL, a_body("Up to five times, retries of a payment back off exponentially.")).json()

    assert [(near["id"], near["content"]) for near in answer["near"]] == [(first["id"], None)]
    shown = api(alice).get(f"{URL}{answer['id']}/").json()
    assert shown["near"][0]["content"].startswith("Payment retries")
    assert api(botty).get(f"{URL}{first['id']}/").status_code == 404


@pytest.mark.parametrize("counted", [False, True])
def test_an_acronym_explained_twice_is_flagged_as_near(agent, counted, workspace):
    filler = "Zebras yodel within xenial quarries, violets underpin tectonic sonnets, and ravens quarrel over peat."
    first = agent.post(URL, a_body(f"CBE is the counterparty balance engine. {filler}", type="terminology")).json()
    if counted:
        from apps.retrieval.tasks import lexemes_count

        lexemes_count(workspace)

    answer = agent.post(URL, a_body("By CBE people here mean cross-border exchange.", type="terminology")).json()

    assert [(near["id"], near["how"]) for near in answer["near"]] == [(first["id"], "term")]


def test_common_acronyms_make_nothing_near(agent):
    agent.post(URL, a_body("The HTTP API listens on port nine thousand."))

    assert agent.post(URL, a_body("Never version an API by its URL.")).json()["near"] == []


def test_what_whoever_joins_asks_for_otherwise_is_shown_to_the_reviewer(agent, api, botty, robo, reviewer, alice):
    memory = remember(of_token(robo.token), reviewer)
    body = a_body("Deploys happen on Tuesdays.")
    agent.post(URL, body)

    api(botty).post(URL, body | {"supersedes": [memory.label], "valid_from": "2025-01-01T00:00:00Z", "tier": "index"})

    candidate = Candidate.objects.get(content="Deploys happen on Tuesdays.")
    assert (candidate.supersedes, candidate.valid_from, candidate.tier) == ([], None, "durable")
    shown = [(flag["field"], flag["shown"]) for flag in candidate.flags if flag["kind"] == "joined-differs"]
    assert shown == [
        ("supersedes", memory.label),
        ("valid_from", "2025-01-01T00:00:00+00:00"),
        ("tier", "index"),
    ]
    assert candidate.version == 2


def test_a_source_keeps_what_it_said_first_and_the_difference_is_flagged(agent):
    known = {"kind": "issue", "reference": "acme/pay#1", "title": "Retries", "url": "https://example.com/1"}
    agent.post(URL, a_body(sources=[known]))

    answer = agent.post(URL, a_body(sources=[known | {"title": "Never retry at all"}])).json()

    assert Source.objects.get().title == "Retries"
    flags = Candidate.objects.get(pk=answer["id"]).flags
    assert [(flag["kind"], flag["of"], flag["shown"]) for flag in flags] == [
        ("source-differs", "acme/pay#1", "Never retry at all")
    ]


@pytest.mark.parametrize("way", ["propose", "join", "revise"])
def test_a_reviewer_sees_what_a_source_said_first_and_what_a_later_proposer_says(
    agent, api, botty, alice, browser, way
):
    known = {"kind": "issue", "reference": "acme/pay#1", "title": "Retries", "url": "https://example.com/1"}
    other = known | {"title": "Never retry at all", "url": "https://example.org/other"}
    first = agent.post(URL, a_body("Retries wait.", sources=[known])).json()["id"]
    if way == "propose":
        seen = agent.post(URL, a_body(sources=[other])).json()["id"]
    elif way == "join":
        seen = api(botty).post(URL, a_body("Retries wait.", sources=[other])).json()["id"]
        assert seen == first
    else:
        seen = agent.post(URL, a_body()).json()["id"]
        assert agent.post(f"{URL}{seen}/revise/", {"version": 1, "sources": [other]}).status_code == 200

    shown = api(alice).get(f"{URL}{seen}/").json()
    page = browser(alice).get(f"/review/{seen}/").content.decode()

    assert ("Retries", "https://example.com/1") in [(source["title"], source["url"]) for source in shown["sources"]]
    assert {flag["shown"] for flag in shown["flags"]} >= {"Never retry at all", "https://example.org/other"}
    for said in ("Retries", "https://example.com/1", "Never retry at all", "https://example.org/other"):
        assert said in page
    assert 'href="https://example.org/other"' not in page


def test_one_source_named_twice_counts_once(agent):
    source = {"kind": "chat", "reference": "#pay/1"}

    answer = agent.post(URL, a_body(sources=[source, source, {"kind": "chat", "reference": " #pay/1 "}]))

    assert answer.status_code == 201
    assert Source.objects.count() == 1


def test_one_with_enough_confidence_lifts_it_out_of_quarantine(agent, api, botty):
    """Otherwise proposing something first, and doubting it, would hide what others propose."""
    doubted = agent.post(URL, a_body("Deploys happen on Tuesdays.", confidence=0.1)).json()
    assert doubted["status"] == "quarantined"
    still = api(botty).post(URL, a_body("Deploys happen on Tuesdays.", confidence=0.2)).json()
    assert still["status"] == "quarantined"

    lifted = api(botty).post(URL, a_body("Deploys happen on Tuesdays.", confidence=0.9)).json()

    assert (lifted["id"], lifted["status"]) == (doubted["id"], "pending")
    candidate = Candidate.objects.get()
    assert candidate.status_reason == "botty proposed the same with enough confidence."
    assert candidate.version == lifted["version"] == 3
    assert candidate.confidence == 0.1


def test_a_candidate_gathers_so_many_sources_and_no_more(agent, monkeypatch):
    monkeypatch.setattr(services, "MAX_EVIDENCE", 3)
    body = a_body()
    agent.post(URL, body)
    for _ in range(2):
        assert "was added" in agent.post(URL, body | {"sources": a_body()["sources"]}).json()["reason"]

    more = agent.post(URL, body | {"sources": a_body()["sources"]})

    assert more.status_code == 200
    assert "with 3 sources; yours was not added" in more.json()["reason"]
    assert more.json()["version"] == 3
    assert Candidate.objects.get().evidence.count() == 3


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Peter is bad at estimating.", "individuals"),
        ("Bob is on vacation until Friday.", "individuals"),
        ("The billing service is owned by Anna.", "individuals"),
        ("The build is currently broken on main.", "transient-state"),
        (
            "Staging is down right now because the certificate expired this morning; we decided to wait.",
            "transient-state",
        ),
    ],
)
def test_what_seems_excluded_is_queued_with_a_flag(agent, content, kind):
    answer = agent.post(URL, a_body(content))

    assert answer.status_code == 201
    (flag,) = [flag for flag in Candidate.objects.get().flags if flag["field"] == "content"]
    assert flag["kind"] == kind
    assert flag["shown"].startswith("It seems to ")


@pytest.mark.parametrize(
    "content",
    [
        "The billing team owns the invoice service.",
        "Anna decided to use Kafka, because the partner drops bursts.",
        "CI must be green before a merge.",
        "Postgres is bad at planning joins over twelve tables.",
    ],
)
def test_what_only_sounds_like_it_has_none(agent, content):
    agent.post(URL, a_body(content))

    assert [flag for flag in Candidate.objects.get().flags if flag["field"] == "content"] == []


def test_an_exclusion_that_is_switched_off_flags_nothing(agent, workspace):
    Exclusion.objects.filter(workspace=workspace, slug="individuals").update(is_active=False)
    agent.post(URL, a_body("Peter is bad at estimating."))

    assert [flag for flag in Candidate.objects.get().flags if flag["field"] == "content"] == []


def test_flags_do_not_pile_up_without_end(agent, monkeypatch):
    monkeypatch.setattr(services, "MAX_FLAGS", 5)
    body = a_body()
    agent.post(URL, body)

    for day in range(10, 20):
        agent.post(URL, body | {"valid_from": f"2025-01-{day}"})

    assert len(Candidate.objects.get().flags) == 5


# --- decided before -----------------------------------------------------------------------------------------
def test_what_was_rejected_is_answered_with_that_verdict(agent, reviewer):
    body = a_body()
    first = agent.post(URL, body).json()
    reject(reviewer, Candidate.objects.get(), "We measured it and it is slower.")

    again = agent.post(URL, body)

    answer = again.json()
    assert again.status_code == 200
    assert answer["status"] == "rejected"
    assert answer["id"] == first["id"]
    assert "alice rejected" in answer["reason"]
    assert "We measured it and it is slower." in answer["reason"]
    assert Candidate.objects.open().count() == 0


def test_a_source_not_seen_before_reopens_it_once_in_thirty_days(agent, robo, reviewer, monkeypatch):
    body = a_body()
    agent.post(URL, body)
    candidate = Candidate.objects.get()
    reject(reviewer, candidate)

    reopened = agent.post(URL, body | {"sources": a_body()["sources"]})

    assert reopened.status_code == 200
    assert reopened.json()["status"] == "pending"
    assert "source not seen before" in reopened.json()["reason"]
    assert fresh(candidate).evidence.count() == 2
    assert AuditEvent.objects.filter(verb="reopen by a new source", token=robo.token).count() == 1

    reject(reviewer, candidate)
    assert agent.post(URL, body | {"sources": a_body()["sources"]}).json()["status"] == "rejected"
    at(monkeypatch, timedelta(days=40))
    final = agent.post(URL, body | {"sources": a_body()["sources"]}).json()
    assert final["status"] == "rejected"  # a second rejection is final


def test_a_reviewer_who_reopens_it_gives_it_another_chance(agent, reviewer, monkeypatch):
    body = a_body()
    agent.post(URL, body)
    candidate = Candidate.objects.get()
    for _ in range(2):
        reject(reviewer, candidate)
        reopen(reviewer, candidate)
    reject(reviewer, candidate)

    assert agent.post(URL, body | {"sources": a_body()["sources"]}).json()["status"] == "pending"


def test_withdrawing_does_not_wash_a_rejection_off(agent, reviewer):
    body = a_body()
    agent.post(URL, body)
    candidate = Candidate.objects.get()
    reject(reviewer, candidate, "No.")
    reopened = agent.post(URL, body | {"sources": a_body()["sources"]}).json()
    assert reopened["status"] == "pending"
    assert agent.post(f"{URL}{reopened['id']}/withdraw/", {"version": reopened["version"]}).status_code == 200

    again = agent.post(URL, body | {"sources": a_body()["sources"]}).json()

    assert (again["id"], again["status"]) == (str(candidate.pk), "rejected")
    assert "alice rejected" in again["reason"]
    assert Candidate.objects.count() == 1


def test_what_was_withdrawn_undecided_may_be_proposed_afresh(agent):
    body = a_body()
    first = agent.post(URL, body).json()
    agent.post(f"{URL}{first['id']}/withdraw/", {"version": 1})

    again = agent.post(URL, body)

    assert again.status_code == 201
    assert again.json()["id"] != first["id"]


def test_what_a_reviewer_reopened_and_its_proposer_withdrew_may_be_proposed_afresh(agent, reviewer):
    body = a_body()
    first = agent.post(URL, body).json()
    reject(reviewer, Candidate.objects.get())
    version = reopen(reviewer, Candidate.objects.get()).version
    assert agent.post(f"{URL}{first['id']}/withdraw/", {"version": version}).status_code == 200

    assert agent.post(URL, body).status_code == 201


def test_what_was_approved_by_mistake_and_withdrawn_may_be_proposed_afresh(agent, reviewer):
    body = a_body()
    first = agent.post(URL, body).json()
    candidate = Candidate.objects.get()
    approve(reviewer, candidate)
    version = reopen(reviewer, candidate).version
    assert agent.post(f"{URL}{first['id']}/withdraw/", {"version": version}).status_code == 200

    again = agent.post(URL, body)

    assert again.status_code == 201
    assert again.json()["id"] != first["id"]


def test_what_is_known_is_answered_with_its_memory(agent, robo, reviewer):
    body = a_body()
    agent.post(URL, body)
    memory = approve(reviewer, Candidate.objects.get()).memory

    again = agent.post(URL, body)

    answer = again.json()
    assert again.status_code == 200
    assert answer["status"] == "approved"
    assert answer["duplicate_of"] == {"what": "memory", "id": str(memory.pk)}
    assert memory.label in answer["reason"]
    assert not Candidate.objects.open().exists()


def test_what_was_replaced_does_not_come_back_by_being_said_again(agent, robo, reviewer):
    body = a_body()
    agent.post(URL, body)
    memory = approve(reviewer, Candidate.objects.get()).memory
    remember(of_token(robo.token), reviewer, supersedes=[memory])

    answer = agent.post(URL, body | {"sources": a_body()["sources"]}).json()

    assert answer["duplicate_of"] == {"what": "memory", "id": str(memory.pk)}
    assert "superseded" in answer["reason"]
    assert Memory.objects.filter(status="active").count() == 1
    assert not Candidate.objects.open().exists()


def test_what_a_reviewer_worded_is_known_in_that_wording(agent, reviewer):
    agent.post(URL, a_body("Deploys happen on Tuesdays."))
    memory = approve(reviewer, Candidate.objects.get(), content="Deploys happen on Tuesdays and Thursdays.").memory

    answer = agent.post(URL, a_body("deploys happen on tuesdays and thursdays")).json()

    assert answer["duplicate_of"] == {"what": "memory", "id": str(memory.pk)}


# --- restricted sources -------------------------------------------------------------------------------------
@pytest.fixture
def board(workspace):
    return Audience.objects.create(workspace=workspace, name="board")


@pytest.fixture
def board_source(workspace, board):
    return Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)


def test_what_came_from_a_restricted_source_is_restricted(agent, api, alice, board, board_source):
    answer = agent.post(URL, a_body(sources=[{"kind": "chat", "reference": "#board/1"}])).json()

    assert Candidate.objects.get().audience_ids == [board.pk]
    assert api(alice).get(URL).json()["results"] == []
    assert api(alice).get(f"{URL}{answer['id']}/").status_code == 404
    board.members.add(alice)
    assert [row["id"] for row in api(alice).get(URL).json()["results"]] == [answer["id"]]


def test_joining_with_a_restricted_source_restricts(agent, board, board_source):
    body = a_body()
    agent.post(URL, body)

    agent.post(URL, body | {"sources": [{"kind": "chat", "reference": "#board/1"}]})

    assert Candidate.objects.get().audience_ids == [board.pk]


def test_whoever_joins_does_not_see_the_restricted_sources(agent, api, botty, board, board_source, robo):
    board.tokens.add(robo.token)
    body = a_body("Deploys happen on Tuesdays.", sources=[{"kind": "chat", "reference": "#board/1", "title": "Secret"}])
    agent.post(URL, body)

    answer = api(botty).post(URL, a_body("Deploys happen on Tuesdays.")).json()

    shown = api(botty).get(f"{URL}{answer['id']}/").json()
    assert [source["kind"] for source in shown["sources"]] == ["merge_request"]
    assert len(agent.get(f"{URL}{answer['id']}/").json()["sources"]) == 2


def test_a_decision_about_what_one_may_not_see_is_not_told(agent, api, botty, alice, board, board_source):
    board.members.add(alice)
    secret = propose(
        of_token(issue(board.workspace, "board robot", "agent").token),
        "We will acquire Initech.",
        sources=(a_source("#board/1", kind="chat"),),
    )
    reject(of_person(alice), secret, "The board voted against acquiring Initech.")

    answer = api(botty).post(URL, a_body("We will acquire Initech."))

    assert answer.status_code == 201
    assert "voted" not in str(answer.json())


def test_a_memory_that_one_may_not_see_is_not_told_either(agent, api, botty, alice, board, board_source):
    board.members.add(alice)
    memory = remember(
        of_token(issue(board.workspace, "board robot", "agent").token),
        of_person(alice),
        "We will acquire Initech.",
        sources=(a_source("#board/1", kind="chat"),),
    )

    answer = api(botty).post(URL, a_body("We will acquire Initech."))

    assert answer.status_code == 201
    assert memory.label not in str(answer.json())
    assert str(memory.pk) not in str(answer.json())


# --- limits -------------------------------------------------------------------------------------------------
def test_an_origin_has_so_many_open_and_no_more(agent, robo, reviewer, monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_PER_ORIGIN", 3)
    for _ in range(3):
        assert agent.post(URL, a_body()).status_code == 201

    refused = agent.post(URL, a_body())

    assert refused.status_code == 429
    assert refused.json()["code"] == "queue_full"
    assert "Retry-After" in refused.headers
    assert Candidate.objects.count() == 3
    reject(reviewer, Candidate.objects.first())
    assert agent.post(URL, a_body()).status_code == 201


def test_the_limit_is_two_hundred_and_each_origin_has_its_own(agent, api, robo, botty):
    assert MAX_OPEN_PER_ORIGIN == 200
    principal = of_token(robo.token)
    candidate = propose(principal)
    fill(candidate, 199)

    assert agent.post(URL, a_body()).status_code == 429
    assert api(botty).post(URL, a_body()).status_code == 201


def fill(candidate: Candidate, count: int) -> None:
    """Open candidates beside one, by the same origin, without the cost of proposing them."""
    from apps.candidates.models import CandidateEvidence, Proposer

    rows = [
        Candidate(
            workspace_id=candidate.workspace_id,
            content=f"Filler {next(_fillers)}.",
            type=candidate.type,
            repo_ids=candidate.repo_ids,
            origin_token=candidate.origin_token,
            origin_name=candidate.origin_name,
            fingerprint=f"filler {next(_fillers)}",
            created_at=clock.now(),
        )
        for _ in range(count)
    ]
    source_id = candidate.evidence.get().source_id
    Candidate.objects.bulk_create(rows)
    CandidateEvidence.objects.bulk_create(
        CandidateEvidence(candidate=row, source_id=source_id, workspace_id=row.workspace_id) for row in rows
    )
    Proposer.objects.bulk_create(
        Proposer(candidate=row, workspace_id=row.workspace_id, token=row.origin_token, name="robo") for row in rows
    )


def test_joining_is_free_when_the_queue_is_full(agent, monkeypatch):
    body = a_body()
    agent.post(URL, body)
    monkeypatch.setattr(services, "MAX_OPEN_PER_ORIGIN", 1)

    assert agent.post(URL, body | {"sources": a_body()["sources"]}).status_code == 200


def test_load_tests_may_lift_the_limit(agent, monkeypatch, settings):
    settings.FIRM_MEMORY_THROTTLE = False
    monkeypatch.setattr(services, "MAX_OPEN_PER_ORIGIN", 1)

    assert [agent.post(URL, a_body()).status_code for _ in range(3)] == [201] * 3


def test_a_token_limited_to_repositories_proposes_for_those_alone(workspace, api):
    pay = Repository.objects.create(workspace=workspace, slug="acme/pay")
    limited = api(issue(workspace, "limited", "agent", repository_ids=[pay.pk]))

    assert limited.post(URL, a_body(scope={"repos": ["acme/pay"]})).status_code == 201
    for scope in (
        {"repos": ["acme/shop"]},
        {"repos": ["acme/pay", "acme/shop"]},
        {"repos": ["acme/pay"], "firm": True},
        {"repos": ["acme/pay"], "domains": ["payments"]},
        {"firm": True},
    ):
        assert limited.post(URL, a_body(scope=scope)).status_code == 403
    assert not Repository.objects.exclude(pk=pay.pk).exists()
    assert not Domain.objects.exists()


def test_a_read_only_token_proposes_nothing(workspace, api):
    reading = api(issue(workspace, "reader", "agent", read_only=True))

    assert reading.post(URL, a_body()).status_code == 403
    assert reading.get(URL).status_code == 200


def test_nobody_proposes_nothing(api):
    assert api().post(URL, a_body()).status_code == 401


# --- repeated requests --------------------------------------------------------------------------------------
def test_the_same_key_gets_the_same_answer_and_another_body_is_refused(agent):
    body = a_body()
    headers = {"Idempotency-Key": "k-1"}

    first = agent.post(URL, body, headers=headers)
    again = agent.post(URL, body, headers=headers)
    other = agent.post(URL, a_body(), headers=headers)

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 422)
    assert first.json() == again.json()
    assert Candidate.objects.get().seen_count == 1
    assert other.json()["code"] == "idempotency_key_reused"


# --- Python callers -----------------------------------------------------------------------------------------
def test_a_person_proposes_like_anybody(bob):
    made = proposed(of_person(bob))

    assert made.created
    assert made.candidate.origin_user == bob
    assert made.candidate.origin_name == "bob"
    assert made.candidate.status == CandidateStatus.PENDING


def at(monkeypatch, later: timedelta) -> None:
    """Have the services see a later time."""
    moment = datetime.now(UTC) + later
    monkeypatch.setattr(services, "now", lambda: moment)


def test_a_statement_of_each_call_is_its_own():
    assert len({a_statement() for _ in range(500)}) == 500
