"""What a token opens, for how long, and what happens to one that somebody copied."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from allauth.idp.oidc.models import Token
from django.test import Client

from apps.accounts.models import ApiToken, Audience, AuditEvent, Membership, Role
from apps.accounts.selectors import principal_for_token
from apps.accounts.services import member_remove, token_revoke
from apps.candidates.models import Candidate
from apps.core.clock import now
from apps.core.errors import NotAuthenticated
from apps.oauth.models import Connection
from apps.oauth.tasks import sweep
from apps.sources.models import Source
from tests import ledger
from tests.agents.calling import Agent
from tests.conftest import ApiClient, issue
from tests.ledger import a_body, a_source, of_person
from tests.oauth.conftest import BASE, Program, query_of
from tests.pages import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("pool")]

REST = f"{BASE}/api/v1"


def rest(secret: str) -> ApiClient:
    return ApiClient(headers={"Authorization": f"Bearer {secret}"})


def opens(secret: str) -> bool:
    status = Agent(secret).ask("tools/list").status_code
    assert status in (200, 401)
    return status == 200


def for_rest(client: Program, **answers: str) -> str:
    code = client.code(client.address(resource=REST), **answers)
    return client.exchange(code, resource=REST).json()["access_token"]


# --- codes ---------------------------------------------------------------------------------------------------
def test_a_code_works_once_and_its_copy_ends_everything(program, alice):
    client = program(alice)
    code = client.code()
    given = client.exchange(code).json()
    assert opens(given["access_token"])

    again = client.exchange(code)

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert not opens(given["access_token"])
    assert client.refresh(given["refresh_token"]).json()["error"] == "invalid_grant"
    ended = AuditEvent.objects.get(verb="revoke")
    assert "came twice" in ended.after["why"]
    assert ended.actor.startswith("Claude Code · alice")
    assert not Token.objects.filter(type__in=["at", "rt"]).exists()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_verifier": None}, "invalid_request"),
        ({"code_verifier": "another-verifier-of-at-least-forty-three-characters"}, "invalid_grant"),
        ({"code_verifier": "short"}, "invalid_grant"),
        ({"redirect_uri": "http://localhost:3119/callback"}, "invalid_request"),
        ({"redirect_uri": None}, "invalid_request"),
        ({"resource": "https://evil.example/mcp"}, "invalid_target"),
        ({"resource": REST}, "invalid_target"),
        ({"resource": BASE}, "invalid_target"),
        ({"code": "guessed"}, "invalid_grant"),
        ({"code": ""}, "invalid_grant"),
        ({"code": "a\x00b"}, "invalid_request"),
        ({"code_verifier": "é" * 43}, "invalid_request"),
        ({"client_id": "unknown"}, "invalid_client"),
        ({"client_id": ""}, "invalid_client"),
        ({"client_secret": "guessed"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"grant_type": "urn:ietf:params:oauth:grant-type:device_code"}, "unsupported_grant_type"),
        ({"grant_type": None}, "unsupported_grant_type"),
        ({"grant_type": ["authorization_code", "refresh_token"]}, "invalid_request"),
    ],
)
def test_a_code_is_worth_nothing_with_anything_else_wrong(program, alice, changes, error):
    client = program(alice)
    code = client.code()

    answer = client.exchange(**{"code": code, **changes})

    assert answer.json()["error"] == error
    assert answer.status_code in (400, 401)
    assert answer["Cache-Control"] == "no-store"
    assert code not in answer.content.decode()
    assert not Token.objects.filter(type__in=["at", "rt"]).exists()


def test_a_code_is_of_one_client_alone(program, alice, bob):
    theirs, other = program(alice), program(bob, name="Another")
    code = theirs.code()

    assert other.exchange(code).json()["error"] == "invalid_grant"
    assert theirs.exchange(code).status_code == 200


def test_a_code_is_gone_after_a_minute(program, alice):
    client = program(alice)
    code = client.code()
    Token.objects.update(expires_at=now() - timedelta(seconds=1))

    assert client.exchange(code).json()["error"] == "invalid_grant"


def test_parameters_in_the_address_are_refused(program, alice):
    client = program(alice)
    code = client.code()

    answer = Client().post(f"/oauth/token?grant_type=authorization_code&client_id={client.client_id}&code={code}")

    assert answer.json()["error"] == "invalid_request"
    assert Client().get("/oauth/token").status_code == 405


@pytest.mark.parametrize(
    "header", ["Basic !", "Basic AA==", "Basic ADo=", "Basic Og==", "Bearer x", "Basic " + "A" * 3_000], ids=range(6)
)
def test_credentials_of_a_client_are_refused_since_none_has_any(program, alice, header):
    client = program(alice)
    body = {"grant_type": "authorization_code", "code": client.code(), "client_id": client.client_id}

    for address in ("/oauth/token", "/oauth/revoke"):
        answer = Client().post(address, body | {"token": "x"}, headers={"Authorization": header})
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("grant", ["authorization_code", "refresh_token"])
def test_whatever_comes_is_answered_as_oauth_has_it(program, alice, settings, grant):
    settings.FIRM_MEMORY_THROTTLE = False
    client = program(alice)
    hostile = ["", " ", "é" * 50, "a\x00b", "\ud83d", "%00", "x" * 20_000, "' OR 1=1 --", "[]", "\u202e", "a\r\nb"]

    for name in ("code", "refresh_token", "code_verifier", "client_id", "redirect_uri", "resource", "scope", "unknown"):
        for value in hostile:
            sent = value.encode("utf-8", "surrogatepass")
            fields = {"code": "x", "refresh_token": "x", "code_verifier": "y" * 43, "redirect_uri": client.redirect}
            answer = client.ask(**{"grant_type": grant, **fields, name: sent})
            assert answer.status_code in (400, 401), (name, value)
            assert set(answer.json()) <= {"error", "error_description"}, (name, value)


def test_a_code_of_a_connection_that_ended_is_worth_nothing(program, alice):
    client = program(alice)
    code = client.code()
    ApiToken.objects.update(revoked_at=now())

    assert client.exchange(code).json()["error"] == "invalid_grant"


# --- refreshing ----------------------------------------------------------------------------------------------
def test_a_refresh_token_works_once_and_its_copy_ends_everything(tokens, alice):
    held = tokens(alice)
    client = held["program"]
    second = client.refresh(held["refresh_token"]).json()
    third = client.refresh(second["refresh_token"]).json()
    assert opens(third["access_token"])

    stolen = client.refresh(held["refresh_token"])

    assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
    assert not opens(third["access_token"])
    assert client.refresh(third["refresh_token"]).json()["error"] == "invalid_grant"
    assert "came twice" in AuditEvent.objects.get(verb="revoke").after["why"]


def test_of_two_that_refresh_at_once_the_second_is_a_copy(tokens, alice, monkeypatch):
    """Both found the token living; the first has spent it by the time that the second holds the row."""
    from apps.oauth import issuing

    held = tokens(alice)
    client, looked_up = held["program"], issuing._lookup
    raced = []

    def slow(kind, secret):
        found = looked_up(kind, secret)
        if not raced:
            raced.append(True)
            raced.append(client.refresh(secret).json())
        return found

    monkeypatch.setattr(issuing, "_lookup", slow)

    late = client.refresh(held["refresh_token"])

    assert late.json()["error"] == "invalid_grant"
    assert not opens(raced[1]["access_token"])


def test_scopes_become_fewer_at_a_refresh_and_never_more(tokens, alice):
    held = tokens(alice)
    client = held["program"]

    fewer = client.refresh(held["refresh_token"], scope="memory:read").json()
    more = client.refresh(fewer["refresh_token"], scope="memory:read memory:propose")

    assert fewer["scope"] == "memory:read"
    refused = Agent(fewer["access_token"]).call("memory_propose", **PROPOSAL)
    assert refused.is_error and "read-only" in refused.text
    assert more.json()["error"] == "invalid_scope"
    assert not Candidate.objects.exists()


def test_a_consent_to_reading_never_becomes_more(tokens, alice):
    held = tokens(alice, access="read")

    more = held["program"].refresh(held["refresh_token"], scope="memory:read memory:propose")

    assert held["scope"] == "memory:read"
    assert more.json()["error"] == "invalid_scope"


@pytest.mark.parametrize("resource", [REST, BASE, "https://evil.example/mcp"])
def test_a_refresh_leads_to_no_other_resource(tokens, alice, resource):
    held = tokens(alice)

    answer = held["program"].refresh(held["refresh_token"], resource=resource)

    assert answer.json()["error"] == "invalid_target"


def test_a_refresh_token_is_of_one_client_alone(tokens, program, bob, alice):
    held, other = tokens(alice), program(bob, name="Another")

    assert other.refresh(held["refresh_token"]).json()["error"] == "invalid_grant"
    assert held["program"].refresh(held["refresh_token"]).status_code == 200


def test_a_refresh_token_runs_out_when_it_is_not_used(tokens, alice):
    held = tokens(alice)
    (refresh,) = Token.objects.filter(type="rt")
    assert timedelta(days=29) < refresh.expires_at - now() <= timedelta(days=30)
    Token.objects.update(expires_at=now() - timedelta(seconds=1))

    assert held["program"].refresh(held["refresh_token"]).json()["error"] == "invalid_grant"
    assert not opens(held["access_token"])
    assert sweep() >= 2
    assert not Token.objects.exists()
    assert ApiToken.objects.get(owner=alice).revoked_at is not None
    assert "ran out" in AuditEvent.objects.get(verb="revoke").after["why"]


def test_clearing_away_leaves_what_is_living(tokens, program, alice, bob):
    held, waiting = tokens(alice), program(bob)
    code = waiting.code()

    assert sweep() == 0
    assert opens(held["access_token"])
    assert waiting.exchange(code).status_code == 200


# --- what opens ----------------------------------------------------------------------------------------------
PROPOSAL = {
    "content": "Deploys happen on Mondays, because nobody is around on Fridays.",
    "type": "tooling_setup",
    "firm": True,
    "sources": [{"kind": "chat", "reference": "#deploys/1"}],
}


def test_a_token_opens_the_door_that_it_was_made_for(program, alice, settings):
    client = program(alice)
    mcp = client.exchange(client.code()).json()["access_token"]
    rest_only = for_rest(client)
    both = client.exchange(client.code(client.address(resource=BASE)), resource=None).json()["access_token"]

    assert [opens(each) for each in (mcp, rest_only, both)] == [True, False, True]
    assert [rest(each).get("/api/v1/me/").status_code for each in (mcp, rest_only, both)] == [401, 200, 200]
    assert rest(mcp).get("/api/v1/me/").json()["code"] == "token_of_another_resource"

    settings.FIRM_MEMORY_BASE_URL = "https://elsewhere.example"
    assert not opens(mcp) and not opens(both)


def test_nothing_else_is_a_bearer(tokens, program, alice, bob):
    held, waiting = tokens(alice), program(bob)
    token = ApiToken.objects.get(owner=alice)
    code = waiting.code()

    for secret in (held["refresh_token"], code, token.digest, token.prefix, "OAuth", "x" * 5_000, "é" * 40):
        with pytest.raises(NotAuthenticated):
            principal_for_token(secret, "mcp")
    assert ApiClient().post(f"/mcp?access_token={held['access_token']}", {}).status_code == 401


def test_nothing_that_opens_is_kept_as_it_is(tokens, alice):
    held = tokens(alice)

    kept = (
        str(list(Token.objects.values()))
        + str(list(Connection.objects.values()))
        + str(list(ApiToken.objects.values()))
    )

    for secret in ("access_token", "refresh_token"):
        assert held[secret] not in kept


@pytest.mark.parametrize("how", ["deactivated", "removed", "revoked by an admin", "disconnected", "given back"])
def test_it_is_over_at_once(tokens, alice, dave, how):
    held = tokens(alice)
    client, token = held["program"], ApiToken.objects.get(owner=alice)
    assert opens(held["access_token"])

    if how == "deactivated":
        alice.is_active = False
        alice.save()
    elif how == "removed":
        member_remove(principal=of_person(dave), user=alice)
    elif how == "revoked by an admin":
        token_revoke(principal=of_person(dave), token=token)
    elif how == "disconnected":
        client.person.post(f"/accounts/agents/{token.connection.pk}/disconnect/")
    else:
        assert client.give_back(held["refresh_token"]).status_code == 200

    assert not opens(held["access_token"])
    assert client.refresh(held["refresh_token"]).json()["error"] == "invalid_grant"


def test_giving_back_an_access_token_ends_that_one_alone(tokens, alice, program, bob):
    held, other = tokens(alice), program(bob, name="Another")

    assert other.give_back(held["access_token"]).status_code == 200
    assert opens(held["access_token"])
    assert held["program"].give_back(held["access_token"]).status_code == 200
    assert not opens(held["access_token"])
    assert held["program"].refresh(held["refresh_token"]).status_code == 200
    assert held["program"].give_back("unknown").status_code == 200
    for nothing in ("", "a\x00b"):
        assert held["program"].give_back(nothing).status_code == 400


# --- who it is -----------------------------------------------------------------------------------------------
def test_it_is_an_agent_of_the_person(tokens, alice):
    held = tokens(alice)

    who = principal_for_token(held["access_token"], "mcp")

    assert (who.kind, who.user, who.role, who.can_review) == ("agent", None, None, False)
    assert who.token.owner == alice
    assert (who.read_only, who.repository_limit, who.audience_ids) == (False, (), frozenset())


def test_it_decides_nothing_at_any_door(program, remember, dave):
    """An admin's consent makes an agent like any other."""
    client = program(dave)
    held = client.exchange(client.code()).json()
    secret, mcp = for_rest(client), held["access_token"]
    memory = remember("Retries back off exponentially.")
    candidate = rest(secret).post("/api/v1/candidates/", a_body("Deploys happen on Mondays.")).json()["id"]

    for path, body in (
        (f"candidates/{candidate}/approve/", {"version": 1}),
        (f"candidates/{candidate}/reject/", {"version": 1, "reason": "r"}),
        (f"candidates/{candidate}/reopen/", {"version": 1, "reason": "r"}),
        ("candidates/bulk/", {"action": "approve", "items": [{"id": candidate, "version": 1}]}),
        (f"memories/{memory.pk}/retire/", {"reason": "r"}),
        (f"memories/{memory.pk}/restore/", {"reason": "r"}),
    ):
        assert rest(secret).post(f"/api/v1/{path}", body).status_code == 403, path
    for tool in ("memory_approve", "candidate_approve", "memory_retire"):
        assert Agent(mcp).call(tool, id=candidate, version=1).is_error
    for page in ("/admin/", "/review/", f"/review/{candidate}/", "/oauth/authorize", "/accounts/agents/"):
        answer = rest(secret).get(page)
        assert answer.status_code in (302, 404), page
    assert Candidate.objects.get(pk=candidate).status == "pending"


