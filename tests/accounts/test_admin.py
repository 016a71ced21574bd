from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from apps.accounts.admin_site import WorkspaceModelAdmin
from apps.accounts.models import ApiToken, Audience, AuditEvent, Membership, Role, TokenKind, Workspace
from apps.accounts.principal import operator
from apps.accounts.services import member_add, token_digest
from tests.conftest import issue

INDEX = "/admin/"
ADMINS_ONLY = ["workspace", "membership", "apitoken", "audience", "auditevent"]


def url(model: str, page: str = "changelist", *args: object) -> str:
    return reverse(f"admin:accounts_{model}_{page}", args=args)


# --- who comes in -------------------------------------------------------------------------------------------
def test_curators_and_admins_come_in(browser, carol, dave) -> None:
    assert browser(carol).get(INDEX).status_code == 200
    assert browser(dave).get(INDEX).status_code == 200


def test_nobody_is_sent_to_the_one_sign_in_page(browser, db) -> None:
    answer = browser().get(url("apitoken"), follow=True)
    assert answer.redirect_chain[-1][0].startswith("/accounts/login/?next=")
    assert browser().post("/admin/login/", {"username": "x", "password": "y"}).status_code == 302


@pytest.mark.parametrize("who", ["bob", "alice"])
def test_members_and_reviewers_do_not_even_as_superusers(request, browser, who: str) -> None:
    user = request.getfixturevalue(who)
    user.is_superuser = user.is_staff = True
    user.save()
    for path in (INDEX, url("apitoken"), url("workspace"), url("membership", "add"), "/admin/jsi18n/"):
        answer = browser(user).get(path, follow=True)
        assert answer.status_code == 403, path
        assert answer.context["problem"]["code"] == "forbidden"


def test_a_superuser_without_a_membership_does_not(browser, db) -> None:
    root = User.objects.create_superuser("root", password="x")
    assert browser(root).get(INDEX, follow=True).status_code == 403


def test_a_curator_does_not_see_what_admins_manage(browser, carol) -> None:
    client = browser(carol)
    page = client.get(INDEX).content.decode()
    for model in ADMINS_ONLY:
        assert url(model) not in page
        assert client.get(url(model)).status_code == 403


def test_it_is_dressed_like_every_other_page(browser, carol) -> None:
    for path in (INDEX, "/admin/taxonomy/memorytype/"):
        page = browser(carol).get(path).content.decode()
        sheets = re.findall(r'<link rel="stylesheet" href="/static/([^"]+)"', page)
        assert "css/tokens.css" in sheets and sheets[-1] == "css/admin.css"
        # Light and dark as the system has it: nothing to be switched, and no style or script in the page itself.
        assert "theme" not in page
        assert not re.search(r"<style|<script(?![^>]* src=)(?![^>]*application/json)| style=", page)


def test_no_token_opens_the_admin(api, workspace, dave) -> None:
    token = issue(workspace, "t", TokenKind.REVIEWER, owner=dave)
    assert api(token).get(INDEX).status_code == 302


def test_only_pages_that_know_workspaces_are_registered() -> None:
    assert admin.site._registry
    for model, page in admin.site._registry.items():
        assert isinstance(page, WorkspaceModelAdmin), model
    assert User not in admin.site._registry


def test_signing_out_needs_a_post(browser, dave) -> None:
    client = browser(dave)
    client.get("/admin/logout/")
    assert client.get(INDEX).status_code == 200
    client.post("/admin/logout/")
    assert client.get(INDEX).status_code == 302


# --- only this workspace ------------------------------------------------------------------------------------
def test_lists_and_objects_of_another_workspace_are_not_there(browser, dave, charlie, other_workspace) -> None:
    theirs = issue(other_workspace, "their-token", TokenKind.AGENT).token
    audience = Audience.objects.create(workspace=other_workspace, name="their-audience")
    membership = Membership.objects.get(user=charlie)
    event = AuditEvent.objects.filter(workspace=other_workspace).first()
    client = browser(dave)
    for model, row, text in [
        ("apitoken", theirs, "their-token"),
        ("audience", audience, "their-audience"),
        ("membership", membership, "charlie"),
        ("workspace", other_workspace, ">other<"),
        ("auditevent", event, None),
    ]:
        listed = client.get(url(model)).content.decode()
        if text:
            assert text not in listed
        for page in ("change", "history", "delete"):
            answer = client.get(url(model, page, row.pk), follow=True)
            assert answer.status_code in (403, 404) or answer.redirect_chain, (model, page)
            assert text is None or text not in answer.content.decode()
        client.post(url(model, "change", row.pk), {"name": "taken", "second_person": "", "role": "member"})
    audience.refresh_from_db()
    other_workspace.refresh_from_db()
    membership.refresh_from_db()
    assert (audience.name, other_workspace.second_person, membership.role) == ("their-audience", True, "reviewer")


