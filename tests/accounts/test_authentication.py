from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import ApiToken, Audience, Membership, Role, TokenKind
from apps.accounts.principal import operator
from apps.accounts.selectors import principal_for_user
from apps.accounts.services import member_add, token_revoke
from apps.core.clock import now
from apps.core.errors import Forbidden
from tests.conftest import issue

pytestmark = pytest.mark.urls("tests.probe_urls")
ME = "/api/v1/me/"


def test_an_agent_is_nobody_whoever_owns_it(api, workspace, alice) -> None:
    owned = issue(workspace, "owned", TokenKind.AGENT, owner=alice)
    me = api(owned).get(ME).json()
    assert (me["kind"], me["role"], me["name"]) == ("agent", None, "owned")
    assert me["principal"] == f"token:{owned.token.pk}"


def test_a_reviewer_token_acts_with_its_owners_role_of_now(api, workspace, alice, alice_token) -> None:
    me = api(alice_token).get(ME).json()
    assert (me["kind"], me["role"], me["name"]) == ("reviewer", "reviewer", "alice")
    member_add(principal=operator(workspace), username="alice", role=Role.MEMBER)
    assert api(alice_token).get(ME).json()["role"] == "member"


def test_a_session_is_a_person(browser, alice) -> None:
    me = browser(alice).get(ME).json()
    assert (me["kind"], me["role"], me["name"]) == ("person", "reviewer", "alice")
    assert me["principal"] == f"user:{alice.pk}"