def test_who_allowed_it_is_not_the_second_person(tokens, api, alice, carol):
    held = tokens(alice)
    assert not Agent(held["access_token"]).call("memory_propose", **PROPOSAL).is_error
    (candidate,) = Candidate.objects.all()

    own = api(alice).post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": 1})
    other = api(carol).post(f"/api/v1/candidates/{candidate.pk}/approve/", {"version": 1})

    assert own.status_code == 403
    assert other.status_code == 200


def test_it_reads_and_proposes_only_where_the_person_said(tokens, alice, remember):
    remember("Payments retry by backing off.", scope=ledger.ScopeInput(repos=("acme/pay",)))
    remember("Pages are made without scripts.", scope=ledger.ScopeInput(repos=("acme/web",)))
    held = tokens(alice, reach="some", repositories="acme/pay")
    agent = Agent(held["access_token"])

    found = agent.call("memory_search", query="payments and pages")
    elsewhere = agent.call("memory_propose", **(PROPOSAL | {"firm": False, "repos": ["acme/web"]}))

    assert "acme/web" not in str(found.results)
    assert elsewhere.is_error


def test_reading_is_all_that_the_person_allowed(tokens, alice):
    held = tokens(alice, access="read")
    agent = Agent(held["access_token"])

    assert not agent.call("memory_search", query="deploys").is_error
    for tool, given in (
        ("memory_propose", PROPOSAL),
        ("memory_ingest", {"content": "We decided it.", "kind": "chat", "sources": PROPOSAL["sources"]}),
    ):
        assert agent.call(tool, **given).is_error
    assert not Candidate.objects.exists()