def test_choices_are_of_this_workspace(browser, dave, alice, charlie, robo, other_workspace) -> None:
    theirs = issue(other_workspace, "their-token", TokenKind.AGENT).token
    client = browser(dave)
    form = client.get(url("audience", "add")).content.decode()
    assert "alice" in form and "robo" in form
    assert "charlie" not in form and "their-token" not in form
    answer = client.post(url("audience", "add"), {"name": "x", "members": [charlie.pk], "tokens": [theirs.pk]})
    assert answer.status_code == 200
    assert not Audience.objects.exists()


def test_filters_do_not_name_what_is_elsewhere(browser, dave, charlie, robo) -> None:
    assert "charlie" not in browser(dave).get(url("apitoken")).content.decode()


def test_what_is_added_belongs_to_the_sessions_workspace(browser, workspace, other_workspace, dave) -> None:
    member_add(principal=operator(other_workspace), username="dave", role=Role.ADMIN)
    client = browser(dave)
    client.post("/workspace/", {"workspace": "other"})
    client.post(url("audience", "add"), {"name": "x", "workspace": workspace.pk})
    assert Audience.objects.get().workspace == other_workspace


def test_an_admin_elsewhere_is_nobody_here(browser, other_workspace, workspace, bob) -> None:
    member_add(principal=operator(other_workspace), username="bob", role=Role.ADMIN)
    client = browser(bob)
    assert client.get(INDEX, follow=True).status_code == 403
    client.post("/workspace/", {"workspace": "other"})
    assert client.get(INDEX).status_code == 200


def test_a_name_that_is_taken_here_is_said_in_the_form_and_one_elsewhere_is_free(
    browser, dave, workspace, other_workspace
) -> None:
    Audience.objects.create(workspace=other_workspace, name="x")
    client = browser(dave)
    assert client.post(url("audience", "add"), {"name": "x"}).status_code == 302
    answer = client.post(url("audience", "add"), {"name": "x"})
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert Audience.objects.filter(workspace=workspace).count() == 1


# --- tokens -------------------------------------------------------------------------------------------------
TOKEN = {"name": "new", "kind": "agent", "confidence_ceiling": "0.5"}


def test_a_new_token_is_shown_once_and_owned_by_who_made_it(browser, dave) -> None:
    client = browser(dave)
    answer = client.post(url("apitoken", "add"), TOKEN)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    shown = re.search(r"fm_agent_[A-Za-z0-9_-]{32}", answer.content.decode())
    assert shown is not None
    token = ApiToken.objects.get(digest=token_digest(shown[0]))
    assert (token.owner, token.workspace.slug, token.confidence_ceiling) == (dave, "firm", 0.5)
    for page in (url("apitoken"), url("apitoken", "change", token.pk), INDEX, url("apitoken", "history", token.pk)):
        assert shown[0] not in client.get(page).content.decode()
    assert shown[0] not in str(client.cookies)
    assert AuditEvent.objects.filter(subject_kind="token", verb="create").count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"name": ""},
        {"kind": "root"},
        {"confidence_ceiling": "2"},
        {"confidence_ceiling": ""},
        {"expires_at_0": "2020-01-01", "expires_at_1": "00:00"},
        {"repository_ids": ["999999"]},
        {"name": "a\x00b"},
    ],
)
def test_a_token_that_will_not_do(browser, dave, change: dict) -> None:
    answer = browser(dave).post(url("apitoken", "add"), {**TOKEN, **change})
    assert answer.status_code in (200, 302)
    assert not ApiToken.objects.exists()


def test_no_owner_is_taken_from_the_form(browser, dave, alice) -> None:
    browser(dave).post(url("apitoken", "add"), {**TOKEN, "kind": "reviewer", "owner": alice.pk, "digest": "x"})
    assert ApiToken.objects.get().owner == dave