def test_me_tells_the_limits(api, workspace, other_workspace, settings) -> None:
    from apps.scopes.models import Repository

    mine = Repository.objects.create(workspace=workspace, slug="acme/pay")
    limited = issue(
        workspace,
        "limited",
        TokenKind.BOT,
        read_only=True,
        confidence_ceiling=0.5,
        repository_ids=[mine.pk],
        expires_at=now() + timedelta(days=1),
    )
    settings.FIRM_MEMORY_RATES = {**settings.FIRM_MEMORY_RATES, "write": 7}
    me = api(limited).get(ME).json()
    assert me["read_only"] is True
    assert me["confidence_ceiling"] == 0.5
    assert me["repositories"] == ["acme/pay"]
    assert me["expires_at"]
    assert me["limits"]["writes_per_minute"] == 7


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer ",
        "Bearer nonsense",
        "Bearer fm_agent_nonsense",
        "Bearer fm_agent_" + "a" * 10_000,
        "Bearer fm_agent_\x00",
        "Bearer fm_agent_é",
        "Basic YWxpY2U6cGFzcw==",
        "fm_agent_x",
        "",
        "Token x",
    ],
)
def test_anything_else_is_401_with_a_challenge(api, robo, header: str) -> None:
    answer = api().get(ME, headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
def test_nobody_is_401_before_anything_else(api, db, method: str) -> None:
    assert getattr(api(), method)(ME).status_code == 401


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer  "])
def test_the_scheme_is_case_insensitive(api, robo, scheme: str) -> None:
    answer = api().get(ME, headers={"Authorization": f"{scheme} {robo.secret}"})
    assert answer.status_code == 200


def test_a_bad_token_is_not_rescued_by_a_session(browser, alice) -> None:
    answer = browser(alice).get(ME, headers={"Authorization": "Bearer fm_agent_x"})
    assert answer.status_code == 401


def test_revoked_and_expired(api, workspace, robo, botty) -> None:
    token_revoke(principal=operator(workspace), token=robo.token)
    answer = api(robo).get(ME)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_revoked")
    ApiToken.objects.filter(pk=botty.token.pk).update(expires_at=now())
    answer = api(botty).get(ME)
    assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")


@pytest.mark.parametrize("kind", list(TokenKind))
def test_a_token_ends_with_its_owner(api, workspace, alice, kind: TokenKind) -> None:
    token = issue(workspace, "x", kind, owner=alice)
    assert api(token).get(ME).status_code == 200
    alice.is_active = False
    alice.save()
    assert api(token).get(ME).json()["code"] == "token_owner_gone"
    alice.is_active = True
    alice.save()
    Membership.objects.filter(user=alice).delete()
    assert api(token).get(ME).json()["code"] == "token_owner_gone"


def test_being_a_member_elsewhere_does_not_keep_a_token_alive(api, workspace, other_workspace, alice) -> None:
    token = issue(workspace, "x", TokenKind.REVIEWER, owner=alice)
    member_add(principal=operator(other_workspace), username="alice", role=Role.ADMIN)
    Membership.objects.filter(user=alice, workspace=workspace).delete()
    assert api(token).get(ME).status_code == 401


def test_the_digest_is_no_token(api, robo) -> None:
    answer = api().get(ME, headers={"Authorization": f"Bearer {robo.token.digest}"})
    assert answer.status_code == 401


def audience(workspace, name: str, *, members=(), tokens=()) -> Audience:
    made = Audience.objects.create(workspace=workspace, name=name)
    made.members.set(members)
    made.tokens.set(tokens)
    return made


def test_audiences_come_from_ones_own_lists(principal, workspace, other_workspace, alice, alice_token) -> None:
    owned = issue(workspace, "owned", TokenKind.AGENT, owner=alice)
    people = audience(workspace, "people", members=[alice])
    machines = audience(workspace, "machines", tokens=[owned.token])
    mine = audience(workspace, "mine", tokens=[alice_token.token])
    audience(workspace, "nobody")
    audience(other_workspace, "elsewhere", members=[alice], tokens=[owned.token, alice_token.token])
    assert principal(alice, workspace=workspace).audience_ids == {people.pk}
    assert principal(owned).audience_ids == {machines.pk}
    assert principal(alice_token).audience_ids == {people.pk, mine.pk}


def test_me_names_the_audiences(api, workspace, robo) -> None:
    audience(workspace, "on-call", tokens=[robo.token])
    assert api(robo).get(ME).json()["audiences"] == ["on-call"]


def test_last_use_is_written_once_a_minute(api, robo) -> None:
    client = api(robo)
    client.get(ME)
    first = ApiToken.objects.get(pk=robo.token.pk).last_used_at
    assert first is not None
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(ME)
    assert not [query for query in queries if query["sql"].startswith("UPDATE")]
    assert ApiToken.objects.get(pk=robo.token.pk).last_used_at == first
    ApiToken.objects.filter(pk=robo.token.pk).update(last_used_at=first - timedelta(seconds=61))
    client.get(ME)
    assert ApiToken.objects.get(pk=robo.token.pk).last_used_at >= first


def test_a_token_costs_one_query_and_its_throttle_another(api, robo, alice_token, django_assert_num_queries) -> None:
    for token in (robo, alice_token):
        client = api(token)
        client.get(ME)
        with django_assert_num_queries(2):
            client.get(ME)


def test_a_session_costs_four(browser, alice, django_assert_num_queries) -> None:
    client = browser(alice)
    client.get(ME)
    with django_assert_num_queries(4):  # session, person, membership with audiences, throttle
        client.get(ME)


def test_a_session_writes_only_with_its_csrf_token(browser, alice) -> None:
    client = browser(alice, enforce_csrf_checks=True)
    body = {"data": "{}", "content_type": "application/json"}
    refused = client.post("/api/v1/probe/effect/", **body)
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf_failed")
    assert refused.headers["Content-Type"] == "application/problem+json"
    client.get("/accounts/password/change/")
    token = client.cookies["csrftoken"].value
    assert client.post("/api/v1/probe/effect/", headers={"X-CSRFToken": token}, **body).status_code == 201


def test_a_token_needs_no_csrf_token(api, robo) -> None:
    client = api(robo, enforce_csrf_checks=True)
    assert client.post("/api/v1/probe/effect/", {}).status_code == 201


def test_a_person_without_a_workspace(browser, alice) -> None:
    Membership.objects.filter(user=alice).delete()
    answer = browser(alice).get(ME)
    assert (answer.status_code, answer.json()["code"]) == (403, "not_a_member")
    page = browser(alice).get("/probe/reviewers/")
    assert page.status_code == 403
    assert page.context["problem"]["code"] == "not_a_member"


def test_a_person_is_nobody_in_another_workspace(alice, other_workspace) -> None:
    with pytest.raises(Forbidden):
        principal_for_user(alice, other_workspace, "ui")


def test_a_deactivated_person_is_signed_out(browser, alice) -> None:
    client = browser(alice)
    alice.is_active = False
    alice.save()
    assert client.get(ME).status_code == 401
    assert client.get("/probe/reviewers/").status_code == 302


def test_roles_on_rest(api, workspace, alice, bob, carol, robo, botty) -> None:
    path = "/api/v1/probe/reviewers/"
    assert [api(who).get(path).status_code for who in (alice, carol)] == [200, 200]
    for who in (bob, robo, botty):
        answer = api(who).get(path)
        assert answer.status_code == 403
        assert "reviewer role" in answer.json()["detail"]
    assert api().get(path).status_code == 401


def test_a_read_only_token_may_look_and_not_change(api, workspace, alice) -> None:
    reading = issue(workspace, "reading", TokenKind.REVIEWER, owner=alice, read_only=True)
    assert api(reading).get("/api/v1/probe/reviewers/").status_code == 200
    for path in ("/api/v1/probe/reviewers/", "/api/v1/probe/effect/"):
        answer = api(reading).post(path, {})
        assert answer.status_code == 403
        assert "read-only" in answer.json()["detail"]


def test_superuser_and_staff_open_nothing(api, browser, bob) -> None:
    bob.is_superuser = bob.is_staff = True
    bob.save()
    assert browser(bob).get("/api/v1/probe/reviewers/").status_code == 403
    assert browser(bob).get("/probe/reviewers/").status_code == 403