def test_what_is_restricted_stays_with_the_person(tokens, alice, workspace, remember, api):
    board = Audience.objects.create(workspace=workspace, name="board")
    board.members.add(alice)
    Source.objects.create(workspace=workspace, kind="chat", reference="#board/1", audience=board)
    candidate = ledger.propose(of_person(alice), "Salaries rise in May.", sources=(a_source("#board/1", kind="chat"),))
    held = tokens(alice)

    assert api(alice).get(f"/api/v1/candidates/{candidate.pk}/").status_code == 200
    assert rest(for_rest(held["program"])).get(f"/api/v1/candidates/{candidate.pk}/").status_code in (403, 404)


def test_it_is_of_the_workspace_that_was_chosen(tokens, program, alice, other_workspace, remember, charlie):
    memory = remember("Retries back off exponentially, because fixed waits overran the gateway.")
    Membership.objects.create(workspace=other_workspace, user=alice, role=Role.ADMIN)
    here, there = tokens(alice, workspace="firm"), tokens(alice, workspace="other")

    assert principal_for_token(there["access_token"], "mcp").workspace == other_workspace
    assert Agent(here["access_token"]).call("memory_search", query="retries back off").results
    assert not Agent(there["access_token"]).call("memory_search", query="retries back off").results
    assert Agent(there["access_token"]).call("memory_get", id=str(memory.pk)).is_error
    assert program(charlie).decide(workspace="firm").status_code == 422