def test_a_token_is_limited_to_repositories_of_here(browser, dave, workspace, other_workspace) -> None:
    from apps.scopes.models import Repository

    mine = Repository.objects.create(workspace=workspace, slug="mine")
    theirs = Repository.objects.create(workspace=other_workspace, slug="theirs")
    client = browser(dave)
    assert "theirs" not in client.get(url("apitoken", "add")).content.decode()
    client.post(url("apitoken", "add"), {**TOKEN, "repository_ids": [theirs.pk]})
    assert not ApiToken.objects.exists()
    client.post(url("apitoken", "add"), {**TOKEN, "repository_ids": [mine.pk]})
    assert ApiToken.objects.get().repository_ids == [mine.pk]


def test_a_token_is_revoked_and_not_changed_or_deleted(browser, dave, robo) -> None:
    client = browser(dave)
    action = {"action": "revoke", "_selected_action": [robo.token.pk]}
    client.post(url("apitoken"), action)
    robo.token.refresh_from_db()
    assert robo.token.revoked_at is not None
    assert AuditEvent.objects.filter(verb="revoke", actor="dave").count() == 1
    client.post(url("apitoken", "change", robo.token.pk), {**TOKEN, "kind": "reviewer"})
    client.post(url("apitoken"), {**action, "action": "delete_selected"})
    client.post(url("apitoken", "delete", robo.token.pk), {"post": "yes"})
    robo.token.refresh_from_db()
    assert (robo.token.name, robo.token.kind) == ("robo", "agent")


def test_tokens_of_another_workspace_are_not_revoked(browser, dave, other_workspace) -> None:
    theirs = issue(other_workspace, "theirs", TokenKind.AGENT).token
    browser(dave).post(url("apitoken"), {"action": "revoke", "_selected_action": [theirs.pk]})
    theirs.refresh_from_db()
    assert theirs.revoked_at is None


# --- people -------------------------------------------------------------------------------------------------
def test_a_new_person_gets_a_password_shown_once(browser, dave) -> None:
    client = browser(dave)
    answer = client.post(
        url("membership", "add"), {"username": "erin", "email": "erin@acme.example", "role": "reviewer"}
    )
    assert answer.status_code == 200
    erin = User.objects.get(username="erin")
    shown = re.search(r"<code>([A-Za-z0-9_-]{24})</code>", answer.content.decode())
    assert shown is not None and erin.check_password(shown[1])
    assert not erin.is_staff and not erin.is_superuser
    assert shown[1] not in str(client.cookies) and shown[1] not in client.get(url("membership")).content.decode()


def test_a_person_who_exists_is_added_without_a_password(browser, dave, charlie) -> None:
    answer = browser(dave).post(url("membership", "add"), {"username": "charlie", "role": "member"})
    assert answer.status_code == 302
    assert Membership.objects.get(user=charlie, workspace__slug="firm").role == "member"
    assert Membership.objects.get(user=charlie, workspace__slug="other").role == "reviewer"


def test_a_role_is_changed_and_a_person_removed(browser, dave, bob) -> None:
    client = browser(dave)
    membership = Membership.objects.get(user=bob)
    client.post(url("membership", "change", membership.pk), {"role": "curator", "username": "dave", "user": dave.pk})
    membership.refresh_from_db()
    assert (membership.role, membership.user) == ("curator", bob)
    client.post(url("membership"), {"action": "remove", "_selected_action": [membership.pk]})
    assert not Membership.objects.filter(user=bob).exists()
    assert [event.verb for event in AuditEvent.objects.filter(subject_id="bob").order_by("id")] == [
        "add",
        "change",
        "remove",
    ]


def test_the_history_of_what_services_record_is_shown_too(browser, dave, bob, robo) -> None:
    client = browser(dave)
    member = client.get(url("membership", "history", Membership.objects.get(user=bob).pk)).content.decode()
    assert "role: member" in member
    token = client.get(url("apitoken", "history", robo.token.pk)).content.decode()
    assert "kind: agent" in token


def test_the_last_admin_stays(browser, dave) -> None:
    client = browser(dave)
    membership = Membership.objects.get(user=dave)
    answer = client.post(url("membership", "change", membership.pk), {"role": "member"}, follow=True)
    assert "without an admin" in answer.content.decode()
    client.post(url("membership"), {"action": "remove", "_selected_action": [membership.pk]})
    membership.refresh_from_db()
    assert membership.role == "admin"