def test_what_it_proposes_counts_for_one_origin(tokens, alice, monkeypatch):
    held = tokens(alice)
    Agent(held["access_token"]).call("memory_propose", **PROPOSAL)
    newer = held["program"].refresh(held["refresh_token"]).json()
    Agent(newer["access_token"]).call("memory_propose", **(PROPOSAL | {"content": "Backups are tested each month."}))

    origins = {candidate.origin_token_id for candidate in Candidate.objects.all()}

    assert origins == {ApiToken.objects.get(owner=alice).pk}


def test_tokens_of_ours_work_as_before(robo, api):
    assert opens(robo.secret)
    assert api(robo).get("/api/v1/me/").status_code == 200


# --- what is left behind ---------------------------------------------------------------------------------------
def test_no_secret_is_logged_or_audited(program, alice, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("oauthlib", "allauth", "django", "firm_memory"):
        logging.getLogger(name).setLevel(logging.getLogger(name).level or logging.DEBUG)
    client = program(alice)
    code = query_of(client.decide()["Location"])["code"]
    client.exchange(code, code_verifier="another-verifier-of-at-least-forty-three-characters")
    held = client.exchange(code).json()
    opens(held["access_token"])
    newer = client.refresh(held["refresh_token"]).json()
    client.refresh(held["refresh_token"])
    opens(newer["access_token"])

    left = caplog.text + str(list(AuditEvent.objects.values()))

    for secret in (code, held["access_token"], held["refresh_token"], newer["access_token"], newer["refresh_token"]):
        assert secret not in left
    assert "another-verifier" not in left and "a-verifier-of" not in left


# --- the page of what is connected ------------------------------------------------------------------------------
def test_a_person_sees_and_ends_their_own(tokens, alice, bob, browser):
    held = tokens(alice)
    connection = Connection.objects.get()
    address = f"/accounts/agents/{connection.pk}/disconnect/"

    assert "Claude Code" in browser(alice).get("/accounts/agents/").content.decode()
    assert "Claude Code" not in browser(bob).get("/accounts/agents/").content.decode()
    assert browser(bob).post(address).status_code == 404
    assert browser(alice, enforce_csrf_checks=True).post(address).status_code == 403
    assert browser(alice).get(address).status_code == 405
    assert browser().post(address).status_code == 302
    assert opens(held["access_token"])

    assert browser(alice).post(address).status_code == 302
    assert browser(alice).post(address).status_code == 404
    assert "Nothing is connected" in browser(alice).get("/accounts/agents/").content.decode()
    assert AuditEvent.objects.filter(verb="revoke", user=alice).exists()
    trail = words(browser(alice).get("/audit/?kind=token"))
    assert "connected" in trail and "revoked" in trail and "Claude Code · alice" in trail


def test_an_admin_sees_and_revokes_it_among_the_tokens(tokens, alice, dave, browser):
    held = tokens(alice)
    token = ApiToken.objects.get(owner=alice)
    admin = browser(dave)

    assert "Claude Code" in admin.get("/admin/accounts/apitoken/").content.decode()
    admin.post("/admin/accounts/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})

    assert not opens(held["access_token"])


def test_an_ended_connection_leaves_its_rows(tokens, alice):
    from django.db import DatabaseError, transaction

    tokens(alice)
    with pytest.raises(DatabaseError), transaction.atomic():
        Connection.objects.update(grant_id="another")
    with pytest.raises(DatabaseError), transaction.atomic():
        Connection.objects.all().delete()


def test_its_token_becomes_nothing_else(tokens, alice, bob):
    from django.db import DatabaseError, transaction

    tokens(alice)
    for change in ({"kind": "reviewer"}, {"owner": bob}, {"digest": "0" * 64}):
        with pytest.raises(DatabaseError), transaction.atomic():
            ApiToken.objects.update(**change)


def test_a_connection_and_its_token_are_of_one_workspace(tokens, alice, other_workspace, workspace):
    from django.db import DatabaseError, transaction

    tokens(alice)
    known = Connection.objects.get()
    token = issue(workspace, "another", "agent").token
    with pytest.raises(DatabaseError), transaction.atomic():
        Connection.objects.create(
            workspace=other_workspace, token=token, client=known.client, grant_id="g", came_from="x:"
        )