@pytest.mark.parametrize("username", ["", "a b", "a\x00b", "a" * 151])
def test_a_person_that_will_not_do(browser, dave, username: str) -> None:
    answer = browser(dave).post(url("membership", "add"), {"username": username, "role": "member"})
    assert answer.status_code in (200, 302)
    assert User.objects.count() == 1


# --- the rest -----------------------------------------------------------------------------------------------
def test_the_second_person_is_switched_and_recorded(browser, dave, workspace) -> None:
    client = browser(dave)
    client.post(url("workspace", "change", workspace.pk), {"slug": "taken"})
    workspace.refresh_from_db()
    assert (workspace.slug, workspace.second_person) == ("firm", False)
    event = AuditEvent.objects.latest("id")
    assert (event.actor, event.before, event.after) == ("dave", {"second_person": True}, {"second_person": False})
    assert client.get(url("workspace", "add")).status_code == 403
    client.post(url("workspace", "delete", workspace.pk), {"post": "yes"})
    assert Workspace.objects.filter(slug="firm").exists()


def test_a_change_is_recorded_with_what_was_there(browser, dave, alice, bob, robo) -> None:
    client = browser(dave)
    client.post(url("audience", "add"), {"name": "on-call", "members": [alice.pk]}, headers={"X-Request-ID": "r1"})
    made = Audience.objects.get()
    event = AuditEvent.objects.latest("id")
    assert (event.verb, event.subject_kind, event.subject_id, event.request_id) == (
        "add",
        "audience",
        str(made.pk),
        "r1",
    )
    assert event.after == {"name": "on-call", "members": [alice.pk], "tokens": []}
    change = url("audience", "change", made.pk)
    client.post(change, {"name": "on-call", "members": [bob.pk], "tokens": [robo.token.pk]})
    event = AuditEvent.objects.latest("id")
    assert event.before == {"members": [alice.pk], "tokens": []}
    assert event.after == {"members": [bob.pk], "tokens": [robo.token.pk]}
    count = AuditEvent.objects.count()
    client.post(change, {"name": "on-call", "members": [bob.pk], "tokens": [robo.token.pk]})
    assert AuditEvent.objects.count() == count, "nothing changed, nothing to record"
    history = client.get(url("audience", "history", made.pk)).content.decode()
    assert history.count("dave") >= 2


def test_the_audit_trail_is_only_looked_at(browser, dave, robo) -> None:
    client = browser(dave)
    event = AuditEvent.objects.first()
    assert client.get(url("auditevent")).status_code == 200
    assert client.get(url("auditevent", "change", event.pk)).status_code == 200
    assert client.get(url("auditevent", "add")).status_code == 403
    assert client.post(url("auditevent", "change", event.pk), {"actor": "nobody"}).status_code == 403
    assert client.post(url("auditevent", "delete", event.pk), {"post": "yes"}).status_code == 403


def test_text_is_shown_as_text(browser, dave, workspace) -> None:
    attack = "<img src=x onerror=alert(1)>"
    Audience.objects.create(workspace=workspace, name=attack)
    answer = browser(dave).get(url("audience"))
    assert attack not in answer.content.decode()
    assert "&lt;img src=x" in answer.content.decode()
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("model", ADMINS_ONLY)
def test_every_page_opens(browser, dave, robo, workspace, model: str) -> None:
    Audience.objects.create(workspace=workspace, name="x")
    client = browser(dave)
    assert client.get(url(model)).status_code == 200
    assert client.get(f"{url(model)}?q=%00").status_code in (200, 302, 422)
    row = admin.site.get_model_admin(
        {"workspace": Workspace, "membership": Membership, "apitoken": ApiToken, "audience": Audience}.get(
            model, AuditEvent
        )
    ).model.objects.first()
    assert client.get(url(model, "change", row.pk)).status_code == 200
    assert client.get(url(model, "history", row.pk)).status_code == 200
    assert client.get(url(model, "delete", row.pk)).status_code == 403


def test_the_password_page_is_the_one_of_the_site(browser, dave) -> None:
    assert browser(dave).get("/admin/password_change/").headers["Location"] == "/accounts/password/change/"


def test_the_form_of_a_token_says_what_each_kind_may_and_whose_it_is(browser, dave) -> None:
    shown = browser(dave).get(url("apitoken", "add")).content.decode()
    assert "An agent searches and proposes; a bot proposes, for a pipeline" in shown
    assert "somebody else decides about what is proposed with it" in shown
